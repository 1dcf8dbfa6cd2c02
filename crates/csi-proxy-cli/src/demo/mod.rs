//! `csi-proxy demo`: the life of a volume on a simulated node, over gRPC.

mod client;
mod life;

mod report;

use std::future::Future;
use std::io;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use csi_node::local::{LocalConfig, LocalDriver};
use csi_node::{Endpoint, Plugin, Server};
use csi_proxy::Host;
use csi_proxy::clock::Clock as _;
use csi_proxy_sim::{Counts, SimNode};

use crate::failure::{Failure, Result};
use crate::fault::FaultArg;
use crate::machine;
use crate::onlooker::Onlooker;
use crate::output::Output;
use crate::record::{Of, Recording};
use client::Client;
use life::{LIFE, Life};

use report::{Cost, Form, Report};

/// Where the VHDX files are on the node.
const POOL: &str = r"C:\csi-volumes";

/// What the demo is told.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Prints a JSON object per step and one for the summary
    #[arg(long)]
    json: bool,

    /// Makes a port call fail, to see what happens then; see `csi-proxy sim fault --help`. The
    /// demo fails too when the call is never made
    #[arg(long, value_name = "FAULT")]
    fault: Vec<FaultArg>,

    #[command(flatten)]
    pub(crate) recording: Recording,
}

/// Runs the demo. A step that goes wrong ends it with exit code 1.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::from_error("cannot start", &error))?;
    match runtime.block_on(demo(args))? {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

async fn demo(args: &DemoArgs) -> Result<bool> {
    let node = machine::for_demo();
    args.recording.begin_on(&node)?;
    let host = |node: &SimNode| args.recording.of(node.process().host(), Of::OurOwn);
    let plugin = plugin(host(&node)?)?;
    let onlooker = Onlooker::new(host(&node)?);
    for fault in &args.fault {
        node.inject(fault.fault());
    }
    let directory = std::env::temp_dir().join(format!("csi-proxy-demo-{}", std::process::id()));
    let server = bind(&directory.join("csi.sock")).await?;
    let endpoint = server.endpoint().to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(server.serve(plugin, async {
        // Ends with the demo, however that ends.
        let _ = stopped.await;
    }));

    let passed = walk(&node, onlooker, &endpoint, Form::of_stdout(args.json)).await;
    drop(stop);
    let ended = served.await;
    // It is not there when the plugin listened at a port.
    let _ = std::fs::remove_dir_all(&directory);
    ended
        .map_err(|error| Failure::from_error("the plugin ended early", &error))?
        .map_err(|error| Failure::new(error.to_string()))?;
    passed
}

/// The driver `local`, with nothing configured.
fn plugin(host: Host) -> Result<Plugin> {
    let pool = crate::path(POOL).map_err(Failure::new)?;
    let driver = LocalDriver::new(host, LocalConfig::new(pool, "demo-node"))
        .map_err(|error| Failure::from_error("cannot start the driver", &error))?;
    Ok(Plugin::new(driver))
}

/// Listens at a Unix socket, or on the loopback interface where there are none.
async fn bind(socket: &std::path::Path) -> Result<Server> {
    let told = |error: csi_node::EndpointError| Failure::new(error.to_string());
    match Server::bind(&Endpoint::Unix(socket.to_owned())).await {
        Ok(server) => Ok(server),
        Err(_) => {
            let loopback: Endpoint = "tcp://127.0.0.1:0".parse().map_err(told)?;
            Server::bind(&loopback).await.map_err(told)
        }
    }
}

/// Goes through the life. Answers whether all of it was right.
async fn walk(node: &SimNode, onlooker: Onlooker, endpoint: &str, form: Form) -> Result<bool> {
    let client = Client::connect(endpoint).await?;
    let mut life = Life::new(client, onlooker)?;
    let title = format!("The life of a volume on a simulated Windows node, over {endpoint}");
    let mut report = Report::begin(form, Output::standard(), &title).map_err(unwritten)?;
    let mut passed = true;
    for step in LIFE {
        life.prepare(step)?;
        let (outcome, cost, formats) = measured(node, life.act(step)).await;
        let outcome = match outcome {
            Ok(detail) => life.check(step, formats).await.map(|()| detail),
            failed => failed,
        };
        passed = outcome.is_ok();
        let step = report::Step {
            name: step.name(),
            outcome,
            cost,
        };
        report.step(&step).map_err(unwritten)?;
        if !passed {
            break;
        }
    }
    // The steps that were not run had no chance to meet a fault.
    let left = match passed {
        true => node.show_faults(),
        false => Vec::new(),
    };
    let passed = passed && left.is_empty();
    report.end(LIFE.len(), left).map_err(unwritten)?;
    Ok(passed)
}

/// What a step costs, and how many formats there were in it.
async fn measured<T>(node: &SimNode, step: impl Future<Output = T>) -> (T, Cost, u64) {
    let clock = node.clock();
    let (counts, start, node_start) = (node.counts(), Instant::now(), clock.now());
    let outcome = step.await;
    let after = node.counts();
    let cost = Cost {
        time: start.elapsed(),
        node_time: clock.now().0.saturating_sub(node_start.0),
        cim: after.cim - counts.cim,
        os: after.os - counts.os,
    };
    let formats = |counts: &Counts| counts.of("MSFT_Volume.Format");
    (outcome, cost, formats(&after) - formats(&counts))
}

fn unwritten(error: io::Error) -> Failure {
    Failure::from_error("cannot write to standard output", &error)
}
