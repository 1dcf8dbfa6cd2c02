//! What the checks are made of.

use std::time::Duration;

use csi_proxy::clock::Deadline;
use csi_proxy::port::{PortError, PortResult, SystemCode};
use csi_proxy::{Error, ErrorKind, Host};

use super::CALL_LIMIT;
use crate::failure::{Failure, Result};

/// How long what Windows does by itself may take to show.
const SHOWS_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(250);

/// A check: its name, and what is done. It answers what happened.
pub(super) struct Check<T>(
    pub(super) &'static str,
    pub(super) fn(&mut T) -> Result<String>,
);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.to_string())
    }
}

/// The deadline of a call.
pub(super) fn soon(host: &Host) -> Deadline {
    host.os().deadline_in(CALL_LIMIT)
}

/// What must be refused with this kind, was.
pub(super) fn refused<T>(what: &str, answer: csi_proxy::Result<T>, kind: ErrorKind) -> Result<()> {
    match answer {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => Err(Failure::new(format!(
            "{what} was refused with {:?} instead of {kind:?}: {error}",
            error.kind()
        ))),
        Ok(_) => Err(Failure::new(format!(
            "{what} was done; {kind:?} was expected"
        ))),
    }
}

/// What Windows must refuse with this code, it did.
pub(super) fn refused_with<T>(what: &str, answer: PortResult<T>, expected: u32) -> Result<()> {
    match answer {
        Err(PortError::System { code, .. }) if code == SystemCode::Win32(expected) => Ok(()),
        Err(error) => Err(Failure::new(format!(
            "{what} was not refused with Win32 error {expected}: {error}"
        ))),
        Ok(_) => Err(Failure::new(format!(
            "{what} was done; Win32 error {expected} was expected"
        ))),
    }
}

/// What `look` finds, once it finds something.
pub(super) fn shown<T>(
    host: &Host,
    what: &str,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let until = host.os().deadline_in(SHOWS_WITHIN);
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if !host.os().pause(POLL, until) {
            let seconds = SHOWS_WITHIN.as_secs();
            return Err(Failure::new(format!(
                "{what} did not show within {seconds} s"
            )));
        }
    }
}
