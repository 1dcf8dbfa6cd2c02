//! What a disk or a VHDX file holds: partitions, what Windows sees in them, and bytes.

use csi_proxy::VolumeId;
use serde::{Deserialize, Serialize};

use super::{SparseBytes, ids, tables};

/// The bytes of a sector.
pub(crate) const SECTOR: u64 = 512;
/// Windows aligns partitions to this on disks of 4 GB and more; the node on all.
pub(crate) const ALIGNMENT: u64 = 1 << 20;
/// The GPT's table behind the partitions: 32 sectors of entries and the header.
const GPT_TAIL: u64 = 33 * SECTOR;
/// The first sector behind the GPT's table before the partitions, where Windows puts its
/// reserved partition: sector 34.
const GPT_FIRST: u64 = 34 * SECTOR;
/// Windows reserves up to here on GPT disks: 16 MB.
///
/// Source: <https://learn.microsoft.com/windows-hardware/manufacture/desktop/configure-uefigpt-based-hard-drive-partitions>
const MSR_END: u64 = 16 << 20;

/// The id of a medium. A VHDX file's medium stays the same however often it is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MediumId(pub u64);

/// What a disk or a VHDX file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Medium {
    /// Its size in bytes.
    pub size: u64,
    /// The size that the device has grown to, if Windows has not looked at it since.
    pub grown_to: Option<u64>,
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
    /// `MSFT_Partition.NoDefaultDriveLetter`.
    pub no_default_drive_letter: bool,
    /// `MSFT_Partition.IsOffline`.
    pub offline: bool,
    /// How long a format takes; nothing leaves it to the node's latencies.
    pub format_seconds: Option<u64>,
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

/// GUIDs of partition types.
///
/// Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/createpartition-msft-disk>
pub(crate) mod gpt_type {
    pub(crate) const BASIC_DATA: &str = "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}";
    pub(crate) const RESERVED: &str = "{e3c9e316-0b5c-4db8-817d-f92df00215ae}";
    pub(crate) const EFI: &str = "{c12a7328-f81f-11d2-ba4b-00a0c93ec93b}";
    pub(crate) const RECOVERY: &str = "{de94bba4-06d1-4d40-a16a-bfd50179d6ac}";
    pub(crate) const LDM_METADATA: &str = "{5808c8aa-7e8f-42e0-85d2-e1e90434cfb3}";
    pub(crate) const LDM_DATA: &str = "{af9b60a0-1431-4f62-bc68-3311714a69ad}";
    pub(crate) const LINUX: &str = "{0fc63daf-8483-4772-8e79-3d69d8477de4}";
}

/// MBR types of which Windows makes volumes.
///
/// Source: <https://learn.microsoft.com/windows/win32/fileio/disk-partition-types>
pub(crate) mod mbr_type {
    pub(crate) const IFS: u16 = 0x07;
    pub(crate) const FAT32: u16 = 0x0c;
    pub(crate) const LDM: u16 = 0x42;
    pub(crate) const LINUX: u16 = 0x83;
}

impl PartitionKind {
    /// Whether Windows makes a volume of such a partition.
    pub(crate) fn has_volume(&self) -> bool {
        match self {
            Self::Gpt(kind) => {
                [gpt_type::BASIC_DATA, gpt_type::EFI, gpt_type::RECOVERY].contains(&kind.as_str())
            }
            Self::Mbr(kind) => [1, 4, 6, mbr_type::IFS, 0x0b, mbr_type::FAT32, 0x0e].contains(kind),
        }
    }

    /// Whether it is for data.
    pub(crate) fn is_data(&self) -> bool {
        match self {
            Self::Gpt(kind) => kind == gpt_type::BASIC_DATA,
            Self::Mbr(_) => self.has_volume(),
        }
    }
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
    /// `MSFT_Volume.HealthStatus`: 0 healthy, 1 scan needed, 2 spot fix needed, 3 full
    /// repair needed.
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

impl FileSystemKind {
    /// The number.
    pub(crate) fn number(self) -> u16 {
        match self {
            Self::Fat32 => 6,
            Self::Ntfs => 14,
            Self::Refs => 15,
        }
    }

    /// The name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fat32 => "FAT32",
            Self::Ntfs => "NTFS",
            Self::Refs => "ReFS",
        }
    }
}

impl Medium {
    /// A medium of which nothing was ever written.
    pub(crate) fn empty(size: u64) -> Self {
        Self {
            size,
            grown_to: None,
            style: Style::Raw,
            partitions: Vec::new(),
            bytes: SparseBytes::default(),
        }
    }

