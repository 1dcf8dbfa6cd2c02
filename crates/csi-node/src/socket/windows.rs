//! Unix sockets on Windows: not served yet, since tokio has none there.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use tokio::net::TcpStream;
use tokio_stream::Iter;

/// The connections that are made to a socket.
pub(crate) type Incoming = Iter<std::vec::IntoIter<Result<TcpStream>>>;

/// Refused.
pub(crate) fn listen(_: &Path) -> Result<Incoming> {
    Err(Error::new(
        ErrorKind::Unsupported,
        "Unix sockets are not served on Windows yet; use tcp://127.0.0.1:10000",
    ))
}

/// There is nothing that could answer, and nothing is removed.
pub(crate) fn answers(_: &Path) -> Result<bool> {
    Err(ErrorKind::NotFound.into())
}
