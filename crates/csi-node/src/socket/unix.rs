//! Unix sockets where tokio has them.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;

/// The connections that are made to a socket.
pub(crate) type Incoming = UnixListenerStream;

/// Listens at the path, for this user only.
pub(crate) fn listen(path: &Path) -> Result<Incoming> {
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(UnixListenerStream::new(listener))
}

/// What [`close`] needs: nothing.
pub(crate) struct Closer;

/// What closes the socket while the connections are served.
pub(crate) fn closer(_: &Incoming) -> Closer {
    Closer
}

/// Nothing to do: the socket is closed with the connections.
pub(crate) fn close(_: &Closer, _: &Path) {}

/// Whether a program answers at a socket that exists. An object that is no socket is an
/// error.
pub(crate) fn answers(path: &Path) -> Result<bool> {
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(Error::new(ErrorKind::AlreadyExists, "it is not a socket"));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(false),
        Err(error) => Err(error),
    }
}
