//! Unix sockets on Windows, where tokio has none: over the calls of Winsock that block.
//!
//! Source: <https://devblogs.microsoft.com/commandline/af_unix-comes-to-windows/>

use std::io::{Error, ErrorKind, Result};
use std::net::Shutdown;
use std::os::windows::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use uds_windows::{UnixListener, UnixStream};

use super::bridge::{self, Socket};

/// `FILE_ATTRIBUTE_REPARSE_POINT`
const REPARSE_POINT: u32 = 0x400;

/// The connections that are made to a socket.
pub(crate) type Incoming = bridge::Incoming;

/// What [`close`] needs.
pub(crate) type Closer = Arc<AtomicBool>;

/// Listens at the path. Who may connect is what the directory's access list says.
pub(crate) fn listen(path: &Path) -> Result<Incoming> {
    Incoming::new(UnixListener::bind(path)?)
}

/// What closes the socket while the connections are served.
pub(crate) fn closer(incoming: &Incoming) -> Closer {
    incoming.closer()
}

/// Takes no more connections.
pub(crate) fn close(closer: &Closer, path: &Path) {
    closer.store(true, Ordering::Release);
    // It wakes the thread that waits for one.
    let _ = UnixStream::connect(path);
}

/// Whether a program answers at a socket that exists. An object that is no socket is an
/// error.
pub(crate) fn answers(path: &Path) -> Result<bool> {
    // A socket is a reparse point that is neither a link nor a directory.
    let found = std::fs::symlink_metadata(path)?;
    if !found.is_file() || found.file_attributes() & REPARSE_POINT == 0 {
        return Err(Error::new(ErrorKind::AlreadyExists, "it is not a socket"));
    }
    match UnixStream::connect(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(false),
        Err(error) => Err(error),
    }
}

impl bridge::Listener for UnixListener {
    type Socket = UnixStream;

    fn accept(&self) -> Result<UnixStream> {
        self.accept().map(|(stream, _)| stream)
    }
}

impl Socket for UnixStream {
    fn another(&self) -> Result<Self> {
        self.try_clone()
    }

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.shutdown(how)
    }
}
