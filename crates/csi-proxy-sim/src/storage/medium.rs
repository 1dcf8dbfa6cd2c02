//! What a disk or a VHDX file holds: partitions, what Windows sees in them, and bytes.

use csi_proxy::VolumeId;
use serde::{Deserialize, Serialize};

use super::SparseBytes;

/// The id of a medium. A VHDX file's medium stays the same however often it is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MediumId(pub u64);

/// What a disk or a VHDX file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Medium {
    /// Its size in bytes.
    pub size: u64,
    /// How it is partitioned.
    pub style: Style,
    /// Its partitions, by offset.
    pub partitions: Vec<Partition>,
    /// Its bytes: partition tables and boot sectors as Windows writes them, and whatever
    /// else was put there. The contents of files are not among them.
    pub bytes: SparseBytes,
}

/// `MSFT_Disk.PartitionStyle`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Not initialised, 0.
    Raw,
    /// 1.
    Mbr {
        /// The disk's signature.
        signature: u32,
    },
    /// 2.
    Gpt {
        /// The disk's GUID.
        guid: String,
    },
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partition {
    /// `MSFT_Partition.PartitionNumber`.
    pub number: u32,
    /// The first byte.
    pub offset: u64,
    /// The size in bytes.
    pub size: u64,
    /// Its type.
    pub kind: PartitionKind,
    /// The name of its volume; nothing for a partition that has none, such as Microsoft's
    /// reserved one. On a GPT disk its GUID is the partition's.
    pub volume: Option<VolumeId>,
    /// The partition's GUID; nothing on an MBR disk.
    pub guid: Option<String>,
    /// The file system that Windows sees; nothing is a RAW volume.
    pub file_system: Option<FileSystem>,
    /// `C` for drive `C:`.
    pub drive_letter: Option<char>,
    /// `MSFT_Partition.IsReadOnly`.
    pub read_only: bool,
    /// `MSFT_Partition.IsHidden`.
    pub hidden: bool,
    /// `MSFT_Partition.IsActive`.
    pub active: bool,
    /// `MSFT_Partition.IsOffline`.
    pub offline: bool,
}

/// The type of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionKind {
    /// `MSFT_Partition.GptType`, with its braces.
    Gpt(String),
    /// `MSFT_Partition.MbrType`.
    Mbr(u16),
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Which one.
    pub kind: FileSystemKind,
    /// `MSFT_Volume.FileSystemLabel`.
    pub label: String,
    /// `MSFT_Volume.AllocationUnitSize`.
    pub allocation_unit: u32,
    /// `MSFT_Volume.HealthStatus`: 0 healthy, 1 warning, 2 unhealthy.
    pub health: u16,
}

/// `MSFT_Volume.FileSystemType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystemKind {
    /// FAT32, 6.
    Fat32,
    /// NTFS, 14.
    Ntfs,
    /// ReFS, 15.
    Refs,
}
