//! Unix sockets for this user alone, in a directory for this user alone.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use tokio::net::{UnixListener, UnixStream};

use crate::connection::Peer;
use crate::transport::Place;

/// A connection.
pub(crate) type Stream = UnixStream;

/// A socket at which clients are waited for.
pub(crate) struct Listener(UnixListener);

impl Listener {
    /// Listens at the path. A socket that a program left behind when it ended is replaced; one
    /// at which a program answers is an error.
    pub(crate) fn bind(path: &Path, place: &Place) -> Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&place.directory)?;
        if is_left_behind(path)? {
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(Self(listener))
    }

    /// Waits for a client.
    pub(crate) async fn accept(&mut self) -> Result<(Stream, Peer)> {
        let (stream, _) = self.0.accept().await?;
        let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let process = process.and_then(|process| u32::try_from(process).ok());
        Ok((stream, Peer::new(process)))
    }
}

/// Whether a socket is there at which nobody answers.
fn is_left_behind(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                "something that is no socket is there",
            ));
        }
        Ok(_) => {}
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(true),
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Err(Error::new(
            ErrorKind::AddrInUse,
            "another program serves there; stop it first",
        )),
    }
}

/// Takes a socket away while it is still ours: later it could be another's.
pub(crate) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!("the socket {} stays behind: {error}", path.display());
    }
}

/// The program of a process.
pub(crate) fn image_of(process: u32) -> Option<String> {
    let image = fs::read_link(format!("/proc/{process}/exe")).ok()?;
    Some(image.display().to_string())
}
