//! Clients: finding the pipe or socket of a version, waiting while it is busy.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use crate::api::Api;
use crate::transport::{self, Stream};

/// How long a busy pipe is left alone before it is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// The client of a version, which knows where its server is.
pub trait Connect: Sized {
    /// The version.
    const API: &'static Api;

    /// The client over a channel that is connected already.
    fn over(channel: Channel) -> Self;

    /// Connects to the server of this version as [`channel`] does.
    fn connect(
        directory: &Path,
        timeout: Duration,
    ) -> impl Future<Output = Result<Self, ConnectError>> + Send {
        async move { Ok(Self::over(channel(Self::API, directory, timeout).await?)) }
    }
}

/// A server that could not be reached.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to {}", endpoint.display())]
pub struct ConnectError {
    endpoint: PathBuf,
    source: tonic::transport::Error,
}

/// Where a server on this machine has its endpoints: `\\.\pipe\` on Windows, `/run/csi-proxy`
/// elsewhere.
pub fn local_directory() -> &'static Path {
    Path::new(transport::DIRECTORY)
}

/// Connects to the pipe or socket of a version in a directory. An endpoint that is busy is tried
/// again until `timeout` is over, one that is not there is an error at once. A connection that
/// breaks later is made anew by the next call, in the same way.
pub async fn channel(
    api: &Api,
    directory: &Path,
    timeout: Duration,
) -> Result<Channel, ConnectError> {
    let endpoint = api.endpoint_in(directory);
    let path = endpoint.clone();
    let connector = service_fn(move |_: Uri| {
        let path = path.clone();
        async move { open(&path, timeout).await.map(TokioIo::new) }
    });
    // The address is for the HTTP/2 header alone.
    Endpoint::from_static("http://localhost")
        .connect_with_connector(connector)
        .await
        .map_err(|source| ConnectError { endpoint, source })
}

/// Opens the endpoint, waiting while it is busy.
async fn open(path: &Path, timeout: Duration) -> io::Result<Stream> {
    let deadline = Instant::now() + timeout;
    loop {
        match transport::open(path).await {
            Err(error) if transport::is_busy(&error) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(still_busy(timeout, &error));
                }
                sleep(left.min(RETRY)).await;
            }
            opened => return opened,
        }
    }
}

fn still_busy(timeout: Duration, error: &io::Error) -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("still busy after {timeout:?}: {error}"),
    )
}
