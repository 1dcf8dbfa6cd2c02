//! The steps of a stage, one port call each.

use super::StageRequest;
use super::observe::{Observed, one_data_partition};
use super::plan::Step;
use crate::disk::info::PartitionInfo;
use crate::disk::steps;
use crate::error::{Error, ErrorKind, Result};
use crate::format_record;
use crate::operation::Operation;
use crate::os::At;
use crate::volume::info::{Placed, VolumeInfo};
use crate::volume::{format_empty, mount};

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
        Step::Online => steps::online(operation, disk),
        Step::ClearReadOnly => steps::clear_read_only(operation, disk),
        Step::Refresh => steps::refresh(operation, disk),
        Step::Initialize => steps::initialize(operation, disk),
        Step::CreatePartition => steps::create_partition(operation, disk),
        Step::PartitionOnline => steps::partition_online(operation, partition(operation, now)?),
        Step::Format => {
            let placed = Placed {
                disk: disk.clone(),
                partition: partition(operation, now)?.clone(),
                volume: volume(operation, now)?.clone(),
            };
            format_empty(operation, &placed, &request.format)
        }
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
