//! Locks among processes: a named pipe that only one process can have.
//!
//! The first to make a pipe's first instance has the lock, and Windows takes the pipe away
//! with its last handle, so also when the process dies. Other than with a mutex the holder is
//! the process, not a thread; and other than with an event, whoever does not get the lock
//! does not hold it alive by having tried.

use std::fs::File;
use std::os::windows::io::FromRawHandle;

use windows::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_INVALID_HANDLE, ERROR_PIPE_BUSY};
use windows::Win32::Storage::FileSystem::{FILE_FLAG_FIRST_PIPE_INSTANCE, PIPE_ACCESS_INBOUND};
use windows::Win32::System::Pipes::{CreateNamedPipeW, PIPE_REJECT_REMOTE_CLIENTS};
use windows::core::HSTRING;

use super::{Os, win32};
use crate::clock::Deadline;
use crate::os::{LockName, LockToken, Locks};
use crate::port::PortResult;

impl Locks for Os {
    fn try_lock(&self, request: &LockName, deadline: Deadline) -> PortResult<Option<LockToken>> {
        self.in_time(deadline)?;
        let pipe = match create_pipe(&pipe_name(request)) {
            Ok(pipe) => pipe,
            // Held with one instance taken, or by a process whose pipe is not for us.
            Err(error) if win32::is(&error, &[ERROR_ACCESS_DENIED, ERROR_PIPE_BUSY]) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut held = self.held();
        held.last += 1;
        let token = held.last;
        held.handles.insert(token, pipe);
        Ok(Some(LockToken(token)))
    }

    fn unlock(&self, request: &LockToken, _: Deadline) -> PortResult<()> {
        match self.held().handles.remove(&request.0) {
            Some(_) => Ok(()),
            None => Err(win32::error("CloseHandle", ERROR_INVALID_HANDLE)),
        }
    }
}

fn create_pipe(name: &str) -> PortResult<File> {
    let name = HSTRING::from(name);
    // SAFETY: the name ends in NUL and lives longer than the call; no security descriptor is
    // given, which asks for the default one: besides this user only administrators and the
    // system could make another instance.
    let handle = unsafe {
        CreateNamedPipeW(
            &name,
            PIPE_ACCESS_INBOUND | FILE_FLAG_FIRST_PIPE_INSTANCE,
            PIPE_REJECT_REMOTE_CLIENTS,
            1,
            0,
            0,
            0,
            None,
        )
    };
    if handle.is_invalid() {
        let error = windows::core::Error::from_thread();
        return Err(win32::from_windows("CreateNamedPipeW", &error));
    }
    // SAFETY: the call succeeded, so the handle is open and this one's alone.
    Ok(unsafe { File::from_raw_handle(handle.0) })
}

/// The pipe for a lock. Pipes' names are shorter than locks' may be and compare without case,
/// so it is a hash (FNV-1a with 128 bits): two names with one hash would only wait for each
/// other.
fn pipe_name(name: &LockName) -> String {
    let hash = name.0.bytes().fold(
        0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128,
        |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b),
    );
    format!(r"\\.\pipe\csi-proxy-lock-{hash:032x}")
}