    /// `MSFT_Disk.Initialize`: writes an empty partition table, GPT with Microsoft's
    /// reserved partition.
    pub(crate) fn initialize(&mut self, style: Style, seed: u64) {
        if matches!(style, Style::Gpt { .. }) {
            let guid = ids::guid(seed);
            self.partitions.push(Partition {
                guid: Some(guid),
                ..Partition::new(
                    1,
                    PartitionKind::Gpt(gpt_type::RESERVED.to_owned()),
                    GPT_FIRST..MSR_END,
                )
            });
        }
        self.style = style;
        self.write_tables();
    }

    /// Writes style and partitions down where Windows keeps them.
    pub(crate) fn write_tables(&mut self) {
        self.partitions.sort_by_key(|partition| partition.offset);
        tables::write(self);
    }

    /// Windows looks at the device: it sees the size that it has now.
    pub(crate) fn look_again(&mut self) {
        if let Some(size) = self.grown_to.take() {
            self.grow(size);
        }
    }

    /// The medium grows. Windows writes the GPT's second copy at the new end by itself; here
    /// that is done at once.
    pub(crate) fn grow(&mut self, size: u64) {
        let tail = self.size.saturating_sub(GPT_TAIL);
        if matches!(self.style, Style::Gpt { .. }) {
            self.bytes.clear(tail, GPT_TAIL);
        }
        self.size = size;
        if self.style != Style::Raw {
            self.write_tables();
        }
    }

    /// The bytes that partitions may take: from the first one on, up to but without the
    /// last.
    pub(crate) fn usable(&self) -> std::ops::Range<u64> {
        let sectors = self.size / SECTOR * SECTOR;
        match self.style {
            Style::Raw => 0..0,
            Style::Gpt { .. } => GPT_FIRST..sectors.saturating_sub(GPT_TAIL),
            // 32-bit sector numbers.
            Style::Mbr { .. } => ALIGNMENT..sectors.min((1 << 32) * SECTOR),
        }
    }

    /// The free extents, aligned at both ends, in their order.
    pub(crate) fn free_extents(&self, alignment: u64) -> Vec<std::ops::Range<u64>> {
        let usable = self.usable();
        let mut from = usable.start;
        let mut free = Vec::new();
        let ends = self.partitions.iter().map(|one| (one.offset, one.end()));
        for (start, end) in ends.chain([(usable.end, usable.end)]) {
            let extent = from.next_multiple_of(alignment)..start / alignment * alignment;
            if extent.start < extent.end {
                free.push(extent);
            }
            from = from.max(end);
        }
        free
    }

    /// `MSFT_Disk.LargestFreeExtent`.
    pub(crate) fn largest_free_extent(&self) -> u64 {
        let extents = self.free_extents(ALIGNMENT);
        extents
            .iter()
            .map(|one| one.end - one.start)
            .max()
            .unwrap_or(0)
    }

    /// `MSFT_Disk.AllocatedSize`.
    pub(crate) fn allocated(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.size).sum()
    }

    /// The largest size that a partition can have where it is: up to the next one, or to
    /// the last usable sector.
    pub(crate) fn largest_size_of(&self, partition: &Partition) -> u64 {
        let next = self
            .partitions
            .iter()
            .map(|one| one.offset)
            .filter(|offset| *offset > partition.offset)
            .min();
        let end = next.unwrap_or(self.usable().end);
        (end - partition.offset).max(partition.size)
    }

    /// The lowest number that no partition has.
    pub(crate) fn next_partition_number(&self) -> u32 {
        let taken = |number: &u32| self.partitions.iter().any(|one| one.number == *number);
        (1..).find(|number| !taken(number)).unwrap_or(u32::MAX)
    }

    /// The partition that begins there.
    pub(crate) fn partition(&self, offset: u64) -> Option<&Partition> {
        self.partitions.iter().find(|one| one.offset == offset)
    }

    /// The same, to change it.
    pub(crate) fn partition_mut(&mut self, offset: u64) -> Option<&mut Partition> {
        self.partitions.iter_mut().find(|one| one.offset == offset)
    }
}

impl Partition {
    /// A partition without a volume, of which nothing else is said.
    pub(crate) fn new(number: u32, kind: PartitionKind, range: std::ops::Range<u64>) -> Self {
        Self {
            number,
            offset: range.start,
            size: range.end - range.start,
            kind,
            volume: None,
            guid: None,
            file_system: None,
            drive_letter: None,
            read_only: false,
            hidden: false,
            active: false,
            no_default_drive_letter: false,
            offline: false,
            format_seconds: None,
        }
    }

    /// The first byte behind it.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.size
    }

    /// Gives it the ids that Windows draws: on a GPT disk a GUID of its own, which is the
    /// volume's too; on an MBR disk one for the volume alone.
    pub(crate) fn with_ids(mut self, guid: String) -> Self {
        if self.kind.has_volume() {
            self.volume = VolumeId::new(&format!(r"\\?\Volume{{{guid}}}\")).ok();
        }
        if matches!(self.kind, PartitionKind::Gpt(_)) {
            self.guid = Some(guid);
        }
        self
    }
}
