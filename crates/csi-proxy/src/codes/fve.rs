//! Codes of BitLocker (facility `0x8031`, full volume encryption).
//!
//! Source: "COM Error Codes (TPM, PLA, FVE)",
//! <https://learn.microsoft.com/windows/win32/com/com-error-codes-6>.

use super::{Row, row};
use crate::error::ErrorKind::FailedPrecondition;

pub(super) const ROWS: &[Row] = &[row(
    0x8031_0000,
    "the volume is locked by BitLocker",
    FailedPrecondition,
)];
