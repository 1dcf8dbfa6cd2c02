//! Which volumes are there, and how disks and media go.

use csi_proxy::VolumeId;

use super::{Disk, DiskId, Found, MediumId, Partition, Storage};
use crate::state::State;

/// A volume that is there at present: its disk is attached, found and online.
pub(crate) struct Volume<'a> {
    pub(crate) id: &'a VolumeId,
    pub(crate) disk_id: DiskId,
    pub(crate) disk: &'a Disk,
    pub(crate) partition: &'a Partition,
}

impl Volume<'_> {
    /// Whether it can be changed.
    pub(crate) fn is_writable(&self) -> bool {
        !self.disk.read_only && !self.partition.read_only
    }
}

impl<'a> Found<'a> {
    /// The volumes on it.
    pub(super) fn volumes(self) -> impl Iterator<Item = Volume<'a>> {
        let online = self.disk.offline.is_none();
        let partitions = self.medium.partitions.iter();
        partitions.filter_map(move |partition| {
            let id = partition.volume.as_ref()?;
            (online && !partition.offline).then_some(Volume {
                id,
                disk_id: self.id,
                disk: self.disk,
                partition,
            })
        })
    }
}

impl Storage {
    /// The volumes that are there at present.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = Volume<'_>> {
        self.all_found().flat_map(Found::volumes)
    }

    /// The volume of that name, if it is there at present.
    pub(crate) fn volume(&self, id: &VolumeId) -> Option<Volume<'_>> {
        let seen = self
            .notes
            .volumes
            .get(id)
            .and_then(|disk| self.found(*disk));
        seen.and_then(|disk| disk.volumes().find(|volume| volume.id == id))
            .or_else(|| self.volumes().find(|volume| volume.id == id))
    }

    /// The volume of the partition at that place.
    pub(super) fn volume_at(&self, disk: DiskId, offset: u64) -> Option<Volume<'_>> {
        let mut volumes = self.found(disk)?.volumes();
        volumes.find(|volume| volume.partition.offset == offset)
    }

    /// The volume with that drive letter.
    pub(crate) fn drive(&self, letter: char) -> Option<Volume<'_>> {
        self.volumes()
            .find(|volume| volume.partition.drive_letter == Some(letter))
    }

    /// Whether the VHDX file with this medium is attached: its file cannot be removed,
    /// renamed or written then (`ERROR_SHARING_VIOLATION`).
    pub(crate) fn is_attached(&self, medium: MediumId) -> bool {
        self.virtual_disks
            .get(&medium)
            .is_some_and(|disk| disk.attached.is_some())
    }
}

/// Takes a disk away. What it holds stays, in its VHDX file or parked.
pub(crate) fn detach(state: &mut State, id: DiskId) {
    let storage = &mut state.storage;
    storage.cut_off_jobs_on(id);
    storage.hidden.remove(&id);
    storage.coming_online.remove(&id);
    let Some(disk) = storage.disks.remove(&id) else {
        return;
    };
    storage.notes.numbers.remove(&disk.number);
    match storage.virtual_disks.get_mut(&disk.medium) {
        Some(file) => file.attached = None,
        None => {
            storage.parked.insert(disk.medium, disk);
        }
    }
}

/// The file of a VHDX was removed: its medium is gone, with the files on its volumes.
pub(crate) fn forget_medium(state: &mut State, id: MediumId) {
    state.storage.virtual_disks.remove(&id);
    let Some(medium) = state.storage.media.remove(&id) else {
        return;
    };
    for volume in medium
        .partitions
        .iter()
        .filter_map(|one| one.volume.as_ref())
    {
        state.storage.notes.volumes.remove(volume);
        crate::fs::drop_tree(state, volume);
    }
}

/// What a VHDX file takes on the volume it is on.
pub(crate) fn physical_size(state: &State, id: MediumId) -> u64 {
    const MIB: u64 = 1 << 20;
    /// A dynamic VHDX without data: header, log, metadata and block table.
    const EMPTY: u64 = 4 * MIB;
    /// It grows in blocks.
    const BLOCK: u64 = 32 * MIB;
    let Some(medium) = state.storage.media.get(&id) else {
        return 0;
    };
    let volumes = medium
        .partitions
        .iter()
        .filter_map(|one| one.volume.as_ref());
    let files: u64 = volumes
        .map(|volume| crate::fs::used_bytes(state, volume))
        .sum();
    let blocks = medium.bytes.chunks_in_use(BLOCK) + files.div_ceil(BLOCK);
    EMPTY + BLOCK * blocks.min(medium.size.div_ceil(BLOCK))
}
