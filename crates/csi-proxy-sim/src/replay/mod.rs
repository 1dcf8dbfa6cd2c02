//! A trace made again on a simulated node: where would it have answered differently?
//!
//! The node begins as the recorded one did: exactly, if that was a simulated one, else as far
//! as the snapshot of the trace tells and the simulation can express. Then every recorded
//! call is made on it, in the order in which the recorded answers came. Ids that cannot be
//! equal are unified: the first time that a recorded one meets a simulated one in the same
//! place they name the same thing, and later calls have the simulated one in the place of the
//! recorded one.

mod compare;
mod ids;
mod passwords;
mod seed;
mod start;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use csi_proxy::cim::CimCall;
use csi_proxy::clock::{Clock as _, Deadline, Moment};
use csi_proxy::port::{Answer, Call, PortError, PortResult, Transport as _};
use csi_proxy::trace::{Entry, Snapshot, Start, Trace};
use serde::Serialize;

use crate::fault::Fault;
use crate::node::SimNode;
use crate::process::Process;
use compare::Comparison;
use ids::Ids;
use seed::{Seeds, When};

/// A place at which the simulated node answered another thing than the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The line of the trace.
    pub line: usize,
    /// [`Call::operation`].
    pub operation: String,
    /// What of the answer it is: `ReturnValue`, `error`, `row`, a property.
    pub place: String,
    /// What was recorded there.
    pub recorded: String,
    /// What the simulated node has there.
    pub simulated: String,
}

/// What came of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// How many calls were made.
    pub calls: usize,
    /// How many calls were left out, by the reason.
    pub left_out: BTreeMap<String, usize>,
    /// What the simulated node could not have of the recorded one.
    pub notes: Vec<String>,
    /// Where the answers differ.
    pub differences: Vec<Difference>,
}

/// A trace that cannot be replayed on a simulated node.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Nothing is known of the node.
    #[error("the header does not tell how the node stood at the start")]
    NoStart,
    /// The start is not one that this version writes.
    #[error("the start in the header is of another version of the simulated node: {0}")]
    Start(serde_json::Error),
}

/// Makes the calls of a trace on a simulated node that begins as the recorded one did.
///
/// # Errors
/// The header does not tell how that was.
pub fn replay(trace: &Trace) -> Result<Replay, ReplayError> {
    let begun = start::begin(&trace.header)?;
    let mut run = Run {
        start: begun.node.clock().now(),
        process: begun.node.process(),
        node: begun.node,
        is_same: begun.is_same,
        ids: Ids::default(),
        seeds: Seeds::default(),
        replay: Replay {
            notes: begun.notes,
            ..Replay::default()
        },
    };
    if trace.cut_off {
        run.note("the last line of the trace is cut off");
    }
    if let Some(Start::Snapshot(snapshot)) = &trace.header.start {
        run.compare_start(snapshot);
        run.seeds = Seeds::new(snapshot);
        run.note("free space and the sizes of files are not compared");
        seed::services(trace, &run.node);
        seed::servers(trace, &run.node);
    }
    for (index, entry) in trace.entries().enumerate() {
        match run.reason_to_leave_out(&entry) {
            Some(reason) => *run.replay.left_out.entry(reason.to_owned()).or_default() += 1,
            None => run.entry(&entry, || trace.entries().skip(index + 1)),
        }
    }
    Ok(run.replay)
}

struct Run {
    node: SimNode,
    process: Process,
    /// What the node's clock showed at the start of the trace.
    start: Moment,
    is_same: bool,
    ids: Ids,
    seeds: Seeds,
    replay: Replay,
}

impl Run {
    fn entry<E: Iterator<Item = Entry>>(&mut self, entry: &Entry, later: impl FnOnce() -> E) {
        let moment = Moment(self.start.0.saturating_add(entry.at));
        self.node.sim_clock().advance_to(moment);
        if !self.is_same {
            self.seed(When::Before, entry);
            self.stall(entry, later);
        }
        let call = self.ids.call(&entry.call);
        let now = self.node.sim_clock().now();
        let deadline = entry.timeout.map_or(Deadline::Never, |timeout| {
            Deadline::At(Moment(now.0.saturating_add(timeout)))
        });
        let answer = self.process.carry(&call, deadline);
        self.node.clear_faults();
        self.replay.calls += 1;
        if is_lost(&entry.answer) {
            let reason = "their answer was lost: they were made, and not compared";
            *self.replay.left_out.entry(reason.to_owned()).or_default() += 1;
            return;
        }
        if self.compare(entry, &answer) && !self.is_same {
            self.seed(When::AfterDifference, entry);
        }
        self.seeds.note(&entry.call);
    }

