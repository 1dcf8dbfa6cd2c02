//! File systems: the trees of files on volumes and shares, and where volumes are mounted.
//!
//! A volume's tree exists from its format until its partition is gone, whether the disk is
//! there or not; whether it can be reached at a moment is asked of the storage at each call.

mod files;
mod hand;
mod mounts;
mod name;
mod ports;
mod resolve;
mod target;
mod tree;

use std::collections::BTreeMap;

use csi_proxy::os::{At, SetMountPoint};
use csi_proxy::port::{PortError, PortResult};
use csi_proxy::{HostPath, VolumeId};
use serde::{Deserialize, Serialize};

use crate::state::State;
use crate::storage::{DiskId, MediumId};
use crate::win32::{ERROR_FILE_EXISTS, ERROR_INVALID_PARAMETER, win32};

pub use hand::FileChange;
pub(crate) use name::upcase;
use resolve::View;
use tree::{Content, Node, Tree};
pub use tree::{HIDDEN, READONLY, SYSTEM};

/// The trees of files, by the volume or share they are on. A tree stays when its volume's
/// disk goes and is there again when the disk comes back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileSystems {
    volumes: BTreeMap<VolumeId, Tree>,
    /// What the mount manager remembers: the paths that volumes were mounted at, each with
    /// a `\` at its end. A path stays when its directory disappears in another way than by
    /// `DeleteVolumeMountPointW` or `RemoveDirectoryW`.
    mounted: BTreeMap<VolumeId, Vec<String>>,
    /// By `\\SERVER\SHARE` in upper case.
    shares: BTreeMap<String, Share>,
}

/// The files of a share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Share {
    /// Bytes.
    size: u64,
    tree: Tree,
}

/// Why a call on files is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// With an error code.
    Code(u32),
    /// The object lies outside the root.
    Outside,
}

impl From<u32> for Refusal {
    fn from(code: u32) -> Self {
        Self::Code(code)
    }
}

/// What a call on files answers.
pub(crate) type FsResult<T> = Result<T, Refusal>;

/// What the port answers for a call on `at`.
fn answer<T>(api: &str, at: Option<&At>, result: FsResult<T>) -> PortResult<T> {
    result.map_err(|refusal| match refusal {
        Refusal::Code(code) => win32(api, code),
        Refusal::Outside => PortError::Outside {
            path: at.map(|at| at.path.to_string()).unwrap_or_default(),
            root: at
                .and_then(|at| at.within.as_ref())
                .map(ToString::to_string)
                .unwrap_or_default(),
        },
    })
}

// === What the storage module needs ===

/// A volume was formatted: it has an empty tree now.
pub(crate) fn make_tree(state: &mut State, volume: &VolumeId) {
    // Only the system volume has 8.3 names, unless a format asks for them
    // (`ShortFileNameSupport` of MSFT_Volume.Format).
    let mut tree = Tree::new(false);
    let id = tree.make_directories(&["System Volume Information"]);
    tree.change(id, |node| node.attributes = HIDDEN | SYSTEM);
    state.fs.volumes.insert(volume.clone(), tree);
}

/// The volume of drive `C:` was made: it has what Windows and the kubelet put there.
pub(crate) fn make_system_tree(state: &mut State, volume: &VolumeId) {
    let mut tree = Tree::new(true);
    for path in [
        &["Windows", "System32"][..],
        &["Program Files"],
        &["Program Files (x86)"],
        &["ProgramData"],
        &["var", "lib", "kubelet"],
    ] {
        tree.make_directories(path);
    }
    state.fs.volumes.insert(volume.clone(), tree);
}

/// A volume or its medium is gone, and its files with it.
pub(crate) fn drop_tree(state: &mut State, volume: &VolumeId) {
    state.fs.volumes.remove(volume);
    state.fs.mounted.remove(volume);
}

