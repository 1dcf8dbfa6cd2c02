//! How a version is reached: a named pipe on Windows, a unix socket elsewhere.

#[cfg_attr(windows, path = "windows.rs")]
#[cfg_attr(not(windows), path = "unix.rs")]
mod system;

pub(crate) use system::{DIRECTORY, Stream, file_name, is_busy, open};
