//! Locks among the processes of the node.

use std::collections::BTreeMap;

use csi_proxy::clock::Deadline;
use csi_proxy::os::{self, LockName, LockToken};
use csi_proxy::port::PortResult;
use serde::{Deserialize, Serialize};

use crate::ports::Ports;
use crate::process::ProcessId;
use crate::win32::{ERROR_INVALID_HANDLE, win32};

/// The locks that are held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Locks(BTreeMap<LockName, Held>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Held {
    process: ProcessId,
    token: LockToken,
}

impl Locks {
    /// The names of the locks that are held.
    pub fn held(&self) -> impl Iterator<Item = &LockName> {
        self.0.keys()
    }

    /// Windows releases what a process held when it ends.
    pub(crate) fn release_all_of(&mut self, process: ProcessId) {
        self.0.retain(|_, held| held.process != process);
    }

    /// After a reboot no process is left.
    pub(crate) fn release_all(&mut self) {
        self.0.clear();
    }

    fn take(&mut self, name: &LockName, held: Held) -> bool {
        let free = !self.0.contains_key(name);
        if free {
            self.0.insert(name.clone(), held);
        }
        free
    }

    fn give_back(&mut self, process: ProcessId, token: LockToken) -> bool {
        let before = self.0.len();
        self.0
            .retain(|_, held| (held.process, held.token) != (process, token));
        self.0.len() < before
    }
}

impl os::Locks for Ports<'_> {
    fn try_lock(&self, name: &LockName, _: Deadline) -> PortResult<Option<LockToken>> {
        let mut model = self.model();
        let held = Held {
            process: self.process,
            token: LockToken(model.runtime.next_token()),
        };
        let token = held.token;
        Ok(model.state.locks.take(name, held).then_some(token))
    }

    fn unlock(&self, token: &LockToken, _: Deadline) -> PortResult<()> {
        let mut model = self.model();
        match model.state.locks.give_back(self.process, *token) {
            true => Ok(()),
            false => Err(win32("ReleaseMutex", ERROR_INVALID_HANDLE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimNode;

    fn name() -> LockName {
        LockName("disk:1".to_owned())
    }

    #[test]
    fn a_lock_is_held_by_one_at_a_time() {
        let node = SimNode::builder().build();
        let (first, second) = (node.process().os(), node.process().os());
        let token = first.try_lock(&name(), Deadline::Never).unwrap().unwrap();
        assert_eq!(second.try_lock(&name(), Deadline::Never), Ok(None));
        assert_eq!(first.try_lock(&name(), Deadline::Never), Ok(None));
        assert!(second.unlock(&token, Deadline::Never).is_err());
        first.unlock(&token, Deadline::Never).unwrap();
        assert!(second.try_lock(&name(), Deadline::Never).unwrap().is_some());
    }

    #[test]
    fn a_crash_releases_the_locks_of_that_process_alone() {
        let node = SimNode::builder().build();
        let (first, second) = (node.process(), node.process());
        let other = LockName("disk:2".to_owned());
        first.os().try_lock(&name(), Deadline::Never).unwrap();
        second.os().try_lock(&other, Deadline::Never).unwrap();
        first.crash();
        assert_eq!(node.snapshot().locks.held().collect::<Vec<_>>(), [&other]);
    }
}
