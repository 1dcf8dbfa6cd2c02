//! Disks, their media, partitions and volumes.

mod bytes;
mod disk;
mod ids;
mod job;
mod medium;
mod page83;
mod ports;
mod virtual_disk;
pub(crate) mod volume;

use std::collections::BTreeMap;

use csi_proxy::clock::Moment;
use serde::{Deserialize, Serialize};

use crate::cim::{Association, Class};
use crate::state::State;

pub use bytes::SparseBytes;
pub use disk::{BusType, Disk, DiskId, Hidden, Quirks};
pub use job::Job;
pub use medium::{FileSystem, FileSystemKind, Medium, MediumId, Partition, PartitionKind, Style};
pub use page83::Identifier;
pub use virtual_disk::VirtualDisk;
pub(crate) use volume::{forget_medium, physical_size};

pub(crate) const CLASSES: &[Class] = &[];
pub(crate) const ASSOCIATIONS: &[Association] = &[];

/// Everything below the file systems.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    /// The disks that are attached, by their place on the node.
    pub disks: BTreeMap<DiskId, Disk>,
    /// What disks and VHDX files hold.
    pub media: BTreeMap<MediumId, Medium>,
    /// The VHDX files, by their medium.
    pub virtual_disks: BTreeMap<MediumId, VirtualDisk>,
    /// Methods that run.
    pub jobs: Vec<Job>,
    /// The last id that was given to something.
    last_id: u64,
}

impl Storage {
    /// A number that nothing else has.
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

/// Does what is due at `now`.
pub(crate) fn settle(state: &mut State, now: Moment) {
    for disk in state.storage.disks.values_mut() {
        let due = |hidden: &Hidden| hidden.until.is_some_and(|until| until <= now.0);
        if disk.hidden.as_ref().is_some_and(due) {
            disk.hidden = None;
        }
    }
}

/// A class is queried: what waits for polls comes nearer.
pub(crate) fn polled(_: &mut State, _: &str) {}

/// The node reboots.
pub(crate) fn reboot(state: &mut State) {
    state.storage.jobs.clear();
}
