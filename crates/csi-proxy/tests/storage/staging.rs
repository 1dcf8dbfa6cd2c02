//! Staging and unstaging: C05, C06, C09, C11.

use std::time::Duration;

use csi_proxy::ErrorKind::{
    DeadlineExceeded, FailedPrecondition, Internal, InvalidArgument, NotFound, PermissionDenied,
};
use csi_proxy::clock::Clock;
use csi_proxy::os::Reparse;
use csi_proxy::staging::{StageRequest, Staged};
use csi_proxy::{DiskNumber, Error, VolumeId};
use csi_proxy_sim::fs::FileChange;
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};
use csi_proxy_sim::{Fault, NodeChange, SimNode};

use crate::{
    GIB, NEVER, ONE, STAGING, assert_error, assert_refused, host, node, path, request, soon,
    volume_of,
};

fn stage(node: &SimNode) -> Result<Staged, Error> {
    host(node).staging().stage(&request(), soon(node))
}

fn stage_for_reading(node: &SimNode) -> Result<Staged, Error> {
    let request = StageRequest {
        read_only: true,
        ..request()
    };
    host(node).staging().stage(&request, soon(node))
}

fn unstage(node: &SimNode, volume: Option<&VolumeId>) -> Result<(), Error> {
    host(node)
        .staging()
        .unstage(&path(STAGING), volume, soon(node))
}

fn mounted(node: &SimNode) -> VolumeId {
    host(node)
        .volume()
        .id_from_target_path(&path(STAGING), NEVER)
        .unwrap()
}

/// Whether anything stands at the staging path.
fn exists(node: &SimNode) -> bool {
    let paths = node.snapshot().paths_of(&volume_of(node, DiskNumber(0)));
    paths.iter().any(|(path, _)| path == &STAGING[2..])
}

#[test]
fn a_fresh_disk_is_staged_used_unstaged_and_staged_again() {
    let node = node(SimDisk::raw(GIB));
    let staged = stage(&node).unwrap();
    assert_eq!(staged.disk, ONE);
    assert_eq!(mounted(&node), staged.volume);
    node.change(|state| state.put_file(&format!(r"{STAGING}\kept"), b"x").unwrap());
    for _ in 0..2 {
        assert_eq!(stage(&node).unwrap(), staged);
    }
    for _ in 0..2 {
        unstage(&node, Some(&staged.volume)).unwrap();
        assert!(!exists(&node));
    }
    assert_eq!(stage(&node).unwrap(), staged);
    assert_eq!(
        node.snapshot().file(&format!(r"{STAGING}\kept")).unwrap(),
        b"x"
    );
    for (method, count) in [
        ("MSFT_Disk.Initialize", 1),
        ("MSFT_Disk.CreatePartition", 1),
        ("MSFT_Volume.Format", 1),
        ("set_mount_point", 2),
        ("delete_mount_point", 1),
    ] {
        assert_eq!(node.counts().of(method), count, "{method}");
    }
}

#[test]
fn a_disk_that_is_not_there_is_not_found() {
    let node = node(SimDisk::raw(GIB));
    let elsewhere = |disk: &str| StageRequest {
        disk: disk.to_owned(),
        ..request()
    };
    for disk in ["two", "ONE"] {
        let result = host(&node).staging().stage(&elsewhere(disk), soon(&node));
        assert_error(result, NotFound, &[disk]);
    }
    let own = host(&node)
        .disk()
        .info(DiskNumber(0), NEVER)
        .unwrap()
        .unique_id;
    assert_refused(&node, &["boot or system disk"], |host| {
        host.staging().stage(&elsewhere(&own), soon(&node))
    });
}

