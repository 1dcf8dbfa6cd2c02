//! The program `csi-proxy`.

mod demo;
mod failure;
mod fault;
mod logging;
mod machine;
mod node;
mod onlooker;
mod output;
mod serve;
mod service;
mod shutdown;
mod sim;
mod size;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use csi_proxy::HostPath;
use tracing_subscriber::filter::LevelFilter;

use crate::demo::DemoArgs;
use crate::failure::Result;
use crate::logging::{Logging, Output};
use crate::node::NodeArgs;
use crate::serve::ServeArgs;
use crate::serve::flags::Bare;
use crate::service::ServiceArgs;
use crate::sim::SimArgs;

/// Kubernetes volumes on Windows nodes
///
/// Tested on a simulated Windows node only. `node` and `demo` need one; `serve` uses the real
/// node on Windows.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    logging: Logging,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows the life of a volume, over gRPC, on a simulated node
    ///
    /// A line per step: its time here, its time on the simulated node, which answers as slowly
    /// as a busy real one (from published figures), and its calls to WMI and to the operating
    /// system. After each step the node is looked at; the first thing that is not as it should
    /// be ends the demo with exit code 1.
    Demo(DemoArgs),
    /// Serves the CSI services of a driver until it is told to end
    ///
    /// SIGTERM and SIGINT let running work end first, and a second one cuts it off.
    Node(Box<NodeArgs>),
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
    let names: Vec<_> = Cli::command()
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    let flags = serve::flags::read(std::env::args_os(), &names, Bare::HERE);
    let cli = Cli::parse_from(flags.arguments);
    let quiet = match cli.command {
        Command::Node(_) | Command::Serve(_) => LevelFilter::INFO,
        Command::Demo(_) => LevelFilter::OFF,
        Command::Sim(_) | Command::Service(_) => LevelFilter::WARN,
    };
    let output = match &cli.command {
        Command::Serve(args) => args.log_output(),
        _ => Ok(Output::StandardError),
    };
    let ended = output.and_then(|output| {
        cli.logging.start(quiet, output);
        for warning in flags.warnings {
            tracing::warn!("{warning}");
        }
        run(cli.command)
    });
    match ended {
        Ok(code) => code,
        Err(failure) => {
            // Nobody may read it any more.
            let _ = writeln!(std::io::stderr(), "csi-proxy: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Node(args) => node::run(&args),
        Command::Serve(args) => serve::run(*args),
        Command::Service(args) => service::manage(args),
        Command::Sim(args) => sim::run(&args),
    }
}

/// A path on the node, as users and the kubelet write it.
fn path(text: &str) -> std::result::Result<HostPath, String> {
    HostPath::from_kubelet(text).map_err(|error| error.to_string())
}
