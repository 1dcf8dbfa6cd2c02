//! The program `csi-proxy`.

mod client;
mod demo;
mod failure;
mod fault;
mod host;
mod life;
mod logging;
mod machine;
mod meter;
mod node;
mod onlooker;
mod output;
mod record;
mod replay;
mod report;
mod selftest;
mod serve;
mod served;
mod service;
mod shutdown;
mod sim;
mod size;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use csi_proxy::HostPath;
use tracing_subscriber::filter::LevelFilter;

use crate::demo::DemoArgs;
use crate::failure::{Failure, Result};
use crate::logging::{Logging, Output};
use crate::node::NodeArgs;
use crate::record::RecordArgs;
use crate::replay::ReplayArgs;
use crate::selftest::SelftestArgs;
use crate::serve::ServeArgs;
use crate::serve::flags::Bare;
use crate::service::ServiceArgs;
use crate::sim::SimArgs;

/// Kubernetes volumes on Windows nodes
///
/// Tested on a simulated Windows node only, and under Wine as far as that goes.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    logging: Logging,
    #[command(subcommand)]
    asked: Asked,
}

#[derive(Subcommand)]
enum Asked {
    #[command(flatten)]
    Command(Command),
    /// Runs another command and writes every port call of it to a file
    ///
    /// The command is `selftest`, `node`, `serve` or `demo`. Secrets and the contents of files and
    /// disks are not in the file; paths, names of shares, users and services, and ids of disks
    /// are.
    #[command(after_help = record::EXAMPLES)]
    Record(RecordArgs),
}

#[derive(Subcommand)]
enum Command {
    /// Shows the life of a volume, over gRPC, on a simulated node or on this machine
    ///
    /// A line per step: its time here, its time on the simulated node, which answers as slowly
    /// as a busy real one (from published figures), and its calls to WMI and to the operating
    /// system. After each step the node is looked at; the first thing that is not as it should
    /// be ends the demo with exit code 1.
    Demo(DemoArgs),
    /// Takes a virtual disk of its own through every disk, volume and filesystem operation
    ///
    /// And through the life of a volume of the driver `local`, over gRPC. A line per check: its
    /// time here and on the node's clock, and its calls to WMI and to the operating system.
    /// Everything is made in one folder, which is gone afterwards, whatever happens. No disk but
    /// the test's own is changed: before each call that changes something, the disk's unique id
    /// and the VHDX file behind it are checked. Exit code 1 when a check fails.
    Selftest(SelftestArgs),
    /// Serves the CSI services of a driver until it is told to end
    ///
    /// SIGTERM and SIGINT let running work end first, and a second one cuts it off.
    Node(Box<NodeArgs>),
    /// Tells where a simulated node would have answered otherwise than a recorded one
    ///
    /// The node begins as the recorded one did, as far as the trace tells. A line per difference
    /// names the line of the trace; with differences the exit code is 1.
    #[command(after_help = replay::EXAMPLES)]
    Replay(ReplayArgs),
    /// Serves the gRPC API of CSI Proxy 1.x, until it is told to end
    ///
    /// Flags of CSI Proxy 1.x may have one dash, and klog's are taken too. The program started
    /// with such flags and without a command serves; on Windows also without any flag.
    Serve(Box<ServeArgs>),
    /// Installs, takes away or looks at the Windows service csiproxy, which serves
    Service(ServiceArgs),
    /// Looks at and changes the simulated node of a running `csi-proxy node --simulate`
    #[command(after_help = sim::EXAMPLES)]
    Sim(Box<SimArgs>),
}

fn main() -> ExitCode {
    let ended = Started::read(std::env::args_os().collect()).and_then(Started::run);
    match ended {
        Ok(code) => code,
        Err(failure) => {
            // Nobody may read it any more.
            let _ = writeln!(std::io::stderr(), "csi-proxy: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// What the program is started with.
struct Started {
    logging: Logging,
    command: Command,
    /// What the user must be told about it.
    warnings: Vec<String>,
}

impl Started {
    fn read(arguments: Vec<OsString>) -> Result<Self> {
        let names: Vec<_> = Cli::command()
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect();
        let flags = serve::flags::read(arguments, &names, Bare::HERE);
        let cli = Cli::parse_from(flags.arguments);
        match cli.asked {
            Asked::Command(command) => Ok(Self {
                logging: cli.logging,
                command,
                warnings: flags.warnings,
            }),
            Asked::Record(args) => {
                let (file, arguments) = args.parts();
                let mut recorded = Self::read(arguments)?;
                recorded.command.record(file)?;
                recorded.logging = recorded.logging.or(cli.logging);
                Ok(recorded)
            }
        }
    }

    fn run(self) -> Result<ExitCode> {
        let output = match &self.command {
            Command::Serve(args) => args.log_output()?,
            _ => Output::StandardError,
        };
        self.logging.start(self.command.quiet(), output);
        for warning in self.warnings {
            tracing::warn!("{warning}");
        }
        self.command.run()
    }
}

impl Command {
    /// Records the port calls of the command there.
    fn record(&mut self, file: PathBuf) -> Result<()> {
        match self {
            Self::Demo(args) => args.recording.set(file),
            Self::Node(args) => args.recording.set(file),
            Self::Selftest(args) => args.recording.set(file),
            Self::Serve(args) => args.recording.set(file),
            Self::Replay(_) | Self::Service(_) | Self::Sim(_) => Err(Failure::new(
                "record: the command makes no port calls of its own; expected selftest, node, \
                 serve or demo",
            )),
        }
    }

    /// How much is told without options.
    fn quiet(&self) -> LevelFilter {
        match self {
            Self::Node(_) | Self::Serve(_) => LevelFilter::INFO,
            Self::Demo(_) | Self::Selftest(_) => LevelFilter::OFF,
            Self::Replay(_) | Self::Service(_) | Self::Sim(_) => LevelFilter::WARN,
        }
    }

    fn run(self) -> Result<ExitCode> {
        match self {
            Self::Demo(args) => demo::run(&args),
            Self::Node(args) => node::run(&args),
            Self::Replay(args) => replay::run(&args),
            Self::Selftest(args) => selftest::run(&args),
            Self::Serve(args) => serve::run(*args),
            Self::Service(args) => service::manage(args),
            Self::Sim(args) => sim::run(&args),
        }
    }
}

/// A path on the node, as users and the kubelet write it.
fn path(text: &str) -> std::result::Result<HostPath, String> {
    HostPath::from_kubelet(text).map_err(|error| error.to_string())
}
