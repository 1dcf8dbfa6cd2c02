//! What file systems and others write at the start of a volume, so that whoever reads the
//! bytes finds what a real volume has there.

use serde::{Deserialize, Serialize};

use super::medium::{FileSystem, FileSystemKind, Medium, SECTOR};

/// What is on a partition, or on a whole disk without partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Nothing: a RAW volume.
    #[default]
    Empty,
    /// NTFS.
    Ntfs,
    /// ReFS.
    Refs,
    /// FAT32.
    Fat32,
    /// ext4, which Windows does not know: a RAW volume.
    Ext4,
    /// A volume that BitLocker has locked: Windows says that its file system is unknown.
    Bitlocker,
    /// An NTFS whose boot sector is damaged: Windows says that its file system is unknown.
    DamagedNtfs,
    /// Bytes of no known kind, 64 KiB behind the start.
    Unknown,
}

impl Content {
    /// The file system that Windows sees in it.
    pub(super) fn file_system(self) -> Option<FileSystemKind> {
        match self {
            Self::Ntfs => Some(FileSystemKind::Ntfs),
            Self::Refs => Some(FileSystemKind::Refs),
            Self::Fat32 => Some(FileSystemKind::Fat32),
            _ => None,
        }
    }

    /// Its bytes, each with its place, on a volume of `size` bytes.
    pub(super) fn bytes(self, size: u64) -> Vec<(u64, Vec<u8>)> {
        match self {
            Self::Empty => Vec::new(),
            Self::Ntfs | Self::Refs | Self::Fat32 => self
                .file_system()
                .map(|kind| file_system_bytes(&FileSystem::new(kind), size))
                .unwrap_or_default(),
            // The superblock's magic number.
            Self::Ext4 => vec![(1024 + 56, vec![0x53, 0xef])],
            Self::Bitlocker => vec![(0, boot_sector([0xeb, 0x58, 0x90], b"-FVE-FS-"))],
            Self::DamagedNtfs => ntfs_bytes(4096, size)
                .into_iter()
                .map(|(at, bytes)| match at {
                    0 => (0, vec![0x5a; 64]),
                    _ => (at, bytes),
                })
                .collect(),
            Self::Unknown => vec![(64 << 10, (0..=255).collect())],
        }
    }
}

impl FileSystem {
    /// A healthy file system without a label, with the allocation unit of 4 KiB that
    /// Windows takes by default up to 16 TB.
    pub(crate) fn new(kind: FileSystemKind) -> Self {
        Self {
            kind,
            label: String::new(),
            allocation_unit: 4096,
            health: 0,
        }
    }
}

/// What a format leaves on a volume of `size` bytes.
pub(super) fn file_system_bytes(file_system: &FileSystem, size: u64) -> Vec<(u64, Vec<u8>)> {
    match file_system.kind {
        FileSystemKind::Ntfs => ntfs_bytes(file_system.allocation_unit, size),
        FileSystemKind::Refs => vec![(0, boot_sector([0, 0, 0], b"ReFS\0\0\0\0"))],
        FileSystemKind::Fat32 => {
            let mut sector = boot_sector([0xeb, 0x58, 0x90], b"MSDOS5.0");
            sector[82..90].copy_from_slice(b"FAT32   ");
            vec![(0, sector)]
        }
    }
}

/// What a format that runs has written so far: the boot sector comes last.
pub(super) fn unfinished_bytes(size: u64) -> Vec<(u64, Vec<u8>)> {
    vec![(mft_start(size), b"FILE0".to_vec())]
}

fn ntfs_bytes(allocation_unit: u32, size: u64) -> Vec<(u64, Vec<u8>)> {
    let mut sector = boot_sector([0xeb, 0x52, 0x90], b"NTFS    ");
    let unit = u64::from(allocation_unit);
    sector[13] = u8::try_from(unit / SECTOR).unwrap_or(0);
    sector[40..48].copy_from_slice(&(size / SECTOR).saturating_sub(1).to_le_bytes());
    sector[48..56].copy_from_slice(&(mft_start(size) / unit).to_le_bytes());
    let backup = (size / SECTOR).saturating_sub(1) * SECTOR;
    vec![
        (0, sector.clone()),
        (mft_start(size), b"FILE0".to_vec()),
        (backup, sector),
    ]
}

/// The master file table lies within the first MiB here, so that a format that was cut off
/// is seen at the volume's start.
fn mft_start(size: u64) -> u64 {
    (256 << 10).min(size / 2 / SECTOR * SECTOR)
}

fn boot_sector(jump: [u8; 3], name: &[u8; 8]) -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[..3].copy_from_slice(&jump);
    sector[3..11].copy_from_slice(name);
    sector[11..13].copy_from_slice(&[0, 2]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// The partition's size has changed: its file system says so in its boot sectors.
pub(super) fn rewrite(medium: &mut Medium, offset: u64) {
    let Some(partition) = medium.partition(offset) else {
        return;
    };
    let Some(file_system) = &partition.file_system else {
        return;
    };
    for (at, bytes) in file_system_bytes(file_system, partition.size) {
        medium.bytes.write(offset + at, &bytes);
    }
}
