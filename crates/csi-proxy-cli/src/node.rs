//! `csi-proxy node`: the CSI services of a driver, until a signal ends them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use csi_node::local::{LocalConfig, LocalDriver, PLUGIN_NAME};
use csi_node::{Endpoint, Plugin, Server};
use csi_proxy::{Host, HostPath};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::control::{ControlClient, ControlServer};
use tokio::runtime::Runtime;

use crate::failure::{Failure, Result};
use crate::machine::{self, Speed};
use crate::path;
use crate::shutdown::Shutdown;
use crate::size;

/// What `csi-proxy node` is told.
#[derive(Args)]
pub(crate) struct NodeArgs {
    /// The kind of volumes
    #[arg(long, value_enum)]
    driver: Driver,

    /// Where the CSI services listen: unix:///path or tcp://127.0.0.1:port (loopback only)
    #[arg(long, value_name = "URL", env = "CSI_ENDPOINT")]
    endpoint: Endpoint,

    /// The node's name in the cluster, at most 256 bytes
    #[arg(
        long,
        value_name = "NAME",
        env = "KUBE_NODE_NAME",
        default_value = "simulated"
    )]
    node_id: String,

    /// The plugin's name, also the prefix of its topology key
    #[arg(long, value_name = "NAME", default_value = PLUGIN_NAME)]
    plugin_name: String,

    /// The directory of the VHDX files on the node; it is made when it is missing
    #[arg(long, value_name = "PATH", default_value = r"C:\csi-volumes", value_parser = path)]
    pool: HostPath,

    /// The most that all volumes together may have, in bytes or with a unit as in 100GiB
    /// [default: the pool's free space]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    capacity_limit: Option<u64>,

    /// The most volumes in use on the node at a time; 0 leaves it to the cluster
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    max_volumes: u32,

    /// The directory on the node for the records of formats that have not ended; it must
    /// stay the same over restarts [default: state below the pool]
    #[arg(long, value_name = "PATH", value_parser = path)]
    state_dir: Option<HostPath>,

    /// Runs on a simulated node: the one that the file describes, or a fresh one with a
    /// 127 GiB drive C:; `csi-proxy sim example` prints such a file
    #[arg(long, value_name = "MACHINE.TOML", num_args = 0..=1, require_equals = true)]
    simulate: Option<Option<PathBuf>>,

    /// Runs on the simulated node of another program, at its control endpoint
    #[arg(long, value_name = "URL", conflicts_with = "simulate")]
    simulate_at: Option<String>,

    /// Where the simulated node is controlled with `csi-proxy sim`: unix:///path or
    /// tcp://127.0.0.1:port [default: nowhere]
    #[arg(long, value_name = "URL", requires = "simulate")]
    sim_control: Option<String>,

    /// Keeps the simulated node in this file: read at the start if it is there, instead of a
    /// machine file, and written at the end
    #[arg(long, value_name = "FILE", requires = "simulate")]
    sim_state: Option<PathBuf>,

    /// How long the simulated node takes to answer [default: as the machine file says, or
    /// instant]
    #[arg(long, value_enum, requires = "simulate")]
    sim_speed: Option<Speed>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Driver {
    /// VHDX files in a directory on the node
    Local,
}

/// Serves until a signal comes, then lets running work finish.
pub(crate) fn run(args: &NodeArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::from_error("cannot start", &error))?;
    match (&args.simulate, &args.simulate_at) {
        (Some(machine), _) => simulate(args, machine.as_deref(), &runtime)?,
        (None, Some(uri)) => {
            let node = ControlClient::connect(uri)
                .map_err(|error| Failure::from_error("--simulate-at", &error))?;
            runtime.block_on(serve(args, node.host()))?;
        }
        (None, None) => {
            return Err(Failure::new(
                "this version has no connection to a real Windows node: add --simulate or \
                 --simulate=machine.toml to run on a simulated one",
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves on a simulated node of our own.
fn simulate(args: &NodeArgs, machine: Option<&Path>, runtime: &Runtime) -> Result<()> {
    let node = machine::for_node(machine, args.sim_state.as_deref(), args.sim_speed)?;
    // It is open until it is dropped.
    let _control = control(args.sim_control.as_deref(), &node)?;
    runtime.block_on(serve(args, machine::restarted_host(&node)))?;
    match &args.sim_state {
        None => Ok(()),
        Some(path) => node
            .save(path)
            .map_err(|error| Failure::from_error("--sim-state", &error)),
    }
}

/// Opens the control endpoint, and tells so on standard output.
pub(crate) fn control(uri: Option<&str>, node: &SimNode) -> Result<Option<ControlServer>> {
    let Some(uri) = uri else {
        return Ok(None);
    };
    let server = ControlServer::start(node.clone(), uri)
        .map_err(|error| Failure::from_error("--sim-control", &error))?;
    tell(&format!("simulated node at {}", server.uri()));
    Ok(Some(server))
}

/// Serves the plugin, and tells the endpoint on standard output as soon as it can be
/// reached.
async fn serve(args: &NodeArgs, host: Host) -> Result<()> {
    let told = |error: csi_node::EndpointError| Failure::new(error.to_string());
    let shutdown = Shutdown::listen()
        .map_err(|error| Failure::from_error("cannot listen for signals", &error))?;
    let plugin = plugin(args, host)?;
    let server = Server::bind(&args.endpoint).await.map_err(told)?;
    tell(&format!("listening on {}", server.endpoint()));
    let signal = async {
        let signal = shutdown.signal().await;
        tracing::info!("{signal}: no new calls; running work ends first");
    };
    server.serve(plugin, signal).await.map_err(told)
}

fn plugin(args: &NodeArgs, mut host: Host) -> Result<Plugin> {
    if let Some(directory) = &args.state_dir {
        host = host.with_state_dir(directory.clone());
    }
    let Driver::Local = args.driver;
    let config = LocalConfig {
        limit: args.capacity_limit,
        plugin_name: args.plugin_name.clone(),
        max_volumes: args.max_volumes,
        ..LocalConfig::new(args.pool.clone(), args.node_id.clone())
    };
    let driver = LocalDriver::new(host, config)
        .map_err(|error| Failure::from_error("cannot start the driver", &error))?;
    Ok(Plugin::new(driver))
}

/// Whoever starts us may have closed our standard output; we serve all the same.
fn tell(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
