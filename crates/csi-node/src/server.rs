//! The gRPC server of a plugin, and its clean end.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;

use crate::endpoint::{Endpoint, EndpointError};
use crate::plugin::Plugin;

#[cfg_attr(unix, path = "socket/unix.rs")]
#[cfg_attr(windows, path = "socket/windows.rs")]
mod socket;

#[cfg(any(windows, test))]
#[path = "socket/bridge.rs"]
mod bridge;

/// A server that listens and does not serve yet: callers wait.
pub struct Server {
    endpoint: Endpoint,
    listener: Listener,
}

enum Listener {
    Unix(socket::Incoming, PathBuf),
    Tcp(TcpListenerStream),
}

impl Server {
    /// Listens at an endpoint. The directory of a socket is made; a socket that a program
    /// left behind when it ended is replaced, and one at which a program answers is an
    /// error, as is anything that is no socket.
    pub async fn bind(endpoint: &Endpoint) -> Result<Self, EndpointError> {
        match endpoint {
            Endpoint::Unix(path) => Ok(Self {
                endpoint: endpoint.clone(),
                listener: Listener::Unix(bind_socket(endpoint, path)?, path.clone()),
            }),
            Endpoint::Tcp(address) => bind_tcp(endpoint, *address).await,
        }
    }

    /// The endpoint, with the port that was taken.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Serves the plugin until `shutdown` is there. Then no call is taken any more, those
    /// that run are answered, and all work that runs ends before this does.
    pub async fn serve(
        mut self,
        plugin: Plugin,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), EndpointError> {
        let shutdown = self.leave_after(shutdown);
        self.serve_for_now(plugin, shutdown).await
    }

    /// Serves the plugin until `end` is there, and goes on to listen: whoever calls then
    /// waits for the plugin that is served next. Its other ends are those of
    /// [`Server::serve`], with [`Server::leave_after`] for the last of all plugins.
    pub async fn serve_for_now(
        &mut self,
        plugin: Plugin,
        end: impl Future<Output = ()>,
    ) -> Result<(), EndpointError> {
        let router = tonic::transport::Server::builder().add_routes(plugin.routes());
        let served = match &mut self.listener {
            Listener::Unix(incoming, _) => router.serve_with_incoming_shutdown(incoming, end).await,
            Listener::Tcp(incoming) => router.serve_with_incoming_shutdown(incoming, end).await,
        };
        plugin.drain().await;
        served.map_err(|error| EndpointError::new(&self.endpoint, error))
    }

    /// Waits for `shutdown` and removes the socket. That is done while we still listen at
    /// it: later it could be another's.
    pub fn leave_after<F: Future<Output = ()>>(
        &self,
        shutdown: F,
    ) -> impl Future<Output = ()> + use<F> {
        let socket = match &self.listener {
            Listener::Unix(incoming, path) => Some((socket::closer(incoming), path.clone())),
            Listener::Tcp(_) => None,
        };
        async move {
            shutdown.await;
            let Some((closer, path)) = socket else {
                return;
            };
            socket::close(&closer, &path);
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::warn!("the socket {} stays behind: {error}", path.display());
            }
        }
    }
}

fn bind_socket(endpoint: &Endpoint, path: &Path) -> Result<socket::Incoming, EndpointError> {
    let fail = |doing: &str, error| EndpointError::io(endpoint, doing, error);
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| fail("its directory cannot be made", error))?;
    }
    match socket::answers(path) {
        Ok(true) => {
            let problem = "another program serves there; stop it or name another path";
            return Err(EndpointError::new(endpoint, problem));
        }
        Ok(false) => std::fs::remove_file(path)
            .map_err(|error| fail("the socket left behind cannot be removed", error))?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            return Err(fail(
                "something is at its path; remove it or name another path",
                error,
            ));
        }
    }
    socket::listen(path).map_err(|error| fail("cannot listen", error))
}

async fn bind_tcp(endpoint: &Endpoint, address: SocketAddr) -> Result<Server, EndpointError> {
    let fail = |error| EndpointError::io(endpoint, "cannot listen", error);
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    let endpoint = Endpoint::Tcp(listener.local_addr().map_err(fail)?);
    Ok(Server {
        endpoint,
        listener: Listener::Tcp(TcpListenerStream::new(listener)),
    })
}
