//! Status codes of the iSCSI initiator, as return values of the `MSFT_iSCSI…` classes and
//! as the codes of failed calls.
//!
//! Source: "iSCSI Status Qualifiers",
//! <https://learn.microsoft.com/windows-hardware/drivers/storage/iscsi-status-qualifiers>.

use super::{Method, Row, row};
use crate::error::ErrorKind::{
    Aborted, AlreadyExists, DeadlineExceeded, FailedPrecondition, Internal, InvalidArgument,
    NotFound, PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable, Unsupported,
};

pub(super) const ROWS: &[Row] = &[
    row(
        0xEFFF_0001,
        "an error that the initiator does not specify",
        Internal,
    ),
    row(0xEFFF_0002, "the login failed", Unavailable),
    row(0xEFFF_0003, "the connection failed", Unavailable),
    row(
        0xEFFF_0004,
        "the initiator node already exists",
        AlreadyExists,
    ),
    row(0xEFFF_0005, "the initiator node does not exist", NotFound),
    row(0xEFFF_0006, "the target has moved for a time", Unavailable),
    row(
        0xEFFF_0007,
        "the target has moved for good",
        FailedPrecondition,
    ),
    row(0xEFFF_0008, "an error of the initiator", Internal),
    row(
        0xEFFF_0009,
        "the target refuses the credentials",
        Unauthenticated,
    ),
    row(
        0xEFFF_000A,
        "the target does not allow this initiator",
        PermissionDenied,
    ),
    row(
        0xEFFF_000B,
        "the target was not found at the portal",
        NotFound,
    ),
    row(0xEFFF_000C, "the target was removed", NotFound),
    row(
        0xEFFF_000D,
        "the target has another protocol version",
        Unsupported,
    ),
    row(0xEFFF_000E, "too many connections", ResourceExhausted),
    row(0xEFFF_000F, "a parameter is missing", Internal),
    row(
        0xEFFF_0010,
        "the connection cannot join the session",
        FailedPrecondition,
    ),
    row(
        0xEFFF_0011,
        "the type of session is not supported",
        Unsupported,
    ),
    row(0xEFFF_0012, "an error of the target", Unavailable),
    row(
        0xEFFF_0013,
        "the target's service is not available",
        Unavailable,
    ),
    row(0xEFFF_0014, "the target lacks resources", ResourceExhausted),
    row(
        0xEFFF_0015,
        "the initiator node already has connections",
        AlreadyExists,
    ),
    row(0xEFFF_0016, "the session already exists", AlreadyExists),
    row(
        0xEFFF_0017,
        "the initiator instance does not exist",
        NotFound,
    ),
    row(0xEFFF_0018, "the target already exists", AlreadyExists),
    row(
        0xEFFF_0019,
        "the iSCSI driver did not complete an operation",
        Internal,
    ),
    row(0xEFFF_001A, "an invalid text key", Internal),
    row(
        0xEFFF_001B,
        "the answer to SendTargets is not valid",
        Internal,
    ),
    row(0xEFFF_001C, "the session id is not valid", NotFound),
    row(0xEFFF_001D, "the SCSI request failed", Internal),
    row(
        0xEFFF_001E,
        "too many sessions of this initiator",
        ResourceExhausted,
    ),
    row(
        0xEFFF_001F,
        "the session is busy with another request",
        Aborted,
    ),
    row(
        0xEFFF_0020,
        "the target mapping is not available",
        FailedPrecondition,
    ),
    row(
        0xEFFF_0021,
        "the type of address is not supported",
        InvalidArgument,
    ),
    row(0xEFFF_0022, "the logon failed", Unauthenticated),
    row(0xEFFF_0023, "sending over TCP failed", Unavailable),
    row(0xEFFF_0024, "an error of the TCP transport", Unavailable),
    row(0xEFFF_0025, "the iSCSI versions do not match", Unsupported),
    row(
        0xEFFF_0026,
        "the target mapping is out of the adapter's range",
        InvalidArgument,
    ),
    row(
        0xEFFF_0027,
        "the preshared key is not available",
        Unauthenticated,
    ),
    row(
        0xEFFF_0028,
        "the target's authentication information is not available",
        Unauthenticated,
    ),
    row(
        0xEFFF_0029,
        "the target is unknown or hidden from login",
        NotFound,
    ),
    row(
        0xEFFF_002A,
        "a parameter of the login is not valid",
        InvalidArgument,
    ),
    row(
        0xEFFF_002B,
        "the target mapping already exists",
        AlreadyExists,
    ),
    row(
        0xEFFF_002C,
        "the adapter's security cache is full",
        ResourceExhausted,
    ),
    row(
        0xEFFF_002D,
        "the port number is not valid for the initiator",
        InvalidArgument,
    ),
    row(
        0xEFFF_0032,
        "the target portal already exists",
        AlreadyExists,
    ),
    row(
        0xEFFF_0033,
        "the target address already exists",
        AlreadyExists,
    ),
    row(
        0xEFFF_0034,
        "no IKE authentication information",
        Unauthenticated,
    ),
    row(0xEFFF_0036, "the initiator's cache is corrupted", Internal),
    row(0xEFFF_0037, "the request is not supported", Unsupported),
    row(
        0xEFFF_0038,
        "the target has too few resources for the request",
        ResourceExhausted,
    ),
    row(
        0xEFFF_0039,
        "the initiator's service did not answer",
        Unavailable,
    ),
    row(0xEFFF_003A, "the iSNS server was not found", Unavailable),
    row(
        0xEFFF_003C,
        "no target portal for the login",
        FailedPrecondition,
    ),
    row(
        0xEFFF_003D,
        "the last connection of a session cannot be removed",
        FailedPrecondition,
    ),
    row(
        0xEFFF_003E,
        "the service MSiSCSI does not run",
        FailedPrecondition,
    ),
    row(
        0xEFFF_003F,
        "the target is already logged in",
        AlreadyExists,
    ),
    row(
        0xEFFF_0040,
        "a device of the session is in use",
        FailedPrecondition,
    ),
    row(
        0xEFFF_0041,
        "the persistent login could not be saved",
        Internal,
    ),
    row(
        0xEFFF_0042,
        "the persistent login could not be removed",
        Internal,
    ),
    row(0xEFFF_0043, "the portal was not found", NotFound),
    row(0xEFFF_0044, "the initiator name was not found", NotFound),
    row(
        0xEFFF_0045,
        "the discovery mechanism was not found",
        NotFound,
    ),
    row(
        0xEFFF_0047,
        "the persistent logins did not complete in time",
        DeadlineExceeded,
    ),
    row(
        0xEFFF_004A,
        "the CHAP secret breaks the standard",
        InvalidArgument,
    ),
    row(
        0xEFFF_004B,
        "the target's CHAP secret must have 12 to 16 bytes",
        InvalidArgument,
    ),
    row(
        0xEFFF_004C,
        "the initiator's CHAP secret must have 12 to 16 bytes",
        InvalidArgument,
    ),
    row(
        0xEFFF_004D,
        "the CHAP user name is not valid",
        InvalidArgument,
    ),
    row(
        0xEFFF_004E,
        "the type of authentication is not valid",
        InvalidArgument,
    ),
    row(
        0xEFFF_0051,
        "the iSCSI name is too long or has invalid characters",
        InvalidArgument,
    ),
    row(0xEFFF_0056, "a parameter is not valid", Internal),
    row(0xEFFF_005D, "the device was not found", NotFound),
    row(0xEFFF_005F, "the DNS name was not resolved", Unavailable),
    row(0xEFFF_0060, "the session has no connection", Unavailable),
    row(
        0xEFFF_0062,
        "a connection of the session is being removed",
        Aborted,
    ),
    row(
        0xEFFF_0063,
        "the connection is not part of the session",
        NotFound,
    ),
    row(0xEFFF_0065, "group policy forbids it", PermissionDenied),
    row(0xEFFF_0068, "the host name was not resolved", Unavailable),
];

