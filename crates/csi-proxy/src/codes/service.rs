//! Return values of `Win32_Service`.
//!
//! Source: the pages of `StartService` and `StopService`,
//! <https://learn.microsoft.com/windows/win32/cimwin32prov/startservice-method-in-class-win32-service>
//! and
//! <https://learn.microsoft.com/windows/win32/cimwin32prov/stopservice-method-in-class-win32-service>.
//! Both list the same values.

use super::{Method, Row, row};
use crate::error::ErrorKind::{
    Aborted, AlreadyExists, DeadlineExceeded, FailedPrecondition, Internal, InvalidArgument,
    NotFound, PermissionDenied, Unsupported,
};

pub(super) const ROWS: &[Row] = &[
    row(1, "the request is not supported", Unsupported),
    row(2, "access is denied", PermissionDenied),
    row(
        3,
        "services that depend on it are running",
        FailedPrecondition,
    ),
    row(
        4,
        "the service does not take this request",
        FailedPrecondition,
    ),
    row(
        5,
        "the service's state does not allow the request",
        FailedPrecondition,
    ),
    row(6, "the service is not started", FailedPrecondition),
    row(7, "the service did not answer in time", DeadlineExceeded),
    row(8, "an unknown failure of the service", Internal),
    row(9, "the service's program was not found", NotFound),
    row(10, "the service is already running", AlreadyExists),
    row(11, "the service database is locked", Aborted),
    row(
        12,
        "a service that it depends on was removed",
        FailedPrecondition,
    ),
    row(
        13,
        "a service that it depends on did not start",
        FailedPrecondition,
    ),
    row(14, "the service is disabled", FailedPrecondition),
    row(
        15,
        "the service's account cannot log on",
        FailedPrecondition,
    ),
    row(16, "the service is being removed", FailedPrecondition),
    row(17, "the service has no thread", Internal),
    row(18, "the service depends on itself", FailedPrecondition),
    row(19, "a service of the same name is running", AlreadyExists),
    row(
        20,
        "the service's name has invalid characters",
        InvalidArgument,
    ),
    row(21, "a parameter is not valid", Internal),
    row(
        22,
        "the service's account is not valid or lacks rights",
        FailedPrecondition,
    ),
    row(23, "the service already exists", AlreadyExists),
    row(24, "the service is paused", FailedPrecondition),
];

pub(super) const METHODS: &[Method] = &[
    ("Win32_Service.StartService", DOCUMENTED),
    ("Win32_Service.StopService", DOCUMENTED),
];

const DOCUMENTED: &[u32] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
];
