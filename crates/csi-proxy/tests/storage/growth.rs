//! C13: growth.

use csi_proxy::ErrorKind::{FailedPrecondition, InvalidArgument, OutOfRange};
use csi_proxy::volume::{NewSize, ResizeOutcome};
use csi_proxy::{DiskNumber, VolumeId};
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};
use csi_proxy_sim::{Fault, NodeChange, SimNode};

use crate::{GIB, MIB, NEVER, ONE, assert_error, assert_unchanged, host, node, volume_of};

const SIZE: u64 = 500 * MIB;

/// A volume of 500 MiB with room behind it.
fn small(content: Content) -> (SimNode, VolumeId) {
    let partition = SimPartition::of(content).size(SIZE);
    let node = node(SimDisk::gpt(GIB).partition(partition));
    let volume = volume_of(&node, ONE);
    (node, volume)
}

fn size(node: &SimNode) -> u64 {
    let storage = node.snapshot().storage;
    let (_, disk) = storage.disk_by_number(1).unwrap();
    storage.media[&disk.medium].partitions.last().unwrap().size
}

#[test]
fn c13_a_gain_below_one_mib_changes_nothing_and_from_one_mib_on_it_is_done() {
    for (gain, resized) in [
        (0, false),
        (48_640, false),
        (MIB - 1, false),
        (MIB, true),
        (50 * MIB, true),
        (100 * MIB - 1, true),
    ] {
        let (node, volume) = small(Content::Ntfs);
        let host = host(&node);
        let wanted = NewSize::Bytes(SIZE + gain);
        let outcome = host.volume().resize(&volume, wanted, NEVER).unwrap();
        assert_eq!(outcome.resized, resized, "{gain}");
        assert_eq!(outcome.size, size(&node), "{gain}");
        match resized {
            true => assert!(outcome.size >= SIZE + gain && outcome.size < SIZE + gain + 512),
            false => assert_eq!(outcome.size, SIZE),
        }
        let calls = node.counts().of("MSFT_Partition.Resize");
        assert_eq!(calls, u64::from(resized), "{gain}");
        // Again: it is reached.
        let again = host.volume().resize(&volume, wanted, NEVER).unwrap();
        assert_eq!(again.size, outcome.size);
        assert!(!again.resized);
    }
}

#[test]
fn c13_more_than_the_disk_has_is_out_of_range_with_both_numbers() {
    let (node, volume) = small(Content::Ntfs);
    let before = node.snapshot();
    let host = host(&node);
    let wanted = NewSize::Bytes(2 * GIB);
    let error = assert_error(
        host.volume().resize(&volume, wanted, NEVER),
        OutOfRange,
        &[&(2 * GIB).to_string()],
    );
    assert_unchanged(&node, before);
    let largest = host
        .volume()
        .resize(&volume, NewSize::Largest, NEVER)
        .unwrap();
    assert!(
        error.to_string().contains(&largest.size.to_string()),
        "{error}"
    );
}

#[test]
fn c13_a_negative_size_is_refused() {
    let error = NewSize::from_request("volume resize", -MIB.cast_signed()).unwrap_err();
    assert_eq!(error.kind(), InvalidArgument);
    assert!(error.to_string().contains("-1048576"), "{error}");
}

#[test]
fn the_largest_size_is_all_that_the_disk_has() {
    let (node, volume) = small(Content::Ntfs);
    let host = host(&node);
    let first = host
        .volume()
        .resize(&volume, NewSize::Largest, NEVER)
        .unwrap();
    assert!(first.resized && first.size > GIB - 20 * MIB);
    let again = host
        .volume()
        .resize(&volume, NewSize::Largest, NEVER)
        .unwrap();
    let unchanged = ResizeOutcome {
        resized: false,
        ..first
    };
    assert_eq!(again, unchanged);
    assert_eq!(node.counts().of("MSFT_Partition.Resize"), 1);
}

fn grow_disk(size: u64) -> NodeChange {
    NodeChange::GrowDisk { number: 1, size }
}

#[test]
fn an_attached_disk_that_has_grown_unseen_gives_its_volume_the_new_space() {
    let node = node(SimDisk::ntfs(GIB));
    let volume = volume_of(&node, ONE);
    let host = host(&node);
    node.change(|state| grow_disk(2 * GIB).apply(state).unwrap());
    // Windows has not looked yet.
    assert_eq!(host.disk().stats(ONE, NEVER).unwrap().total_bytes, GIB);
    let wanted = NewSize::Bytes(GIB + 512 * MIB);
    let outcome = host.volume().resize(&volume, wanted, NEVER).unwrap();
    assert!(outcome.resized);
    assert_eq!(outcome.size, GIB + 512 * MIB);
    let largest = host.volume().resize(&volume, NewSize::Largest, NEVER);
    assert!(largest.unwrap().size > 2 * GIB - 20 * MIB);
    assert_eq!(host.disk().stats(ONE, NEVER).unwrap().total_bytes, 2 * GIB);
}

#[test]
fn after_a_resize_windows_looks_at_the_disk_again() {
    let (node, volume) = small(Content::Ntfs);
    let host = host(&node);
    node.inject(Fault::on("MSFT_Partition.Resize").before_change(grow_disk(2 * GIB)));
    let wanted = NewSize::Bytes(SIZE + 64 * MIB);
    host.volume().resize(&volume, wanted, NEVER).unwrap();
    assert_eq!(host.disk().stats(ONE, NEVER).unwrap().total_bytes, 2 * GIB);
}

#[test]
fn a_volume_never_shrinks() {
    let (node, volume) = small(Content::Ntfs);
    let before = node.snapshot();
    let host = host(&node);
    for wanted in [1, MIB, SIZE - 1] {
        let outcome = host.volume().resize(&volume, NewSize::Bytes(wanted), NEVER);
        assert_eq!(outcome.unwrap().size, SIZE);
    }
    assert_unchanged(&node, before);
}

#[test]
fn ntfs_raw_and_refs_grow_and_fat_is_refused() {
    for content in [Content::Ntfs, Content::Empty, Content::Refs] {
        let (node, volume) = small(content);
        let wanted = NewSize::Bytes(SIZE + 64 * MIB);
        let outcome = host(&node).volume().resize(&volume, wanted, NEVER).unwrap();
        assert_eq!(outcome.size, SIZE + 64 * MIB, "{content:?}");
    }
    let (node, volume) = small(Content::Fat32);
    let result = host(&node)
        .volume()
        .resize(&volume, NewSize::Largest, NEVER);
    assert_error(result, FailedPrecondition, &["FAT32", "42009"]);
    // What Windows answers for a file system that it does not document is no fault of its.
    let (node, volume) = small(Content::Refs);
    node.inject(Fault::on("MSFT_Partition.Resize").returns(1));
    let result = host(&node)
        .volume()
        .resize(&volume, NewSize::Largest, NEVER);
    assert_error(result, FailedPrecondition, &["ReFS", "not supported"]);
}

#[test]
fn the_nodes_own_volume_does_not_grow() {
    let node = node(SimDisk::raw(GIB));
    let system = volume_of(&node, DiskNumber(0));
    crate::assert_refused(&node, &["boot disk"], |host| {
        host.volume().resize(&system, NewSize::Largest, NEVER)
    });
}
