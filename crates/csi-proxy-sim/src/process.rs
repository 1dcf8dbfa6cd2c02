//! A process on the node that uses the ports.

use std::fmt;
use std::sync::Arc;

use csi_proxy::Host;
use csi_proxy::cim::Cim;
use csi_proxy::clock::{Clock, Deadline, Moment};
use csi_proxy::os::Os;
use csi_proxy::port::{Answer, Call, Carried, PortResult, Transport};
use serde::{Deserialize, Serialize};

use crate::SimNode;

/// The number of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessId(pub u64);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.0)
    }
}

/// One process on the node. It owns the locks it takes, and lives until it crashes or the
/// node reboots; from then on each of its calls is
/// [`csi_proxy::port::PortError::Unavailable`] and does nothing.
#[derive(Clone)]
pub struct Process {
    node: SimNode,
    id: ProcessId,
}

impl Process {
    pub(crate) fn new(node: SimNode, id: ProcessId) -> Self {
        Self { node, id }
    }

    /// The production library over the simulated ports.
    pub fn host(&self) -> Host {
        let ports = Arc::new(Carried(self.clone()));
        Host::new(ports.clone(), ports)
    }

    /// The port to WMI alone.
    pub fn cim(&self) -> Arc<dyn Cim> {
        Arc::new(Carried(self.clone()))
    }

    /// The port to the operating system alone.
    pub fn os(&self) -> Arc<dyn Os> {
        Arc::new(Carried(self.clone()))
    }

    /// Its number in the log.
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// Whether it has neither crashed nor gone with a reboot.
    pub fn is_alive(&self) -> bool {
        self.node.is_alive(self.id)
    }

    /// Ends the process: its locks are released, its calls are lost. What Windows does on
    /// its behalf, a format for instance, goes on.
    pub fn crash(&self) {
        self.node.end_process(self.id);
    }
}

impl Transport for Process {
    fn carry(&self, call: &Call, deadline: Deadline) -> PortResult<Answer> {
        self.node.carry(self.id, call, deadline)
    }

    fn clock(&self) -> &dyn Clock {
        self
    }
}

/// The node's clock. Whoever waits on it in a process that ends waits no longer.
impl Clock for Process {
    fn now(&self) -> Moment {
        self.node.sim_clock().now()
    }

    fn sleep_until(&self, moment: Moment) {
        self.node.sleep_until(self.id, moment);
    }
}
