//! The node, as callers of the library see it.

use std::sync::Arc;

use crate::cim::Cim;
use crate::lock::KeptLocks;
use crate::os::Os;
use crate::path::HostPath;
use crate::port::Carried;
use crate::trace::{Output, Recorder};

/// A Windows node: the two ports, and where the library keeps its records.
///
/// Its groups ([`Host::disk`] and the others) are made on the fly and cost nothing. All
/// calls block; a host may be used from many threads.
#[derive(Clone)]
pub struct Host {
    cim: Arc<dyn Cim>,
    os: Arc<dyn Os>,
    state_dir: Option<HostPath>,
    foreign_content: bool,
    kept_locks: Arc<KeptLocks>,
}

impl Host {
    /// A node behind two ports.
    pub fn new(cim: Arc<dyn Cim>, os: Arc<dyn Os>) -> Self {
        Self {
            cim,
            os,
            state_dir: None,
            foreign_content: false,
            kept_locks: Arc::default(),
        }
    }

    /// The directory in which the library keeps the records of formats that have not
    /// ended. It must stay the same over restarts; without one nothing is formatted.
    #[must_use]
    pub fn with_state_dir(mut self, directory: HostPath) -> Self {
        self.state_dir = Some(directory);
        self
    }

    /// Lets disks be initialised and volumes be formatted although there are bytes on them
    /// that Windows does not know. Only for whoever knows that they are worth nothing: the
    /// disks of Linux look like that too.
    #[must_use]
    pub fn allowing_foreign_content(mut self) -> Self {
        self.foreign_content = true;
        self
    }

    /// The same node with another port to WMI, one that watches the calls for instance.
    #[must_use]
    pub fn map_cim(mut self, map: impl FnOnce(Arc<dyn Cim>) -> Arc<dyn Cim>) -> Self {
        self.cim = map(self.cim);
        self
    }

    /// The same node with every port call written to a trace.
    #[must_use]
    pub fn recorded(mut self, output: &Arc<Output>) -> Self {
        let recorder = Recorder::new(self.cim, self.os, output.clone());
        let ports = Arc::new(Carried(recorder));
        (self.cim, self.os) = (ports.clone(), ports);
        self
    }

    /// The port to WMI.
    pub fn cim(&self) -> &dyn Cim {
        &*self.cim
    }

    /// The port to the operating system.
    pub fn os(&self) -> &dyn Os {
        &*self.os
    }

    /// The directory of [`Host::with_state_dir`].
    pub fn state_dir(&self) -> Option<&HostPath> {
        self.state_dir.as_ref()
    }

    pub(crate) fn allows_foreign_content(&self) -> bool {
        self.foreign_content
    }

    pub(crate) fn kept_locks(&self) -> &KeptLocks {
        &self.kept_locks
    }
}
