//! Leaving a disk as it was found when its stage is refused.

use std::collections::BTreeSet;

use super::observe::{Observed, one_data_partition};
use super::plan::Step;
use crate::disk::info::PartitionInfo;
use crate::disk::steps;
use crate::error::{Error, Result};
use crate::operation::Operation;

/// Takes back what a stage that was refused has changed: whether the disk and its partition
/// are online, and the read-only flag. A stage that has written has found the disk to be its
/// own, and one that may go on with the next call keeps what it has reached. `last` is
/// what was observed last.
pub(super) fn take_back(
    operation: &Operation<'_>,
    last: Option<&Observed>,
    done: &BTreeSet<Step>,
    error: Error,
) -> Error {
    let Some(last) = last.filter(|_| error.kind().is_refusal()) else {
        return error;
    };
    let to_take_back = [Step::Online, Step::ClearReadOnly, Step::PartitionOnline];
    let nothing = to_take_back.iter().all(|step| !done.contains(step));
    if nothing || done.iter().any(|step| step.writes()) {
        return error;
    }
    match restore(operation, last, done) {
        Ok(()) => error,
        Err(left) => error.with_detail(format_args!(
            "the disk could not be left as it was found: {left}"
        )),
    }
}

/// In the order that Windows takes: neither the flag nor a partition of a disk that is
/// offline can be changed.
fn restore(operation: &Operation<'_>, last: &Observed, done: &BTreeSet<Step>) -> Result<()> {
    let disk = last.disk.again(operation)?;
    if !disk.offline && done.contains(&Step::PartitionOnline) {
        let partitions = PartitionInfo::of_disk(operation, &disk)?;
        if let Some(partition) = one_data_partition(&disk, &partitions)
            && !partition.offline
        {
            steps::partition_offline(operation, partition)?;
        }
    }
    if !disk.read_only && done.contains(&Step::ClearReadOnly) {
        steps::set_read_only(operation, &disk, true)?;
    }
    match done.contains(&Step::Online) {
        true => steps::offline(operation, &disk),
        false => Ok(()),
    }
}