/// The bytes that the files of a volume take. A VHDX file takes
/// [`crate::storage::physical_size`] of its medium.
pub(crate) fn used_bytes(state: &State, volume: &VolumeId) -> u64 {
    let tree = state.fs.volumes.get(volume);
    tree.map_or(0, |tree| tree.used(|medium| medium_size(state, medium)))
}

/// The bytes that a VHDX file takes.
fn medium_size(state: &State, medium: MediumId) -> u64 {
    crate::storage::physical_size(state, medium)
}

/// The directories at which a volume is mounted, each with a `\` at its end, without the
/// drive letter.
pub(crate) fn access_paths(state: &State, volume: &VolumeId) -> Vec<String> {
    state.fs.mounted.get(volume).cloned().unwrap_or_default()
}

/// `MSFT_Partition.AddAccessPath` with a directory.
pub(crate) fn add_mount_point(state: &mut State, request: &SetMountPoint) -> PortResult<()> {
    let result = mounts::set_mount_point(state, request);
    answer("SetVolumeMountPointW", Some(&request.at), result)
}

/// `MSFT_Partition.RemoveAccessPath` with a directory.
pub(crate) fn remove_mount_point(state: &mut State, at: &At) -> PortResult<()> {
    let result = mounts::delete_mount_point(state, at);
    answer("DeleteVolumeMountPointW", Some(at), result)
}

/// Makes a file that holds a virtual disk.
pub(crate) fn create_virtual_disk_file(
    state: &mut State,
    at: &At,
    medium: MediumId,
) -> PortResult<()> {
    let file = Node::file(Content::VirtualDisk(medium));
    answer(
        "CreateVirtualDisk",
        Some(at),
        files::add(state, at, file, ERROR_FILE_EXISTS),
    )
}

/// The virtual disk in the file at a path, and the file's real path, links followed.
pub(crate) fn virtual_disk_at(
    state: &State,
    at: &At,
    api: &str,
) -> PortResult<(MediumId, HostPath)> {
    answer(api, Some(at), View::of(state).virtual_disk(at))
}

impl View<'_> {
    fn virtual_disk(self, at: &At) -> FsResult<(MediumId, HostPath)> {
        let object = self.open_at(at, true)?;
        // A file of another kind: assumed.
        let medium = self
            .node(&object)?
            .medium()
            .ok_or(ERROR_INVALID_PARAMETER)?;
        // A share or a volume that is mounted nowhere has no path with a drive.
        let path = HostPath::from_kubelet(&self.final_path(&object).join(r"\"));
        Ok((medium, path.unwrap_or_else(|_| at.path.clone())))
    }
}

// === What the iSCSI module needs ===

/// Whether a program has a file on the disk open.
pub(crate) fn has_open_files(state: &State, disk: DiskId) -> bool {
    let storage = &state.storage;
    let disk = storage.disks.get(&disk);
    let medium = disk.and_then(|disk| storage.media.get(&disk.medium));
    let partitions = medium.into_iter().flat_map(|medium| &medium.partitions);
    partitions
        .filter_map(|partition| state.fs.volumes.get(partition.volume.as_ref()?))
        .any(|tree| tree.nodes().any(|node| node.open))
}

// === What the SMB module needs ===

/// The share `\\server\share` as a key.
fn share_key(server: &str, share: &str) -> String {
    upcase(&format!(r"\\{server}\{share}"))
}

/// A share has files now.
pub(crate) fn make_share(state: &mut State, server: &str, share: &str, size: u64) {
    let tree = Tree::new(false);
    let key = share_key(server, share);
    state.fs.shares.insert(key, Share { size, tree });
}

/// Whether a program has a file on the share open.
pub(crate) fn share_has_open_files(state: &State, server: &str, share: &str) -> bool {
    let share = state.fs.shares.get(&share_key(server, share));
    share.is_some_and(|share| share.tree.nodes().any(|node| node.open))
}

/// A share is gone, and its files with it.
pub(crate) fn drop_share(state: &mut State, server: &str, share: &str) {
    state.fs.shares.remove(&share_key(server, share));
}

#[cfg(test)]
mod tests;
