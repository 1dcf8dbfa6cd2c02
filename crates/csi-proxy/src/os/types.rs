//! The requests and answers of the operating system's port.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::{DevicePath, VolumeId};
use crate::path::HostPath;

/// A path, and the root it must not leave.
///
/// With `within`, the call opens the object and compares the opened object's real path with
/// the real path of the root: whatever links do in between, an object outside is
/// [`crate::port::PortError::Outside`] and nothing is changed. Where nothing is at the path,
/// the last directory on it that exists is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// The path.
    pub path: HostPath,
    /// The root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<HostPath>,
}

impl At {
    /// The path, wherever its links lead.
    pub fn path(path: &HostPath) -> Self {
        Self {
            path: path.clone(),
            within: None,
        }
    }

    /// The path, as long as it stays below `root`.
    pub fn within(path: &HostPath, root: &HostPath) -> Self {
        Self {
            path: path.clone(),
            within: Some(root.clone()),
        }
    }
}

impl From<&HostPath> for At {
    fn from(path: &HostPath) -> Self {
        Self::path(path)
    }
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// A directory, or a link or mount point of the directory kind.
    pub directory: bool,
    /// The `FILE_ATTRIBUTE_…` bits.
    pub attributes: u32,
    /// The size of a file in bytes.
    pub size: u64,
    /// Set for links, mount points and other reparse points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reparse: Option<Reparse>,
}

/// What it is, in words, for errors.
impl fmt::Display for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reparse {
            Some(Reparse::SymbolicLink { target }) => write!(f, "a link to {target}"),
            Some(Reparse::Junction { target }) => write!(f, "a junction to {target}"),
            Some(Reparse::MountPoint { volume }) => write!(f, "the mount point of {volume}"),
            Some(Reparse::Other { tag }) => write!(f, "a reparse point with the tag {tag:#010x}"),
            None if self.directory => f.write_str("a directory"),
            None => f.write_str("a file"),
        }
    }
}

/// A reparse point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reparse {
    /// `IO_REPARSE_TAG_SYMLINK`, with its target as it was written: absolute, relative or a
    /// share.
    SymbolicLink {
        /// The target, without the `\??\` of the NT namespace.
        target: String,
    },
    /// `IO_REPARSE_TAG_MOUNT_POINT` to a directory.
    Junction {
        /// The target, without the `\??\` of the NT namespace.
        target: String,
    },
    /// `IO_REPARSE_TAG_MOUNT_POINT` to a volume.
    MountPoint {
        /// The volume.
        volume: VolumeId,
    },
    /// Any other tag. Such a file is not a link.
    Other {
        /// The tag.
        tag: u32,
    },
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirEntry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub stat: Stat,
}

/// Request of [`super::Files::remove_tree`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveTree {
    /// The tree.
    pub at: At,
    /// Only its contents; then a link at the path is `ERROR_DIRECTORY` (267).
    pub keep_root: bool,
}

/// Request of [`super::Files::rename`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rename {
    /// What is renamed.
    pub at: At,
    /// Its new path, on the same volume and below the same root.
    pub to: HostPath,
}

/// Request of [`super::Files::read_file`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadFile {
    /// The file; a link is followed.
    pub at: At,
    /// The most bytes that the caller takes.
    pub limit: u32,
}

/// Request of [`super::Files::write_file`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteFile {
    /// The file; its directory must exist.
    pub at: At,
    /// Its new contents.
    pub contents: Bytes,
}

/// Request of [`super::Files::create_link`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateLink {
    /// Where the link is made. Anything there is `ERROR_ALREADY_EXISTS` (183).
    pub at: At,
    /// What it leads to. It need not exist.
    pub target: String,
}

/// Request of [`super::Files::reach`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Reach {
    /// A path of the host, or a share (`\\server\share`) or a directory in it.
    pub target: String,
}

/// Request of [`super::MountPoints::set_mount_point`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetMountPoint {
    /// An empty directory.
    pub at: At,
    /// The volume.
    pub volume: VolumeId,
}

/// The space of a volume, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// All of it.
    pub total: u64,
    /// What the caller may still use.
    pub available: u64,
}

/// What `GetVolumeInformationW` says about a mounted volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeInformation {
    /// The file system's name: `NTFS`, `ReFS`.
    pub file_system: String,
    /// `FILE_READ_ONLY_VOLUME`: nothing on it can be changed.
    pub read_only: bool,
}

/// `STORAGE_DEVICE_NUMBER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// The `FILE_DEVICE_…` type; 7 is a disk.
    pub device_type: u32,
    /// The disk's number.
    pub number: u32,
    /// The partition's number; nothing for a whole disk.
    pub partition: Option<u32>,
}

/// Request of [`super::Devices::read_range`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadRange {
    /// The disk or volume.
    pub device: DevicePath,
    /// The first byte, a multiple of the sector size.
    pub offset: u64,
    /// How many bytes, a multiple of the sector size and at most 1 MiB.
    pub length: u32,
}

/// Request of [`super::VirtualDisks::create_virtual_disk`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateVirtualDisk {
    /// The file; its directory must exist.
    pub at: At,
    /// The disk's size in bytes, a multiple of 1 MiB.
    pub size: u64,
}

/// What a VHDX file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualDiskInfo {
    /// The disk's size in bytes.
    pub virtual_size: u64,
    /// What the file takes at present.
    pub physical_size: u64,
    /// Whether it is attached.
    pub attached: bool,
}

/// Request of [`super::VirtualDisks::attach_virtual_disk`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachVirtualDisk {
    /// The file.
    pub at: At,
    /// As a disk that cannot be written.
    pub read_only: bool,
}

/// Request of [`super::VirtualDisks::expand_virtual_disk`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpandVirtualDisk {
    /// The file.
    pub at: At,
    /// The new size in bytes. Smaller than the present one: `ERROR_INVALID_PARAMETER` (87).
    pub size: u64,
}

/// The name of a lock: a disk's unique id, or another text that all processes agree on. It
/// is compared to the letter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LockName(pub String);

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LockToken(pub u64);

/// Bytes; base64 when serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({} bytes)", self.0.len())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        BASE64
            .decode(text)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_serialisation() {
        let bytes = Bytes(vec![0, 255, 7]);
        let text = serde_json::to_string(&bytes).unwrap();
        assert_eq!(serde_json::from_str::<Bytes>(&text).unwrap(), bytes);
    }
}
