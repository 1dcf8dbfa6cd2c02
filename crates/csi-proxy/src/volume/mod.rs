//! Volumes: formatting, mounting, growing.

mod format;
mod health;
pub(crate) mod info;
pub(crate) mod mount;
mod resize;

use crate::clock::Deadline;
use crate::disk::info::{DiskInfo, PartitionInfo};
use crate::error::{Error, ErrorKind, Result};
use crate::format_record;
use crate::host::Host;
use crate::ids::{DiskNumber, VolumeId};
use crate::links::Walk;
use crate::lock::Lock;
use crate::operation::Operation;
use crate::os::At;

use info::{Placed, VolumeInfo, row_of};

pub use format::{
    FORMAT_LIMIT, FileSystem, FormatOptions, SMALLEST_REFS_DISK, SMALLEST_REFS_VOLUME,
};
pub(crate) use format::{check_formattable, check_not_running, format as format_empty};
pub use health::{HealthStatus, VolumeHealth};
pub use resize::{NewSize, ResizeOutcome};

/// The operations on volumes, [`Host::volume`].
///
/// Besides the errors that each method names, all of them answer `DeadlineExceeded` when the
/// deadline passes, and what Windows refuses with its code and meaning. Formatting and
/// growing take the lock of the volume's disk: `Aborted` means that another operation works
/// on it.
#[derive(Clone, Copy)]
pub struct Volume<'a> {
    host: &'a Host,
}

/// The space of a volume, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeStats {
    /// All of it.
    pub total_bytes: u64,
    /// What is taken.
    pub used_bytes: u64,
}

impl Host {
    /// The operations on volumes.
    pub fn volume(&self) -> Volume<'_> {
        Volume { host: self }
    }
}

