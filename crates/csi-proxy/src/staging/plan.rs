//! What a stage does next. Pure.

use std::collections::BTreeSet;

use super::observe::{AtPath, Observed, one_data_partition};
use super::{StageRequest, Staged};
use crate::disk::info::PartitionInfo;
use crate::disk::layout::{self, Layout, layout};
use crate::ids::VolumeId;
use crate::volume::FileSystem;
use crate::volume::info::VolumeInfo;

/// `MSFT_Disk.OfflineReason`: the same disk over another path, which multipath I/O has not
/// claimed. Bringing it online would let Windows write to one disk over two.
const REDUNDANT_PATH: u32 = 2;

/// One step; each is one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Online,
    ClearReadOnly,
    /// Has Windows look at the disk anew.
    Refresh,
    Initialize,
    CreatePartition,
    PartitionOnline,
    Format,
    /// Removes the record of a format that has ended.
    ForgetFormat,
    /// Removes a mount point whose volume is gone; its directory stays.
    RemoveMountPoint,
    /// Removes a link that leads to nothing.
    RemoveLink,
    CreateDirectory,
    Mount,
    /// Waits a little for what was asked for.
    Wait(&'static str),
}

impl Step {
    /// Whether it changes the disk on the way to a format, if one is needed.
    pub(super) fn leads_to_a_format(self) -> bool {
        matches!(
            self,
            Self::Online
                | Self::ClearReadOnly
                | Self::Initialize
                | Self::CreatePartition
                | Self::PartitionOnline
        )
    }

    /// Whether it writes on the disk.
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Self::Initialize | Self::CreatePartition | Self::Format
        )
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    /// These steps; then it is observed anew.
    Advance(Vec<Step>),
    /// These steps, after which the volume is staged.
    Finish(Vec<Step>, Staged),
}

/// The next steps. `asked` are the steps that this call has done already.
///
/// # Errors
/// Why the disk or the path is left alone.
pub(super) fn plan(
    now: &Observed,
    request: &StageRequest,
    asked: &BTreeSet<Step>,
) -> Result<Plan, String> {
    check_path(now, request)?;
    if now.disk.boot || now.disk.system {
        return Err("it is a boot or system disk of the node".to_owned());
    }
    let layout = match now.layout_is_known() {
        true => Some(layout(&now.disk, &now.partitions)?),
        false => None,
    };
    let once = |step: Step, waiting_for| match asked.contains(&step) {
        true => Plan::Advance(vec![Step::Wait(waiting_for)]),
        false => Plan::Advance(vec![step]),
    };
    if request.read_only && matches!(layout, Some(Layout::Raw | Layout::NoPartition)) {
        return Err("it holds no volume, and a read-only stage makes none".to_owned());
    }
    let layout = match (now.disk.offline, layout) {
        (false, Some(layout)) => layout,
        _ if now.disk.offline_reason == Some(REDUNDANT_PATH) => {
            return Err("it is offline because it is a redundant path to another disk".to_owned());
        }
        _ => return Ok(once(Step::Online, "the disk's coming online")),
    };
    if now.disk.read_only && !request.read_only {
        return match asked.contains(&Step::ClearReadOnly) {
            true => Err("its read-only flag came back after it was cleared".to_owned()),
            false => Ok(Plan::Advance(vec![Step::ClearReadOnly, Step::Refresh])),
        };
    }
    match layout {
        Layout::Raw => Ok(once(Step::Initialize, "the partition table")),
        Layout::NoPartition => Ok(once(Step::CreatePartition, "the new partition")),
        Layout::Data(data) => {
            let partition = layout::only(&data)?;
            match (partition.offline, &now.volume) {
                (true, _) => Ok(once(Step::PartitionOnline, "the partition's coming online")),
                (false, None) => Ok(once(Step::Refresh, "the partition's volume")),
                (false, Some(volume)) => mount(now, request, partition, volume),
            }
        }
    }
}

/// From a volume that is there to the end.
fn mount(
    now: &Observed,
    request: &StageRequest,
    partition: &PartitionInfo,
    volume: &VolumeInfo,
) -> Result<Plan, String> {
    if partition.read_only && !request.read_only {
        return Err(format!("its partition {} is read-only", partition.number));
    }
    if let Some(wanted) = request.file_system.map(FileSystem::as_str)
        && volume.is_formatted()
        && !volume.file_system.eq_ignore_ascii_case(wanted)
    {
        let present = &volume.file_system;
        return Err(format!(
            "its volume has the file system {present}, and {wanted} is asked for"
        ));
    }
    let mut steps = Vec::new();
    match (volume.is_formatted(), request.read_only) {
        (true, _) => {}
        (false, true) => {
            return Err(
                "Windows knows no file system on its volume, and a read-only stage makes none"
                    .to_owned(),
            );
        }
        (false, false) => steps.push(Step::Format),
    }
    if volume.is_formatted() {
        steps.push(Step::ForgetFormat);
    }
    steps.extend(match now.path {
        AtPath::Missing => [Step::CreateDirectory, Step::Mount].as_slice(),
        AtPath::EmptyDirectory => &[Step::Mount],
        AtPath::DeadMountPoint(_) => &[Step::RemoveMountPoint, Step::Mount],
        AtPath::DeadLink => &[Step::RemoveLink, Step::CreateDirectory, Step::Mount],
        // `check_path` has let pass the right volume only.
        AtPath::Mounted(_) | AtPath::LinkElsewhere(_) | AtPath::Occupied(_) => &[],
    });
    let staged = Staged {
        disk: now.disk.number,
        volume: volume.id.clone(),
        size: partition.size,
    };
    Ok(Plan::Finish(steps, staged))
}

/// Refuses a path that something else takes.
fn check_path(now: &Observed, request: &StageRequest) -> Result<(), String> {
    let path = &request.path;
    match &now.path {
        AtPath::Occupied(what) => Err(format!("the staging path {path} is {what}")),
        AtPath::LinkElsewhere(what) => Err(format!("the staging path {path} is a link {what}")),
        AtPath::Mounted(other) if !may_be_ours(now, other) => Err(format!(
            "at the staging path {path} the volume {other} is mounted"
        )),
        _ => Ok(()),
    }
}

/// Whether a volume that is there is the disk's, or can turn out to be once Windows shows
/// which volume its data partition has.
fn may_be_ours(now: &Observed, mounted: &VolumeId) -> bool {
    match &now.volume {
        Some(own) => own.id == *mounted,
        None => !now.disk.offline && one_data_partition(&now.disk, &now.partitions).is_some(),
    }
}

#[cfg(test)]
mod tests;
