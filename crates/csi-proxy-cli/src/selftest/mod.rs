//! `csi-proxy selftest`: every operation on disks, volumes and files, and the life of a volume,
//! on the machine that it runs on.

mod area;
mod checks;
mod csi;
mod disks;
mod files;
mod guard;
mod suite;
mod volumes;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use csi_proxy::{Host, HostPath};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::control::ControlClient;

use crate::failure::{Failure, Result};
use crate::fault::FaultArg;
use crate::host::Simulated;
use crate::life::join;
use crate::output::Output;
use crate::record::{Of, Recording};
use crate::report::{Form, Report};
use crate::shutdown::Shutdown;
use crate::{demo, host, machine, path};
pub(crate) use area::Area;
use suite::{Interrupt, Suite};

/// How long a call of the library may take; a format has a limit of its own.
const CALL_LIMIT: Duration = Duration::from_secs(120);
/// The end for wrong use, as clap has it.
const USAGE: u8 = 2;

/// What the self-test is told.
#[derive(Args)]
pub(crate) struct SelftestArgs {
    /// Runs; without it the command only says what it would do, with exit code 2
    #[arg(long)]
    yes: bool,

    /// The node: this machine, or a simulated one [default: local on Windows, else simulated]
    #[arg(long, value_enum, value_name = "NODE", default_value_t = Node::here(),
        hide_default_value = true)]
    host: Node,

    /// Runs on the simulated node of another program, at its control endpoint
    #[arg(long, value_name = "URL", conflicts_with = "host")]
    simulate_at: Option<String>,

    /// The directory on the node in which the folder csi-proxy-selftest is made [default: the
    /// temporary directory; C:\ of a simulated node]
    #[arg(long, value_name = "PATH", value_parser = path)]
    directory: Option<HostPath>,

    /// Makes a port call of the simulated node fail, to see what happens then; see `csi-proxy
    /// sim fault --help`
    #[arg(long, value_name = "FAULT", conflicts_with = "simulate_at")]
    fault: Vec<FaultArg>,

    #[command(flatten)]
    pub(crate) recording: Recording,

    /// Prints a JSON object per check and one for the summary
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Node {
    /// The machine that the program runs on
    Local,
    /// A simulated Windows node inside this program
    Simulated,
}

impl Node {
    fn here() -> Self {
        match cfg!(windows) {
            true => Self::Local,
            false => Self::Simulated,
        }
    }
}

/// Runs the self-test. A check that fails ends it with exit code 1.
pub(crate) fn run(args: &SelftestArgs) -> Result<ExitCode> {
    let folder = folder(args)?;
    if !args.yes {
        println!("{}", intention(args, &folder));
        return Ok(ExitCode::from(USAGE));
    }
    let (host, name, node) = host(args)?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::from_error("cannot start", &error))?;
    let interrupt = Interrupt::default();
    listen(&runtime, &interrupt)?;
    let directory = std::env::temp_dir().join(format!("csi-proxy-st-{}", std::process::id()));
    let title = format!("The self-test of csi-proxy on {name}, in {folder}");
    let form = Form::of_stdout(args.json);
    let names = suite::names();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let report =
        Report::begin(form, Output::standard(), &title, &names).map_err(demo::unwritten)?;
    let suite = Suite {
        area: Area::new(host, folder),
        socket: directory.join("csi.sock"),
        interrupt: interrupt.clone(),
        runtime: &runtime,
        report,
    };
    let passed = suite.run(|| match &node {
        Some((node, _)) => node.show_faults(),
        None => Vec::new(),
    });
    // It is not there when there are no Unix sockets.
    let _ = std::fs::remove_dir_all(&directory);
    let passed = passed?;
    if let Some(signal) = interrupt.signal() {
        return Err(Failure::new(format!(
            "{signal} has ended the self-test early"
        )));
    }
    match passed {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// What the self-test would do.
fn intention(args: &SelftestArgs, folder: &HostPath) -> String {
    let node = match (&args.simulate_at, args.host) {
        (Some(uri), _) => format!("the simulated node at {uri}"),
        (None, Node::Simulated) => "a simulated Windows node".to_owned(),
        (None, Node::Local) => "this machine".to_owned(),
    };
    let count = suite::names().len();
    format!(
        "csi-proxy selftest would run {count} checks on {node}: it would make the folder {folder} \
         with virtual disks (VHDX files of at most 384 MiB) in it, attach, partition, format, \
         mount and grow them, and remove all of it again. It changes no disk that it has not \
         made.\n\nRun it with --yes. On Windows it needs an administrator."
    )
}

/// The folder on this machine.
pub(crate) fn folder_here() -> Result<HostPath> {
    join(&temporary_directory()?, &[area::NAME])
}

/// The folder on the node.
fn folder(args: &SelftestArgs) -> Result<HostPath> {
    let local = args.simulate_at.is_none() && args.host == Node::Local;
    let directory = match (&args.directory, local) {
        (Some(directory), _) => directory.clone(),
        (None, false) => path(r"C:\").map_err(Failure::new)?,
        (None, true) => temporary_directory()?,
    };
    join(&directory, &[area::NAME])
}

/// This machine's temporary directory with its long names: `%TEMP%` may hold short ones
/// (`RUNNER~1`), and WMI shows the files of disks by their long ones.
fn temporary_directory() -> Result<HostPath> {
    let directory = std::env::temp_dir();
    let what = format!("the temporary directory {}", directory.display());
    let long = std::fs::canonicalize(&directory);
    let long: PathBuf = long.map_err(|error| Failure::from_error(&what, &error))?;
    let text = long.to_string_lossy();
    let text = text.strip_prefix(r"\\?\").unwrap_or(&text);
    path(text).map_err(|error| Failure::new(format!("{what}: {error}; use --directory")))
}

/// A simulated node of our own, and the way to it.
type OurOwn = (SimNode, Simulated);

/// The node, what to call it, and the simulated one if it is our own.
fn host(args: &SelftestArgs) -> Result<(Host, String, Option<OurOwn>)> {
    if let Some(uri) = &args.simulate_at {
        let node = ControlClient::connect(uri)
            .map_err(|error| Failure::from_error("--simulate-at", &error))?;
        let host = args.recording.of(node.host(), Of::OtherProgram)?;
        return Ok((host, format!("the simulated node at {uri}"), None));
    }
    match args.host {
        Node::Local if !args.fault.is_empty() => Err(Failure::new(
            "--fault is for the simulated node: add --host simulated",
        )),
        Node::Local => {
            let machine = host::local("leave --host local out to run on a simulated one")?;
            let host = args.recording.of(machine, Of::ThisMachine)?;
            Ok((host, "this machine".to_owned(), None))
        }
        Node::Simulated => {
            let node = machine::for_demo();
            args.recording.begin_on(&node)?;
            for fault in &args.fault {
                node.inject(fault.fault());
            }
            let way = Simulated::over(node.process())?;
            let host = args.recording.of(way.host.clone(), Of::OurOwn)?;
            Ok((
                host,
                "a simulated Windows node".to_owned(),
                Some((node, way)),
            ))
        }
    }
}

/// Has a signal end the self-test after the check that runs.
fn listen(runtime: &tokio::runtime::Runtime, interrupt: &Interrupt) -> Result<()> {
    let _inside = runtime.enter();
    let shutdown = Shutdown::listen()
        .map_err(|error| Failure::from_error("cannot listen for signals", &error))?;
    let interrupt = interrupt.clone();
    runtime.spawn(async move {
        let signal = shutdown.signal().await;
        eprintln!("{signal}: the running check ends, then all is cleaned up");
        interrupt.set(signal);
    });
    Ok(())
}
