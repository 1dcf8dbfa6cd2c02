//! What is on the node for a stage: the disk with what it holds, and what is at the path.

use super::StageRequest;
use crate::disk::info::{DiskInfo, PartitionInfo, PartitionStyle};
use crate::disk::layout::{self, Layout, layout};
use crate::error::{ErrorKind, Result};
use crate::ids::VolumeId;
use crate::links::{End, Walk};
use crate::operation::Operation;
use crate::os::{At, Reparse, Stat};
use crate::path::HostPath;
use crate::volume::info::VolumeInfo;

/// All that decides what is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Observed {
    pub(super) disk: DiskInfo,
    pub(super) partitions: Vec<PartitionInfo>,
    /// The volume of the one data partition, if there is one and Windows shows it.
    pub(super) volume: Option<VolumeInfo>,
    pub(super) path: AtPath,
}

/// What stands at the staging path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AtPath {
    /// Nothing.
    Missing,
    /// A directory without entries.
    EmptyDirectory,
    /// A volume that is there, by its mount point or over links.
    Mounted(VolumeId),
    /// A mount point of a volume that is gone.
    DeadMountPoint(VolumeId),
    /// A link that leads to nothing.
    DeadLink,
    /// A link that leads to what is no volume, in words.
    LinkElsewhere(String),
    /// A directory with entries, or a file, in words.
    Occupied(String),
}

impl Observed {
    /// Observes for `request`; `before` is what was observed before in the same call.
    pub(super) fn new(
        operation: &Operation<'_>,
        request: &StageRequest,
        before: Option<&Self>,
    ) -> Result<Self> {
        let disk = match before {
            None => DiskInfo::by_unique_id(operation, &request.disk)?,
            Some(before) => before.disk.again(operation)?,
        };
        let partitions = match disk.style {
            PartitionStyle::Raw => Vec::new(),
            _ => PartitionInfo::of_disk(operation, &disk)?,
        };
        let volume = match one_data_partition(&disk, &partitions) {
            Some(partition) if !disk.offline => VolumeInfo::of_partition(operation, partition)?,
            _ => None,
        };
        let path = at_path(operation, &request.path, volume.as_ref().map(|one| &one.id))?;
        if path == AtPath::Missing && before.is_none() {
            check_parents(operation, &request.path)?;
        }
        Ok(Self {
            disk,
            partitions,
            volume,
            path,
        })
    }
}

impl Observed {
    /// Whether what is seen of the partition table is all of it. No page says that Windows
    /// shows the partitions of a disk that is offline, so none there may be several.
    pub(super) fn layout_is_known(&self) -> bool {
        let shown = self.disk.style == PartitionStyle::Raw || !self.partitions.is_empty();
        shown || !self.disk.offline
    }
}

/// The data partition that a stage uses, if the disk is one that it may use.
pub(super) fn one_data_partition<'a>(
    disk: &DiskInfo,
    partitions: &'a [PartitionInfo],
) -> Option<&'a PartitionInfo> {
    match layout(disk, partitions) {
        Ok(Layout::Data(data)) => layout::only(&data).ok(),
        _ => None,
    }
}

/// Refuses a path that cannot be made, below a file or on a drive that the node does not have,
/// before anything is changed for it.
fn check_parents(operation: &Operation<'_>, path: &HostPath) -> Result<()> {
    let mut here = path.parent();
    while let Some(parent) = here {
        let answer = operation
            .os()
            .stat(&At::path(&parent), operation.deadline());
        here = parent.parent();
        let found = match here {
            // Without its root nothing can be made: what Windows said is the error.
            None => Some(answer.map_err(|error| operation.port_error(&parent, error))?),
            Some(_) => operation.optional(&parent, answer)?,
        };
        match found {
            Some(stat) if stat.directory => return Ok(()),
            Some(_) => {
                return Err(operation.error(
                    ErrorKind::FailedPrecondition,
                    format_args!("staging path {path}"),
                    format_args!("{parent}, where it would be, is no directory"),
                ));
            }
            None => {}
        }
    }
    Ok(())
}

/// What stands at a path. Whether a volume that is mounted there is gone need not be asked
/// for `known`.
pub(super) fn at_path(
    operation: &Operation<'_>,
    path: &HostPath,
    known: Option<&VolumeId>,
) -> Result<AtPath> {
    let answer = operation.os().stat(&At::path(path), operation.deadline());
    let Some(stat) = operation.optional(path, answer)? else {
        return Ok(AtPath::Missing);
    };
    match &stat.reparse {
        Some(Reparse::MountPoint { volume }) => match is_there(operation, volume, known)? {
            true => Ok(AtPath::Mounted(volume.clone())),
            false => Ok(AtPath::DeadMountPoint(volume.clone())),
        },
        Some(Reparse::SymbolicLink { .. } | Reparse::Junction { .. }) => {
            link_end(operation, path, known)
        }
        None | Some(Reparse::Other { .. }) => directory(operation, path, &stat),
    }
}

fn is_there(
    operation: &Operation<'_>,
    volume: &VolumeId,
    known: Option<&VolumeId>,
) -> Result<bool> {
    Ok(known == Some(volume) || VolumeInfo::find(operation, volume)?.is_some())
}

fn link_end(
    operation: &Operation<'_>,
    path: &HostPath,
    known: Option<&VolumeId>,
) -> Result<AtPath> {
    let mut walk = Walk::new(operation.host(), operation.name(), operation.deadline());
    match walk.end(path) {
        Ok(End::MountPoint { volume, .. }) => match is_there(operation, &volume, known)? {
            true => Ok(AtPath::Mounted(volume)),
            false => Ok(AtPath::DeadLink),
        },
        Ok(End::Missing(_)) => Ok(AtPath::DeadLink),
        Ok(End::Object { path: end, .. }) => Ok(AtPath::LinkElsewhere(format!("to {end}"))),
        Ok(End::Share(target)) => Ok(AtPath::LinkElsewhere(format!("to the share {target}"))),
        Err(error) if error.kind() == ErrorKind::FailedPrecondition => Ok(AtPath::LinkElsewhere(
            format!("that leads nowhere ({error})"),
        )),
        Err(error) => Err(error),
    }
}

fn directory(operation: &Operation<'_>, path: &HostPath, stat: &Stat) -> Result<AtPath> {
    if !stat.directory {
        return Ok(AtPath::Occupied("a file".to_owned()));
    }
    let entries = operation
        .os()
        .list(&At::path(path), operation.deadline())
        .map_err(|error| operation.port_error(path, error))?;
    Ok(match entries.first() {
        None => AtPath::EmptyDirectory,
        Some(entry) => AtPath::Occupied(format!("a directory that holds {:?}", entry.name)),
    })
}
