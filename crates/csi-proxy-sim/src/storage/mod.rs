//! Disks, their media, partitions and volumes.
//!
//! Return values are those of the methods' pages below
//! <https://learn.microsoft.com/windows-hardware/drivers/storage/>. Where a page has no value
//! for a situation, the method answers 4 (failed) or 5 (invalid parameter), and a comment
//! says that this is assumed.

mod bytes;
mod check;
mod content;
mod describe;
mod disk;
mod disk_class;
mod disk_layout;
mod format;
mod ids;
mod job;
mod medium;
mod page83;
mod partition_class;
mod ports;
mod setting_class;
mod tables;
mod virtual_disk;
mod volume;
mod volume_class;

use std::collections::BTreeMap;

use csi_proxy::VolumeId;
use csi_proxy::clock::Moment;
use csi_proxy::port::CallId;
use serde::{Deserialize, Serialize};

use crate::cim::{Association, Class};
use crate::state::State;

pub use bytes::SparseBytes;
pub(crate) use check::LARGEST;
pub use check::NotADisk;
pub use content::Content;
pub use describe::{SimDisk, SimKind, SimPartition, SimStyle};
pub(crate) use describe::{attach, attach_parked, park};
pub use disk::{BusType, Disk, DiskId, Hidden};
pub(crate) use disk_class::key_of as disk_key;
pub use job::Job;
pub(crate) use medium::SECTOR;
pub use medium::{FileSystem, FileSystemKind, Medium, MediumId, Partition, PartitionKind, Style};
pub use page83::Identifier;
pub use virtual_disk::VirtualDisk;
pub(crate) use volume::{Volume, detach, forget_medium, physical_size};

pub(crate) const CLASSES: &[Class] = &[
    disk_class::CLASS,
    partition_class::CLASS,
    volume_class::CLASS,
    setting_class::CLASS,
];

pub(crate) const ASSOCIATIONS: &[Association] = &[
    disk_class::DISK_TO_PARTITION,
    partition_class::PARTITION_TO_VOLUME,
];

/// Everything below the file systems.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    /// The disks that are attached, by their place on the node.
    pub disks: BTreeMap<DiskId, Disk>,
    /// Those of them that Windows has not found yet.
    pub hidden: BTreeMap<DiskId, Hidden>,
    /// Those of them that come online after so many more queries.
    pub coming_online: BTreeMap<DiskId, u32>,
    /// Disks that are not attached: ones that were taken away, and LUNs without a session.
    pub parked: BTreeMap<MediumId, Disk>,
    /// What disks and VHDX files hold.
    pub media: BTreeMap<MediumId, Medium>,
    /// The VHDX files, by their medium.
    pub virtual_disks: BTreeMap<MediumId, VirtualDisk>,
    /// The formats that run.
    pub jobs: Vec<Job>,
    /// Calls whose work was cut off and who were not told yet.
    cut_off: Vec<CallId>,
    notes: Notes,
}

/// What makes the model fast and ids distinct. It says nothing about the node, so that two
/// nodes are equal whatever theirs are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Notes {
    /// The last id that was given to something.
    last_id: u64,
    /// Where volumes were last seen. It may be wrong: whoever uses it looks.
    volumes: BTreeMap<VolumeId, DiskId>,
    /// The same for numbers of disks.
    numbers: BTreeMap<u32, DiskId>,
}

impl PartialEq for Notes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Storage {
    /// A number that nothing else has.
    fn next_id(&mut self) -> u64 {
        self.notes.last_id += 1;
        self.notes.last_id
    }

    /// Whether a disk has that number, found or not.
    fn has_number(&self, number: u32) -> bool {
        self.disks.values().any(|disk| disk.number == number)
    }

    /// The lowest number that no disk has: numbers of removed disks are given again.
    fn free_number(&self) -> u32 {
        let taken: std::collections::BTreeSet<_> =
            self.disks.values().map(|disk| disk.number).collect();
        (0..)
            .find(|number| !taken.contains(number))
            .unwrap_or(u32::MAX)
    }

    fn add_disk(&mut self, id: DiskId, disk: Disk) {
        self.note_volumes(id, disk.medium);
        self.notes.numbers.insert(disk.number, id);
        self.disks.insert(id, disk);
    }

    /// Notes where the volumes of a medium are now.
    fn note_volumes(&mut self, id: DiskId, medium: MediumId) {
        let Some(medium) = self.media.get(&medium) else {
            return;
        };
        let volumes = medium
            .partitions
            .iter()
            .filter_map(|one| one.volume.clone());
        self.notes
            .volumes
            .extend(volumes.map(|volume| (volume, id)));
    }

    /// The disk with that number, if Windows has found it.
    pub fn disk_by_number(&self, number: u32) -> Option<(DiskId, &Disk)> {
        let is_it =
            |id: &DiskId, disk: &Disk| disk.number == number && !self.hidden.contains_key(id);
        let noted = self.notes.numbers.get(&number);
        noted
            .and_then(|id| self.disks.get_key_value(id))
            .filter(|(id, disk)| is_it(id, disk))
            .or_else(|| self.disks.iter().find(|(id, disk)| is_it(id, disk)))
            .map(|(id, disk)| (*id, disk))
    }

    /// A disk with what it holds, if Windows has found it.
    fn found(&self, id: DiskId) -> Option<Found<'_>> {
        let disk = self.disks.get(&id)?;
        let medium = self.media.get(&disk.medium)?;
        (!self.hidden.contains_key(&id)).then_some(Found { id, disk, medium })
    }

    /// The same, to change it.
    fn found_mut(&mut self, id: DiskId) -> Option<(&mut Disk, &mut Medium)> {
        let disk = self.disks.get_mut(&id)?;
        let medium = self.media.get_mut(&disk.medium)?;
        (!self.hidden.contains_key(&id)).then_some((disk, medium))
    }

    /// All disks that Windows has found.
    fn all_found(&self) -> impl Iterator<Item = Found<'_>> {
        self.disks.keys().filter_map(|id| self.found(*id))
    }
}

/// A disk that Windows has found, with what it holds.
#[derive(Clone, Copy)]
struct Found<'a> {
    id: DiskId,
    disk: &'a Disk,
    medium: &'a Medium,
}

/// Does what is due at `now`.
pub(crate) fn settle(state: &mut State, now: Moment) {
    if !state.storage.jobs.is_empty() {
        job::settle(state, now);
    }
    let later = |hidden: &Hidden| hidden.seconds.is_none_or(|after| after > now.0.as_secs());
    state.storage.hidden.retain(|_, hidden| later(hidden));
}

/// A class is queried: what waits for queries comes nearer.
pub(crate) fn polled(state: &mut State, class: &str) {
    let storage = &mut state.storage;
    if storage.coming_online.is_empty() || !class.eq_ignore_ascii_case("MSFT_Disk") {
        return;
    }
    let disks = &mut storage.disks;
    storage.coming_online.retain(|id, queries| {
        let left = *queries > 0;
        *queries = queries.saturating_sub(1);
        if !left && let Some(disk) = disks.get_mut(id) {
            disk.offline = None;
        }
        left
    });
}

/// The node reboots: formats end in the middle, VHDX files are detached.
pub(crate) fn reboot(state: &mut State) {
    state.storage.jobs.clear();
    state.storage.cut_off.clear();
    state.storage.coming_online.clear();
    let media = state.storage.media.values_mut();
    media.for_each(Medium::look_again);
    let attached: Vec<_> = (state.storage.virtual_disks.values())
        .filter_map(|disk| disk.attached)
        .collect();
    for id in attached {
        volume::detach(state, id);
    }
}

#[cfg(test)]
mod tests;
