//! Partitioning a disk: GPT with one data partition over all of it.

use super::info::{DiskInfo, PartitionInfo, PartitionStyle};
use super::layout::{Layout, layout};
use super::steps;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::DiskNumber;
use crate::lock::Lock;
use crate::operation::Operation;

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
enum Step<'a> {
    Initialize,
    CreatePartition,
    Online(&'a PartitionInfo),
    /// It was asked for and is not seen yet.
    Wait(&'static str),
    Done,
}

/// What this call has asked Windows for already.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    initialize: bool,
    create_partition: bool,
    online: bool,
}

pub(super) fn partition(operation: &Operation<'_>, number: DiskNumber) -> Result<()> {
    let disk = DiskInfo::by_number(operation, number)?;
    let lock = Lock::of_disk(operation, &disk.unique_id)?;
    let operation = &operation.under(&lock);
    let mut asked = Asked::default();
    loop {
        let disk = disk.again(operation)?;
        let partitions = match disk.style {
            PartitionStyle::Raw => Vec::new(),
            _ => PartitionInfo::of_disk(operation, &disk)?,
        };
        match plan(&disk, &partitions, asked)
            .map_err(|reason| refusal(operation, &disk, &reason))?
        {
            Step::Initialize => {
                steps::initialize(operation, &disk)?;
                asked.initialize = true;
            }
            Step::CreatePartition => {
                steps::create_partition(operation, &disk)?;
                asked.create_partition = true;
            }
            Step::Online(partition) => {
                steps::partition_online(operation, partition)?;
                asked.online = true;
            }
            Step::Wait(waiting_for) => steps::wait(operation, &disk, waiting_for)?,
            Step::Done => return Ok(()),
        }
    }
}

fn refusal(operation: &Operation<'_>, disk: &DiskInfo, reason: &str) -> Error {
    operation.error(ErrorKind::FailedPrecondition, disk.name(), reason)
}

/// The next step, or why the disk is left alone.
fn plan<'a>(
    disk: &DiskInfo,
    partitions: &'a [PartitionInfo],
    asked: Asked,
) -> Result<Step<'a>, String> {
    if disk.boot || disk.system {
        return Err("it is a boot or system disk of the node, which is never changed".to_owned());
    }
    let layout = layout(disk, partitions)?;
    if let Layout::Data(data) = layout {
        return Ok(match data.iter().find(|partition| partition.offline) {
            None => Step::Done,
            Some(_) if disk.offline => {
                return Err("it is offline; bring it online first".to_owned());
            }
            Some(_) if asked.online => Step::Wait("the partition's coming online"),
            Some(partition) => Step::Online(partition),
        });
    }
    if disk.offline {
        return Err("it is offline; bring it online first".to_owned());
    }
    if disk.read_only {
        return Err("it is read-only; clear its read-only flag first".to_owned());
    }
    Ok(match layout {
        Layout::Raw if asked.initialize => Step::Wait("the partition table"),
        Layout::Raw => Step::Initialize,
        _ if asked.create_partition => Step::Wait("the new partition"),
        _ => Step::CreatePartition,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{data, disk, linux, other, reserved};
    use super::*;

    fn gpt() -> DiskInfo {
        DiskInfo {
            style: PartitionStyle::Gpt,
            ..disk()
        }
    }

    fn mbr() -> DiskInfo {
        DiskInfo {
            style: PartitionStyle::Mbr,
            ..disk()
        }
    }

    fn planned(disk: &DiskInfo, partitions: &[PartitionInfo]) -> Result<String, String> {
        plan(disk, partitions, Asked::default()).map(|step| match step {
            Step::Online(partition) => format!("online {}", partition.number),
            step => format!("{step:?}").to_lowercase(),
        })
    }

    #[test]
    fn a_disk_is_partitioned_in_steps() {
        let offline = PartitionInfo {
            offline: true,
            ..data(2)
        };
        for (disk, partitions, step) in [
            (disk(), vec![], "initialize"),
            (gpt(), vec![], "createpartition"),
            (gpt(), vec![reserved(1)], "createpartition"),
            (gpt(), vec![reserved(1), offline], "online 2"),
            (gpt(), vec![reserved(1), data(2)], "done"),
            (gpt(), vec![reserved(1), data(2), data(3)], "done"),
            (gpt(), vec![other(1), data(2)], "done"),
            (mbr(), vec![data(1)], "done"),
        ] {
            assert_eq!(planned(&disk, &partitions).as_deref(), Ok(step));
        }
    }

    #[test]
    fn a_disk_that_is_not_ours_is_refused_with_the_reason() {
        let dynamic = PartitionInfo {
            kind: super::super::info::PartitionKind::Dynamic,
            ..data(2)
        };
        let offline = DiskInfo {
            offline: true,
            ..disk()
        };
        let read_only = DiskInfo {
            read_only: true,
            ..gpt()
        };
        let boot = DiskInfo {
            boot: true,
            ..gpt()
        };
        for (disk, partitions, reason) in [
            (mbr(), vec![], "MBR and it holds no partition"),
            (mbr(), vec![data(1), data(2)], "2 data partitions"),
            (mbr(), vec![linux(1)], "partition 1 of type 0x83 (Linux)"),
            (gpt(), vec![reserved(1), linux(2)], "partition 2 of type"),
            (gpt(), vec![reserved(1), dynamic], "dynamic disk"),
            (offline, vec![], "offline"),
            (read_only, vec![reserved(1)], "read-only"),
            (boot, vec![data(1)], "boot or system"),
        ] {
            let refused = planned(&disk, &partitions).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn what_was_asked_for_is_waited_for_and_not_asked_for_again() {
        let asked = Asked {
            initialize: true,
            create_partition: true,
            online: true,
        };
        let offline = PartitionInfo {
            offline: true,
            ..data(2)
        };
        for (disk, partitions) in [
            (disk(), vec![]),
            (gpt(), vec![reserved(1)]),
            (gpt(), vec![reserved(1), offline]),
        ] {
            let step = plan(&disk, &partitions, asked).unwrap();
            assert!(matches!(step, Step::Wait(_)), "{step:?}");
        }
    }
}
