//! A disk whose stage is refused is left as it was found: its bytes, whether it and its
//! partition are online (C05), and its read-only flag (C06).

use csi_proxy::ErrorKind::{
    FailedPrecondition, Internal, InvalidArgument, NotFound, PermissionDenied,
};
use csi_proxy::os::{At, Bytes, WriteFile};
use csi_proxy::staging::{StageRequest, Staged};
use csi_proxy::volume::{FileSystem, FormatOptions};
use csi_proxy::{Error, Result};
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};
use csi_proxy_sim::{Fault, SimNode};

use crate::{
    GIB, MIB, NEVER, ONE, STAGING, assert_error, assert_refused, assert_unchanged, host, node,
    path, request, soon, volume_of,
};

/// A disk as it was made, offline, read-only, and both.
fn in_every_state(disk: &SimDisk) -> [SimDisk; 5] {
    let disk = || disk.clone();
    [
        disk(),
        disk().read_only(),
        disk().offline(),
        disk().offline().slow_online(2),
        disk().offline().read_only(),
    ]
}

fn with_volume(content: Content) -> SimDisk {
    SimDisk::gpt(GIB).partition(SimPartition::of(content))
}

#[test]
fn c08_content_that_is_not_ours() {
    for (disk, part) in [
        (with_volume(Content::Ext4), "ext2, ext3 or ext4"),
        (with_volume(Content::DamagedNtfs), "NTFS boot sector"),
        (with_volume(Content::Bitlocker), "BitLocker"),
        (with_volume(Content::Unknown), "no known kind"),
        (
            SimDisk::raw(GIB).content(Content::Ext4),
            "ext2, ext3 or ext4",
        ),
    ] {
        for disk in in_every_state(&disk) {
            let node = node(disk);
            assert_refused(&node, &[part], |host| {
                host.staging().stage(&request(), soon(&node))
            });
        }
    }
}

#[test]
fn c08_content_that_is_not_ours_on_a_partition_that_is_offline() {
    for disk_offline in [false, true] {
        let partition = SimPartition {
            offline: true,
            ..SimPartition::of(Content::Ext4)
        };
        let disk = SimDisk {
            offline: disk_offline,
            ..SimDisk::gpt(GIB).partition(partition)
        };
        let node = node(disk.read_only());
        assert_refused(&node, &["ext2, ext3 or ext4"], |host| {
            host.staging().stage(&request(), soon(&node))
        });
        assert_eq!(node.counts().of("MSFT_Partition.Online"), 1);
    }
}

/// What a partition leaves that was deleted.
#[test]
fn c08_content_that_is_not_ours_where_the_partition_would_be_created() {
    for disk in in_every_state(&SimDisk::gpt(GIB)) {
        for place in [16 * MIB + 1080, GIB - 2 * MIB] {
            let node = node(disk.clone());
            node.change(|state| {
                let (_, disk) = state.storage.disk_by_number(1).unwrap();
                let medium = disk.medium;
                let medium = state.storage.media.get_mut(&medium).unwrap();
                medium.bytes.write(place, &[0x53, 0xef]);
            });
            let part = format!("at byte {place}");
            assert_refused(&node, &["not empty", &part], |host| {
                host.staging().stage(&request(), soon(&node))
            });
        }
    }
}

#[test]
fn a_read_only_stage_of_a_disk_without_a_file_system() {
    let request = StageRequest {
        read_only: true,
        ..request()
    };
    for disk in [
        SimDisk::raw(GIB),
        SimDisk::gpt(GIB),
        with_volume(Content::Empty),
        with_volume(Content::Ext4),
    ] {
        for disk in in_every_state(&disk) {
            let node = node(disk);
            assert_refused(&node, &["a read-only stage makes none"], |host| {
                host.staging().stage(&request, soon(&node))
            });
        }
    }
}

#[test]
fn a_volume_with_another_file_system_than_is_asked_for() {
    let request = StageRequest {
        file_system: Some(FileSystem::Refs),
        ..request()
    };
    for disk in in_every_state(&SimDisk::ntfs(GIB)) {
        let node = node(disk);
        assert_refused(&node, &["NTFS", "ReFS is asked for"], |host| {
            host.staging().stage(&request, soon(&node))
        });
    }
}

#[test]
fn a_disk_that_is_too_small_for_refs() {
    let mut request = request();
    request.format.file_system = FileSystem::Refs;
    let small = 2 * GIB - MIB;
    let volume = SimPartition::of(Content::Empty).size(small);
    for (disk, has) in [
        // Less by what the partition table and the reserved partition take.
        (SimDisk::raw(2 * GIB), 2 * GIB - 32 * MIB),
        (SimDisk::gpt(2 * GIB), 2 * GIB - 17 * MIB),
        (SimDisk::gpt(3 * GIB).partition(volume), small),
    ] {
        for disk in in_every_state(&disk) {
            let node = node(disk);
            let (has, needed) = (format!("it has {has} bytes"), (2 * GIB).to_string());
            assert_refused(&node, &[&has, &needed, "ReFS"], |host| {
                host.staging().stage(&request, soon(&node))
            });
        }
    }
    let node = node(SimDisk::raw(2 * GIB + 32 * MIB));
    host(&node).staging().stage(&request, soon(&node)).unwrap();
}