impl<'a> Volume<'a> {
    fn operation(&self, name: &'static str, deadline: Deadline) -> Operation<'a> {
        Operation::new(self.host, name, deadline)
    }

    /// The volumes on a disk, by their place on it, or on one of its partitions.
    ///
    /// # Errors
    /// `NotFound` when there is no such disk or partition.
    ///
    /// Source: `MSFT_DiskToPartition`, `MSFT_PartitionToVolume`.
    pub fn list_on_disk(
        &self,
        disk: DiskNumber,
        partition: Option<u32>,
        deadline: Deadline,
    ) -> Result<Vec<VolumeId>> {
        let operation = &self.operation("volume list on disk", deadline);
        let disk = DiskInfo::by_number(operation, disk)?;
        let mut partitions = PartitionInfo::of_disk(operation, &disk)?;
        if let Some(number) = partition {
            partitions.retain(|partition| partition.number == number);
            if partitions.is_empty() {
                let object = format!("partition {number} of {}", disk.name());
                let detail = "there is no such partition";
                return Err(operation.error(ErrorKind::NotFound, object, detail));
            }
        }
        let mut volumes = Vec::new();
        for partition in &partitions {
            volumes.extend(VolumeInfo::of_partition(operation, partition)?);
        }
        Ok(volumes.into_iter().map(|volume| volume.id).collect())
    }

    /// Whether Windows knows a file system on a volume. False does not mean that the volume
    /// is empty.
    ///
    /// # Errors
    /// `NotFound`.
    ///
    /// Source: `MSFT_Volume.FileSystemType`.
    pub fn is_formatted(&self, id: &VolumeId, deadline: Deadline) -> Result<bool> {
        let operation = self.operation("volume is formatted", deadline);
        VolumeInfo::by_id(&operation, id).map(|volume| volume.is_formatted())
    }

    /// Formats an empty volume. The format itself may take [`FORMAT_LIMIT`], whatever the
    /// deadline is.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument` for options that Windows does not take;
    /// `FailedPrecondition` when the volume has a file system or other content, is read-only
    /// or too small for ReFS, or the host has no state directory; `Aborted` when an earlier
    /// format still runs.
    ///
    /// Source: `MSFT_Volume.Format`.
    pub fn format(&self, id: &VolumeId, options: &FormatOptions, deadline: Deadline) -> Result<()> {
        let operation = self.operation("volume format", deadline);
        options.check(operation.name())?;
        let first = Placed::of(&operation, id)?;
        let lock = Lock::of_disk(&operation, &first.disk.unique_id)?;
        let operation = &operation.under(&lock);
        let placed = Placed::of(operation, id)?;
        if placed.disk.unique_id != first.disk.unique_id {
            let detail = "the volume has moved to another disk during the operation";
            return Err(operation.error(ErrorKind::Aborted, placed.volume.name(), detail));
        }
        match placed.volume.is_formatted() {
            false => format::format(operation, &placed, options),
            true => already_formatted(operation, &placed, options),
        }
    }

    /// Mounts a volume at an existing, empty directory on NTFS. Already mounted there is
    /// success.
    ///
    /// # Errors
    /// `NotFound` when the volume or the directory is missing; `FailedPrecondition` when
    /// something else is there.
    ///
    /// Source: `SetVolumeMountPointW`.
    pub fn mount(&self, id: &VolumeId, at: impl Into<At>, deadline: Deadline) -> Result<()> {
        mount::mount(&self.operation("volume mount", deadline), id, &at.into())
    }

    /// Flushes a volume and takes its mount point away; the directory stays. A directory
    /// that is no mount point is success.
    ///
    /// # Errors
    /// `NotFound` when the path is missing; `FailedPrecondition` when another volume is
    /// mounted there, or the path is a file or a link.
    ///
    /// Source: `MSFT_Volume.Flush`, `DeleteVolumeMountPointW`.
    pub fn unmount(&self, id: &VolumeId, at: impl Into<At>, deadline: Deadline) -> Result<()> {
        mount::unmount(&self.operation("volume unmount", deadline), id, &at.into())
    }

    /// Writes what the file system holds back to the disk.
    ///
    /// # Errors
    /// `NotFound`.
    ///
    /// Source: `MSFT_Volume.Flush`.
    pub fn write_cache(&self, id: &VolumeId, deadline: Deadline) -> Result<()> {
        let operation = self.operation("volume write cache", deadline);
        mount::flush(&operation, &VolumeInfo::by_id(&operation, id)?)
    }

    /// Grows a volume, in any step from 1 MiB on; a smaller gain is success without a
    /// change. It never shrinks one: a smaller size is success without a change too.
    ///
    /// # Errors
    /// `NotFound`; `OutOfRange`, with both sizes, when the disk has not so much;
    /// `FailedPrecondition` for file systems that Windows does not grow.
    ///
    /// Source: `MSFT_Partition.GetSupportedSize`, `MSFT_Partition.Resize`,
    /// `MSFT_Disk.Refresh`.
    pub fn resize(
        &self,
        id: &VolumeId,
        size: NewSize,
        deadline: Deadline,
    ) -> Result<ResizeOutcome> {
        resize::resize(&self.operation("volume resize", deadline), id, size)
    }

    /// The space of a volume. One without a file system has none.
    ///
    /// # Errors
    /// `NotFound`.
    ///
    /// Source: `MSFT_Volume.Size`, `MSFT_Volume.SizeRemaining`.
    pub fn stats(&self, id: &VolumeId, deadline: Deadline) -> Result<VolumeStats> {
        let operation = self.operation("volume stats", deadline);
        let row = row_of(&operation, id, &["Size", "SizeRemaining"])?;
        let total = row.u64("Size")?;
        Ok(VolumeStats {
            total_bytes: total,
            used_bytes: total.saturating_sub(row.u64("SizeRemaining")?),
        })
    }

    /// What Windows says about a volume's health.
    ///
    /// # Errors
    /// `NotFound`.
    ///
    /// Source: `MSFT_Volume.HealthStatus`, `MSFT_Volume.OperationalStatus`.
    pub fn health(&self, id: &VolumeId, deadline: Deadline) -> Result<VolumeHealth> {
        let operation = self.operation("volume health", deadline);
        let row = row_of(&operation, id, &["HealthStatus", "OperationalStatus"])?;
        Ok(VolumeHealth {
            status: HealthStatus::from_number(row.optional_u32("HealthStatus")?),
            operational: row.integers("OperationalStatus")?,
        })
    }

    /// The number of the disk that a volume is on.
    ///
    /// # Errors
    /// `NotFound`; `FailedPrecondition` for a volume that is on no partition.
    ///
    /// Source: `MSFT_PartitionToVolume`, `MSFT_Partition.DiskNumber`.
    pub fn disk_number(&self, id: &VolumeId, deadline: Deadline) -> Result<DiskNumber> {
        let operation = self.operation("volume disk number", deadline);
        let volume = VolumeInfo::by_id(&operation, id)?;
        PartitionInfo::of_volume(&operation, &volume.object)?
            .map(|partition| partition.disk)
            .ok_or_else(|| {
                let detail = "it lies on no partition; only basic disks are supported";
                operation.error(ErrorKind::FailedPrecondition, volume.name(), detail)
            })
    }

    /// The volume that is mounted at a path; links to it are followed. A root that the path
    /// must not leave is enforced on what stands at the path, not on where its links lead.
    ///
    /// # Errors
    /// `NotFound` when the path, or what its links lead to, is missing;
    /// `FailedPrecondition` when it is no mount point, leads to a share, or its links form a
    /// loop.
    ///
    /// Source: `FSCTL_GET_REPARSE_POINT`.
    pub fn id_from_target_path(&self, at: impl Into<At>, deadline: Deadline) -> Result<VolumeId> {
        let operation = self.operation("volume id from target path", deadline);
        let at = at.into();
        mount::check_root(&operation, &at)?;
        mount::volume_at(self.host, &operation, &at.path)
    }

    /// The volume that holds a path: links are followed, else the directory above is
    /// looked at, until there is a mount point or the root of a drive. A root that the path
    /// must not leave is enforced on what stands at the path.
    ///
    /// # Errors
    /// As [`Volume::id_from_target_path`], without "no mount point".
    ///
    /// Source: `FSCTL_GET_REPARSE_POINT`, `GetVolumeNameForVolumeMountPointW`.
    pub fn closest_id_from_target_path(
        &self,
        at: impl Into<At>,
        deadline: Deadline,
    ) -> Result<VolumeId> {
        let operation = self.operation("volume closest id from target path", deadline);
        let at = at.into();
        mount::check_root(&operation, &at)?;
        Walk::new(self.host, operation.name(), deadline).closest_volume(&at.path)
    }
}

/// A format that was asked for before and has ended since is success; any other file system
/// is refused.
fn already_formatted(
    operation: &Operation<'_>,
    placed: &Placed,
    options: &FormatOptions,
) -> Result<()> {
    let wanted = options.file_system.as_str();
    let same = placed.volume.file_system.eq_ignore_ascii_case(wanted);
    let ours = format_record::read(operation, &placed.volume.id)?.is_some();
    format_record::remove(operation, &placed.volume.id)?;
    match ours && same {
        true => Ok(()),
        false => Err(has_file_system(operation, placed)),
    }
}

fn has_file_system(operation: &Operation<'_>, placed: &Placed) -> Error {
    operation.error(
        ErrorKind::FailedPrecondition,
        placed.volume.name(),
        format_args!(
            "it has the file system {} already",
            placed.volume.file_system
        ),
    )
}
