//! `csi-proxy serve`: the gRPC API of CSI Proxy 1.x.

pub(crate) mod flags;

use std::fs::File;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use csi_proxy::{Host, HostPath};
use csi_proxy_api::Group;
use csi_proxy_server::{Limits, Metrics, Place, Ready, Server, Settings, WorkingDirs, serve_http};
use csi_proxy_sim::control::ControlServer;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::failure::{Failure, Result};
use crate::host::{self, Simulated};
use crate::logging::Output;
use crate::path;
use crate::record::{Of, Recording};
use crate::shutdown::Shutdown;
use crate::{machine, node, service};

/// What `csi-proxy serve` is told.
#[derive(Args)]
pub(crate) struct ServeArgs {
    /// The kubelet's directory on the node; clients may work in it
    #[arg(long, value_name = "PATH", default_value = r"C:\var\lib\kubelet", value_parser = path)]
    kubelet_path: HostPath,

    /// Another directory that clients may work in; may be given more than once
    #[arg(long, value_name = "PATH", value_parser = path)]
    working_dir: Vec<HostPath>,

    /// New SMB mappings must encrypt what they carry
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_value_t = true, default_missing_value = "true",
        action = clap::ArgAction::Set)]
    require_privacy: bool,

    /// Where metrics and health are told over HTTP, as 127.0.0.1:9090 or :9090 [default: nowhere]
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "",
        hide_default_value = true
    )]
    metrics_bind_address: String,

    /// Runs as the Windows service csiproxy; for the service manager
    #[arg(long)]
    windows_service: bool,

    /// Serves only these groups
    #[arg(long, value_name = "GROUP", value_delimiter = ',',
        default_values_t = Group::ALL)]
    api_groups: Vec<Group>,

    /// Answers questions and changes nothing
    #[arg(long)]
    read_only_api: bool,

    /// Initialises disks and formats volumes that hold bytes which Windows does not know, as CSI
    /// Proxy 1.x did: the disks of Linux look like that
    #[arg(long)]
    allow_foreign_content: bool,

    /// The directory on the node for the records of formats that have not ended; it must stay
    /// the same over restarts
    #[arg(long, value_name = "PATH", default_value = r"C:\ProgramData\csi-proxy",
        value_parser = path)]
    state_dir: HostPath,

    /// Who may open the pipes, as a security descriptor (SDDL) [default: LocalSystem,
    /// administrators and the container administrator]
    #[arg(long, value_name = "SDDL")]
    pipe_sddl: Option<String>,

    /// The directory of the sockets, where there are no named pipes
    #[arg(long, value_name = "DIRECTORY", hide = cfg!(windows))]
    socket_dir: Option<PathBuf>,

    /// Answers gRPC reflection
    #[arg(long)]
    reflection: bool,

    /// How many seconds running calls have to end when the program is told to end
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    shutdown_grace: u64,

    /// Writes the log to this file, with --logtostderr=false
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,

    /// Whether the log goes to standard error alone
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_value_t = true, default_missing_value = "true",
        action = clap::ArgAction::Set)]
    logtostderr: bool,

    /// Writes the log to standard error as well as to the file
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_value_t = false, default_missing_value = "true",
        action = clap::ArgAction::Set)]
    alsologtostderr: bool,

    /// Runs on a simulated node: the one that the file describes, or a fresh one
    #[arg(long, value_name = "MACHINE.TOML", num_args = 0..=1, require_equals = true)]
    simulate: Option<Option<PathBuf>>,

    /// Where the simulated node is controlled with `csi-proxy sim`: unix:///path or
    /// tcp://127.0.0.1:port [default: nowhere]
    #[arg(long, value_name = "URL", requires = "simulate")]
    sim_control: Option<String>,

    #[command(flatten)]
    pub(crate) recording: Recording,
}

impl ServeArgs {
    /// The time that running calls have to end.
    pub(crate) fn shutdown_grace(&self) -> Duration {
        Duration::from_secs(self.shutdown_grace)
    }

    /// Where the log goes: as klog has it, a file only counts without `--logtostderr`.
    pub(crate) fn log_output(&self) -> Result<Output> {
        let Some(path) = self.log_file.as_ref().filter(|_| !self.logtostderr) else {
            return Ok(Output::StandardError);
        };
        let what = format!("--log-file {}", path.display());
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|error| Failure::from_error(what, &error))?;
        Ok(match self.alsologtostderr {
            true => Output::Both(file),
            false => Output::File(file),
        })
    }
}

