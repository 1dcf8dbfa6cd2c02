//! Named pipes.

use std::io;
use std::path::Path;

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};

/// A connection.
pub(crate) type Stream = NamedPipeClient;

/// `ERROR_PIPE_BUSY`,
/// <https://learn.microsoft.com/windows/win32/debug/system-error-codes--0-499->.
const PIPE_BUSY: i32 = 231;

/// Where every process of this machine has its pipes.
pub(crate) const DIRECTORY: &str = r"\\.\pipe\";

/// The name of the pipe.
pub(crate) fn file_name(name: &str) -> String {
    name.to_owned()
}

/// Connects once. The server may identify us but not act in our name
/// (`SECURITY_IDENTIFICATION`, what tokio sets).
pub(crate) async fn open(path: &Path) -> io::Result<Stream> {
    ClientOptions::new().open(path)
}

/// The server is there but accepts nobody right now: no instance of the pipe waits.
pub(crate) fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(PIPE_BUSY)
}
