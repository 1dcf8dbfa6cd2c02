//! What belongs to a run and not to the node: processes, counters, the log of calls.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use csi_proxy::clock::Moment;
use csi_proxy::port::{Call, CallId, PortError, PortResult};
use serde::{Deserialize, Serialize};

use crate::fault::Faults;
use crate::latency::Latency;
use crate::process::ProcessId;

/// The log keeps the last calls only.
const LOG_LENGTH: usize = 10_000;

/// How many port calls there were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// By [`Call::operation`].
    pub by_operation: BTreeMap<String, u64>,
    /// On the port to WMI.
    pub cim: u64,
    /// On the port to the operating system.
    pub os: u64,
}

impl Counts {
    /// The calls of one operation.
    pub fn of(&self, operation: &str) -> u64 {
        self.by_operation.get(operation).copied().unwrap_or(0)
    }

    /// All calls.
    pub fn total(&self) -> u64 {
        self.cim + self.os
    }

    fn add(&mut self, call: &Call) {
        match call {
            Call::Cim(_) => self.cim += 1,
            _ => self.os += 1,
        }
        *self.by_operation.entry(call.operation()).or_default() += 1;
    }
}

/// A port call that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// When it came.
    pub at: Moment,
    /// The process that made it.
    pub process: ProcessId,
    /// The call, without secrets.
    pub call: Call,
}

#[derive(Debug, Default)]
pub(crate) struct Runtime {
    pub(crate) latency: Latency,
    pub(crate) faults: Faults,
    /// Calls that hang, and those of them that their callers gave up.
    delayed: Vec<Delayed>,
    counts: Counts,
    log: VecDeque<LogEntry>,
    /// The processes that there are, each with what is set at its end.
    alive: BTreeMap<ProcessId, Arc<AtomicBool>>,
    last_process: u64,
    last_token: u64,
    last_call: u64,
}

/// A call that hangs.
#[derive(Debug)]
pub(crate) struct Delayed {
    pub(crate) id: CallId,
    /// When it takes effect.
    pub(crate) at: Moment,
    pub(crate) process: ProcessId,
    pub(crate) call: Call,
    /// Its caller waits for it and makes it take effect; otherwise the node does.
    pub(crate) is_awaited: bool,
}

impl Runtime {
    /// A call begins to hang.
    pub(crate) fn hold(&mut self, delayed: Delayed) {
        self.delayed.push(delayed);
    }

    /// The caller of a call has waited long enough and takes it back to make it take effect.
    pub(crate) fn take_back(&mut self, call: CallId) {
        self.delayed.retain(|one| one.id != call);
    }

    /// A call that is due and that nobody waits for.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<Delayed> {
        let is_due = |one: &Delayed| !one.is_awaited && one.at <= now;
        let due = self.delayed.iter().position(is_due)?;
        Some(self.delayed.remove(due))
    }

    pub(crate) fn is_delayed(&self, call: CallId) -> bool {
        self.delayed.iter().any(|one| one.id == call)
    }

    /// A loaded node has calls that still run: ids go on behind them.
    pub(crate) fn continue_after(&mut self, call: CallId) {
        self.last_call = self.last_call.max(call.0);
    }

    pub(crate) fn new(latency: Latency) -> Self {
        Self {
            latency,
            ..Self::default()
        }
    }

    pub(crate) fn start_process(&mut self) -> ProcessId {
        self.last_process += 1;
        let process = ProcessId(self.last_process);
        self.alive.insert(process, Arc::default());
        process
    }

    pub(crate) fn end_process(&mut self, process: ProcessId) {
        if let Some(ended) = self.alive.remove(&process) {
            ended.store(true, Ordering::SeqCst);
        }
        // WMI goes on with what it was asked for; calls of the process itself end with it.
        let of_wmi = |one: &Delayed| matches!(one.call, Call::Cim(_));
        self.delayed
            .retain(|one| one.process != process || of_wmi(one));
        for delayed in &mut self.delayed {
            delayed.is_awaited &= delayed.process != process;
        }
    }

    pub(crate) fn end_all_processes(&mut self) {
        for (_, ended) in std::mem::take(&mut self.alive) {
            ended.store(true, Ordering::SeqCst);
        }
        self.delayed.clear();
    }

    pub(crate) fn check_alive(&self, process: ProcessId) -> PortResult<()> {
        match self.alive.contains_key(&process) {
            true => Ok(()),
            false => Err(PortError::Unavailable {
                reason: format!("{process} has ended"),
            }),
        }
    }

    /// What is set at the end of a process; nothing if it has ended.
    pub(crate) fn end_of(&self, process: ProcessId) -> Option<Arc<AtomicBool>> {
        self.alive.get(&process).cloned()
    }

    pub(crate) fn next_token(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }

    /// Writes a call down and gives it its id.
    pub(crate) fn note(&mut self, at: Moment, process: ProcessId, call: &Call) -> CallId {
        self.counts.add(call);
        if self.log.len() == LOG_LENGTH {
            self.log.pop_front();
        }
        self.log.push_back(LogEntry {
            at,
            process,
            call: without_secrets(call),
        });
        self.last_call += 1;
        CallId(self.last_call)
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn reset_counts(&mut self) {
        self.counts = Counts::default();
    }

    pub(crate) fn log(&self) -> impl Iterator<Item = &LogEntry> {
        self.log.iter()
    }
}

fn without_secrets(call: &Call) -> Call {
    call.redacted(|_, _| "(hidden)".to_owned())
}

#[cfg(test)]
mod tests {
    use csi_proxy::Secret;
    use csi_proxy::cim::{CimCall, Invoke, Namespace};

    use super::*;

    #[test]
    fn the_log_holds_no_secret() {
        let invoke = Invoke::on_class(Namespace::Smb, "MSFT_SmbGlobalMapping", "Create")
            .with("Credential", Secret::new("user:hunter2"));
        let call = without_secrets(&Call::from(CimCall::Invoke(invoke)));
        assert!(!serde_json::to_string(&call).unwrap().contains("hunter2"));
    }
}
