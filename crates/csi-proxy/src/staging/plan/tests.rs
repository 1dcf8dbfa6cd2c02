//! The plan of a stage, case by case.

use super::*;
use crate::cim::ObjectPath;
use crate::disk::fixtures::{data, disk, linux, other, reserved};
use crate::disk::info::{DiskInfo, PartitionKind, PartitionStyle};
use crate::volume::FormatOptions;
use crate::{HostPath, VolumeId};

fn volume_id(last: char) -> VolumeId {
    VolumeId::new(&format!(
        r"\\?\Volume{{6e6fb07c-1a2b-4c3d-8e9f-00000000000{last}}}\"
    ))
    .unwrap()
}

fn volume(file_system_type: u32) -> VolumeInfo {
    VolumeInfo {
        id: volume_id('1'),
        file_system_type,
        file_system: String::new(),
        object: ObjectPath("volume".to_owned()),
    }
}

fn request() -> StageRequest {
    StageRequest {
        disk: disk().unique_id,
        path: HostPath::from_kubelet(r"C:\staging\a").unwrap(),
        format: FormatOptions::default(),
        file_system: None,
        read_only: false,
    }
}

fn for_reading() -> StageRequest {
    StageRequest {
        read_only: true,
        ..request()
    }
}

fn gpt() -> DiskInfo {
    DiskInfo {
        style: PartitionStyle::Gpt,
        ..disk()
    }
}

/// A GPT disk with one NTFS volume, and nothing at the path.
fn formatted() -> Observed {
    Observed {
        disk: gpt(),
        partitions: vec![reserved(1), data(2)],
        volume: Some(volume(14)),
        path: AtPath::Missing,
    }
}

fn raw() -> Observed {
    Observed {
        disk: disk(),
        partitions: Vec::new(),
        volume: None,
        path: AtPath::Missing,
    }
}

fn planned(now: &Observed, request: &StageRequest, asked: &[Step]) -> Plan {
    plan(now, request, &asked.iter().copied().collect()).unwrap()
}

fn refused(now: &Observed, request: &StageRequest, asked: &[Step]) -> String {
    plan(now, request, &asked.iter().copied().collect()).unwrap_err()
}

/// The steps of a plan, and whether it ends with them.
fn steps(now: &Observed, request: &StageRequest, asked: &[Step]) -> (Vec<Step>, bool) {
    match planned(now, request, asked) {
        Plan::Advance(steps) => (steps, false),
        Plan::Finish(steps, _) => (steps, true),
    }
}

#[test]
fn a_fresh_disk_is_brought_to_its_mount_point_in_four_plans() {
    let request = request();
    let mut now = raw();
    assert_eq!(steps(&now, &request, &[]), (vec![Step::Initialize], false));
    now.disk = gpt();
    now.partitions = vec![reserved(1)];
    let asked = [Step::Initialize];
    assert_eq!(
        steps(&now, &request, &asked),
        (vec![Step::CreatePartition], false)
    );
    now.partitions.push(data(2));
    now.volume = Some(volume(0));
    let end = vec![Step::Format, Step::CreateDirectory, Step::Mount];
    assert_eq!(steps(&now, &request, &asked), (end, true));
}

#[test]
fn a_formatted_volume_is_mounted_without_another_look() {
    let Plan::Finish(steps, staged) = planned(&formatted(), &request(), &[]) else {
        panic!("it does not end");
    };
    assert_eq!(
        steps,
        [Step::ForgetFormat, Step::CreateDirectory, Step::Mount]
    );
    assert_eq!(staged.volume, volume_id('1'));
    assert_eq!(staged.size, data(2).size);
}

