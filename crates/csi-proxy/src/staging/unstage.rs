//! The way back: flush, take the mount point away, remove its directory.

use super::observe::{AtPath, at_path};
use crate::disk::info::PartitionInfo;
use crate::error::{ErrorKind, Result};
use crate::ids::VolumeId;
use crate::lock::Lock;
use crate::operation::Operation;
use crate::os::{At, Reparse};
use crate::path::HostPath;
use crate::volume::info::VolumeInfo;
use crate::volume::mount;

/// `MSFT_Volume.Flush` on a volume that cannot be written: nothing is left to flush.
const READ_ONLY: u32 = 43006;

pub(super) fn unstage(
    operation: &Operation<'_>,
    path: &HostPath,
    volume: Option<&VolumeId>,
) -> Result<()> {
    let before = at_path(operation, path, None)?;
    check(operation, path, volume, &before)?;
    let AtPath::Mounted(mounted) = &before else {
        return take_away(operation, path, &before);
    };
    let Some(info) = VolumeInfo::find(operation, mounted)? else {
        return take_away(operation, path, &before);
    };
    let lock = lock_of(operation, &info)?;
    let operation = &match &lock {
        Some(lock) => operation.under(lock),
        None => *operation,
    };
    match mount::flush(operation, &info) {
        Err(error) if error.is_return_value(READ_ONLY) => {}
        answer => answer?,
    }
    take_away(operation, path, &before)
}

/// The lock of the disk that a volume is on. A volume without one needs none: the library
/// changes no other.
fn lock_of<'a>(operation: &Operation<'a>, volume: &VolumeInfo) -> Result<Option<Lock<'a>>> {
    let Some(partition) = PartitionInfo::of_volume(operation, &volume.object)? else {
        return Ok(None);
    };
    match partition.disk(operation)? {
        Some(disk) => Lock::of_disk(operation, &disk.unique_id).map(Some),
        None => Ok(None),
    }
}

/// Refuses what was not staged as `volume`.
fn check(
    operation: &Operation<'_>,
    path: &HostPath,
    volume: Option<&VolumeId>,
    found: &AtPath,
) -> Result<()> {
    let Some(volume) = volume else {
        return Ok(());
    };
    let other = match found {
        AtPath::Mounted(other) | AtPath::DeadMountPoint(other) if other != volume => {
            format!("the volume {other} is mounted there")
        }
        AtPath::LinkElsewhere(what) => format!("it is a link {what}"),
        _ => return Ok(()),
    };
    Err(operation.error(
        ErrorKind::FailedPrecondition,
        path,
        format_args!("{other}, and {volume} is to be unstaged"),
    ))
}

/// Takes away what a stage has made at the path; `found` is what stands there.
fn take_away(operation: &Operation<'_>, path: &HostPath, found: &AtPath) -> Result<()> {
    let (os, at) = (operation.os(), At::path(path));
    match found {
        AtPath::Missing | AtPath::Occupied(_) => return Ok(()),
        AtPath::EmptyDirectory | AtPath::DeadLink | AtPath::LinkElsewhere(_) => {}
        AtPath::Mounted(volume) | AtPath::DeadMountPoint(volume) => {
            // The mount point is taken away by its path: look again which one it is.
            let answer = os.stat(&at, operation.deadline());
            match operation.optional(path, answer)?.map(|stat| stat.reparse) {
                Some(Some(Reparse::MountPoint { volume: now })) if now == *volume => {
                    mount::delete(operation, path)?;
                }
                // A link to the volume goes as it is.
                Some(Some(Reparse::SymbolicLink { .. } | Reparse::Junction { .. })) => {}
                _ => {
                    let detail = "another program has changed it during the operation";
                    return Err(operation.error(ErrorKind::Aborted, path, detail));
                }
            }
        }
    }
    let answer = os.remove_directory(&at, operation.deadline());
    operation.optional(path, answer).map(drop)
}
