//! Directories, files, links and mount points of the node's volumes.

use std::collections::BTreeMap;

use csi_proxy::VolumeId;
use csi_proxy::clock::Deadline;
use csi_proxy::os::{
    At, Bytes, CreateLink, DirEntry, Files, MountPoints, Reach, ReadFile, RemoveTree, Rename,
    SetMountPoint, Space, Stat, VolumeInformation, WriteFile,
};
use csi_proxy::port::PortResult;
use serde::{Deserialize, Serialize};

use crate::ports::Ports;
use crate::state::State;
use crate::storage::MediumId;
use crate::win32::{ERROR_NOT_SUPPORTED, win32};

/// The trees of files, by the volume they are on. A tree stays when its volume's disk goes
/// and is there again when the disk comes back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileSystems {
    trees: BTreeMap<VolumeId, Tree>,
}

/// The files of one volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Tree {
    entries: BTreeMap<String, Content>,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Bytes.
    Bytes(Bytes),
    /// A virtual disk. Its medium is in [`crate::storage::Storage`].
    VirtualDisk(MediumId),
}

// === What the storage module needs ===

/// A volume was formatted: it has an empty tree now.
pub(crate) fn make_tree(state: &mut State, volume: &VolumeId) {
    state.fs.trees.insert(volume.clone(), Tree::default());
}

/// A volume or its medium is gone, and its files with it.
pub(crate) fn drop_tree(state: &mut State, volume: &VolumeId) {
    state.fs.trees.remove(volume);
}

/// The bytes that the files of a volume take. A VHDX file takes
/// [`crate::storage::physical_size`] of its medium.
pub(crate) fn used_bytes(state: &State, volume: &VolumeId) -> u64 {
    let Some(tree) = state.fs.trees.get(volume) else {
        return 0;
    };
    tree.entries
        .values()
        .map(|content| size_of(state, content))
        .sum()
}

fn size_of(state: &State, content: &Content) -> u64 {
    match content {
        Content::Bytes(bytes) => bytes.0.len().try_into().unwrap_or(u64::MAX),
        Content::VirtualDisk(medium) => crate::storage::physical_size(state, *medium),
    }
}

/// The directories at which a volume is mounted, each with a `\` at its end, without the
/// drive letter.
pub(crate) fn access_paths(_: &State, _: &VolumeId) -> Vec<String> {
    Vec::new()
}

/// `MSFT_Partition.AddAccessPath` with a directory.
pub(crate) fn add_mount_point(_: &mut State, _: &SetMountPoint) -> PortResult<()> {
    unsupported("SetVolumeMountPointW")
}

/// `MSFT_Partition.RemoveAccessPath` with a directory.
pub(crate) fn remove_mount_point(_: &mut State, _: &At) -> PortResult<()> {
    unsupported("DeleteVolumeMountPointW")
}

/// Makes a file that holds a virtual disk.
pub(crate) fn create_virtual_disk_file(_: &mut State, _: &At, _: MediumId) -> PortResult<()> {
    unsupported("CreateVirtualDisk")
}

/// The virtual disk in the file at a path, and the file's real path, links followed.
pub(crate) fn virtual_disk_at(
    _: &State,
    _: &At,
    api: &str,
) -> PortResult<(MediumId, csi_proxy::HostPath)> {
    unsupported(api)
}

fn unsupported<T>(api: &str) -> PortResult<T> {
    Err(win32(api, ERROR_NOT_SUPPORTED))
}

impl Files for Ports<'_> {
    fn stat(&self, _: &At, _: Deadline) -> PortResult<Stat> {
        unsupported("CreateFileW")
    }

    fn list(&self, _: &At, _: Deadline) -> PortResult<Vec<DirEntry>> {
        unsupported("FindFirstFileW")
    }

    fn create_directories(&self, _: &At, _: Deadline) -> PortResult<bool> {
        unsupported("CreateDirectoryW")
    }

    fn remove_directory(&self, _: &At, _: Deadline) -> PortResult<()> {
        unsupported("RemoveDirectoryW")
    }

    fn remove_tree(&self, _: &RemoveTree, _: Deadline) -> PortResult<()> {
        unsupported("RemoveDirectoryW")
    }

    fn remove_file(&self, _: &At, _: Deadline) -> PortResult<()> {
        unsupported("DeleteFileW")
    }

    fn rename(&self, _: &Rename, _: Deadline) -> PortResult<()> {
        unsupported("MoveFileExW")
    }

    fn read_file(&self, _: &ReadFile, _: Deadline) -> PortResult<Bytes> {
        unsupported("ReadFile")
    }

    fn write_file(&self, _: &WriteFile, _: Deadline) -> PortResult<()> {
        unsupported("WriteFile")
    }

    fn create_link(&self, _: &CreateLink, _: Deadline) -> PortResult<()> {
        unsupported("CreateSymbolicLinkW")
    }

    fn reach(&self, _: &Reach, _: Deadline) -> PortResult<()> {
        unsupported("CreateFileW")
    }
}

impl MountPoints for Ports<'_> {
    fn set_mount_point(&self, _: &SetMountPoint, _: Deadline) -> PortResult<()> {
        unsupported("SetVolumeMountPointW")
    }

    fn delete_mount_point(&self, _: &At, _: Deadline) -> PortResult<()> {
        unsupported("DeleteVolumeMountPointW")
    }

    fn mounted_volume(&self, _: &At, _: Deadline) -> PortResult<VolumeId> {
        unsupported("GetVolumeNameForVolumeMountPointW")
    }

    fn mount_points_of(&self, _: &VolumeId, _: Deadline) -> PortResult<Vec<String>> {
        unsupported("GetVolumePathNamesForVolumeNameW")
    }

    fn space(&self, _: &At, _: Deadline) -> PortResult<Space> {
        unsupported("GetDiskFreeSpaceExW")
    }

    fn volume_information(&self, _: &At, _: Deadline) -> PortResult<VolumeInformation> {
        unsupported("GetVolumeInformationW")
    }
}