#[test]
fn the_root_of_a_drive_is_no_staging_path() {
    let node = node(SimDisk::ntfs(GIB));
    let root = StageRequest {
        path: path(r"D:\"),
        ..request()
    };
    let before = node.snapshot();
    let result = host(&node).staging().stage(&root, soon(&node));
    assert_error(result, InvalidArgument, &[r"D:\", "the root of a drive"]);
    let result = host(&node).staging().unstage(&root.path, None, soon(&node));
    assert_error(result, InvalidArgument, &[r"D:\", "the root of a drive"]);
    crate::assert_unchanged(&node, before);
}

#[test]
fn two_disks_with_one_unique_id_are_refused() {
    let node = node(SimDisk::ntfs(GIB));
    node.attach_disk(&SimDisk::ntfs(GIB).unique_id("one"));
    assert_refused(&node, &["2 disks match", "disk 1", "disk 2"], |host| {
        host.staging().stage(&request(), soon(&node))
    });
}

#[test]
fn c05_offline() {
    for queries in [0, 2] {
        for stage in [stage, stage_for_reading] {
            let node = node(SimDisk::ntfs(GIB).offline().slow_online(queries));
            let volume = volume_of(&node, ONE);
            assert_eq!(stage(&node).unwrap().volume, volume);
            assert_eq!(mounted(&node), volume);
            assert_eq!(node.counts().of("MSFT_Disk.Online"), 1);
        }
    }
}

#[test]
fn c05_a_disk_that_does_not_come_online_is_told_at_the_deadline() {
    let node = node(SimDisk::ntfs(GIB).offline().slow_online(1000));
    let deadline = node.clock().deadline_in(Duration::from_secs(10));
    let result = host(&node).staging().stage(&request(), deadline);
    assert_error(result, DeadlineExceeded, &["disk 1", "coming online"]);
    assert_eq!(node.counts().of("MSFT_Disk.Online"), 1);
    assert!(!exists(&node));
}

#[test]
fn c05_a_fresh_disk_that_is_offline_is_brought_online_too() {
    let node = node(SimDisk::raw(GIB).offline().slow_online(2));
    stage(&node).unwrap();
}

#[test]
fn c06_a_writable_stage_clears_the_flag_and_a_read_only_one_does_not() {
    for disk in [SimDisk::raw(GIB), SimDisk::gpt(GIB), SimDisk::ntfs(GIB)] {
        let node = node(disk.read_only());
        stage(&node).unwrap();
        assert!(!host(&node).disk().info(ONE, NEVER).unwrap().read_only);
        assert_eq!(node.counts().of("MSFT_Disk.SetAttributes"), 1);
    }
    let node = node(SimDisk::ntfs(GIB).read_only());
    stage_for_reading(&node).unwrap();
    assert!(host(&node).disk().info(ONE, NEVER).unwrap().read_only);
    assert_eq!(node.counts().of("MSFT_Disk.SetAttributes"), 0);
    unstage(&node, None).unwrap();
}

#[test]
fn c06_a_flag_that_comes_back_is_told() {
    for disk in [SimDisk::raw(GIB), SimDisk::ntfs(GIB)] {
        let node = node(disk.write_protected());
        assert_error(stage(&node), FailedPrecondition, &["came back"]);
        assert_eq!(node.counts().of("MSFT_Disk.SetAttributes"), 1);
        assert!(!exists(&node));
    }
}

#[test]
fn c06_a_flag_that_is_set_in_the_middle_is_told_with_windows_code() {
    let node = node(SimDisk::gpt(GIB));
    let set = NodeChange::SetReadOnly {
        number: 1,
        read_only: true,
    };
    node.inject(csi_proxy_sim::Fault::on("MSFT_Disk.CreatePartition").before_change(set));
    assert_error(stage(&node), FailedPrecondition, &["41002", "read-only"]);
    stage(&node).unwrap();
}

#[test]
fn an_mbr_disk_with_one_volume_is_staged() {
    let node = node(SimDisk::mbr(GIB).partition(SimPartition::of(Content::Ntfs)));
    let volume = volume_of(&node, ONE);
    assert_eq!(stage(&node).unwrap().volume, volume);
    unstage(&node, Some(&volume)).unwrap();
}

#[test]
fn several_data_partitions_are_refused() {
    let data = || SimPartition::of(Content::Ntfs).size(100 << 20);
    let node = node(SimDisk::gpt(GIB).partition(data()).partition(data()));
    assert_refused(&node, &["2 data partitions (2, 3)"], |host| {
        host.staging().stage(&request(), soon(&node))
    });
}

#[test]
fn c09_left_over_access_paths() {
    let partition = SimPartition::of(Content::Ntfs).drive_letter('E');
    let node = node(SimDisk::gpt(GIB).partition(partition));
    let volume = volume_of(&node, ONE);
    let old = StageRequest {
        path: path(r"C:\var\lib\kubelet\old"),
        ..request()
    };
    host(&node).staging().stage(&old, soon(&node)).unwrap();
    node.change(|state| state.erase(r"C:\var\lib\kubelet\old").unwrap());
    let paths = || node.process().os().mount_points_of(&volume, NEVER).unwrap();
    let before = paths();
    assert_eq!(before, [r"E:\", r"C:\var\lib\kubelet\old\"]);
    for _ in 0..50 {
        stage(&node).unwrap();
    }
    assert_eq!(paths().len(), before.len() + 1);
    for _ in 0..50 {
        unstage(&node, Some(&volume)).unwrap();
        assert_eq!(paths(), before);
        stage(&node).unwrap();
    }
    assert_eq!(paths().len(), before.len() + 1);
    assert_eq!(node.counts().of("MSFT_Partition.AddAccessPath"), 0);
}

#[test]
fn c11_stage_where_nothing_or_an_empty_directory_is() {
    for make in [false, true] {
        let node = node(SimDisk::ntfs(GIB));
        if make {
            node.change(|state| state.put_directory(STAGING).unwrap());
        }
        assert_eq!(stage(&node).unwrap().volume, mounted(&node));
    }
}

#[test]
fn c11_a_directory_with_files_is_never_deleted() {
    for file in [r"\file", r"\dir\file"] {
        let node = node(SimDisk::ntfs(GIB));
        node.change(|state| {
            state.put_directory(&format!(r"{STAGING}\dir")).unwrap();
            state.put_file(&format!("{STAGING}{file}"), b"x").unwrap();
        });
        assert_refused(&node, &[STAGING, "a directory that holds"], |host| {
            host.staging().stage(&request(), soon(&node))
        });
        let before = node.snapshot();
        unstage(&node, None).unwrap();
        crate::assert_unchanged(&node, before);
    }
}

#[test]
fn c11_a_file_is_never_deleted() {
    let node = node(SimDisk::ntfs(GIB));
    node.change(|state| {
        state
            .put_directory(r"C:\var\lib\kubelet\plugins\staging")
            .unwrap();
        state.put_file(STAGING, b"x").unwrap();
    });
    assert_refused(&node, &[STAGING, "a file"], |host| {
        host.staging().stage(&request(), soon(&node))
    });
    let before = node.snapshot();
    unstage(&node, None).unwrap();
    crate::assert_unchanged(&node, before);
}

fn link(node: &SimNode, target: &str) {
    let target = target.to_owned();
    node.change(|state| {
        state
            .put_directory(r"C:\var\lib\kubelet\plugins\staging")
            .unwrap();
        state
            .put_link(STAGING, Reparse::SymbolicLink { target })
            .unwrap();
    });
}

#[test]
fn c11_a_link_to_the_right_volume_is_staged_and_unstaged() {
    for by_name in [false, true] {
        let node = node(SimDisk::ntfs(GIB));
        let volume = volume_of(&node, ONE);
        let elsewhere = StageRequest {
            path: path(r"C:\mnt"),
            ..request()
        };
        host(&node)
            .staging()
            .stage(&elsewhere, soon(&node))
            .unwrap();
        link(&node, if by_name { volume.as_str() } else { r"C:\mnt" });
        assert_eq!(stage(&node).unwrap().volume, volume);
        unstage(&node, Some(&volume)).unwrap();
        assert!(!exists(&node));
        // Only the link is gone.
        let at = host(&node)
            .volume()
            .id_from_target_path(&elsewhere.path, NEVER);
        assert_eq!(at.unwrap(), volume);
    }
}

#[test]
fn c11_another_volume_at_the_path_is_refused() {
    let node = node(SimDisk::ntfs(GIB));
    let second = node.attach_disk(&SimDisk::ntfs(GIB).unique_id("two"));
    let (volume, other) = (volume_of(&node, ONE), volume_of(&node, second));
    let theirs = StageRequest {
        disk: "two".to_owned(),
        ..request()
    };
    host(&node).staging().stage(&theirs, soon(&node)).unwrap();
    assert_refused(&node, &[STAGING, other.guid()], |host| {
        host.staging().stage(&request(), soon(&node))
    });
    assert_refused(&node, &[STAGING, other.guid(), volume.guid()], |host| {
        host.staging()
            .unstage(&path(STAGING), Some(&volume), soon(&node))
    });
    // Nor over a link.
    let node = crate::node(SimDisk::ntfs(GIB));
    node.attach_disk(&SimDisk::ntfs(GIB).unique_id("two"));
    let theirs = StageRequest {
        path: path(r"C:\theirs"),
        ..theirs
    };
    host(&node).staging().stage(&theirs, soon(&node)).unwrap();
    link(&node, r"C:\theirs");
    let volume = volume_of(&node, ONE);
    assert_refused(&node, &[STAGING], |host| {
        host.staging().stage(&request(), soon(&node))
    });
    assert_refused(&node, &[STAGING], |host| {
        host.staging()
            .unstage(&path(STAGING), Some(&volume), soon(&node))
    });
}

#[test]
fn c11_a_link_to_no_volume_is_refused() {
    let node = node(SimDisk::ntfs(GIB));
    link(&node, r"C:\Windows");
    let volume = volume_of(&node, ONE);
    assert_refused(&node, &[STAGING, r"C:\Windows"], |host| {
        host.staging().stage(&request(), soon(&node))
    });
    assert_refused(&node, &[STAGING, r"C:\Windows"], |host| {
        host.staging()
            .unstage(&path(STAGING), Some(&volume), soon(&node))
    });
    // Without a volume that is expected there, the link goes, and only the link.
    unstage(&node, None).unwrap();
    assert!(!exists(&node));
    let paths = node.snapshot().paths_of(&volume_of(&node, DiskNumber(0)));
    assert!(paths.iter().any(|(path, _)| path == r"\Windows\System32"));
}

#[test]
fn c11_what_is_dead_is_taken_away() {
    // A link to nothing.
    let dead = node(SimDisk::ntfs(GIB));
    link(&dead, r"C:\gone");
    assert_eq!(stage(&dead).unwrap().volume, mounted(&dead));
    // A mount point whose volume is gone.
    let node = node(SimDisk::ntfs(GIB));
    let second = node.attach_disk(&SimDisk::ntfs(GIB).unique_id("two"));
    let theirs = StageRequest {
        disk: "two".to_owned(),
        ..request()
    };
    host(&node).staging().stage(&theirs, soon(&node)).unwrap();
    node.detach_disk(second).unwrap();
    assert_eq!(stage(&node).unwrap().volume, mounted(&node));
    assert_eq!(mounted(&node), volume_of(&node, ONE));
}

#[test]
fn c11_unstage_of_a_volume_that_is_gone() {
    let node = node(SimDisk::ntfs(GIB));
    let volume = stage(&node).unwrap().volume;
    node.detach_disk(ONE).unwrap();
    unstage(&node, Some(&volume)).unwrap();
    assert!(!exists(&node));
    link(&node, r"C:\gone");
    unstage(&node, Some(&volume)).unwrap();
    assert!(!exists(&node));
}

#[test]
fn c11_unstage_of_what_is_not_there_is_ok() {
    let node = node(SimDisk::ntfs(GIB));
    let volume = volume_of(&node, ONE);
    unstage(&node, None).unwrap();
    unstage(&node, Some(&volume)).unwrap();
    node.change(|state| state.put_directory(STAGING).unwrap());
    unstage(&node, Some(&volume)).unwrap();
    assert!(!exists(&node));
}

#[test]
fn c11_denied_access_is_told_and_nothing_is_changed() {
    let node = node(SimDisk::ntfs(GIB));
    node.change(|state| {
        state.put_directory(STAGING).unwrap();
        state
            .change_file(STAGING, FileChange::Denied(true))
            .unwrap();
    });
    let before = node.snapshot();
    assert_error(stage(&node), PermissionDenied, &[STAGING]);
    assert_error(unstage(&node, None), PermissionDenied, &[STAGING]);
    crate::assert_unchanged(&node, before);
}

#[test]
fn c11_a_mount_point_that_outlived_a_reboot_is_used_again() {
    let node = node(SimDisk::ntfs(GIB));
    let volume = stage(&node).unwrap().volume;
    node.reboot();
    let offline = NodeChange::SetOffline {
        number: 1,
        offline: true,
    };
    node.change(|state| offline.apply(state).unwrap());
    assert_eq!(stage(&node).unwrap().volume, volume);
    assert_eq!(node.counts().of("set_mount_point"), 1);
}

#[test]
fn a_disk_that_is_replaced_before_a_destructive_step_is_left_alone() {
    for (step, disk) in [
        ("query MSFT_Disk", SimDisk::raw(GIB)),
        ("query MSFT_Disk", SimDisk::gpt(GIB)),
        (
            "query MSFT_Volume",
            SimDisk::gpt(GIB).partition(SimPartition::of(Content::Empty)),
        ),
    ] {
        let node = node(disk.clone());
        let replace = NodeChange::ReplaceDisk {
            number: 1,
            with: Box::new(disk.unique_id("other")),
        };
        // The second query of disks, and the first of volumes, come right before the step.
        let nth = if step == "query MSFT_Disk" { 2 } else { 1 };
        node.inject(
            csi_proxy_sim::Fault::on(step)
                .nth(nth)
                .before_change(replace),
        );
        let error = stage(&node).unwrap_err();
        assert_eq!(error.kind(), NotFound, "{error}");
        for method in [
            "MSFT_Disk.Initialize",
            "MSFT_Disk.CreatePartition",
            "MSFT_Volume.Format",
        ] {
            assert_eq!(node.counts().of(method), 0, "{method}");
        }
    }
}

#[test]
fn a_partition_that_was_not_created_after_all_is_an_error() {
    let node = node(SimDisk::raw(GIB));
    node.inject(Fault::on("MSFT_Disk.CreatePartition").returns(42002));
    assert_error(stage(&node), Internal, &["42002", "was not created"]);
    stage(&node).unwrap();
}
