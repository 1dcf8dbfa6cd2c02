//! Describing a node.

use std::sync::Arc;

use crate::clock::SimClock;
use crate::latency::Latency;
use crate::node::SimNode;
use crate::state::State;
use crate::storage::{self, Content, SimDisk, SimKind, SimPartition};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A node in the making. Modules of the model add methods of their own to it.
#[derive(Debug)]
pub struct Builder {
    pub(crate) state: State,
    clock: SimClock,
    latency: Latency,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self::without_disks().disk(system_disk(127 * GIB))
    }

    pub(crate) fn without_disks() -> Self {
        Self {
            state: State::default(),
            clock: SimClock::auto(),
            latency: Latency::NONE,
        }
    }

    /// Another clock than [`SimClock::auto`].
    #[must_use]
    pub fn clock(mut self, clock: SimClock) -> Self {
        self.clock = clock;
        self
    }

    /// Calls that take time.
    #[must_use]
    pub fn latency(mut self, latency: Latency) -> Self {
        self.latency = latency;
        self
    }

    /// Attaches a disk.
    ///
    /// # Panics
    ///
    /// If there cannot be such a disk, see [`SimDisk::check`].
    #[must_use]
    pub fn disk(mut self, disk: SimDisk) -> Self {
        if let Err(error) = disk.check() {
            panic!("{error}");
        }
        storage::attach(&mut self.state, &disk);
        self
    }

    /// Changes the node before it starts: files, SMB servers, iSCSI targets, services.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut State)) -> Self {
        change(&mut self.state);
        self
    }

    /// The node.
    pub fn build(self) -> SimNode {
        SimNode::new(self.state, Arc::new(self.clock), self.latency)
    }
}

/// The disk that Windows starts from: EFI partition, Microsoft's reserved one, drive `C:`.
pub(crate) fn system_disk(size: u64) -> SimDisk {
    SimDisk {
        boot: true,
        system: true,
        location: Some("PCI Slot 0 : Adapter 0 : Port 0 : Target 0 : LUN 0".to_owned()),
        ..SimDisk::gpt(size)
    }
    .partition(
        SimPartition::of(Content::Fat32)
            .kind(SimKind::Efi)
            .size(100 * MIB),
    )
    .partition(SimPartition::of(Content::Ntfs).drive_letter('C'))
}
