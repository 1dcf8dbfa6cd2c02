//! Codes of the virtual disk functions (facility `0xC03A`).
//!
//! Source: `winerror.h`, "COM Error Codes (System Defined)" and the pages of
//! <https://learn.microsoft.com/windows/win32/api/virtdisk/>.

use super::{Row, row};
use crate::error::ErrorKind::{
    FailedPrecondition, Internal, InvalidArgument, NotFound, PermissionDenied, Unsupported,
};

pub(super) const ROWS: &[Row] = &[
    row(
        0xC03A_0001,
        "the VHD's footer is missing",
        FailedPrecondition,
    ),
    row(
        0xC03A_0002,
        "the checksum of the VHD's footer is wrong",
        FailedPrecondition,
    ),
    row(
        0xC03A_0003,
        "the VHD's footer is damaged",
        FailedPrecondition,
    ),
    row(
        0xC03A_0004,
        "the file is no virtual disk",
        FailedPrecondition,
    ),
    row(
        0xC03A_0005,
        "the VHD has an unsupported version",
        Unsupported,
    ),
    row(
        0xC03A_0006,
        "the checksum of the VHD's header is wrong",
        FailedPrecondition,
    ),
    row(
        0xC03A_0007,
        "the VHD's header has an unsupported version",
        Unsupported,
    ),
    row(
        0xC03A_0008,
        "the VHD's header is damaged",
        FailedPrecondition,
    ),
    row(0xC03A_0009, "the VHD could not get another block", Internal),
    row(
        0xC03A_000A,
        "the VHD's block table is damaged",
        FailedPrecondition,
    ),
    row(
        0xC03A_000B,
        "the VHD's block size is not valid",
        FailedPrecondition,
    ),
    row(
        0xC03A_000C,
        "the VHD's bitmap does not match",
        FailedPrecondition,
    ),
    row(0xC03A_000D, "the parent VHD was not found", NotFound),
    row(
        0xC03A_000E,
        "the parent VHD has another id",
        FailedPrecondition,
    ),
    row(
        0xC03A_000F,
        "the parent VHD was changed",
        FailedPrecondition,
    ),
    row(0xC03A_0010, "the VHD's metadata cannot be read", Internal),
    row(
        0xC03A_0011,
        "the VHD's metadata cannot be written",
        Internal,
    ),
    row(0xC03A_0012, "the VHD's size is not valid", InvalidArgument),
    row(
        0xC03A_0013,
        "the size of the VHD's file is not valid",
        FailedPrecondition,
    ),
    row(
        0xC03A_0014,
        "no provider for this virtual disk was found",
        Unsupported,
    ),
    row(
        0xC03A_0015,
        "the disk is no virtual disk",
        FailedPrecondition,
    ),
    row(
        0xC03A_0016,
        "access to the parent VHD is denied",
        PermissionDenied,
    ),
    row(
        0xC03A_0017,
        "the parent VHD has another size",
        FailedPrecondition,
    ),
    row(
        0xC03A_0018,
        "the VHD is its own ancestor",
        FailedPrecondition,
    ),
    row(
        0xC03A_0019,
        "an ancestor of the VHD cannot be opened",
        FailedPrecondition,
    ),
    row(
        0xC03A_001A,
        "the file is compressed, encrypted, sparse or on an unsuitable volume",
        FailedPrecondition,
    ),
    row(
        0xC03A_001B,
        "the type of the virtual disk does not allow it",
        FailedPrecondition,
    ),
    row(
        0xC03A_001C,
        "the state of the virtual disk does not allow it",
        FailedPrecondition,
    ),
    row(0xC03A_001D, "the sector size is not supported", Unsupported),
    row(
        0xC03A_001E,
        "the virtual disk is already owned",
        FailedPrecondition,
    ),
    row(
        0xC03A_001F,
        "the virtual disk must be offline or read-only",
        FailedPrecondition,
    ),
    row(
        0xC03A_0025,
        "the resize would cut off data",
        FailedPrecondition,
    ),
    row(
        0xC03A_0026,
        "the smallest size cannot be computed",
        FailedPrecondition,
    ),
    row(
        0xC03A_0027,
        "the virtual disk already has its smallest size",
        FailedPrecondition,
    ),
    row(
        0xC03A_0028,
        "the VHD's metadata has no room",
        FailedPrecondition,
    ),
];