#[test]
fn c11_what_stands_at_the_path_decides_the_end() {
    for (path, end) in [
        (AtPath::Missing, vec![Step::CreateDirectory, Step::Mount]),
        (AtPath::EmptyDirectory, vec![Step::Mount]),
        (
            AtPath::DeadMountPoint(volume_id('2')),
            vec![Step::RemoveMountPoint, Step::Mount],
        ),
        (
            AtPath::DeadLink,
            vec![Step::RemoveLink, Step::CreateDirectory, Step::Mount],
        ),
    ] {
        let now = Observed {
            path,
            ..formatted()
        };
        let (steps, ends) = steps(&now, &request(), &[]);
        assert_eq!(steps[0], Step::ForgetFormat);
        assert_eq!(steps[1..], end);
        assert!(ends);
    }
    let now = Observed {
        path: AtPath::Mounted(volume_id('1')),
        ..formatted()
    };
    assert_eq!(
        steps(&now, &request(), &[]),
        (vec![Step::ForgetFormat], true)
    );
}

#[test]
fn c11_a_path_that_something_else_takes_is_refused_before_the_disk_is_touched() {
    let offline = DiskInfo {
        offline: true,
        ..gpt()
    };
    for (path, part) in [
        (AtPath::Occupied("a file".to_owned()), "is a file"),
        (
            AtPath::LinkElsewhere(r"to C:\x".to_owned()),
            r"a link to C:\x",
        ),
        (AtPath::Mounted(volume_id('2')), "000000000002"),
    ] {
        for (disk, partitions, volume) in [
            (gpt(), vec![reserved(1), data(2)], Some(volume(14))),
            (offline.clone(), vec![reserved(1), data(2)], None),
            (disk(), vec![], None),
        ] {
            let now = Observed {
                disk,
                partitions,
                volume,
                path: path.clone(),
            };
            let reason = refused(&now, &request(), &[]);
            assert!(reason.contains(part), "{reason}");
        }
    }
}

#[test]
fn c05_an_offline_disk_is_brought_online_once_and_then_waited_for() {
    let now = Observed {
        disk: DiskInfo {
            offline: true,
            offline_reason: Some(1),
            ..gpt()
        },
        volume: None,
        ..formatted()
    };
    assert_eq!(steps(&now, &request(), &[]), (vec![Step::Online], false));
    assert_eq!(
        steps(&now, &for_reading(), &[]),
        (vec![Step::Online], false)
    );
    let (waiting, ends) = steps(&now, &request(), &[Step::Online]);
    assert!(matches!(waiting[..], [Step::Wait(_)]) && !ends);
    let without_volume = Observed { disk: gpt(), ..now };
    let online = [Step::Online];
    assert_eq!(
        steps(&without_volume, &request(), &online),
        (vec![Step::Refresh], false)
    );
    let (waiting, _) = steps(&without_volume, &request(), &[Step::Online, Step::Refresh]);
    assert!(matches!(waiting[..], [Step::Wait(_)]));
}

/// Windows may not show the partitions of a disk that is offline.
#[test]
fn c05_an_offline_disk_without_partitions_is_judged_once_it_is_online() {
    for style in [PartitionStyle::Gpt, PartitionStyle::Mbr] {
        let now = |offline, partitions| Observed {
            disk: DiskInfo {
                style,
                offline,
                ..disk()
            },
            partitions,
            ..raw()
        };
        assert!(!now(true, vec![]).layout_is_known());
        for request in [request(), for_reading()] {
            let online = (vec![Step::Online], false);
            assert_eq!(steps(&now(true, vec![]), &request, &[]), online);
            let foreign = now(true, vec![linux(1)]);
            assert!(refused(&foreign, &request, &[]).contains("no data partition"));
        }
        let refused = refused(&now(false, vec![]), &for_reading(), &[Step::Online]);
        assert!(refused.contains("holds no"), "{refused}");
    }
}

#[test]
fn a_redundant_path_is_never_brought_online() {
    let now = Observed {
        disk: DiskInfo {
            offline: true,
            offline_reason: Some(2),
            ..gpt()
        },
        ..formatted()
    };
    assert!(refused(&now, &request(), &[]).contains("redundant"));
}

