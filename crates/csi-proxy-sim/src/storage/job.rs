//! Methods that take time.

use csi_proxy::cim::Output;
use csi_proxy::clock::Moment;
use csi_proxy::port::CallId;
use serde::{Deserialize, Serialize};

use super::{DiskId, Storage};

/// A method that runs or has run. Windows goes on with it whatever becomes of the caller.
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
}

impl Storage {
    /// Whether a call still runs.
    pub(crate) fn runs(&self, call: CallId) -> bool {
        self.jobs.iter().any(|job| job.call == call)
    }

    /// The output of a call that ran and has ended.
    pub(crate) fn finished(&mut self, _: CallId) -> Option<Output> {
        None
    }
}
