//! The plugin `local` inside this program, served while something is done with it.

use std::future::Future;
use std::path::Path;

use csi_node::local::{LocalConfig, LocalDriver};
use csi_node::{Endpoint, EndpointError, Plugin, Server};
use csi_proxy::{Host, HostPath};

use crate::failure::{Failure, Result};

/// The driver `local`, with nothing configured but its pool.
pub(crate) fn plugin(host: Host, pool: &HostPath, node_id: &str) -> Result<Plugin> {
    let driver = LocalDriver::new(host, LocalConfig::new(pool.clone(), node_id))
        .map_err(|error| Failure::from_error("cannot start the driver", &error))?;
    Ok(Plugin::new(driver))
}

/// Listens at a Unix socket, or on the loopback interface where there are none or gRPC's
/// client does not reach them, which is so on Windows.
pub(crate) async fn bind(socket: &Path) -> Result<Server> {
    if cfg!(windows) {
        return bind_loopback().await;
    }
    match Server::bind(&Endpoint::Unix(socket.to_owned())).await {
        Ok(server) => Ok(server),
        Err(_) => bind_loopback().await,
    }
}

/// Listens at a free port of the loopback interface.
pub(crate) async fn bind_loopback() -> Result<Server> {
    let loopback: Endpoint = "tcp://127.0.0.1:0".parse().map_err(told)?;
    Server::bind(&loopback).await.map_err(told)
}

/// Serves the plugin until `work` has ended, and until all that runs for it has.
pub(crate) async fn serve_while<T>(
    server: Server,
    plugin: Plugin,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(server.serve(plugin, async {
        // Ends with the work, however that ends.
        let _ = stopped.await;
    }));
    let done = work.await;
    drop(stop);
    served
        .await
        .map_err(|error| Failure::from_error("the plugin ended early", &error))?
        .map_err(told)?;
    done
}

fn told(error: EndpointError) -> Failure {
    Failure::new(error.to_string())
}
