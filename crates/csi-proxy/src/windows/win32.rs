//! Errors and strings of Win32.

use std::io;

use windows::Win32::Foundation::{NTSTATUS, RtlNtStatusToDosError, WIN32_ERROR};
use windows::core::HRESULT;

use crate::port::{PortError, PortResult, SystemCode};

/// The error `code` of `GetLastError`, as `api` answered it or would.
pub(super) fn error(api: &str, code: WIN32_ERROR) -> PortError {
    PortError::System {
        api: api.to_owned(),
        code: SystemCode::Win32(code.0),
        message: code.to_hresult().message(),
    }
}

/// What `api` answered through the `windows` crate.
pub(super) fn from_windows(api: &str, error: &windows::core::Error) -> PortError {
    match WIN32_ERROR::from_error(error) {
        Some(code) => self::error(api, code),
        None => PortError::System {
            api: api.to_owned(),
            code: SystemCode::HResult(error.code().0.cast_unsigned()),
            message: error.message(),
        },
    }
}

/// What `api` answered through the standard library.
pub(super) fn from_io(api: &str, error: &io::Error) -> PortError {
    match error.raw_os_error() {
        Some(code) => self::error(api, WIN32_ERROR(code.cast_unsigned())),
        // The standard library found it without asking Windows.
        None => PortError::System {
            api: api.to_owned(),
            code: SystemCode::HResult(HRESULT::from_win32(87).0.cast_unsigned()),
            message: error.to_string(),
        },
    }
}

/// Success, or the error that a function answered as its value.
pub(super) fn check(api: &str, code: WIN32_ERROR) -> PortResult<()> {
    match code {
        WIN32_ERROR(0) => Ok(()),
        code => Err(error(api, code)),
    }
}

/// Success, or the error that a function of the NT layer answered.
pub(super) fn check_nt(api: &str, status: NTSTATUS) -> PortResult<()> {
    if status.is_ok() {
        return Ok(());
    }
    // SAFETY: the function only translates a number.
    let code = unsafe { RtlNtStatusToDosError(status) };
    Err(error(api, WIN32_ERROR(code)))
}

/// Whether it is one of the Win32 errors.
pub(super) fn is(error: &PortError, codes: &[WIN32_ERROR]) -> bool {
    match error {
        PortError::System {
            code: SystemCode::Win32(code),
            ..
        } => codes.contains(&WIN32_ERROR(*code)),
        _ => false,
    }
}

/// A text of UTF-16 up to its NUL, or all of it.
pub(super) fn text(units: &[u16]) -> String {
    let length = units.iter().position(|unit| *unit == 0);
    String::from_utf16_lossy(&units[..length.unwrap_or(units.len())])
}
