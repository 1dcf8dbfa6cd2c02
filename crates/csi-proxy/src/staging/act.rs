//! The steps of a stage, one port call each.

use super::StageRequest;
use super::observe::{Observed, one_data_partition};
use super::plan::Step;
use crate::content;
use crate::disk::info::{PartitionInfo, PartitionStyle};
use crate::disk::steps;
use crate::error::{Error, ErrorKind, Result};
use crate::format_record;
use crate::operation::Operation;
use crate::os::At;
use crate::volume::info::{Placed, VolumeInfo};
use crate::volume::{check_formattable, format_empty, mount};

/// Does one step on what was observed.
pub(super) fn act(
    operation: &Operation<'_>,
    step: Step,
    now: &Observed,
    request: &StageRequest,
) -> Result<()> {
    let disk = &now.disk;
    let (os, at) = (operation.os(), At::path(&request.path));
    let path_error = |error| operation.port_error(&request.path, error);
    match step {
        Step::Online => {
            check_content(operation, now)?;
            steps::online(operation, disk)
        }
        Step::ClearReadOnly => {
            check_content(operation, now)?;
            steps::clear_read_only(operation, disk)
        }
        Step::Refresh => steps::refresh(operation, disk),
        Step::Initialize => steps::initialize(operation, disk),
        Step::CreatePartition => steps::create_partition(operation, disk),
        Step::PartitionOnline => steps::partition_online(operation, partition(operation, now)?),
        Step::Format => format_empty(operation, &placed(operation, now)?, &request.format),
        Step::ForgetFormat => format_record::remove(operation, &volume(operation, now)?.id),
        Step::RemoveMountPoint => mount::delete(operation, &request.path),
        Step::RemoveLink => os
            .remove_directory(&at, operation.deadline())
            .map_err(path_error),
        Step::CreateDirectory => os
            .create_directories(&at, operation.deadline())
            .map(drop)
            .map_err(path_error),
        Step::Mount => mount::set(operation, &volume(operation, now)?.id, &request.path),
        Step::Wait(waiting_for) => steps::wait(operation, disk, waiting_for),
    }
}

/// Refuses content that is not ours before the first change to a disk, not only before the
/// one that would destroy it. A disk can be read while it is offline or read-only; the
/// volume of one that is offline cannot.
fn check_content(operation: &Operation<'_>, now: &Observed) -> Result<()> {
    let disk = &now.disk;
    match &now.volume {
        _ if disk.style == PartitionStyle::Raw => {
            content::check_empty(operation, &disk.path, disk.size, &disk.name())
        }
        Some(volume) if !volume.is_formatted() => {
            check_formattable(operation, &placed(operation, now)?)
        }
        _ => Ok(()),
    }
}

fn placed(operation: &Operation<'_>, now: &Observed) -> Result<Placed> {
    Ok(Placed {
        disk: now.disk.clone(),
        partition: partition(operation, now)?.clone(),
        volume: volume(operation, now)?.clone(),
    })
}

fn partition<'a>(operation: &Operation<'_>, now: &'a Observed) -> Result<&'a PartitionInfo> {
    one_data_partition(&now.disk, &now.partitions)
        .ok_or_else(|| unplanned(operation, now, "data partition"))
}

fn volume<'a>(operation: &Operation<'_>, now: &'a Observed) -> Result<&'a VolumeInfo> {
    now.volume
        .as_ref()
        .ok_or_else(|| unplanned(operation, now, "volume"))
}

/// The plan has a step for what was not observed.
fn unplanned(operation: &Operation<'_>, now: &Observed, missing: &str) -> Error {
    let detail = format!("a step was planned for its {missing}, and none was observed");
    operation.error(ErrorKind::Internal, now.disk.name(), detail)
}
