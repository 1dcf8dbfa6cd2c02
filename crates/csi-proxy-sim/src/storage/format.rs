//! Formatting a volume: what Windows accepts, and what it does to the bytes.

use csi_proxy::port::PortResult;

use super::content::{file_system_bytes, unfinished_bytes};
use super::job::Job;
use super::medium::{FileSystem, FileSystemKind, SECTOR};
use super::{DiskId, Volume};
use crate::cim::{MethodCall, Reply, done};
use crate::state::State;

const MIB: u64 = 1 << 20;

/// The largest label: 32 characters on NTFS and ReFS.
const LABEL_LENGTH: usize = 32;

/// `MSFT_Volume.Format` on a volume that is there.
///
/// Source: `format-msft-volume`.
pub(super) fn start(call: &mut MethodCall<'_>, disk: DiskId, offset: u64) -> PortResult<Reply> {
    let wanted = Wanted {
        kind: call.text("FileSystem")?,
        label: call.text("FileSystemLabel")?.unwrap_or_default(),
        allocation_unit: call.integer("AllocationUnitSize")?.unwrap_or(0),
        full: call.boolean("Full")?.unwrap_or(false),
    };
    let Some(volume) = call.state.storage.volume_at(disk, offset) else {
        return done(4);
    };
    if call.state.storage.formats(disk, offset) {
        // In use by the format that runs: assumed, the page has no value for it.
        return done(4);
    }
    let file_system = match check(&wanted, &volume) {
        Ok(file_system) => file_system,
        Err(code) => return done(code),
    };
    let (size, seconds) = (volume.partition.size, volume.partition.format_seconds);
    let time = match seconds {
        Some(seconds) => std::time::Duration::from_secs(seconds),
        None => call.latency.format(size, wanted.full),
    };
    begin(call.state, disk, offset);
    if time.is_zero() {
        finish(call.state, disk, offset, file_system);
        return done(0);
    }
    let end = csi_proxy::clock::Moment(call.now.0.saturating_add(time));
    call.state.storage.jobs.push(Job {
        call: call.call,
        end,
        disk,
        offset,
        file_system,
    });
    Ok(Reply::Until(end))
}

struct Wanted {
    kind: Option<String>,
    label: String,
    allocation_unit: u64,
    full: bool,
}

fn check(wanted: &Wanted, volume: &Volume<'_>) -> Result<FileSystem, u32> {
    if volume.disk.boot && volume.partition.drive_letter.is_some() {
        return Err(42010);
    }
    if !volume.is_writable() {
        return Err(43006);
    }
    let kind = kind_of(wanted.kind.as_deref()).ok_or(43001u32)?;
    let size = volume.partition.size;
    let unit = match wanted.allocation_unit {
        0 => default_unit(kind, size),
        unit if supported_units(kind, size).contains(&unit) => unit,
        _ => return Err(43000),
    };
    if size / unit >= 1 << 32 {
        return Err(43003);
    }
    if size < smallest(kind) || wanted.label.chars().count() > LABEL_LENGTH {
        // Assumed: the page has no value for a volume that is too small or a label that is
        // too long.
        return Err(5);
    }
    Ok(FileSystem {
        label: wanted.label.clone(),
        allocation_unit: u32::try_from(unit).map_err(|_| 43000u32)?,
        ..FileSystem::new(kind)
    })
}

/// The file system of that name; NTFS if none is named. The node does not make FAT, exFAT
/// or others.
pub(super) fn kind_of(name: Option<&str>) -> Option<FileSystemKind> {
    let name = name.unwrap_or("NTFS");
    [
        FileSystemKind::Ntfs,
        FileSystemKind::Refs,
        FileSystemKind::Fat32,
    ]
    .into_iter()
    .find(|kind| kind.name().eq_ignore_ascii_case(name))
}

/// The allocation units that Windows offers for a volume of that size.
///
/// Source: <https://learn.microsoft.com/windows-server/storage/file-server/ntfs-overview> (NTFS
/// up to 2 MB), <https://learn.microsoft.com/windows-server/storage/refs/refs-overview> (ReFS
/// 4 KB and 64 KB).
pub(super) fn supported_units(kind: FileSystemKind, size: u64) -> Vec<u64> {
    let all: Vec<u64> = match kind {
        FileSystemKind::Ntfs => (9..=21).map(|power| 1 << power).collect(),
        FileSystemKind::Refs => vec![4 << 10, 64 << 10],
        FileSystemKind::Fat32 => (9..=16).map(|power| 1 << power).collect(),
    };
    all.into_iter()
        .filter(|unit| size / unit < 1 << 32)
        .collect()
}

/// Windows' default: 4 KB up to 16 TB, then what keeps the number of units in 32 bits.
fn default_unit(kind: FileSystemKind, size: u64) -> u64 {
    let units = supported_units(kind, size);
    let fits = units.into_iter().find(|unit| *unit >= 4 << 10);
    fits.unwrap_or(4 << 10)
}

/// Assumed: Windows refuses smaller volumes, but documents no limits.
fn smallest(kind: FileSystemKind) -> u64 {
    match kind {
        FileSystemKind::Ntfs => 8 * MIB,
        FileSystemKind::Refs => 2048 * MIB,
        FileSystemKind::Fat32 => 33 * MIB,
    }
}

/// The old file system goes first: until the format ends the volume is RAW, with content.
fn begin(state: &mut State, disk: DiskId, offset: u64) {
    let Some((_, medium)) = state.storage.found_mut(disk) else {
        return;
    };
    let Some(partition) = medium.partition_mut(offset) else {
        return;
    };
    partition.file_system = None;
    let size = partition.size;
    let last_sector = size.saturating_sub(SECTOR);
    medium.bytes.clear(offset, MIB.min(size));
    medium.bytes.clear(offset + last_sector, SECTOR);
    for (at, bytes) in unfinished_bytes(size) {
        medium.bytes.write(offset + at, &bytes);
    }
}

/// The format has ended.
pub(super) fn finish(state: &mut State, disk: DiskId, offset: u64, file_system: FileSystem) {
    let Some((_, medium)) = state.storage.found_mut(disk) else {
        return;
    };
    let Some(partition) = medium.partition_mut(offset) else {
        return;
    };
    let bytes = file_system_bytes(&file_system, partition.size);
    partition.file_system = Some(file_system);
    let volume = partition.volume.clone();
    for (at, bytes) in bytes {
        medium.bytes.write(offset + at, &bytes);
    }
    if let Some(volume) = volume {
        crate::fs::make_tree(state, &volume);
    }
}
