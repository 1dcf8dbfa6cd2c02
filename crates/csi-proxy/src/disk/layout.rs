//! What a disk holds, and whether the library may use it. Pure.

use std::ops::Range;

use super::info::{DiskInfo, PartitionInfo, PartitionKind, PartitionStyle};

/// What stands on a disk that the library may use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Layout<'a> {
    /// Windows sees no partition table. Whether the disk is empty is another question.
    Raw,
    /// GPT with no partition but Microsoft's reserved one.
    NoPartition,
    /// Data partitions, at least one; exactly one on an MBR disk.
    Data(Vec<&'a PartitionInfo>),
}

/// Reads a disk's layout.
///
/// # Errors
/// Why the library leaves the disk alone.
pub(crate) fn layout<'a>(
    disk: &DiskInfo,
    partitions: &'a [PartitionInfo],
) -> Result<Layout<'a>, String> {
    if partitions
        .iter()
        .any(|partition| partition.kind == PartitionKind::Dynamic)
    {
        return Err("it is a dynamic disk; only basic disks are supported".to_owned());
    }
    let data: Vec<_> = partitions
        .iter()
        .filter(|partition| partition.kind == PartitionKind::Data)
        .collect();
    match (disk.style, data.len()) {
        (PartitionStyle::Raw, _) => Ok(Layout::Raw),
        (PartitionStyle::Gpt, 1..) | (PartitionStyle::Mbr, 1) => Ok(Layout::Data(data)),
        (PartitionStyle::Mbr, 2..) => Err(format!(
            "its partition style is MBR and it holds {} data partitions; exactly one is expected",
            data.len()
        )),
        (style, 0) => match (style, others(partitions)) {
            (PartitionStyle::Gpt, others) if others.is_empty() => Ok(Layout::NoPartition),
            (_, others) if others.is_empty() => Err(
                "its partition style is MBR and it holds no partition; exactly one data \
                 partition is expected"
                    .to_owned(),
            ),
            (_, others) => Err(format!(
                "it holds no data partition but {}",
                others.join(", ")
            )),
        },
    }
}

const MIB: u64 = 1 << 20;

/// How many sectors the second copy of a GPT takes at the end of a disk.
///
/// Source: <https://uefi.org/specs/UEFI/2.10/05_GUID_Partition_Table_Format.html>.
const GPT_TAIL: u64 = 33;

/// What of a disk the reserved partition and the two copies of the partition table take at
/// most, once it is initialised: 16 MiB and little more.
///
/// Source: <https://learn.microsoft.com/windows-hardware/manufacture/desktop/configure-uefigpt-based-hard-drive-partitions>.
pub(crate) const GPT_OVERHEAD: u64 = 32 * MIB;

/// The space behind the last partition of a GPT disk, which a data partition can take.
pub(crate) fn free_space(disk: &DiskInfo, partitions: &[PartitionInfo]) -> Range<u64> {
    let ends = partitions.iter().map(|one| one.offset + one.size);
    let start = ends.max().unwrap_or(0).next_multiple_of(MIB).max(MIB);
    let tail = GPT_TAIL * u64::from(disk.sector_size);
    start..disk.size.saturating_sub(tail) / MIB * MIB
}

/// The one data partition.
///
/// # Errors
/// Which ones there are when they are several.
pub(crate) fn only<'a>(data: &[&'a PartitionInfo]) -> Result<&'a PartitionInfo, String> {
    match data {
        [partition] => Ok(partition),
        several => {
            let numbers: Vec<_> = several.iter().map(|one| one.number.to_string()).collect();
            Err(format!(
                "it holds {} data partitions ({}); exactly one is expected",
                several.len(),
                numbers.join(", ")
            ))
        }
    }
}

fn others(partitions: &[PartitionInfo]) -> Vec<String> {
    partitions
        .iter()
        .filter_map(|partition| match &partition.kind {
            PartitionKind::Other(kind) => Some(format!("partition {} of {kind}", partition.number)),
            _ => None,
        })
        .collect()
}