    fn seed(&mut self, when: When, entry: &Entry) {
        let (ids, process, node) = (&self.ids, &self.process, &self.node);
        self.seeds.put(when, entry, ids, process, node);
    }

    /// Answers whether they differ.
    fn compare(&mut self, entry: &Entry, answer: &PortResult<Answer>) -> bool {
        let mut comparison = Comparison {
            ids: &mut self.ids,
            same_space: self.is_same,
            found: Vec::new(),
        };
        comparison.answers(&entry.call, &entry.answer, answer);
        let differences = comparison.found.into_iter().map(|found| Difference {
            line: entry.line,
            operation: entry.call.operation(),
            place: found.place,
            recorded: found.recorded,
            simulated: found.simulated,
        });
        let before = self.replay.differences.len();
        self.replay.differences.extend(differences);
        self.replay.differences.len() > before
    }

    /// Finds out which disks, partitions and volumes of the start are which, and notes what
    /// about them is not as it was.
    fn compare_start(&mut self, recorded: &Snapshot) {
        let (cim, os) = (self.process.cim(), self.process.os());
        let simulated = Snapshot::take(&*cim, &*os, Deadline::Never);
        let mut comparison = Comparison {
            ids: &mut self.ids,
            same_space: false,
            found: Vec::new(),
        };
        for (class, recorded, simulated) in [
            ("MSFT_Disk", &recorded.disks, &simulated.disks),
            (
                "MSFT_Partition",
                &recorded.partitions,
                &simulated.partitions,
            ),
            ("MSFT_Volume", &recorded.volumes, &simulated.volumes),
        ] {
            comparison.rows(class, recorded, simulated);
        }
        for found in comparison.found {
            self.replay.notes.push(format!(
                "{} is {} at the start, not {}",
                found.place, found.simulated, found.recorded
            ));
        }
    }

    /// How long a real node takes is its own: a call that was given up there takes as long
    /// here, and ends when the trace shows that it has ended.
    fn stall<E: Iterator<Item = Entry>>(&self, entry: &Entry, later: impl FnOnce() -> E) {
        let Err(PortError::DeadlineExceeded { running: Some(id) }) = entry.answer else {
            return;
        };
        let ended = later().find(|other| {
            let asks = matches!(other.call, Call::Cim(CimCall::IsRunning(asked)) if asked == id);
            let ended = Ok(Answer::Cim(csi_proxy::cim::CimAnswer::IsRunning(false)));
            asks && other.answer == ended
        });
        const NOT_SEEN: Duration = Duration::from_secs(3600);
        let length = ended.map_or(NOT_SEEN, |other| other.at.saturating_sub(entry.at));
        self.node.inject(Fault::at_call(1).stalls(length));
    }

    fn reason_to_leave_out(&mut self, entry: &Entry) -> Option<&'static str> {
        if let Err(PortError::Unavailable { .. }) = entry.answer {
            // Its locks are free, and what it was waiting for goes on.
            self.process.crash();
            self.process = self.node.process();
            return Some("the node took no calls, or the process had ended");
        }
        (!self.is_same && is_iscsi(&entry.call))
            .then_some("the iSCSI targets of the recorded node are not known")
    }

    fn note(&mut self, note: &str) {
        self.replay.notes.push(note.to_owned());
    }
}

fn is_lost(answer: &PortResult<Answer>) -> bool {
    matches!(answer, Err(PortError::OutcomeUnknown { .. }))
}

fn is_iscsi(call: &Call) -> bool {
    let class = match call {
        Call::Cim(CimCall::Query(query)) => query.class.as_str(),
        Call::Cim(CimCall::Associators(request)) => request.association.as_str(),
        Call::Cim(CimCall::Invoke(invoke)) => invoke.target.class(),
        _ => "",
    };
    class.to_lowercase().starts_with("msft_iscsi")
}
