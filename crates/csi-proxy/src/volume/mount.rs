//! Mounting a volume at a directory, and what is mounted where.

use crate::cim::{Invoke, Namespace};
use crate::error::{ErrorKind, Result};
use crate::host::Host;
use crate::ids::VolumeId;
use crate::links::{End, Walk};
use crate::operation::Operation;
use crate::os::{At, Reparse, SetMountPoint};
use crate::path::HostPath;

use super::info::VolumeInfo;

/// Mounts a volume at an existing, empty directory.
pub(super) fn mount(operation: &Operation<'_>, id: &VolumeId, at: &At) -> Result<()> {
    let path = &at.path;
    VolumeInfo::by_id(operation, id)?;
    let stat = operation
        .os()
        .stat(at, operation.deadline())
        .map_err(|error| operation.port_error(path, error))?;
    let refuse = |detail: String| Err(operation.error(ErrorKind::FailedPrecondition, path, detail));
    match stat.reparse {
        Some(Reparse::MountPoint { volume }) if volume == *id => return Ok(()),
        Some(Reparse::MountPoint { volume }) => {
            return refuse(format!("the volume {volume} is mounted there"));
        }
        Some(_) => return refuse("it is a link; expected an empty directory".to_owned()),
        None if !stat.directory => {
            return refuse("it is a file; expected an empty directory".to_owned());
        }
        None => {}
    }
    let entries = operation
        .os()
        .list(at, operation.deadline())
        .map_err(|error| operation.port_error(path, error))?;
    if let Some(entry) = entries.first() {
        return refuse(format!("it is not empty: it holds {:?}", entry.name));
    }
    set(operation, id, at.clone())
}

/// Mounts a volume where a directory is known to be empty.
pub(crate) fn set(operation: &Operation<'_>, id: &VolumeId, at: impl Into<At>) -> Result<()> {
    let request = SetMountPoint {
        at: at.into(),
        volume: id.clone(),
    };
    operation
        .os()
        .set_mount_point(&request, operation.deadline())
        .map_err(|error| operation.port_error(&request.at.path, error))
}

/// Takes a mount point away; its directory stays.
pub(crate) fn delete(operation: &Operation<'_>, at: impl Into<At>) -> Result<()> {
    let at = at.into();
    operation
        .os()
        .delete_mount_point(&at, operation.deadline())
        .map_err(|error| operation.port_error(&at.path, error))
}

/// Flushes a volume and takes its mount point away.
pub(super) fn unmount(operation: &Operation<'_>, id: &VolumeId, at: &At) -> Result<()> {
    let path = &at.path;
    let stat = operation
        .os()
        .stat(at, operation.deadline())
        .map_err(|error| operation.port_error(path, error))?;
    match stat.reparse {
        Some(Reparse::MountPoint { volume }) if volume == *id => {
            if let Some(volume) = VolumeInfo::find(operation, id)? {
                flush(operation, &volume)?;
            }
            delete(operation, at.clone())
        }
        Some(Reparse::MountPoint { volume }) => Err(operation.error(
            ErrorKind::FailedPrecondition,
            path,
            format_args!("the volume {volume} is mounted there, not {id}"),
        )),
        // Already unmounted.
        None if stat.directory => Ok(()),
        _ => Err(operation.error(ErrorKind::FailedPrecondition, path, "it is no mount point")),
    }
}

/// Writes what the file system holds back to the disk.
pub(crate) fn flush(operation: &Operation<'_>, volume: &VolumeInfo) -> Result<()> {
    let invoke = Invoke::on(
        Namespace::Storage,
        VolumeInfo::CLASS,
        &volume.object,
        "Flush",
    );
    operation.invoke(volume.name(), &invoke).map(drop)
}

/// Refuses a path that leads outside its root, if it has one.
pub(super) fn check_root(operation: &Operation<'_>, at: &At) -> Result<()> {
    if at.within.is_none() {
        return Ok(());
    }
    operation
        .os()
        .stat(at, operation.deadline())
        .map(drop)
        .map_err(|error| operation.port_error(&at.path, error))
}

/// The volume that is mounted at a path, links to it followed.
pub(super) fn volume_at(
    host: &Host,
    operation: &Operation<'_>,
    path: &HostPath,
) -> Result<VolumeId> {
    let refuse = |kind, detail: String| Err(operation.error(kind, path, detail));
    match Walk::new(host, operation.name(), operation.deadline()).end(path)? {
        End::MountPoint { volume, .. } => Ok(volume),
        End::Object { path: end, .. } if end.parent().is_none() => operation
            .os()
            .mounted_volume(&At::path(&end), operation.deadline())
            .map_err(|error| operation.port_error(path, error)),
        End::Object { path: end, .. } => refuse(
            ErrorKind::FailedPrecondition,
            format!("no volume is mounted at {end}"),
        ),
        End::Share(target) => refuse(
            ErrorKind::FailedPrecondition,
            format!("it leads to the share {target}, which is no volume"),
        ),
        End::Missing(end) => refuse(ErrorKind::NotFound, format!("{end} does not exist")),
    }
}
