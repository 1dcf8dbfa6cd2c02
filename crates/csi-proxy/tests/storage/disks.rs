//! The operations on a disk.

use std::time::Duration;

use csi_proxy::DiskNumber;
use csi_proxy::ErrorKind::{Aborted, DeadlineExceeded, FailedPrecondition, NotFound};
use csi_proxy::clock::Clock;
use csi_proxy::disk::DiskState::{Offline, Online};
use csi_proxy::disk::PartitionStyle;
use csi_proxy_sim::storage::{Content, SimDisk, SimKind, SimPartition};
use csi_proxy_sim::{Fault, NodeChange};

use crate::{GIB, MIB, NEVER, ONE, assert_error, assert_refused, host, node, soon};

#[test]
fn a_disk_that_is_not_there_is_not_found() {
    let node = node(SimDisk::raw(GIB));
    let host = host(&node);
    let (disk, none) = (host.disk(), DiskNumber(7));
    assert_error(disk.stats(none, NEVER), NotFound, &["disk 7"]);
    assert_error(disk.info(none, NEVER), NotFound, &["disk 7"]);
    assert_error(disk.state(none, NEVER), NotFound, &["disk 7"]);
    assert_error(disk.set_state(none, Online, NEVER), NotFound, &["disk 7"]);
    assert_error(disk.partition(none, NEVER), NotFound, &["disk 7"]);
    assert_error(disk.clear_read_only(none, NEVER), NotFound, &["disk 7"]);
}

#[test]
fn stats_are_the_disks_bytes() {
    let node = node(SimDisk::raw(GIB + 512));
    let stats = host(&node).disk().stats(ONE, NEVER).unwrap();
    assert_eq!(stats.total_bytes, GIB + 512);
}

#[test]
fn a_raw_disk_gets_one_data_partition_without_a_drive_letter_once() {
    let node = node(SimDisk::raw(GIB));
    let host = host(&node);
    for _ in 0..3 {
        host.disk().partition(ONE, soon(&node)).unwrap();
    }
    assert_eq!(
        host.disk().info(ONE, NEVER).unwrap().style,
        PartitionStyle::Gpt
    );
    assert_eq!(node.counts().of("MSFT_Disk.Initialize"), 1);
    assert_eq!(node.counts().of("MSFT_Disk.CreatePartition"), 1);
    let storage = node.snapshot().storage;
    let (_, disk) = storage.disk_by_number(1).unwrap();
    let partitions = &storage.media[&disk.medium].partitions;
    assert_eq!(partitions.len(), 2);
    assert_eq!(partitions[1].drive_letter, None);
    assert!(partitions[1].size > GIB - 20 * MIB);
    assert_eq!(
        host.volume().list_on_disk(ONE, None, NEVER).unwrap().len(),
        1
    );
}

#[test]
fn c04_only_the_reserved_partition() {
    let node = node(SimDisk::gpt(GIB));
    let host = host(&node);
    let storage = node.snapshot().storage;
    let (_, disk) = storage.disk_by_number(1).unwrap();
    assert_eq!(storage.media[&disk.medium].partitions[0].offset, 17408);
    assert_eq!(host.volume().list_on_disk(ONE, None, NEVER).unwrap(), []);
    assert_eq!(host.volume().list_on_disk(ONE, Some(1), NEVER).unwrap(), []);
    host.disk().partition(ONE, soon(&node)).unwrap();
    let volumes = host.volume().list_on_disk(ONE, None, NEVER).unwrap();
    assert_eq!(volumes.len(), 1);
    assert_eq!(
        host.volume().list_on_disk(ONE, Some(2), NEVER).unwrap(),
        volumes
    );
    assert_error(
        host.volume().list_on_disk(ONE, Some(3), NEVER),
        NotFound,
        &["partition 3"],
    );
    assert_eq!(node.counts().of("MSFT_Disk.Initialize"), 0);
}

#[test]
fn a_partition_that_is_offline_is_brought_online() {
    let partition = SimPartition {
        offline: true,
        ..SimPartition::of(Content::Ntfs)
    };
    let node = node(SimDisk::gpt(GIB).partition(partition));
    let host = host(&node);
    assert_eq!(host.volume().list_on_disk(ONE, None, NEVER).unwrap(), []);
    host.disk().partition(ONE, soon(&node)).unwrap();
    assert_eq!(
        host.volume().list_on_disk(ONE, None, NEVER).unwrap().len(),
        1
    );
}

#[test]
fn a_disk_that_cannot_be_partitioned_is_refused_before_windows_is_asked() {
    let data = || SimPartition::of(Content::Ntfs).size(100 * MIB);
    for (disk, part) in [
        (SimDisk::raw(GIB).offline(), "offline"),
        (SimDisk::raw(GIB).read_only(), "read-only"),
        (SimDisk::gpt(GIB).read_only(), "read-only"),
        (SimDisk::mbr(GIB), "MBR and it holds no partition"),
        (
            SimDisk::mbr(GIB).partition(data()).partition(data()),
            "2 data partitions",
        ),
        (
            SimDisk::mbr(GIB).partition(data().kind(SimKind::Linux)),
            "0x83 (Linux)",
        ),
        (
            SimDisk::gpt(GIB).partition(data().kind(SimKind::Linux)),
            "(Linux)",
        ),
        (
            SimDisk::gpt(GIB).partition(data().kind(SimKind::Dynamic)),
            "dynamic disk",
        ),
        (
            SimDisk::mbr(GIB).partition(data().kind(SimKind::Dynamic)),
            "dynamic disk",
        ),
    ] {
        let node = node(disk);
        assert_refused(&node, &["disk 1", part], |host| {
            host.disk().partition(ONE, soon(&node))
        });
    }
}

