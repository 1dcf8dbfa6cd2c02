//! Marks by which content is recognised, for messages. What is in no table is content too.

use super::Found;

/// Who writes such content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A file system that Windows' own format writes.
    WindowsFormat,
    /// Someone else.
    Other,
    /// It has no known mark.
    Unknown,
}

/// A mark at a fixed byte.
struct Mark {
    offset: usize,
    bytes: &'static [u8],
    name: &'static str,
    owner: Owner,
}

const fn mark(offset: usize, bytes: &'static [u8], name: &'static str) -> Mark {
    Mark {
        offset,
        bytes,
        name,
        owner: Owner::Other,
    }
}

const fn windows(offset: usize, bytes: &'static [u8], name: &'static str) -> Mark {
    Mark {
        offset,
        bytes,
        name,
        owner: Owner::WindowsFormat,
    }
}

/// From the start of the device. The order decides: what is surer stands before what other
/// content has as well (`55 aa` of the MBR is in every boot sector).
const AT_START: &[Mark] = &[
    windows(3, b"NTFS    ", "an NTFS boot sector"),
    windows(3, b"ReFS\0\0\0\0", "a ReFS boot sector"),
    mark(3, b"-FVE-FS-", "a volume locked by BitLocker"),
    mark(3, b"EXFAT   ", "exFAT"),
    mark(82, b"FAT32   ", "FAT32"),
    mark(54, b"FAT16   ", "FAT16"),
    mark(54, b"FAT12   ", "FAT12"),
    mark(0, b"LUKS\xba\xbe", "LUKS"),
    mark(0, b"XFSB", "XFS"),
    mark(0, b"hsqs", "SquashFS"),
    mark(0, b"bluestore block device", "Ceph BlueStore"),
    mark(32, b"NXSB", "APFS"),
    mark(32, b"ORCLDISK", "Oracle ASM"),
    mark(512, b"EFI PART", "a GPT partition table"),
    mark(
        4096,
        b"EFI PART",
        "a GPT partition table (4096-byte sectors)",
    ),
    mark(0, b"LABELONE", "LVM2"),
    mark(512, b"LABELONE", "LVM2"),
    mark(1024, b"LABELONE", "LVM2"),
    mark(1536, b"LABELONE", "LVM2"),
    mark(1024, b"H+\0\x04", "HFS+"),
    mark(1024, b"\x10\x20\xf5\xf2", "F2FS"),
    mark(1080, b"\x53\xef", "ext2, ext3 or ext4"),
    mark(3072, b"PRIVHEAD", "a dynamic disk"),
    mark(4086, b"SWAPSPACE2", "Linux swap space"),
    mark(4096, b"\xfc\x4e\x2b\xa9", "Linux software RAID"),
    mark(32768, b"JFS1", "JFS"),
    mark(32769, b"CD001", "ISO 9660"),
    mark(65588, b"ReIsEr", "ReiserFS"),
    mark(65600, b"_BHRfS_M", "Btrfs"),
    mark(131_072, b"\x0c\xb1\xba\x00", "ZFS"),
    mark(131_072, b"\x00\x00\x00\x00\x00\xba\xb1\x0c", "ZFS"),
    mark(510, b"\x55\xaa", "an MBR partition table or a boot sector"),
];

/// Marks in sectors at the end, by how far before the end the sector begins.
const AT_END: &[Mark] = &[
    mark(512, b"EFI PART", "a backup GPT partition table"),
    mark(
        4096,
        b"EFI PART",
        "a backup GPT partition table (4096-byte sectors)",
    ),
];

/// The last sector of an NTFS volume holds its boot sector again.
const NTFS_BACKUP: Mark = windows(509, b"NTFS    ", "a backup NTFS boot sector");

/// What is recognised at the start of a device; `offset` is where the bytes begin.
pub(super) fn at_start(bytes: &[u8], offset: u64) -> Option<Found> {
    AT_START
        .iter()
        .find(|mark| stands(bytes, mark.offset, mark.bytes))
        .map(|mark| found(mark, offset, mark.offset))
}

/// What is recognised at the end of a device; `offset` is where the bytes begin.
pub(super) fn at_end(bytes: &[u8], offset: u64) -> Option<Found> {
    AT_END
        .iter()
        .chain([&NTFS_BACKUP])
        .filter_map(|mark| Some((mark, bytes.len().checked_sub(mark.offset)?)))
        .find(|(mark, place)| stands(bytes, *place, mark.bytes))
        .map(|(mark, place)| found(mark, offset, place))
}

/// Every mark that stands in the bytes, should they be the start of a device or its end:
/// where, and its bytes.
pub(super) fn all(bytes: &[u8]) -> Vec<(usize, &'static [u8])> {
    let at_start = AT_START.iter().map(|mark| (mark, Some(mark.offset)));
    let at_end = AT_END.iter().chain([&NTFS_BACKUP]);
    let at_end = at_end.map(|mark| (mark, bytes.len().checked_sub(mark.offset)));
    at_start
        .chain(at_end)
        .filter_map(|(mark, place)| Some((place?, mark.bytes)))
        .filter(|(place, mark)| stands(bytes, *place, mark))
        .collect()
}

fn stands(bytes: &[u8], place: usize, wanted: &[u8]) -> bool {
    bytes
        .get(place..)
        .is_some_and(|rest| rest.starts_with(wanted))
}

fn found(mark: &Mark, offset: u64, place: usize) -> Found {
    Found {
        offset: offset + u64::try_from(place).unwrap_or(u64::MAX),
        what: mark.name.to_owned(),
        owner: mark.owner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_is_recognised_as_itself() {
        for mark in AT_START {
            let mut bytes = vec![0; 1 << 20];
            bytes[mark.offset..mark.offset + mark.bytes.len()].copy_from_slice(mark.bytes);
            let found = at_start(&bytes, 0).unwrap();
            assert_eq!(
                (found.what.as_str(), found.offset),
                (mark.name, mark.offset as u64)
            );
        }
    }

    #[test]
    fn a_boot_sector_is_named_before_its_55_aa() {
        let mut bytes = vec![0; 1 << 20];
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        bytes[3..11].copy_from_slice(b"NTFS    ");
        let found = at_start(&bytes, 0).unwrap();
        assert_eq!(found.owner, Owner::WindowsFormat);
    }

    #[test]
    fn the_backup_boot_sector_is_found_in_the_last_sector() {
        let mut bytes = vec![0; 1 << 20];
        let place = bytes.len() - 512 + 3;
        bytes[place..place + 8].copy_from_slice(b"NTFS    ");
        assert_eq!(at_end(&bytes, 100).unwrap().offset, 100 + place as u64);
        assert!(at_end(&[], 0).is_none());
    }
}