/// Serves until a signal, or the service manager, ends it.
pub(crate) fn run(args: ServeArgs) -> Result<ExitCode> {
    match args.windows_service {
        true => service::run(args),
        false => {
            block_on(async {
                let shutdown = Shutdown::listen()
                    .map_err(|error| Failure::from_error("cannot listen for signals", &error))?;
                let signal = async {
                    let signal = shutdown.signal().await;
                    tracing::info!("{signal}: no new calls; running ones have time to end");
                };
                serve(&args, signal).await
            })?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs it to its end. What a call asks of the node is done on threads of its own, so one thread
/// is enough for the pipes, and two that wake each other take longer. It is not the thread of
/// `block_on`, which is woken by each call that ends, even while it runs.
pub(crate) fn block_on(served: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::from_error("cannot start", &error))?;
    let ended = runtime.block_on(served);
    // Without this it waits for the threads of calls whose time to end is over.
    runtime.shutdown_background();
    ended
}

/// Serves until `shutdown` is there.
pub(crate) async fn serve(args: &ServeArgs, shutdown: impl Future<Output = ()>) -> Result<()> {
    // It is there until it is dropped.
    let simulated = simulated(args)?;
    let host = match &simulated {
        Some((node, _)) => args.recording.of(node.host.clone(), Of::OurOwn)?,
        None => {
            let host = host::local(host::SIMULATE)?;
            args.recording.of(host, Of::ThisMachine)?
        }
    };
    let host = configured(host, args);
    let metrics = Metrics::new();
    let ready = Ready::default();
    // The end of serving ends it.
    let (_http, ended) = oneshot::channel();
    http(args, &metrics, &ready, ended).await?;
    let mut place = Place {
        pipe_sddl: args.pipe_sddl.clone(),
        ..Place::default()
    };
    if let Some(directory) = &args.socket_dir {
        place.directory.clone_from(directory);
    }
    let server = Server::bind(host, settings(args), &place, &metrics)
        .map_err(|error| Failure::from_error("cannot start", &error))?;
    let versions = server.endpoints().count();
    println!(
        "serving {versions} versions in {}",
        place.directory.display()
    );
    let grace = args.shutdown_grace();
    server
        .serve(shutdown, grace, &ready)
        .await
        .map_err(|error| Failure::from_error("serving has ended", &error))
}

fn settings(args: &ServeArgs) -> Settings {
    let directories = [&args.kubelet_path].into_iter().chain(&args.working_dir);
    Settings {
        groups: args.api_groups.clone(),
        read_only: args.read_only_api,
        working_dirs: WorkingDirs::new(directories.cloned()),
        require_privacy: args.require_privacy,
        reflection: args.reflection,
        limits: Limits::default(),
    }
}

/// The simulated node that is asked for, with its control endpoint.
fn simulated(args: &ServeArgs) -> Result<Option<(Simulated, Option<ControlServer>)>> {
    let Some(machine) = &args.simulate else {
        return Ok(None);
    };
    let node = machine::for_node(machine.as_deref(), None, None)?;
    let control = node::control(args.sim_control.as_deref(), &node)?;
    args.recording.begin_on(&node)?;
    Ok(Some((machine::restarted(&node)?, control)))
}

/// The host as the flags want it.
fn configured(host: Host, args: &ServeArgs) -> Host {
    let host = host.with_state_dir(args.state_dir.clone());
    match args.allow_foreign_content {
        false => host,
        true => {
            tracing::warn!(
                "--allow-foreign-content: disks and volumes with content that Windows does not \
                 know are initialised and formatted"
            );
            host.allowing_foreign_content()
        }
    }
}

/// Starts HTTP, if it is asked for.
async fn http(
    args: &ServeArgs,
    metrics: &Metrics,
    ready: &Ready,
    ended: oneshot::Receiver<()>,
) -> Result<()> {
    if args.metrics_bind_address.is_empty() {
        return Ok(());
    }
    let address = address(&args.metrics_bind_address)?;
    let what = format_args!("--metrics-bind-address {address}");
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Failure::from_error(what, &error))?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::from_error(what, &error))?;
    println!("metrics at http://{address}/metrics");
    let (metrics, ready) = (metrics.clone(), ready.clone());
    tokio::spawn(async move {
        let shutdown = async { drop(ended.await) };
        if let Err(error) = serve_http(listener, metrics, ready, shutdown).await {
            tracing::error!("metrics are told no more: {error}");
        }
    });
    Ok(())
}

/// An address as Go writes it: without a host it is every interface.
fn address(text: &str) -> Result<SocketAddr> {
    let full = match text.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => text.replace("localhost:", "127.0.0.1:"),
    };
    full.parse().map_err(|_| {
        Failure::new(format!(
            "--metrics-bind-address {text:?} is no address: expected 127.0.0.1:9090 or :9090"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_lack_its_host() {
        for (text, full) in [
            (":9090", "0.0.0.0:9090"),
            ("localhost:1", "127.0.0.1:1"),
            ("[::1]:2", "[::1]:2"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), full);
        }
        for text in ["9090", "host:1", ":x"] {
            let error = address(text).unwrap_err().to_string();
            assert!(error.contains("expected 127.0.0.1:9090"), "{error}");
        }
    }
}
