//! Methods that take time.

use csi_proxy::cim::Output;
use csi_proxy::clock::Moment;
use csi_proxy::port::CallId;
use serde::{Deserialize, Serialize};

use super::medium::FileSystem;
use super::{DiskId, Storage, format};
use crate::state::State;

/// A format that runs. Windows goes on with it whatever becomes of the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The call that started it.
    pub call: CallId,
    /// When it ends.
    pub end: Moment,
    /// The disk it works on.
    pub disk: DiskId,
    /// The partition's offset on it.
    pub offset: u64,
    /// What it makes.
    pub file_system: FileSystem,
}

impl Storage {
    /// Whether a call still runs.
    pub(crate) fn runs(&self, call: CallId) -> bool {
        self.jobs.iter().any(|job| job.call == call)
    }

    /// Whether a format of that volume runs.
    pub(crate) fn formats(&self, disk: DiskId, offset: u64) -> bool {
        let mut jobs = self.jobs.iter();
        jobs.any(|job| (job.disk, job.offset) == (disk, offset))
    }

    /// The output of a call that has run, for the one who waited for it; nothing while it
    /// runs.
    pub(crate) fn finished(&mut self, call: CallId) -> Option<Output> {
        if self.runs(call) {
            return None;
        }
        let before = self.cut_off.len();
        self.cut_off.retain(|one| *one != call);
        Some(Output {
            // 4, failed: assumed.
            return_value: if self.cut_off.len() < before { 4 } else { 0 },
            properties: std::collections::BTreeMap::new(),
        })
    }

    /// A disk goes away, and what was done on it ends in the middle.
    pub(super) fn cut_off_jobs_on(&mut self, disk: DiskId) {
        let on_it = |job: &&Job| job.disk == disk;
        self.cut_off
            .extend(self.jobs.iter().filter(on_it).map(|job| job.call));
        self.jobs.retain(|job| job.disk != disk);
    }
}

/// Ends the jobs that are due.
pub(super) fn settle(state: &mut State, now: Moment) {
    let (due, left) = std::mem::take(&mut state.storage.jobs)
        .into_iter()
        .partition(|job: &Job| job.end <= now);
    state.storage.jobs = left;
    for job in due {
        format::finish(state, job.disk, job.offset, job.file_system);
    }
}
