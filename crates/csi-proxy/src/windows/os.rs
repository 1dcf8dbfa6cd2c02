//! The operating system's port on Windows.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, Deadline, Moment};
use crate::port::{PortError, PortResult};

/// Files, mount points, devices, virtual disks and locks of this machine.
///
/// A call is not begun after its deadline. One that Windows keeps is waited for: Win32 has no
/// way to call it back.
pub struct Os {
    clock: Arc<dyn Clock>,
    locks: Mutex<Held>,
}

/// The locks that this process holds.
#[derive(Default)]
pub(super) struct Held {
    pub(super) last: u64,
    /// Closing a handle gives its lock back.
    pub(super) handles: BTreeMap<u64, File>,
}

impl Os {
    /// Deadlines are measured by `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            locks: Mutex::default(),
        }
    }

    pub(super) fn in_time(&self, deadline: Deadline) -> PortResult<()> {
        match deadline.has_passed(self.clock.now()) {
            true => Err(PortError::DeadlineExceeded { running: None }),
            false => Ok(()),
        }
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Held> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for Os {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn sleep_until(&self, moment: Moment) {
        self.clock.sleep_until(moment);
    }
}

impl crate::os::Os for Os {}
