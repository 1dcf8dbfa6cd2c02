//! One operation at a time changes a disk, over all processes of the node.

use std::time::Duration;

use csi_proxy::ErrorKind::{Aborted, DeadlineExceeded};
use csi_proxy::clock::Clock;
use csi_proxy::disk::DiskState;
use csi_proxy::os::LockName;
use csi_proxy::volume::{FormatOptions, NewSize};
use csi_proxy_sim::Fault;
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};

use crate::{GIB, NEVER, ONE, assert_error, host, node, path, request, soon, volume_of};

#[test]
fn whatever_changes_a_disk_takes_its_lock() {
    let node = node(
        SimDisk::gpt(GIB)
            .partition(SimPartition::of(Content::Empty))
            .read_only(),
    );
    let volume = volume_of(&node, ONE);
    let other = node.process();
    let name = LockName("disk:one".to_owned());
    other.os().try_lock(&name, NEVER).unwrap().unwrap();
    let before = node.snapshot();
    let host = host(&node);
    let parts = ["another operation"];
    let deadline = soon(&node);
    assert_error(host.disk().partition(ONE, deadline), Aborted, &parts);
    let offline = host.disk().set_state(ONE, DiskState::Offline, deadline);
    assert_error(offline, Aborted, &parts);
    assert_error(host.disk().clear_read_only(ONE, deadline), Aborted, &parts);
    let format = host
        .volume()
        .format(&volume, &FormatOptions::default(), deadline);
    assert_error(format, Aborted, &parts);
    let resize = host.volume().resize(&volume, NewSize::Largest, deadline);
    assert_error(resize, Aborted, &parts);
    assert_error(host.staging().stage(&request(), deadline), Aborted, &parts);
    crate::assert_unchanged(&node, before);
    // Windows gives the lock back with its process.
    other.crash();
    host.staging().stage(&request(), deadline).unwrap();
    assert_eq!(
        node.snapshot().locks,
        csi_proxy_sim::SimNode::builder().build().snapshot().locks
    );
}

#[test]
fn unstage_takes_the_disks_lock() {
    let node = node(SimDisk::ntfs(GIB));
    let host = host(&node);
    host.staging().stage(&request(), soon(&node)).unwrap();
    let other = node.process();
    let name = LockName("disk:one".to_owned());
    other.os().try_lock(&name, NEVER).unwrap().unwrap();
    let result = host.staging().unstage(&request().path, None, soon(&node));
    assert_error(result, Aborted, &["another operation"]);
    other.crash();
    host.staging()
        .unstage(&request().path, None, soon(&node))
        .unwrap();
}

#[test]
fn a_lock_is_given_back_after_success_and_after_failure() {
    let node = node(SimDisk::raw(GIB));
    let host = host(&node);
    node.inject(Fault::on("MSFT_Disk.Initialize").returns(40001));
    host.disk().partition(ONE, soon(&node)).unwrap_err();
    host.disk().partition(ONE, soon(&node)).unwrap();
    // A failure of giving it back is made good at the next attempt.
    node.inject(Fault::on("unlock").win32(6));
    host.disk().partition(ONE, soon(&node)).unwrap();
    host.disk().partition(ONE, soon(&node)).unwrap();
}

#[test]
fn a_call_that_was_abandoned_keeps_the_lock_until_it_has_ended() {
    let node = node(SimDisk::ntfs(GIB).offline());
    let host = host(&node);
    node.inject(Fault::on("MSFT_Disk.Online").stalls(Duration::from_secs(100)));
    let deadline = node.clock().deadline_in(Duration::from_secs(10));
    let result = host.staging().stage(&request(), deadline);
    assert_error(result, DeadlineExceeded, &["disk 1"]);
    let retry = || host.staging().stage(&request(), soon(&node));
    assert_error(retry(), Aborted, &["another operation"]);
    let elsewhere = crate::host(&node);
    assert_error(
        elsewhere.staging().stage(&request(), soon(&node)),
        Aborted,
        &[],
    );
    node.clock().advance(Duration::from_secs(100));
    retry().unwrap();
    assert_eq!(node.counts().of("MSFT_Disk.Online"), 1);
}

#[test]
fn two_processes_stage_one_fresh_disk_at_once_and_it_is_formatted_once() {
    for _ in 0..20 {
        let node = node(SimDisk::raw(GIB));
        let hosts = [host(&node), host(&node)];
        std::thread::scope(|scope| {
            for host in &hosts {
                scope.spawn(|| {
                    loop {
                        match host.staging().stage(&request(), NEVER) {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error.kind(), Aborted, "{error}"),
                        }
                    }
                });
            }
        });
        for method in [
            "MSFT_Disk.Initialize",
            "MSFT_Disk.CreatePartition",
            "MSFT_Volume.Format",
        ] {
            assert_eq!(node.counts().of(method), 1, "{method}");
        }
        let staged = hosts[0]
            .volume()
            .id_from_target_path(&path(crate::STAGING), NEVER);
        assert_eq!(staged.unwrap(), volume_of(&node, ONE));
    }
}