#[test]
fn c06_the_read_only_flag_is_cleared_once_for_a_writable_stage_only() {
    let now = Observed {
        disk: DiskInfo {
            read_only: true,
            ..gpt()
        },
        ..formatted()
    };
    let clear = vec![Step::ClearReadOnly, Step::Refresh];
    assert_eq!(steps(&now, &request(), &[]), (clear, false));
    let reason = refused(&now, &request(), &[Step::ClearReadOnly, Step::Refresh]);
    assert!(reason.contains("came back"), "{reason}");
    let (steps, ends) = steps(&now, &for_reading(), &[]);
    assert!(ends && !steps.contains(&Step::ClearReadOnly));
}

#[test]
fn a_read_only_stage_makes_nothing() {
    let empty = Observed {
        partitions: vec![reserved(1)],
        volume: None,
        ..formatted()
    };
    let unformatted = Observed {
        volume: Some(volume(0)),
        ..formatted()
    };
    for now in [raw(), empty, unformatted] {
        let reason = refused(&now, &for_reading(), &[]);
        assert!(reason.contains("a read-only stage makes none"), "{reason}");
    }
}

#[test]
fn c08_what_is_not_ours_is_refused_with_the_reason() {
    let mbr = DiskInfo {
        style: PartitionStyle::Mbr,
        ..disk()
    };
    let dynamic = PartitionInfo {
        kind: PartitionKind::Dynamic,
        ..data(2)
    };
    let read_only = PartitionInfo {
        read_only: true,
        ..data(2)
    };
    let boot = DiskInfo {
        boot: true,
        ..gpt()
    };
    for (disk, partitions, part) in [
        (mbr.clone(), vec![linux(1)], "0x83 (Linux)"),
        (mbr.clone(), vec![], "MBR and it holds no partition"),
        (mbr, vec![data(1), data(2)], "2 data partitions"),
        (gpt(), vec![dynamic], "dynamic disk"),
        (gpt(), vec![other(1)], "EFI system"),
        (gpt(), vec![data(1), data(2)], "(1, 2)"),
        (gpt(), vec![read_only], "partition 2 is read-only"),
        (boot, vec![data(1)], "boot or system"),
    ] {
        let now = Observed {
            disk,
            partitions,
            ..formatted()
        };
        let reason = refused(&now, &request(), &[]);
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn an_mbr_disk_with_one_data_partition_is_used() {
    let now = Observed {
        disk: DiskInfo {
            style: PartitionStyle::Mbr,
            ..disk()
        },
        partitions: vec![data(1)],
        ..formatted()
    };
    assert!(steps(&now, &request(), &[]).1);
}

#[test]
fn a_volume_must_have_the_file_system_that_is_asked_for() {
    let has = |name: &str, number| Observed {
        volume: Some(VolumeInfo {
            file_system: name.to_owned(),
            ..volume(number)
        }),
        ..formatted()
    };
    let wants = |file_system| StageRequest {
        file_system: Some(file_system),
        ..request()
    };
    let planned = |now: &Observed, request: &StageRequest| plan(now, request, &BTreeSet::new());
    let (ntfs, refs, fat) = (has("NTFS", 14), has("ReFS", 15), has("FAT32", 6));
    assert!(planned(&ntfs, &wants(FileSystem::Ntfs)).is_ok());
    assert!(planned(&refs, &wants(FileSystem::Refs)).is_ok());
    for (now, wanted) in [
        (&ntfs, FileSystem::Refs),
        (&refs, FileSystem::Ntfs),
        (&fat, FileSystem::Ntfs),
    ] {
        // Whoever asks for none takes what is there.
        assert!(planned(now, &request()).is_ok());
        let reason = planned(now, &wants(wanted)).unwrap_err();
        assert!(reason.contains(wanted.as_str()), "{reason}");
    }
    // An empty volume gets it.
    let empty = Observed {
        volume: Some(volume(0)),
        ..formatted()
    };
    assert!(planned(&empty, &wants(FileSystem::Refs)).is_ok());
}