#[test]
fn an_mbr_disk_with_one_data_partition_is_partitioned_already() {
    let node = node(SimDisk::mbr(GIB).partition(SimPartition::of(Content::Ntfs)));
    let before = node.snapshot();
    host(&node).disk().partition(ONE, soon(&node)).unwrap();
    assert!(node.snapshot() == before);
}

#[test]
fn the_nodes_own_disk_is_never_changed() {
    let node = node(SimDisk::raw(GIB));
    let zero = DiskNumber(0);
    assert_refused(&node, &["boot"], |host| host.disk().partition(zero, NEVER));
    assert_refused(&node, &["boot"], |host| {
        host.disk().set_state(zero, Offline, NEVER)
    });
    node.change(|state| {
        let set = NodeChange::SetReadOnly {
            number: 0,
            read_only: true,
        };
        set.apply(state).unwrap();
    });
    assert_refused(&node, &["boot"], |host| {
        host.disk().clear_read_only(zero, NEVER)
    });
}

#[test]
fn the_answer_that_the_access_path_is_in_use_means_that_the_partition_is_there() {
    let node = node(SimDisk::gpt(GIB));
    // Windows has created it all the same.
    let other = host(&node);
    node.inject(Fault::on("MSFT_Disk.CreatePartition").loses_answer());
    assert!(other.disk().partition(ONE, soon(&node)).is_err());
    node.inject(Fault::on("MSFT_Disk.CreatePartition").returns(42002));
    other.disk().partition(ONE, soon(&node)).unwrap();
    assert_eq!(node.counts().of("MSFT_Disk.CreatePartition"), 1);
    node.clear_faults();

    // It is waited for, and not created again.
    let node = crate::node(SimDisk::gpt(GIB));
    node.inject(Fault::on("MSFT_Disk.CreatePartition").returns(42002));
    let deadline = node.clock().deadline_in(Duration::from_secs(5));
    let result = host(&node).disk().partition(ONE, deadline);
    assert_error(result, DeadlineExceeded, &["the new partition"]);
    assert_eq!(node.counts().of("MSFT_Disk.CreatePartition"), 1);
}

#[test]
fn a_disk_is_taken_offline_and_brought_online_and_both_are_waited_for() {
    let node = node(SimDisk::ntfs(GIB).slow_online(2));
    let host = host(&node);
    assert_eq!(host.disk().state(ONE, NEVER).unwrap(), Online);
    for state in [Offline, Online] {
        for _ in 0..2 {
            host.disk().set_state(ONE, state, soon(&node)).unwrap();
            assert_eq!(host.disk().state(ONE, NEVER).unwrap(), state);
        }
    }
    assert_eq!(node.counts().of("MSFT_Disk.Online"), 1);
    assert_eq!(node.counts().of("MSFT_Disk.Offline"), 1);
}

#[test]
fn a_disk_that_stays_offline_is_told_at_the_deadline() {
    let node = node(SimDisk::ntfs(GIB).offline().slow_online(1000));
    let deadline = node.clock().deadline_in(Duration::from_secs(10));
    let result = host(&node).disk().set_state(ONE, Online, deadline);
    assert_error(result, DeadlineExceeded, &["disk 1", "the new state"]);
    assert_eq!(node.counts().of("MSFT_Disk.Online"), 1);
}

#[test]
fn c06_the_read_only_flag_is_cleared_and_verified() {
    for disk in [SimDisk::ntfs(GIB), SimDisk::raw(GIB)] {
        let cleared = node(disk.clone().read_only());
        let host1 = host(&cleared);
        host1.disk().clear_read_only(ONE, NEVER).unwrap();
        assert!(!host1.disk().info(ONE, NEVER).unwrap().read_only);
        host1.disk().clear_read_only(ONE, NEVER).unwrap();
        assert_eq!(cleared.counts().of("MSFT_Disk.SetAttributes"), 1);

        let protected = node(disk.write_protected());
        let result = host(&protected).disk().clear_read_only(ONE, NEVER);
        assert_error(result, FailedPrecondition, &["came back"]);
    }
}

#[test]
fn a_disk_that_was_replaced_under_its_number_is_left_alone() {
    let node = node(SimDisk::raw(GIB));
    let other = SimDisk::raw(GIB).unique_id("other");
    // The first query is for the number, the second under the lock for the identity.
    node.inject(
        Fault::on("query MSFT_Disk")
            .nth(2)
            .before_change(NodeChange::ReplaceDisk {
                number: 1,
                with: Box::new(other),
            }),
    );
    assert_error(
        host(&node).disk().partition(ONE, soon(&node)),
        NotFound,
        &["one"],
    );
    assert_eq!(node.counts().of("MSFT_Disk.Initialize"), 0);
}

#[test]
fn a_disk_that_was_replaced_by_one_of_the_same_name_is_left_alone() {
    let node = node(SimDisk::raw(GIB));
    let twin = SimDisk::raw(GIB).unique_id("one");
    node.inject(
        Fault::on("query MSFT_Disk")
            .nth(3)
            .before_change(NodeChange::ReplaceDisk {
                number: 1,
                with: Box::new(twin),
            }),
    );
    assert_error(
        host(&node).disk().partition(ONE, soon(&node)),
        Aborted,
        &["replaced"],
    );
    assert_eq!(node.counts().of("MSFT_Disk.Initialize"), 0);
}
