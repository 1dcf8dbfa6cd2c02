//! Connections of programs that speak no gRPC.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::thread;

/// A connection on which reading and writing block.
#[cfg(unix)]
pub(crate) type Raw = std::os::unix::net::UnixStream;
#[cfg(windows)]
pub(crate) type Raw = std::fs::File;

/// Connects once.
#[cfg(unix)]
pub(crate) fn open(endpoint: &Path) -> Result<Raw> {
    Raw::connect(endpoint)
}

/// Connects once.
#[cfg(windows)]
pub(crate) fn open(endpoint: &Path) -> Result<Raw> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).open(endpoint)
}

/// Connects, and waits for that while the server has no place for it.
pub(crate) fn connect(endpoint: &Path) -> Raw {
    loop {
        match open(endpoint) {
            Err(error) if is_busy(&error) => thread::yield_now(),
            connection => return connection.expect("a connection"),
        }
    }
}

/// A full queue of a socket, or `ERROR_PIPE_BUSY`.
pub(crate) fn is_busy(error: &Error) -> bool {
    match cfg!(windows) {
        true => error.raw_os_error() == Some(231),
        false => error.kind() == ErrorKind::WouldBlock,
    }
}
