//! HRESULTs of COM and WMI. `0x8007xxxx` is looked up as the Win32 code in it.
//!
//! Source: "WMI Error Constants",
//! <https://learn.microsoft.com/windows/win32/wmisdk/wmi-error-constants>, and
//! "COM Error Codes",
//! <https://learn.microsoft.com/windows/win32/com/com-error-codes>.

use super::{Row, row};
use crate::error::ErrorKind::{
    Aborted, AlreadyExists, DeadlineExceeded, Internal, NotFound, OutcomeUnknown, PermissionDenied,
    ResourceExhausted, Unavailable, Unsupported,
};

pub(super) const ROWS: &[Row] = &[
    // E_…
    row(0x8000_4001, "not implemented", Unsupported),
    row(0x8000_4002, "the interface is not supported", Internal),
    row(0x8000_4004, "the operation was aborted", Aborted),
    row(0x8000_4005, "an error that COM does not specify", Internal),
    row(0x8000_FFFF, "a catastrophic failure", Internal),
    // RPC_E_…
    row(0x8001_0001, "the call was rejected", Unavailable),
    row(0x8001_0002, "the call was cancelled", OutcomeUnknown),
    row(
        0x8001_0007,
        "the provider died; the call may have run",
        OutcomeUnknown,
    ),
    row(
        0x8001_0012,
        "the provider died; the call did not run",
        Unavailable,
    ),
    row(
        0x8001_0105,
        "the provider raised an exception",
        OutcomeUnknown,
    ),
    row(0x8001_0106, "the thread has another COM mode", Internal),
    row(
        0x8001_0108,
        "the object is disconnected from its clients",
        Unavailable,
    ),
    row(
        0x8001_010A,
        "the provider is busy; to be called again later",
        Unavailable,
    ),
    row(
        0x8001_010E,
        "the interface belongs to another thread",
        Internal,
    ),
    row(0x8001_011F, "the call timed out", DeadlineExceeded),
    // REGDB_E_…, CO_E_…
    row(0x8004_0154, "the COM class is not registered", Unavailable),
    row(0x8004_01F0, "COM is not initialized", Internal),
    // WBEM_E_…
    row(0x8004_1001, "the call failed in WMI", Internal),
    row(0x8004_1002, "the object was not found", NotFound),
    row(0x8004_1003, "access is denied by WMI", PermissionDenied),
    row(0x8004_1004, "the WMI provider failed", Internal),
    row(0x8004_1005, "a value has the wrong type", Internal),
    row(0x8004_1006, "WMI is out of memory", ResourceExhausted),
    row(0x8004_1007, "the WMI context is not valid", Internal),
    row(0x8004_1008, "a parameter is not valid for WMI", Internal),
    row(
        0x8004_1009,
        "the resource is not available at present",
        Unavailable,
    ),
    row(0x8004_100A, "a critical error in WMI", Internal),
    row(0x8004_100B, "a damaged packet", Unavailable),
    row(
        0x8004_100C,
        "the operation is not supported by WMI",
        Unsupported,
    ),
    row(0x8004_100E, "the WMI namespace does not exist", Unsupported),
    row(0x8004_100F, "the WMI object is not valid", Internal),
    row(0x8004_1010, "the WMI class does not exist", Unsupported),
    row(
        0x8004_1011,
        "the WMI provider is not registered",
        Unsupported,
    ),
    row(
        0x8004_1012,
        "the registration of the WMI provider is not complete",
        Unsupported,
    ),
    row(
        0x8004_1013,
        "the WMI provider cannot be loaded",
        Unavailable,
    ),
    row(0x8004_1014, "the WMI provider failed to start", Unavailable),
    row(0x8004_1015, "the connection to WMI failed", Unavailable),
    row(0x8004_1016, "the operation is not valid", Internal),
    row(0x8004_1017, "the query is not valid", Internal),
    row(0x8004_1018, "the query language is not supported", Internal),
    row(0x8004_1019, "the WMI object already exists", AlreadyExists),
    row(0x8004_101D, "an unexpected sequence of calls", Internal),
    row(0x8004_1021, "the syntax is not valid", Internal),
    row(0x8004_1023, "the property is read-only", Internal),
    row(
        0x8004_1024,
        "the WMI provider is not capable of it",
        Unsupported,
    ),
    row(0x8004_1028, "null where WMI needs a value", Internal),
    row(0x8004_102D, "the CIM type is not valid", Internal),
    row(0x8004_102E, "the method does not exist", Unsupported),
    row(
        0x8004_102F,
        "the parameters of the method are not valid",
        Internal,
    ),
    row(0x8004_1031, "the property does not exist", Internal),
    row(0x8004_1032, "the call was cancelled by WMI", Aborted),
    row(0x8004_1033, "WMI is shutting down", Unavailable),
    row(0x8004_1035, "a parameter is not supported", Internal),
    row(0x8004_103A, "the object path is not valid", Internal),
    row(0x8004_103B, "WMI has no disk space left", ResourceExhausted),
    row(0x8004_1045, "WMI is too busy", Unavailable),
    row(0x8004_1055, "the method is not implemented", Unsupported),
    row(0x8004_1056, "the method is disabled", Unsupported),
    row(0x8004_1058, "the query cannot be parsed", Internal),
    row(0x8004_1061, "WMI's queue is full", Unavailable),
    row(0x8004_1062, "a privilege is missing", PermissionDenied),
    row(0x8004_1067, "the client took too long to read", Internal),
    row(0x8004_1069, "the call timed out in WMI", DeadlineExceeded),
    row(
        0x8004_106B,
        "an operation on the object is ambiguous",
        Internal,
    ),
    row(0x8004_106C, "a quota of WMI is used up", ResourceExhausted),
    row(
        0x8004_1070,
        "the handle to the object is out of date",
        Aborted,
    ),
    row(
        0x8004_1071,
        "the connection to the SQL database of WMI failed",
        Unavailable,
    ),
    row(0x8004_1081, "the provider is suspended", Unavailable),
    row(0x8004_1085, "the provider is not registered", Unsupported),
    row(0x8004_1086, "the transport of WMI failed", Unavailable),
    row(
        0x8004_1087,
        "the provider needs an encrypted connection",
        Internal,
    ),
    row(
        0x8004_1088,
        "the provider gave no answer in time",
        DeadlineExceeded,
    ),
    row(0x8004_108A, "the provider is disabled", Unavailable),
    row(0x8008_0005, "the COM server did not start", Unavailable),
];
