//! The two ports on the model itself, below faults and counters.

use std::sync::MutexGuard;

use csi_proxy::clock::{Clock, Moment};
use csi_proxy::os::Os;
use csi_proxy::port::CallId;

use crate::node::{Model, SimNode};
use crate::process::ProcessId;

/// The ports for one call of one process. The modules of the model implement the port
/// traits for it; each takes [`Ports::model`] for as long as it works, never while it waits.
pub(crate) struct Ports<'a> {
    pub(crate) node: &'a SimNode,
    pub(crate) process: ProcessId,
    /// The call that is performed.
    pub(crate) call: CallId,
}

impl Ports<'_> {
    /// The model, locked, with everything done that is due by now.
    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.node.model()
    }
}

impl Clock for Ports<'_> {
    fn now(&self) -> Moment {
        self.node.sim_clock().now()
    }

    fn sleep_until(&self, moment: Moment) {
        self.node.sleep_until(self.process, moment);
    }
}

impl Os for Ports<'_> {}
