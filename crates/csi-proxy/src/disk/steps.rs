//! The single steps that change a disk, one method each.
//!
//! Each is invoked on the path of the object that was observed, under the disk's lock.

use std::fmt::Display;
use std::time::Duration;

use super::info::{BASIC_DATA, DiskInfo, PartitionInfo, PartitionStyle};
use crate::cim::{Invoke, Namespace, ObjectPath};
use crate::content;
use crate::error::{Error, ErrorKind, Result};
use crate::operation::Operation;

/// How long to wait before looking again for what Windows does in its own time.
pub(crate) const POLL: Duration = Duration::from_millis(500);

/// `CreatePartition`: the access path is in use. The partition has been created.
const ACCESS_PATH_IN_USE: u32 = 42002;

/// How often to look for a partition that Windows says it has created.
const PARTITION_LOOKS: usize = 20;

/// `Initialize`'s `PartitionStyle`.
const GPT: u32 = 2;

fn method(class: &str, object: &ObjectPath, name: &str) -> Invoke {
    Invoke::on(Namespace::Storage, class, object, name)
}

/// Brings a disk online. Windows may take its time after the answer.
pub(crate) fn online(operation: &Operation<'_>, disk: &DiskInfo) -> Result<()> {
    let invoke = method(DiskInfo::CLASS, &disk.object, "Online");
    operation.invoke(disk.name(), &invoke).map(drop)
}

/// Takes a disk offline.
pub(crate) fn offline(operation: &Operation<'_>, disk: &DiskInfo) -> Result<()> {
    let invoke = method(DiskInfo::CLASS, &disk.object, "Offline");
    operation.invoke(disk.name(), &invoke).map(drop)
}

/// Sets or clears a disk's read-only flag; it must be online.
pub(crate) fn set_read_only(
    operation: &Operation<'_>,
    disk: &DiskInfo,
    read_only: bool,
) -> Result<()> {
    let invoke =
        method(DiskInfo::CLASS, &disk.object, "SetAttributes").with("IsReadOnly", read_only);
    operation.invoke(disk.name(), &invoke).map(drop)
}

/// Has Windows look at a disk anew; it must be online.
pub(crate) fn refresh(operation: &Operation<'_>, disk: &DiskInfo) -> Result<()> {
    // A disk without a partition table cannot be refreshed by itself (41000).
    if disk.style == PartitionStyle::Raw {
        return rescan(operation);
    }
    let invoke = method(DiskInfo::CLASS, &disk.object, "Refresh");
    operation.invoke(disk.name(), &invoke).map(drop)
}

/// Has Windows look for disks that came or went.
pub(crate) fn rescan(operation: &Operation<'_>) -> Result<()> {
    let invoke = Invoke::on_class(
        Namespace::Storage,
        "MSFT_StorageSetting",
        "UpdateHostStorageCache",
    );
    operation.invoke("the node's disks", &invoke).map(drop)
}

/// Initialises a disk as GPT, if its bytes are those of an empty disk.
pub(crate) fn initialize(operation: &Operation<'_>, disk: &DiskInfo) -> Result<()> {
    content::check_empty(operation, &disk.path, 0..disk.size, &disk.name())?;
    let now = disk.again(operation)?;
    if now.style != disk.style {
        let detail = "another program has initialised the disk during the operation";
        return Err(operation.error(ErrorKind::Aborted, disk.name(), detail));
    }
    let invoke = method(DiskInfo::CLASS, &now.object, "Initialize").with("PartitionStyle", GPT);
    operation.invoke(disk.name(), &invoke).map(drop)
}

/// Creates a data partition over all of a disk's free space, without a drive letter.
pub(crate) fn create_partition(operation: &Operation<'_>, disk: &DiskInfo) -> Result<()> {
    let now = disk.again(operation)?;
    let partitions = PartitionInfo::of_disk(operation, &now)?;
    if super::layout::layout(&now, &partitions) != Ok(super::layout::Layout::NoPartition) {
        let detail = "another program has partitioned the disk during the operation";
        return Err(operation.error(ErrorKind::Aborted, disk.name(), detail));
    }
    let invoke = method(DiskInfo::CLASS, &now.object, "CreatePartition")
        .with("UseMaximumSize", true)
        .with("GptType", BASIC_DATA)
        .with("AssignDriveLetter", false);
    match operation.invoke(disk.name(), &invoke) {
        Err(error) if error.is_return_value(ACCESS_PATH_IN_USE) => {
            find_created(operation, &now, partitions.len(), error)
        }
        answer => answer.map(drop),
    }
}

/// Looks for a partition that was created although the answer was an error; `before` is how
/// many there were.
fn find_created(
    operation: &Operation<'_>,
    disk: &DiskInfo,
    before: usize,
    error: Error,
) -> Result<()> {
    for _ in 0..PARTITION_LOOKS {
        if PartitionInfo::of_disk(operation, disk)?.len() > before {
            return Ok(());
        }
        wait(operation, disk, "the new partition")?;
    }
    Err(error
        .with_kind(ErrorKind::Internal)
        .with_detail("the partition was not created"))
}

/// Brings a partition online.
pub(crate) fn partition_online(operation: &Operation<'_>, partition: &PartitionInfo) -> Result<()> {
    let invoke = method(PartitionInfo::CLASS, &partition.object, "Online");
    operation.invoke(partition.name(), &invoke).map(drop)
}

/// Takes a partition offline; its volume goes with it.
pub(crate) fn partition_offline(
    operation: &Operation<'_>,
    partition: &PartitionInfo,
) -> Result<()> {
    let invoke = method(PartitionInfo::CLASS, &partition.object, "Offline");
    operation.invoke(partition.name(), &invoke).map(drop)
}

/// Waits a little for what Windows does in its own time.
pub(crate) fn wait(
    operation: &Operation<'_>,
    disk: &DiskInfo,
    waiting_for: impl Display,
) -> Result<()> {
    operation.pause(POLL, disk.name(), waiting_for)
}
