//! The node: one model under one mutex, and the one way in for port calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csi_proxy::DiskNumber;
use csi_proxy::clock::{Clock, Deadline, Moment};
use csi_proxy::port::{Answer, Call, CallId, PortError, PortResult};

use crate::builder::Builder;
use crate::clock::SimClock;
use crate::fault::{self, Effect, Fault};
use crate::latency::Latency;
use crate::ports::Ports;
use crate::process::{Process, ProcessId};
use crate::runtime::{Counts, Delayed, LogEntry, Runtime};
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
    clock: Arc<SimClock>,
}

impl SimNode {
    /// Describes a node. Without more it has one system disk with drive `C:`.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(state: State, clock: Arc<SimClock>, latency: Latency) -> Self {
        let mut runtime = Runtime::new(latency);
        for job in &state.storage.jobs {
            runtime.continue_after(job.call);
        }
        let model = Model {
            state,
            runtime,
            clock: Arc::clone(&clock),
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
    ///
    /// # Panics
    ///
    /// If there cannot be such a disk, see [`SimDisk::check`].
    pub fn attach_disk(&self, disk: &SimDisk) -> DiskNumber {
        if let Err(error) = disk.check() {
            panic!("{error}");
        }
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

    /// Whether the process has not ended.
    pub(crate) fn is_alive(&self, process: ProcessId) -> bool {
        self.model().runtime.end_of(process).is_some()
    }

    /// Lets a process wait until a moment; its end ends the wait.
    pub(crate) fn sleep_until(&self, process: ProcessId, moment: Moment) {
        let end = self.model().runtime.end_of(process);
        if let Some(ended) = end {
            self.0.clock.sleep_until_or(moment, &ended);
        }
    }

    pub(crate) fn sim_clock(&self) -> &SimClock {
        &self.0.clock
    }

    /// Injects a fault.
    ///
    /// # Panics
    ///
    /// If it could never happen, see [`Fault::check`].
    pub fn inject(&self, fault: Fault) {
        if let Err(error) = fault.check() {
            panic!("{error}");
        }
        self.model().runtime.faults.inject(fault);
    }

    /// How many injected faults have not happened yet, not as often as they should, or
    /// without the change that they should have made.
    pub fn faults_left(&self) -> usize {
        self.model().runtime.faults.left()
    }

    /// The faults that [`SimNode::faults_left`] counts, a line for each.
    pub fn show_faults(&self) -> Vec<String> {
        self.model().runtime.faults.shown()
    }

    /// Takes back the faults that have not happened yet.
    pub fn clear_faults(&self) {
        self.model().runtime.faults.clear();
    }

    /// The model, with everything done that is due by now.
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        loop {
            let mut model = self.0.model.lock().unwrap_or_else(PoisonError::into_inner);
            let now = self.0.clock.now();
            model.settle(now);
            let Some(due) = model.runtime.take_due(now) else {
                return model;
            };
            drop(model);
            // Nobody is there to hear the answer.
            let _ = self.perform(due.process, due.id, &due.call, Deadline::At(now));
        }
    }

    fn perform(
        &self,
        process: ProcessId,
        id: CallId,
        call: &Call,
        deadline: Deadline,
    ) -> PortResult<Answer> {
        let ports = Ports {
            node: self,
            process,
            call: id,
        };
        call.perform(&ports, &ports, deadline)
    }

    /// The one way in for all port calls.
    pub(crate) fn carry(
        &self,
        process: ProcessId,
        call: &Call,
        deadline: Deadline,
    ) -> PortResult<Answer> {
        let now = self.0.clock.now();
        let mut model = self.model();
        model.runtime.check_alive(process)?;
        let id = model.runtime.note(now, process, call);
        let effect = model.runtime.faults.at(call).unwrap_or_default();
        let mut delay = model.runtime.latency.of(call);
        match &effect {
            Effect::CrashBefore => model.end_process(process),
            Effect::RebootBefore => model.reboot(),
            Effect::Before(change) => {
                if let Err(why) = change.apply(&mut model.state) {
                    model.runtime.faults.could_not_change(change, &why);
                }
            }
            Effect::BeforeFn(change) => (change.0)(&mut model.state),
            Effect::Stalls(time) => delay = delay.saturating_add(*time),
            _ => {}
        }
        model.runtime.check_alive(process)?;
        drop(model);
        if deadline.has_passed(now) {
            return Err(PortError::DeadlineExceeded { running: None });
        }
        if !delay.is_zero() {
            self.delay(process, id, call, delay, deadline)?;
        }
        if let Some(failure) = fault::failure(&effect, call) {
            return failure;
        }
        let answer = self.perform(process, id, call, deadline);
        let mut model = self.model();
        model.runtime.check_alive(process)?;
        match effect {
            Effect::CrashAfter => model.end_process(process),
            Effect::RebootAfter => model.reboot(),
            Effect::LosesAnswer => {
                let api = call.operation();
                return Err(PortError::OutcomeUnknown { api });
            }
            _ => return answer,
        }
        model.runtime.check_alive(process)?;
        answer
    }

    /// The call hangs. A caller whose deadline comes first goes, and the call stays; so does
    /// a call of WMI whose caller dies.
    fn delay(
        &self,
        process: ProcessId,
        id: CallId,
        call: &Call,
        delay: Duration,
        deadline: Deadline,
    ) -> PortResult<()> {
        let clock = &self.0.clock;
        let end = Moment(clock.now().0.saturating_add(delay));
        let given_up = match deadline {
            Deadline::At(moment) if moment < end => Some(moment),
            _ => None,
        };
        let mut model = self.model();
        model.runtime.check_alive(process)?;
        model.runtime.hold(Delayed {
            id,
            at: end,
            process,
            call: call.clone(),
            is_awaited: given_up.is_none(),
        });
        drop(model);
        self.sleep_until(process, given_up.unwrap_or(end));
        let mut model = self.model();
        model.runtime.check_alive(process)?;
        if given_up.is_some() {
            return Err(PortError::DeadlineExceeded { running: Some(id) });
        }
        model.runtime.take_back(id);
        Ok(())
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
        self.clock.wake();
    }

    pub(crate) fn reboot(&mut self) {
        self.runtime.end_all_processes();
        self.state.locks.release_all();
        crate::storage::reboot(&mut self.state);
        crate::smb::reboot(&mut self.state);
        crate::iscsi::reboot(&mut self.state);
        crate::services::reboot(&mut self.state);
        self.clock.wake();
    }
}
