//! The program `csi-proxy`.

mod demo;
mod failure;
mod fault;
mod logging;
mod machine;
mod node;
mod onlooker;
mod shutdown;
mod sim;
mod size;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use csi_proxy::HostPath;
use tracing_subscriber::filter::LevelFilter;

use crate::demo::DemoArgs;
use crate::failure::Result;
use crate::logging::Logging;
use crate::node::NodeArgs;
use crate::sim::SimArgs;

/// Kubernetes volumes on Windows nodes
///
/// This version runs on a simulated Windows node only; the connection to a real one is not
/// in it yet.
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
    Node(Box<NodeArgs>),
    /// Looks at and changes the simulated node of a running `csi-proxy node --simulate`
    Sim(Box<SimArgs>),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let quiet = match cli.command {
        Command::Node(_) => LevelFilter::INFO,
        Command::Demo(_) => LevelFilter::OFF,
        Command::Sim(_) => LevelFilter::WARN,
    };
    cli.logging.start(quiet);
    match run(cli.command) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("csi-proxy: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Node(args) => node::run(&args),
        Command::Sim(args) => sim::run(&args),
    }
}

/// A path on the node, as users and the kubelet write it.
fn path(text: &str) -> std::result::Result<HostPath, String> {
    HostPath::from_kubelet(text).map_err(|error| error.to_string())
}
