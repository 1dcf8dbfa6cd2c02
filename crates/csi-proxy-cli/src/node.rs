//! `csi-proxy node`: the CSI services of a driver, until a signal ends them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use csi_node::local::{LocalConfig, LocalDriver, PLUGIN_NAME};
use csi_node::{Endpoint, Plugin, Server};
use csi_proxy::{Host, HostPath};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::control::ControlServer;
use tokio::runtime::Runtime;

use crate::failure::{Failure, Result};
use crate::machine::{self, Life, Speed};
use crate::path;
use crate::record::{Of, Recording};
use crate::shutdown::Shutdown;
use crate::size;

/// What `csi-proxy node` is told.
#[derive(Args)]
pub(crate) struct NodeArgs {
    /// The kind of volumes
    #[arg(long, value_enum)]
    driver: Driver,

    /// Where the CSI services listen: unix:///path, unix:path below the directory that the
    /// program is started in, or tcp://127.0.0.1:port (loopback only)
    #[arg(long, value_name = "URL", env = "CSI_ENDPOINT")]
    endpoint: Endpoint,

    /// The node's name in the cluster, at most 63 characters: it is the value of the
    /// plugin's topology key
    #[arg(long, value_name = "NAME", env = "KUBE_NODE_NAME")]
    node_id: Option<String>,

    /// The plugin's name, a domain name of at most 54 characters: topology.NAME/node is its
    /// topology key
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
    /// machine file, and written then and at the end. FILE.lock beside it keeps other programs
    /// away meanwhile
    #[arg(long, value_name = "FILE", requires = "simulate")]
    sim_state: Option<PathBuf>,

    /// How long the simulated node takes to answer [default: as the machine file says, or
    /// instant]
    #[arg(long, value_enum, requires = "simulate")]
    sim_speed: Option<Speed>,

    #[command(flatten)]
    pub(crate) recording: Recording,
}

#[derive(Clone, Copy, ValueEnum)]
enum Driver {
    /// VHDX files in a directory on the node
    Local,
}

/// Serves until a signal comes, then lets running work finish; a second signal cuts it off.
pub(crate) fn run(args: &NodeArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::from_error("cannot start", &error))?;
    match (&args.simulate, &args.simulate_at) {
        (Some(machine), _) => simulate(args, machine.as_deref(), &runtime)?,
        (None, Some(uri)) => {
            let begin = || recorded(args, Life::elsewhere(uri)?, Of::OtherProgram);
            runtime.block_on(serve(args, begin))?;
        }
        (None, None) => {
            let begin = || recorded(args, Life::here()?, Of::ThisMachine);
            runtime.block_on(serve(args, begin))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves on a simulated node of our own.
fn simulate(args: &NodeArgs, machine: Option<&Path>, runtime: &Runtime) -> Result<()> {
    let saved = args.sim_state.as_deref();
    // Held as long as the node lives: the end of one would overwrite what the other has saved.
    let _ours = saved.map(machine::take_for_us).transpose()?;
    let node = machine::for_node(machine, saved, args.sim_speed)?;
    let save = || match &args.sim_state {
        None => Ok(()),
        Some(path) => node
            .save(path)
            .map_err(|error| Failure::from_error("--sim-state", &error)),
    };
    // Who cannot keep the node in the end says so before there is anything to keep.
    save()?;
    // It is open until it is dropped.
    let _control = control(args.sim_control.as_deref(), &node)?;
    args.recording.begin_on(&node)?;
    let begin = || recorded(args, Life::on(&node)?, Of::OurOwn);
    runtime.block_on(serve(args, begin))?;
    save()
}

/// The process with its calls recorded, if that is asked for. Those that follow it are in the
/// same trace.
fn recorded(args: &NodeArgs, life: Life, node: Of) -> Result<Life> {
    life.map_host(|host| args.recording.of(host, node))
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
///
/// A process on a simulated node ends with a crash or a reboot, and ours does not: the plugin
/// is started anew then, as the kubelet would do it, and remembers nothing.
async fn serve(args: &NodeArgs, mut begin: impl FnMut() -> Result<Life>) -> Result<()> {
    let told = |error: csi_node::EndpointError| Failure::new(error.to_string());
    let mut shutdown = Shutdown::listen()
        .map_err(|error| Failure::from_error("cannot listen for signals", &error))?;
    let mut life = begin()?;
    let mut plugin = plugin(args, life.host())?;
    let mut server = Server::bind(&args.endpoint).await.map_err(told)?;
    tell(&format!("listening on {}", server.endpoint()));
    let mut signal = pin!(server.leave_after(async {
        let signal = shutdown.next().await;
        tracing::info!("{signal}: no new calls; running work ends first");
        tokio::spawn(async move {
            let signal = shutdown.next().await;
            tracing::warn!("{signal} again: ended at once, and running work is cut off");
            std::process::exit(1);
        });
    }));
    loop {
        let mut is_last = false;
        let end = async {
            tokio::select! {
                () = &mut signal => is_last = true,
                () = life.end() => {}
            }
        };
        server.serve_for_now(plugin, end).await.map_err(told)?;
        if is_last {
            return Ok(());
        }
        tracing::warn!("the process on the simulated node has ended; the plugin starts anew");
        // A program has one way to a node at a time.
        drop(life);
        life = begin()?;
        plugin = self::plugin(args, life.host())?;
    }
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
        ..LocalConfig::new(args.pool.clone(), node_id(args)?)
    };
    let driver = LocalDriver::new(host, config)
        .map_err(|error| Failure::from_error("cannot start the driver", &error))?;
    Ok(Plugin::new(driver))
}

/// A simulated node needs no name of its own; a real one has that of the cluster.
fn node_id(args: &NodeArgs) -> Result<String> {
    match &args.node_id {
        Some(name) => Ok(name.clone()),
        None if args.simulate.is_some() || args.simulate_at.is_some() => Ok("simulated".to_owned()),
        None => Err(Failure::new(
            "--node-id: expected the node's name in the cluster; set it, or KUBE_NODE_NAME",
        )),
    }
}

/// Whoever starts us may have closed our standard output; we serve all the same.
fn tell(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
