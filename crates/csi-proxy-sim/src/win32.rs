//! Windows' error codes that the node answers, and the errors made of them.

use csi_proxy::port::{PortError, SystemCode};

/// Codes of `GetLastError`.
///
/// Source: <https://learn.microsoft.com/windows/win32/debug/system-error-codes>
macro_rules! win32 {
    ($($name:ident = $code:literal, $message:literal;)+) => {
        $(pub(crate) const $name: u32 = $code;)+

        fn win32_message(code: u32) -> &'static str {
            match code {
                $($code => $message,)+
                _ => "an error of this number",
            }
        }
    };
}

win32! {
    ERROR_INVALID_FUNCTION = 1, "Incorrect function.";
    ERROR_FILE_NOT_FOUND = 2, "The system cannot find the file specified.";
    ERROR_PATH_NOT_FOUND = 3, "The system cannot find the path specified.";
    ERROR_ACCESS_DENIED = 5, "Access is denied.";
    ERROR_NOT_READY = 21, "The device is not ready.";
    ERROR_INVALID_HANDLE = 6, "The handle is invalid.";
    ERROR_NOT_SAME_DEVICE = 17, "The system cannot move the file to a different disk drive.";
    ERROR_WRITE_PROTECT = 19, "The media is write protected.";
    ERROR_SHARING_VIOLATION = 32, "The file is in use by another process.";
    ERROR_NOT_SUPPORTED = 50, "The request is not supported.";
    ERROR_BAD_NETPATH = 53, "The network path was not found.";
    ERROR_NETNAME_DELETED = 64, "The network name is no longer available.";
    ERROR_BAD_NET_NAME = 67, "The network name cannot be found.";
    ERROR_FILE_EXISTS = 80, "The file exists.";
    ERROR_ALREADY_ASSIGNED = 85, "The local device name is already in use.";
    ERROR_INVALID_PARAMETER = 87, "The parameter is incorrect.";
    ERROR_DISK_FULL = 112, "There is not enough space on the disk.";
    ERROR_INVALID_NAME = 123, "The file name, directory name or volume label is incorrect.";
    ERROR_DIR_NOT_EMPTY = 145, "The directory is not empty.";
    ERROR_ALREADY_EXISTS = 183, "The file already exists.";
    ERROR_FILE_TOO_LARGE = 223, "The file size exceeds the limit.";
    ERROR_DIRECTORY = 267, "The directory name is invalid.";
    ERROR_UNRECOGNIZED_VOLUME = 1005, "The volume does not contain a recognized file system.";
    ERROR_SESSION_CREDENTIAL_CONFLICT = 1219, "Only one user name is allowed for a server.";
    ERROR_LOGON_FAILURE = 1326, "The user name or password is incorrect.";
    ERROR_SYMLINK_CLASS_DISABLED = 1463, "The symbolic link's type is disabled.";
    ERROR_CANT_ACCESS_FILE = 1920, "The file cannot be accessed by the system.";
    ERROR_CANT_RESOLVE_FILENAME = 1921, "The name of the file cannot be resolved.";
    ERROR_OPEN_FILES = 2401, "This network connection has files open.";
    ERROR_NOT_A_REPARSE_POINT = 4390, "The file or directory is not a reparse point.";
    ERROR_INVALID_REPARSE_DATA = 4392, "The data in the reparse point is invalid.";
    FVE_E_LOCKED_VOLUME = 0x8031_0000, "This drive is locked by BitLocker.";
    ERROR_REPARSE_TAG_MISMATCH = 4394, "The tags of the request and the reparse point differ.";
}

/// Codes of WMI.
///
/// Source: <https://learn.microsoft.com/windows/win32/wmisdk/wmi-error-constants>
macro_rules! wbem {
    ($($name:ident = $code:literal, $message:literal;)+) => {
        $(pub(crate) const $name: u32 = $code;)+

        fn hresult_message(code: u32) -> &'static str {
            match code {
                $($code => $message,)+
                _ => "an HRESULT of this number",
            }
        }
    };
}

wbem! {
    WBEM_E_NOT_FOUND = 0x8004_1002, "Not found";
    WBEM_E_INVALID_CLASS = 0x8004_1010, "Invalid class";
    WBEM_E_INVALID_QUERY = 0x8004_1017, "Invalid query";
    WBEM_E_INVALID_METHOD = 0x8004_102E, "Invalid method";
    WBEM_E_INVALID_METHOD_PARAMETERS = 0x8004_102F, "Invalid method parameter(s)";
    WBEM_E_INVALID_OBJECT_PATH = 0x8004_103A, "Invalid object path";
}

/// The error of a Win32 function.
pub(crate) fn win32(api: &str, code: u32) -> PortError {
    PortError::System {
        api: api.to_owned(),
        code: SystemCode::Win32(code),
        message: win32_message(code).to_owned(),
    }
}

/// The error of a WMI call.
pub(crate) fn hresult(api: &str, code: u32) -> PortError {
    PortError::System {
        api: api.to_owned(),
        code: SystemCode::HResult(code),
        message: hresult_message(code).to_owned(),
    }
}

/// The error of a WMI call whose provider failed with a code of `GetLastError`
/// (`HRESULT_FROM_WIN32`).
pub(crate) fn hresult_from_win32(api: &str, code: u32) -> PortError {
    PortError::System {
        api: api.to_owned(),
        code: SystemCode::HResult(0x8007_0000 | code),
        message: win32_message(code).to_owned(),
    }
}
