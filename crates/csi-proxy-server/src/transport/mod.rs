//! How clients reach a version: a named pipe on Windows, a unix socket elsewhere.

#[cfg(any(windows, test))]
mod sddl;
#[cfg_attr(windows, path = "windows/mod.rs")]
#[cfg_attr(not(windows), path = "unix.rs")]
mod system;

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::connection::Connection;

pub(crate) use system::{Listener, Stream, image_of, remove};

/// How long to wait when a connection could not be taken, because the system is out of
/// something.
const RETRY: Duration = Duration::from_millis(100);

/// Where a server has its pipes or sockets, and who may open them.
#[derive(Clone, Debug)]
pub struct Place {
    /// `\\.\pipe\` on Windows, elsewhere a directory for the sockets.
    pub directory: PathBuf,
    /// Who may open the pipes, in Windows' security descriptor definition language; the
    /// sockets are for this user alone. Nothing is the default: LocalSystem, administrators
    /// and the container administrator.
    pub pipe_sddl: Option<String>,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            directory: csi_proxy_api::local_directory().to_owned(),
            pipe_sddl: None,
        }
    }
}

/// The connections that are made to a listener, until whoever takes them is gone.
pub(crate) fn connections(
    mut listener: Listener,
    first_words: Duration,
) -> ReceiverStream<std::io::Result<Connection<Stream>>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = sender.closed() => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let connection = Connection::new(stream, peer, first_words);
                    if sender.send(Ok(connection)).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!("a connection could not be taken: {error}");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    });
    ReceiverStream::new(receiver)
}
