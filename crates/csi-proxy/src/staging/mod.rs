//! Staging: from a disk that was found to its volume mounted at a path, and back.
//!
//! What is on the node becomes a value (`observe`), from which pure code makes the steps
//! that are missing or a refusal (`plan`); the steps are one port call each (`act`).
//! Whatever cut a call off, the next one observes anew and goes on from there.

mod act;
mod observe;
mod plan;
mod take_back;
mod unstage;

use std::collections::BTreeSet;

use crate::clock::Deadline;
use crate::error::{ErrorKind, Result};
use crate::host::Host;
use crate::ids::{DiskNumber, VolumeId};
use crate::lock::Lock;
use crate::operation::Operation;
use crate::path::HostPath;
use crate::volume::{FileSystem, FormatOptions, check_not_running};

use observe::Observed;
use plan::{Plan, Step};
use take_back::take_back;

/// The operations of drivers that stage a disk, [`Host::staging`].
///
/// All of them may be cut off at any moment and repeated. `Aborted` means that another
/// operation works on the disk.
#[derive(Clone, Copy)]
pub struct Staging<'a> {
    host: &'a Host,
}

/// What is to be staged, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageRequest {
    /// The unique id of the disk, as [`crate::disk::DiskInfo::unique_id`] gives it.
    pub disk: String,
    /// The staging path. Its missing parents are made.
    pub path: HostPath,
    /// How a volume that is empty is formatted. One that has a file system is taken as it
    /// is.
    pub format: FormatOptions,
    /// The file system that a volume must have, if the caller asks for one by name: a volume
    /// with another one is refused.
    pub file_system: Option<FileSystem>,
    /// Only for reading: nothing on the disk is changed, so it must be formatted already.
    /// The mount itself does not refuse writes; a disk that is read-only does.
    pub read_only: bool,
}

/// What was staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// The number of the disk, as it is now.
    pub disk: DiskNumber,
    /// The volume that is mounted at the path.
    pub volume: VolumeId,
    /// The size of its partition in bytes.
    pub size: u64,
}

impl Host {
    /// The operations of drivers that stage a disk.
    pub fn staging(&self) -> Staging<'_> {
        Staging { host: self }
    }
}

impl Staging<'_> {
    /// Brings a disk's volume to a path: the disk is brought online, its read-only flag is
    /// cleared, it is partitioned and formatted where it is empty, and the volume is
    /// mounted. Already so is success. A format goes on after the deadline
    /// ([`crate::volume::FORMAT_LIMIT`]).
    ///
    /// # Errors
    /// `NotFound` when there is no such disk; `InvalidArgument` for the root of a drive and
    /// for format options that Windows does not take; `FailedPrecondition`, with the reason,
    /// for a disk with content that is not ours, a boot or system disk, a read-only flag that
    /// comes back, a read-only request on a disk that is not formatted, another file system
    /// than is asked for, a disk that is too small for ReFS, and something else at the path.
    /// Then nothing was written, and the disk is left as it was found: offline, and with its
    /// read-only flag.
    ///
    /// Source: the methods of `MSFT_Disk`, `MSFT_Partition` and `MSFT_Volume`,
    /// `SetVolumeMountPointW`.
    pub fn stage(&self, request: &StageRequest, deadline: Deadline) -> Result<Staged> {
        let operation = Operation::new(self.host, "stage", deadline);
        check_path(&operation, &request.path)?;
        request.format.check(operation.name())?;
        let lock = Lock::of_disk(&operation, &request.disk)?;
        let operation = &operation.under(&lock);
        let (mut last, mut done) = (None, BTreeSet::new());
        advance(operation, request, &mut last, &mut done)
            .map_err(|error| take_back(operation, last.as_ref(), &done, error))
    }

    /// Flushes the volume that is mounted at a path, and takes the mount point and its
    /// directory away. What is not there is success: a missing path, an empty directory
    /// (which is removed), a directory with files or a file (which are left alone). With
    /// `volume`, another volume at the path is refused.
    ///
    /// # Errors
    /// `InvalidArgument` for the root of a drive; `FailedPrecondition` when something else is
    /// mounted or linked there than `volume`.
    ///
    /// Source: `MSFT_Volume.Flush`, `DeleteVolumeMountPointW`, `RemoveDirectoryW`.
    pub fn unstage(
        &self,
        path: &HostPath,
        volume: Option<&VolumeId>,
        deadline: Deadline,
    ) -> Result<()> {
        let operation = Operation::new(self.host, "unstage", deadline);
        check_path(&operation, path)?;
        unstage::unstage(&operation, path, volume)
    }

    /// Refuses when a disk may be formatted at this moment: by an operation of this or
    /// another process, or in Windows, for a process that has ended. A driver asks before it
    /// detaches a disk that nothing is mounted on. A format that was recorded less than
    /// [`crate::volume::FORMAT_LIMIT`] ago counts until Windows shows a file system on its
    /// volume, shows the volume no more, or answers that the format has failed; an older one
    /// only while Windows says that the volume is in use. A stage of the disk goes on with
    /// it in any case.
    ///
    /// # Errors
    /// `Aborted`: try again later.
    ///
    /// Source: `MSFT_Volume.FileSystemType`, and the records in the host's state directory.
    pub fn check_not_formatting(&self, disk: &str, deadline: Deadline) -> Result<()> {
        let operation = Operation::new(self.host, "check not formatting", deadline);
        let lock = Lock::of_disk(&operation, disk)?;
        check_not_running(&operation.under(&lock), disk)
    }
}

/// Observes, plans and acts until the volume is staged. `last` is what was observed last, and
/// `done` are the steps that were done.
fn advance(
    operation: &Operation<'_>,
    request: &StageRequest,
    last: &mut Option<Observed>,
    done: &mut BTreeSet<Step>,
) -> Result<Staged> {
    loop {
        let now = &*last.insert(Observed::new(operation, request, last.as_ref())?);
        let plan = plan::plan(now, request, done).map_err(|reason| {
            operation.error(ErrorKind::FailedPrecondition, now.disk.name(), reason)
        })?;
        let (steps, staged) = match plan {
            Plan::Advance(steps) => (steps, None),
            Plan::Finish(steps, staged) => (steps, Some(staged)),
        };
        for step in steps {
            act::act(operation, step, now, request)?;
            done.insert(step);
        }
        if let Some(staged) = staged {
            return Ok(staged);
        }
    }
}

/// Refuses the root of a drive: it cannot be made, mounted at or removed.
fn check_path(operation: &Operation<'_>, path: &HostPath) -> Result<()> {
    match path.parent() {
        Some(_) => Ok(()),
        None => Err(operation.error(
            ErrorKind::InvalidArgument,
            format_args!("staging path {path}"),
            "it is the root of a drive; expected a directory below it",
        )),
    }
}
