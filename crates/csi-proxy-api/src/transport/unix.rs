//! Unix sockets in a directory.

use std::io;
use std::path::Path;

use tokio::net::UnixStream;

/// A connection.
pub(crate) type Stream = UnixStream;

/// Where a server on this machine has its sockets.
pub(crate) const DIRECTORY: &str = "/run/csi-proxy";

/// The name of the socket.
pub(crate) fn file_name(name: &str) -> String {
    format!("{name}.sock")
}

/// Connects once.
pub(crate) async fn open(path: &Path) -> io::Result<Stream> {
    UnixStream::connect(path).await
}

/// The server is there but accepts nobody right now: its queue is full (`EAGAIN`).
pub(crate) fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
