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
    ERROR_NOT_SUPPORTED = 50, "The request is not supported.";
    ERROR_INVALID_HANDLE = 6, "The handle is invalid.";
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
