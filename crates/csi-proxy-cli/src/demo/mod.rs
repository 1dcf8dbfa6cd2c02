//! `csi-proxy demo`: the life of a volume on a simulated node, over gRPC.

use std::io;
use std::process::ExitCode;

use clap::Args;
use csi_proxy::Host;
use csi_proxy::clock::{Clock as _, Moment};
use csi_proxy_sim::SimNode;

use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::fault::FaultArg;
use crate::host::Simulated;
use crate::life::{LIFE, Life, Setting, Step};
use crate::meter::{Calls, FORMAT, Meter, measured};
use crate::onlooker::Onlooker;
use crate::output::Output;
use crate::record::{Of, Recording};
use crate::report::{self, Form, Report};
use crate::{machine, served};

/// Where the VHDX files are on the node.
pub(crate) const POOL: &str = r"C:\csi-volumes";

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
    let recorded = |host: Host| args.recording.of(host, Of::OurOwn);
    let pool = crate::path(POOL).map_err(Failure::new)?;
    let way = Simulated::over(node.process())?;
    let plugin = served::plugin(recorded(way.host.clone())?, &pool, "demo-node")?;
    let onlooker = Onlooker::new(recorded(node.process().host())?);
    for fault in &args.fault {
        node.inject(fault.fault());
    }
    let directory = std::env::temp_dir().join(format!("csi-proxy-demo-{}", std::process::id()));
    let server = served::bind(&directory.join("csi.sock")).await?;
    let endpoint = server.endpoint().to_string();
    let form = Form::of_stdout(args.json);
    let walk = walk(&node, onlooker, &endpoint, form);
    let passed = served::serve_while(server, plugin, walk).await;
    // It is not there when the plugin listened at a port.
    let _ = std::fs::remove_dir_all(&directory);
    passed
}

/// Goes through the life. Answers whether all of it was right.
async fn walk(node: &SimNode, onlooker: Onlooker, endpoint: &str, form: Form) -> Result<bool> {
    let client = Client::connect(endpoint).await?;
    let mut life = Life::new(client, onlooker, Setting::of_the_demo()?)?;
    let title = format!("The life of a volume on a simulated Windows node, over {endpoint}");
    let names = LIFE.map(Step::name);
    let mut report = Report::begin(form, Output::standard(), &title, &names).map_err(unwritten)?;
    for step in LIFE {
        life.prepare(step)?;
        let (outcome, cost, formats) = measured(node, life.act(step)).await;
        let outcome = match outcome {
            Ok(detail) => life.check(step, formats).await.map(|()| detail),
            failed => failed,
        };
        let step = report::Step {
            name: step.name(),
            outcome: outcome.into(),
            cost,
        };
        report.step(&step).map_err(unwritten)?;
        if step.outcome.is_failure() {
            break;
        }
    }
    // The steps that were not run had no chance to meet a fault.
    let left = match report.lacks_something() {
        true => Vec::new(),
        false => node.show_faults(),
    };
    report.end(left).map_err(unwritten)
}

impl Meter for SimNode {
    fn calls(&self) -> Calls {
        let counts = self.counts();
        Calls {
            cim: counts.cim,
            os: counts.os,
            formats: counts.of(FORMAT),
        }
    }

    fn now(&self) -> Moment {
        self.clock().now()
    }
}

pub(crate) fn unwritten(error: io::Error) -> Failure {
    Failure::from_error("cannot write to standard output", &error)
}
