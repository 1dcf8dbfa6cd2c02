//! Volumes: which ones are there, and what they offer.

use csi_proxy::VolumeId;

use super::{Disk, MediumId, Partition, Storage};
use crate::state::State;

/// A volume that is there at present: its disk is attached, found and online.
pub(crate) struct Volume<'a> {
    pub(crate) id: &'a VolumeId,
    pub(crate) disk: &'a Disk,
    pub(crate) partition: &'a Partition,
}

impl Volume<'_> {
    /// Whether files on it can be changed.
    pub(crate) fn is_writable(&self) -> bool {
        !self.disk.read_only && !self.partition.read_only
    }
}

impl Storage {
    /// The volumes that are there at present.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = Volume<'_>> {
        self.disks
            .values()
            .filter(|disk| disk.offline.is_none() && disk.hidden.is_none())
            .filter_map(|disk| Some((disk, self.media.get(&disk.medium)?)))
            .flat_map(|(disk, medium)| medium.partitions.iter().map(move |one| (disk, one)))
            .filter(|(_, partition)| !partition.offline)
            .filter_map(|(disk, partition)| {
                partition.volume.as_ref().map(|id| Volume {
                    id,
                    disk,
                    partition,
                })
            })
    }

    /// The volume of that name, if it is there at present.
    pub(crate) fn volume(&self, id: &VolumeId) -> Option<Volume<'_>> {
        self.volumes().find(|volume| volume.id == id)
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
