//! The lock of a disk: one operation at a time changes it, over all processes of the node.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use crate::clock::Deadline;
use crate::error::{ErrorKind, Result};
use crate::host::Host;
use crate::operation::Operation;
use crate::os::{LockName, LockToken};
use crate::port::{CallId, PortError};

/// Locks whose operation has ended while a call of it went on in Windows. They are given
/// back once those calls have ended.
#[derive(Debug, Default)]
pub(crate) struct KeptLocks(Mutex<Vec<Kept>>);

#[derive(Clone, Debug)]
struct Kept {
    token: LockToken,
    running: Vec<CallId>,
}

/// A lock that is held. Dropping it gives it back, unless a call under it still runs.
pub(crate) struct DiskLock<'a> {
    host: &'a Host,
    token: LockToken,
    running: RefCell<Vec<CallId>>,
}

impl<'a> DiskLock<'a> {
    /// Takes the lock of the disk with that unique id.
    ///
    /// # Errors
    /// `Aborted` when another operation holds it, in this process or another.
    pub(crate) fn take(operation: &Operation<'a>, unique_id: &str) -> Result<Self> {
        let host = operation.host();
        host.kept_locks().sweep(host, operation.deadline());
        let name = LockName(format!("disk:{unique_id}"));
        let object = format!("disk {unique_id}");
        let token = host
            .os()
            .try_lock(&name, operation.deadline())
            .map_err(|error| operation.port_error(&object, error))?
            .ok_or_else(|| {
                let detail = "another operation works on this disk; try again when it has ended";
                operation.error(ErrorKind::Aborted, &object, detail)
            })?;
        Ok(Self {
            host,
            token,
            running: RefCell::default(),
        })
    }

    /// Looks at the error of a call under the lock: one that was given up but goes on keeps
    /// the lock.
    pub(crate) fn note(&self, error: &PortError) {
        if let PortError::DeadlineExceeded { running: Some(id) } = error {
            self.running.borrow_mut().push(*id);
        }
    }
}

impl Drop for DiskLock<'_> {
    fn drop(&mut self) {
        let running = self.running.take();
        match running.is_empty() {
            true => give_back(self.host, self.token),
            false => self.host.kept_locks().keep(self.token, running),
        }
    }
}

impl KeptLocks {
    fn keep(&self, token: LockToken, running: Vec<CallId>) {
        self.entries().push(Kept { token, running });
    }

    /// Gives back the locks whose calls have ended.
    fn sweep(&self, host: &Host, deadline: Deadline) {
        // Not under the mutex: the port may take its time.
        for kept in self.entries().clone() {
            // Without an answer the call is taken to run.
            let runs = |id: &CallId| host.cim().is_running(id, deadline).unwrap_or(true);
            if !kept.running.iter().any(runs) && self.forget(kept.token) {
                give_back(host, kept.token);
            }
        }
    }

    /// Whether this was the one to take the lock off the list.
    fn forget(&self, token: LockToken) -> bool {
        let mut entries = self.entries();
        let before = entries.len();
        entries.retain(|kept| kept.token != token);
        entries.len() < before
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock that cannot be given back belongs to a process or a node that has ended, and
/// Windows has given it back.
fn give_back(host: &Host, token: LockToken) {
    let _ = host.os().unlock(&token, Deadline::Never);
}
