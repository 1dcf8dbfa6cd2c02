//! The steps of a stage, one port call each.

use super::StageRequest;
use super::observe::{Observed, one_data_partition};
use super::plan::Step;
use crate::content;
use crate::disk::info::PartitionInfo;
use crate::disk::layout::{self, GPT_OVERHEAD, Layout, layout};
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
    if step.leads_to_a_format() && !request.read_only {
        check(operation, now, request)?;
    }
    match step {
        Step::Online => steps::online(operation, disk),
        Step::ClearReadOnly => steps::set_read_only(operation, disk, false),
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

/// Refuses what the format would refuse before the first change to a disk, not only before
/// the one that would destroy something. A disk can be read while it is offline or read-only;
/// the volume of one that is offline cannot, and what it holds is not known yet.
fn check(operation: &Operation<'_>, now: &Observed, request: &StageRequest) -> Result<()> {
    if !now.layout_is_known() {
        return Ok(());
    }
    let disk = &now.disk;
    let name = disk.name();
    let empty_range = match (layout(disk, &now.partitions), &now.volume) {
        (Ok(Layout::Raw), _) => {
            let room = disk.size.saturating_sub(GPT_OVERHEAD);
            request.format.check_size(operation, &name, room)?;
            0..disk.size
        }
        (Ok(Layout::NoPartition), _) => {
            let free = layout::free_space(disk, &now.partitions);
            let room = free.end.saturating_sub(free.start);
            request.format.check_size(operation, &name, room)?;
            free
        }
        (Ok(Layout::Data(_)), Some(volume)) if !volume.is_formatted() => {
            format_record::directory(operation, volume.name())?;
            let placed = placed(operation, now)?;
            let size = placed.partition.size;
            request.format.check_size(operation, &name, size)?;
            return check_formattable(operation, &placed);
        }
        _ => return Ok(()),
    };
    format_record::directory(operation, &name)?;
    match empty_range.is_empty() {
        false => content::check_empty(operation, &disk.path, empty_range, &name),
        // Windows says what is wrong with a disk without room for a partition.
        true => Ok(()),
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