#[test]
fn a_volume_that_is_too_small_for_refs_is_not_formatted() {
    let node = node(with_volume(Content::Empty));
    let volume = volume_of(&node, ONE);
    let options = FormatOptions {
        file_system: FileSystem::Refs,
        ..FormatOptions::default()
    };
    let needed = (2 * GIB).to_string();
    assert_refused(&node, &[volume.guid(), &needed, "ReFS"], |host| {
        host.volume().format(&volume, &options, soon(&node))
    });
}

#[test]
fn an_allocation_unit_that_is_too_small_for_the_disk() {
    let mut request = request();
    request.format.allocation_unit = Some(512);
    for disk in in_every_state(&SimDisk::raw(3 << 40)) {
        let node = node(disk);
        let before = node.snapshot();
        let result = host(&node).staging().stage(&request, soon(&node));
        assert_error(result, InvalidArgument, &["512", "larger"]);
        assert_unchanged(&node, before);
    }
}

#[test]
fn a_host_without_a_state_directory() {
    for disk in [
        SimDisk::raw(GIB),
        SimDisk::gpt(GIB),
        with_volume(Content::Empty),
    ] {
        for disk in in_every_state(&disk) {
            let node = node(disk);
            let before = node.snapshot();
            let host = node.process().host();
            let result = host.staging().stage(&request(), soon(&node));
            assert_error(result, FailedPrecondition, &["state directory"]);
            assert_unchanged(&node, before);
        }
    }
}

#[test]
fn c06_a_flag_that_comes_back_on_a_disk_that_was_offline() {
    for disk in [SimDisk::raw(GIB), SimDisk::ntfs(GIB)] {
        let node = node(disk.write_protected().offline());
        assert_refused(&node, &["came back"], |host| {
            host.staging().stage(&request(), soon(&node))
        });
    }
}

fn stage(node: &SimNode) -> Result<Staged, Error> {
    host(node).staging().stage(&request(), soon(node))
}

#[test]
fn what_cannot_be_taken_back_is_told_with_the_refusal() {
    for (method, part) in [
        ("MSFT_Disk.Offline", "MSFT_Disk.Offline answered 4"),
        (
            "MSFT_Disk.SetAttributes",
            "MSFT_Disk.SetAttributes answered 4",
        ),
    ] {
        let node = node(with_volume(Content::Ext4).offline().read_only());
        // The flag of this disk is not cleared before its volume has been looked at.
        let times = u64::from(method == "MSFT_Disk.Offline");
        node.inject(Fault::on(method).returns(4));
        let error = assert_error(stage(&node), FailedPrecondition, &["ext2, ext3 or ext4"]);
        assert_eq!(node.counts().of(method), times);
        assert_eq!(error.to_string().contains(part), times > 0, "{error}");
    }
}

#[test]
fn a_disk_whose_stage_may_go_on_stays_online() {
    let node = node(SimDisk::ntfs(GIB).offline().read_only());
    node.inject(Fault::on("set_mount_point").win32(23));
    assert_error(stage(&node), Internal, &[STAGING]);
    let disk = host(&node).disk().info(ONE, NEVER).unwrap();
    assert!(!disk.offline && !disk.read_only);
    stage(&node).unwrap();
    assert_eq!(node.counts().of("MSFT_Disk.Online"), 1);
}

#[test]
fn c05_c06_a_staging_path_that_windows_refuses() {
    let node = node(SimDisk::ntfs(GIB).offline().read_only());
    node.inject(Fault::on("set_mount_point").win32(5));
    assert_error(stage(&node), PermissionDenied, &[STAGING]);
    let disk = host(&node).disk().info(ONE, NEVER).unwrap();
    assert!(disk.offline && disk.read_only);
    stage(&node).unwrap();
}

#[test]
fn a_staging_path_that_cannot_be_made() {
    for disk in in_every_state(&SimDisk::raw(GIB)) {
        let node = node(disk);
        write_file(&node, r"C:\file");
        let before = node.snapshot();
        let stage = |text: &str| {
            let request = StageRequest {
                path: path(text),
                ..request()
            };
            host(&node).staging().stage(&request, soon(&node))
        };
        for below_a_file in [r"C:\file\staging", r"C:\file\a\b\staging"] {
            let parts = [r"C:\file, where it would be, is no directory", below_a_file];
            assert_error(stage(below_a_file), FailedPrecondition, &parts);
        }
        for on_no_drive in [r"X:\staging", r"X:\a\b\staging"] {
            assert_error(stage(on_no_drive), NotFound, &[r"X:\", "Win32 error 3"]);
        }
        assert_unchanged(&node, before);
    }
}

fn write_file(node: &SimNode, text: &str) {
    let request = WriteFile {
        at: At::path(&path(text)),
        contents: Bytes(b"in the way".to_vec()),
    };
    host(node).os().write_file(&request, NEVER).unwrap();
}