/// The classes' pages (<https://learn.microsoft.com/previous-versions/windows/desktop/iscsidisc/>)
/// name no return values. What is listed is what the functions behind them can answer.
pub(super) const METHODS: &[Method] = &[
    // AddIScsiSendTargetPortal
    (
        "MSFT_iSCSITargetPortal.New",
        &[
            0xEFFF_0001,
            0xEFFF_0003,
            0xEFFF_0021,
            0xEFFF_0032,
            0xEFFF_003E,
            0xEFFF_005F,
            0xEFFF_0068,
        ],
    ),
    // RemoveIScsiSendTargetPortal
    (
        "MSFT_iSCSITargetPortal.Remove",
        &[0xEFFF_0001, 0xEFFF_003E, 0xEFFF_0043],
    ),
    // RefreshIScsiSendTargetPortal
    (
        "MSFT_iSCSITargetPortal.Update",
        &[
            0xEFFF_0001,
            0xEFFF_0003,
            0xEFFF_001B,
            0xEFFF_0024,
            0xEFFF_003E,
        ],
    ),
    // LoginIScsiTarget
    (
        "MSFT_iSCSITarget.Connect",
        &[
            0xEFFF_0001,
            0xEFFF_0002,
            0xEFFF_0003,
            0xEFFF_0009,
            0xEFFF_000A,
            0xEFFF_0013,
            0xEFFF_0014,
            0xEFFF_0022,
            0xEFFF_0024,
            0xEFFF_0028,
            0xEFFF_0029,
            0xEFFF_002A,
            0xEFFF_003C,
            0xEFFF_003E,
            0xEFFF_003F,
            0xEFFF_004A,
            0xEFFF_004B,
            0xEFFF_004D,
            0xEFFF_004E,
            0xEFFF_0051,
        ],
    ),
    // LogoutIScsiTarget
    (
        "MSFT_iSCSITarget.Disconnect",
        &[
            0xEFFF_0001,
            0xEFFF_001C,
            0xEFFF_001F,
            0xEFFF_003E,
            0xEFFF_0040,
        ],
    ),
    // ReportIScsiTargets
    ("MSFT_iSCSITarget.Update", &[0xEFFF_0001, 0xEFFF_003E]),
    // SetIScsiInitiatorCHAPSharedSecret
    (
        "MSFT_iSCSISession.SetCHAPSecret",
        &[0xEFFF_0001, 0xEFFF_003E, 0xEFFF_004A, 0xEFFF_004C],
    ),
    // LoginIScsiTarget, persistent
    (
        "MSFT_iSCSISession.Register",
        &[0xEFFF_0001, 0xEFFF_001C, 0xEFFF_003E, 0xEFFF_0041],
    ),
    // RemoveIScsiPersistentTarget
    (
        "MSFT_iSCSISession.Unregister",
        &[0xEFFF_0001, 0xEFFF_001C, 0xEFFF_003E, 0xEFFF_0042],
    ),
];
