//! The node: one model under one mutex, and the one way in for port calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csi_proxy::DiskNumber;
use csi_proxy::clock::{Clock, Deadline, Moment};
use csi_proxy::port::{Answer, Call, PortError, PortResult};

use crate::builder::Builder;
use crate::clock::SimClock;
use crate::latency::Latency;
use crate::ports::Ports;
use crate::process::{Process, ProcessId};
use crate::runtime::{Counts, LogEntry, Runtime};
use crate::state::State;
use crate::storage::{self, MediumId, SimDisk};

/// A simulated Windows node. Clones are the same node.
#[derive(Clone)]
pub struct SimNode(Arc<Shared>);

struct Shared {
    model: Mutex<Model>,
    clock: Arc<SimClock>,
}

/// What the mutex guards.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) state: State,
    pub(crate) runtime: Runtime,
}

impl SimNode {
    /// Describes a node. Without more it has one system disk with drive `C:`.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(state: State, clock: Arc<SimClock>, latency: Latency) -> Self {
        let model = Model {
            state,
            runtime: Runtime::new(latency),
        };
        Self(Arc::new(Shared {
            model: Mutex::new(model),
            clock,
        }))
    }

    /// Starts a process on the node.
    pub fn process(&self) -> Process {
        let id = self.model().runtime.start_process();
        Process::new(self.clone(), id)
    }

    /// The node's clock.
    pub fn clock(&self) -> Arc<SimClock> {
        Arc::clone(&self.0.clock)
    }

    /// The whole node as a value. "Nothing was changed" is the equality of two of them.
    pub fn snapshot(&self) -> State {
        self.model().state.clone()
    }

    /// How many port calls there were since the start or the last
    /// [`SimNode::reset_counts`].
    pub fn counts(&self) -> Counts {
        self.model().runtime.counts().clone()
    }

    /// Starts counting anew.
    pub fn reset_counts(&self) {
        self.model().runtime.reset_counts();
    }

    /// The last 10,000 port calls, oldest first, without secrets.
    pub fn call_log(&self) -> Vec<LogEntry> {
        self.model().runtime.log().cloned().collect()
    }

    /// Attaches a disk and answers its number.
    pub fn attach_disk(&self, disk: &SimDisk) -> DiskNumber {
        let mut model = self.model();
        let id = storage::attach(&mut model.state, disk);
        let attached = model.state.storage.disks.get(&id);
        DiskNumber(attached.map_or(u32::MAX, |disk| disk.number))
    }

    /// Takes a disk away, as a cloud does: what it holds can be attached again with
    /// [`SimNode::reattach_disk`]. Nothing if there is no disk with that number.
    pub fn detach_disk(&self, number: DiskNumber) -> Option<MediumId> {
        let mut model = self.model();
        let (id, disk) = model.state.storage.disk_by_number(number.0)?;
        let medium = disk.medium;
        storage::detach(&mut model.state, id);
        Some(medium)
    }

    /// Attaches a disk that was taken away and answers its number, which is the old one if
    /// that is free. Nothing if it is not there to be attached.
    pub fn reattach_disk(&self, medium: MediumId) -> Option<DiskNumber> {
        let mut model = self.model();
        let id = storage::attach_parked(&mut model.state, medium)?;
        let disk = model.state.storage.disks.get(&id)?;
        Some(DiskNumber(disk.number))
    }

    /// Changes the node from outside.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.model().state);
    }

    /// How long calls take from now on.
    pub fn set_latency(&self, latency: Latency) {
        self.model().runtime.latency = latency;
    }

    /// Reboots the node: all processes end, running work and what does not persist (VHDX
    /// attachments, sessions) is gone; files, links and mount points stay.
    pub fn reboot(&self) {
        self.model().reboot();
    }

    pub(crate) fn end_process(&self, process: ProcessId) {
        self.model().end_process(process);
    }

    pub(crate) fn sim_clock(&self) -> &SimClock {
        &self.0.clock
    }

    /// The model, with everything done that is due by now.
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        let mut model = self.0.model.lock().unwrap_or_else(PoisonError::into_inner);
        model.settle(self.0.clock.now());
        model
    }

    /// The one way in for all port calls.
    pub(crate) fn carry(
        &self,
        process: ProcessId,
        call: &Call,
        deadline: Deadline,
    ) -> PortResult<Answer> {
        let now = self.0.clock.now();
        let id = {
            let mut model = self.model();
            model.runtime.check_alive(process)?;
            model.runtime.note(now, process, call)
        };
        if deadline.has_passed(now) {
            return Err(PortError::DeadlineExceeded { running: None });
        }
        let ports = Ports {
            node: self,
            process,
            call: id,
        };
        let answer = call.perform(&ports, &ports, deadline);
        self.model().runtime.check_alive(process)?;
        answer
    }
}

impl Model {
    /// Does what is due at `now`.
    fn settle(&mut self, now: Moment) {
        crate::storage::settle(&mut self.state, now);
        crate::services::settle(&mut self.state, now);
        crate::iscsi::settle(&mut self.state);
    }

    pub(crate) fn end_process(&mut self, process: ProcessId) {
        self.runtime.end_process(process);
        self.state.locks.release_all_of(process);
    }

    pub(crate) fn reboot(&mut self) {
        self.runtime.end_all_processes();
        self.state.locks.release_all();
        crate::storage::reboot(&mut self.state);
        crate::smb::reboot(&mut self.state);
        crate::iscsi::reboot(&mut self.state);
        crate::services::reboot(&mut self.state);
    }
}
