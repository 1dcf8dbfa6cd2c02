//! `csi-proxy demo`: the life of a volume, over gRPC.

use std::io;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use csi_proxy::clock::{Clock as _, Moment};
use csi_proxy::{Host, HostPath};
use csi_proxy_sim::SimNode;

use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::fault::FaultArg;
use crate::host::{self, Simulated};
use crate::life::{LIFE, Life, Setting, Step, join};
use crate::meter::{Calls, FORMAT, Meter, measured};
use crate::onlooker::Onlooker;
use crate::output::Output;
use crate::record::{Of, Recording};
use crate::report::{self, Form, Report};
use crate::selftest::Area;
use crate::{machine, selftest, served};

/// Where the VHDX files are on the node.
pub(crate) const POOL: &str = r"C:\csi-volumes";

/// What the demo is told.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// The node that the volume is on
    #[arg(long, value_enum, value_name = "NODE", default_value_t = On::Simulated)]
    host: On,

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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum On {
    /// A simulated Windows node inside this program
    Simulated,
    /// The machine that the program runs on: a virtual disk of at most 384 MiB in the folder of
    /// the self-test, under its guard, and nothing is left
    Local,
}

/// Where a demo takes place.
struct Scene<'a> {
    /// The node in words.
    node: &'static str,
    plugin: Host,
    /// Another process: the kubelet, and the pod.
    onlooker: Host,
    pool: HostPath,
    setting: Setting,
    meter: &'a dyn Meter,
}

/// Runs the demo. A step that goes wrong ends it with exit code 1.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::from_error("cannot start", &error))?;
    let passed = runtime.block_on(async {
        match args.host {
            On::Simulated => on_simulated_node(args).await,
            On::Local => on_this_machine(args).await,
        }
    })?;
    match passed {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

async fn on_simulated_node(args: &DemoArgs) -> Result<bool> {
    let node = machine::for_demo();
    args.recording.begin_on(&node)?;
    let recorded = |host: Host| args.recording.of(host, Of::OurOwn);
    let way = Simulated::over(node.process())?;
    let scene = Scene {
        node: "a simulated Windows node",
        plugin: recorded(way.host.clone())?,
        onlooker: recorded(node.process().host())?,
        pool: crate::path(POOL).map_err(Failure::new)?,
        setting: Setting::of_the_demo()?,
        meter: &node,
    };
    for fault in &args.fault {
        node.inject(fault.fault());
    }
    demo(scene, Form::of_stdout(args.json), || node.show_faults()).await
}

async fn on_this_machine(args: &DemoArgs) -> Result<bool> {
    if !args.fault.is_empty() {
        return Err(Failure::new(
            "--fault is for the simulated node: leave --host local out",
        ));
    }
    let host = host::local("leave --host local out to run on a simulated one")?;
    let host = args.recording.of(host, Of::ThisMachine)?;
    let area = Area::new(host, selftest::folder_here()?);
    within(area, Form::of_stdout(args.json)).await
}

/// The demo in a folder of its own, of which nothing is left.
async fn within(mut area: Area, form: Form) -> Result<bool> {
    area.claim()?;
    let passed = in_claimed(&area, form).await;
    let cleared = area.end();
    let passed = passed?;
    cleared.map(|()| passed)
}

async fn in_claimed(area: &Area, form: Form) -> Result<bool> {
    let root = join(area.folder(), &["csi"])?;
    let pool = join(&root, &["pool"])?;
    let scene = Scene {
        node: "this machine",
        plugin: area.host(),
        onlooker: area.host(),
        setting: Setting::below(&root, &pool)?,
        pool,
        meter: area.meter(),
    };
    demo(scene, form, Vec::new).await
}

/// `left` are the faults that no call has met.
async fn demo(scene: Scene<'_>, form: Form, left: impl FnOnce() -> Vec<String>) -> Result<bool> {
    let plugin = served::plugin(scene.plugin.clone(), &scene.pool, "demo-node")?;
    let directory = std::env::temp_dir().join(format!("csi-proxy-demo-{}", std::process::id()));
    let server = served::bind(&directory.join("csi.sock")).await?;
    let endpoint = server.endpoint().to_string();
    let walk = walk(scene, &endpoint, form, left);
    let passed = served::serve_while(server, plugin, walk).await;
    // It is not there when the plugin listened at a port.
    let _ = std::fs::remove_dir_all(&directory);
    passed
}

/// Goes through the life. Answers whether all of it was right.
async fn walk(
    scene: Scene<'_>,
    endpoint: &str,
    form: Form,
    left: impl FnOnce() -> Vec<String>,
) -> Result<bool> {
    let client = Client::connect(endpoint).await?;
    let title = format!("The life of a volume on {}, over {endpoint}", scene.node);
    let mut life = Life::new(client, Onlooker::new(scene.onlooker), scene.setting)?;
    let names = LIFE.map(Step::name);
    let mut report = Report::begin(form, Output::standard(), &title, &names).map_err(unwritten)?;
    for step in LIFE {
        life.prepare(step)?;
        let (outcome, cost, formats) = measured(scene.meter, life.act(step)).await;
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
        false => left(),
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

#[cfg(test)]
mod tests {
    use csi_proxy_sim::Fault;

    use super::*;

    /// The demo as on a real machine, on a node that can be looked at.
    fn demo_within(node: &SimNode) -> Result<bool> {
        let folder = crate::path(r"C:\temp\csi-proxy-selftest").map_err(Failure::new)?;
        let area = Area::new(node.process().host(), folder);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(within(area, Form::Json))
    }

    /// All that is on the node but the folders above the demo's.
    fn left_on(node: &SimNode) -> Vec<String> {
        let root = crate::path(r"C:\").unwrap();
        let traces = Onlooker::new(node.process().host()).traces(&root).unwrap();
        let fresh = Onlooker::new(machine::for_demo().process().host());
        let mut left = traces.differences(&fresh.traces(&root).unwrap());
        left.retain(|line| line != r"left: C:\temp\");
        left
    }

    #[test]
    fn a_life_on_a_real_machine_leaves_nothing() {
        let node = machine::for_demo();
        assert!(demo_within(&node).unwrap());
        assert_eq!(left_on(&node), Vec::<String>::new());
    }

    #[test]
    fn a_life_that_fails_on_a_real_machine_leaves_nothing() {
        for operation in ["set_mount_point", "create_link", "MSFT_Volume.Format"] {
            let node = machine::for_demo();
            node.inject(Fault::on(operation).win32(5));
            assert!(!demo_within(&node).unwrap(), "{operation}");
            assert_eq!(left_on(&node), Vec::<String>::new(), "{operation}");
        }
    }
}
