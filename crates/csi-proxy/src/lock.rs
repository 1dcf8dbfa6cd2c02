//! Locks: one operation at a time changes a disk, a share or what a driver has named, over all
//! processes of the node.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Deadline;
use crate::error::{Error, ErrorKind, Result};
use crate::host::Host;
use crate::operation::Operation;
use crate::os::{LockName, LockToken};
use crate::port::{CallId, PortError};

/// How long an operation on a share waits for another one: several volumes of one share come
/// at the same time.
const SHARE_PATIENCE: Duration = Duration::from_secs(10);
const SHARE_POLL: Duration = Duration::from_millis(100);

/// Locks whose operation has ended while a call of it went on in Windows, and those that
/// could not be given back. They are given back when an operation begins or tries to take a
/// lock, once those calls have ended.
#[derive(Debug, Default)]
pub(crate) struct KeptLocks(Mutex<Vec<Kept>>);

#[derive(Clone, Debug)]
struct Kept {
    token: LockToken,
    running: Vec<CallId>,
}

/// A lock that is held, [`Host::lock`]. Dropping it gives it back, unless a call under it
/// still runs.
#[must_use = "it is given back when it is dropped"]
pub struct Lock<'a> {
    host: &'a Host,
    token: LockToken,
    running: RefCell<Vec<CallId>>,
}

impl Host {
    /// Takes a lock of the caller's own, which keeps out every other operation under that
    /// name in all processes of the node, and ends with this process at the latest. `object`
    /// is what it is for, in errors.
    ///
    /// # Errors
    /// `Aborted` when another operation holds it, in this process or another.
    pub fn lock(
        &self,
        operation: &'static str,
        name: &LockName,
        object: impl fmt::Display,
        deadline: Deadline,
    ) -> Result<Lock<'_>> {
        self.kept_locks().sweep(self, deadline);
        // It answers at once; a lock whose answer nobody waits for would be held by nobody.
        match self.os().try_lock(name, Deadline::Never) {
            Ok(Some(token)) => Ok(Lock {
                host: self,
                token,
                running: RefCell::default(),
            }),
            Ok(None) => {
                let detail = "another operation works on it; try again when it has ended";
                Err(Error::new(ErrorKind::Aborted, operation, object, detail))
            }
            Err(error) => Err(Error::from_port(operation, object, error)),
        }
    }
}

impl<'a> Lock<'a> {
    /// Takes the lock of the disk with that unique id.
    ///
    /// # Errors
    /// `Aborted` when another operation holds it, in this process or another.
    pub(crate) fn of_disk(operation: &Operation<'a>, unique_id: &str) -> Result<Self> {
        Self::take(operation, "disk", unique_id)
    }

    /// Takes the lock of the share, `\\server\share` in lower case, and waits a while for it.
    ///
    /// # Errors
    /// `Aborted` when another operation holds it for longer.
    pub(crate) fn of_share(operation: &Operation<'a>, share: &str) -> Result<Self> {
        let patience = operation.os().deadline_in(SHARE_PATIENCE);
        loop {
            match Self::take(operation, "share", share) {
                Err(error)
                    if error.kind() == ErrorKind::Aborted
                        && !patience.has_passed(operation.os().now()) =>
                {
                    operation.pause(SHARE_POLL, format_args!("share {share}"), "its lock")?;
                }
                other => return other,
            }
        }
    }

    fn take(operation: &Operation<'a>, kind: &str, id: &str) -> Result<Self> {
        let name = LockName(format!("{kind}:{id}"));
        let object = format!("{kind} {id}");
        operation
            .host()
            .lock(operation.name(), &name, object, operation.deadline())
    }

    /// Looks at the error of work that was done under the lock. A call that was given up at
    /// the deadline but goes on in Windows keeps the lock until it has ended.
    pub fn note_error(&self, error: &Error) {
        if let Some(error) = error.port_error() {
            self.note(error);
        }
    }

    /// Looks at the error of a call under the lock: one that was given up but goes on keeps
    /// the lock.
    pub(crate) fn note(&self, error: &PortError) {
        if let PortError::DeadlineExceeded { running: Some(id) } = error {
            self.running.borrow_mut().push(*id);
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let running = self.running.take();
        if !running.is_empty() || !give_back(self.host, self.token) {
            self.host.kept_locks().keep(self.token, running);
        }
    }
}

impl KeptLocks {
    fn keep(&self, token: LockToken, running: Vec<CallId>) {
        self.entries().push(Kept { token, running });
    }

    /// Gives back the locks whose calls have ended.
    pub(crate) fn sweep(&self, host: &Host, deadline: Deadline) {
        // Not under the mutex: the port may take its time.
        let all = self.entries().clone();
        for kept in all {
            // Without an answer the call is taken to run.
            let runs = |id: &CallId| host.cim().is_running(id, deadline).unwrap_or(true);
            if !kept.running.iter().any(runs) && self.forget(kept.token) {
                // What Windows refuses a second time it has given back by itself.
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

/// Whether Windows has taken the lock back.
fn give_back(host: &Host, token: LockToken) -> bool {
    host.os().unlock(&token, Deadline::Never).is_ok()
}
