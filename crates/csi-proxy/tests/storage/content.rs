//! C08: what is not ours is never written to.

use csi_proxy::ErrorKind::FailedPrecondition;
use csi_proxy::volume::FormatOptions;
use csi_proxy::{DiskNumber, Host, Result};
use csi_proxy_sim::storage::{Content, SimDisk, SimKind, SimPartition, SimStyle};

use crate::{
    GIB, MIB, ONE, assert_error, assert_refused, assert_unchanged, host, node, request, soon,
    volume_of,
};

/// A data partition with something on it that Windows does not know.
fn unknown(content: Content) -> SimDisk {
    SimDisk::gpt(GIB).partition(SimPartition::of(content))
}

#[test]
fn c08_a_stage_of_what_is_not_ours_is_refused_and_nothing_is_written() {
    let linux = || SimPartition::of(Content::Ext4).kind(SimKind::Linux);
    let dynamic = || SimPartition::of(Content::Empty).kind(SimKind::Dynamic);
    for (disk, part) in [
        (
            SimDisk::mbr(GIB).partition(linux()),
            "partition 1 of type 0x83 (Linux)",
        ),
        (
            SimDisk::raw(GIB).content(Content::Ext4),
            "ext2, ext3 or ext4 at byte 1080",
        ),
        (SimDisk::raw(GIB).content(Content::Unknown), "no known kind"),
        (unknown(Content::Bitlocker), "is locked by BitLocker"),
        (unknown(Content::DamagedNtfs), "NTFS boot sector at byte"),
        (unknown(Content::Ext4), "ext2, ext3 or ext4 at byte 1080"),
        (unknown(Content::Unknown), "no known kind"),
        (SimDisk::gpt(GIB).partition(dynamic()), "dynamic disk"),
        (SimDisk::mbr(GIB).partition(dynamic()), "dynamic disk"),
    ] {
        let node = node(disk);
        assert_refused(&node, &[part], |host| {
            host.staging().stage(&request(), soon(&node))
        });
    }
}

#[test]
fn c08_a_disk_with_content_is_not_initialised() {
    let disk = SimDisk::raw(GIB).content(Content::Ext4);
    let node = node(disk);
    let parts = [
        "disk 1",
        "not empty",
        "ext2, ext3 or ext4",
        "1080",
        "nothing was written",
    ];
    assert_refused(&node, &parts, |host| {
        host.disk().partition(ONE, soon(&node))
    });
}

#[test]
fn c08_a_volume_with_content_is_not_formatted() {
    for content in [Content::DamagedNtfs, Content::Ext4, Content::Unknown] {
        let node = node(unknown(content));
        let volume = volume_of(&node, ONE);
        let parts = [
            "no file system",
            "not empty",
            "nothing was written",
            volume.guid(),
        ];
        assert_refused(&node, &parts, |host| {
            host.volume()
                .format(&volume, &FormatOptions::default(), soon(&node))
        });
    }
}

/// Its bytes cannot be read: nobody knows that they are worth nothing.
#[test]
fn c08_a_volume_that_bitlocker_has_locked_is_not_formatted_whatever_is_allowed() {
    let node = node(unknown(Content::Bitlocker));
    let volume = volume_of(&node, ONE);
    let before = node.snapshot();
    for host in [host(&node), host(&node).allowing_foreign_content()] {
        let options = FormatOptions::default();
        let result = host.volume().format(&volume, &options, soon(&node));
        let parts = [volume.guid(), "2150694912", "is locked by BitLocker"];
        assert_error(result, FailedPrecondition, &parts);
    }
    assert_unchanged(&node, before);
}

/// Bytes at the very end are content too.
#[test]
fn the_last_bytes_of_a_disk_and_of_a_volume_count() {
    for size in [GIB, GIB + 512, 40 * MIB] {
        for place in [size - 1, size - MIB, MIB - 1, 0] {
            let node = node(SimDisk::raw(size));
            write(&node, place);
            let offset = format!("at byte {place}");
            assert_refused(&node, &[offset.as_str()], |host| {
                host.disk().partition(ONE, soon(&node))
            });
        }
    }
    let node = node(
        SimDisk {
            style: SimStyle::Gpt,
            ..SimDisk::raw(GIB)
        }
        .partition(SimPartition::of(Content::Empty)),
    );
    let (offset, size) = extent(&node);
    write(&node, offset + size - 1);
    let part = format!("at byte {}", size - 1);
    assert_refused(&node, &[part.as_str()], |host| {
        host.staging().stage(&request(), soon(&node))
    });
}

#[test]
fn uniform_ff_is_empty() {
    let node = node(SimDisk::raw(40 * MIB));
    node.change(|state| {
        let (_, disk) = state.storage.disk_by_number(1).unwrap();
        let medium = state.storage.media.get_mut(&disk.medium.clone()).unwrap();
        medium.bytes.write(0, &vec![0xff; 40 << 20]);
    });
    host(&node).disk().partition(ONE, soon(&node)).unwrap();
}

#[test]
fn what_the_ends_do_not_show_cannot_be_known() {
    // Documented: only the first and the last MiB are read.
    let node = node(SimDisk::raw(GIB));
    write(&node, GIB / 2);
    host(&node).disk().partition(ONE, soon(&node)).unwrap();
}

#[test]
fn a_volume_that_cannot_be_read_is_not_formatted() {
    let node = node(unknown(Content::Empty));
    node.inject(csi_proxy_sim::Fault::on("read_range").win32(23));
    let result: Result<_> = stage(&host(&node), &node);
    crate::assert_error(
        result,
        csi_proxy::ErrorKind::Internal,
        &["cyclic redundancy"],
    );
    assert_eq!(node.counts().of("MSFT_Volume.Format"), 0);
}

#[test]
fn a_host_that_allows_foreign_content_initialises_and_formats_over_it() {
    for content in [Content::Ext4, Content::DamagedNtfs, Content::Unknown] {
        let node = node(SimDisk::raw(GIB).content(content));
        let host = host(&node).allowing_foreign_content();
        host.disk().partition(ONE, soon(&node)).unwrap();
        let calls = node.counts().of("MSFT_Disk.Initialize");
        assert_eq!(calls, 1, "{content:?}");
    }
    for content in [Content::Ext4, Content::DamagedNtfs, Content::Unknown] {
        let node = node(unknown(content));
        let volume = volume_of(&node, ONE);
        let host = host(&node).allowing_foreign_content();
        host.volume()
            .format(&volume, &FormatOptions::default(), soon(&node))
            .unwrap();
        assert!(host.volume().is_formatted(&volume, soon(&node)).unwrap());
    }
}

/// It allows bytes that Windows does not know, and nothing else.
#[test]
fn a_host_that_allows_foreign_content_refuses_all_else_still() {
    let ntfs = SimDisk::gpt(GIB).partition(SimPartition::of(Content::Ntfs));
    let node = node(ntfs);
    let before = node.snapshot();
    let host = host(&node).allowing_foreign_content();
    let format = |disk| {
        let options = FormatOptions::default();
        host.volume()
            .format(&volume_of(&node, disk), &options, soon(&node))
    };
    assert_error(
        format(ONE),
        FailedPrecondition,
        &["has the file system NTFS"],
    );
    let own = DiskNumber(0);
    assert_error(format(own), FailedPrecondition, &["has the file system"]);
    let partition = host.disk().partition(own, soon(&node));
    assert_error(partition, FailedPrecondition, &["boot or system disk"]);
    assert_unchanged(&node, before);
}

#[test]
fn the_nodes_own_disks_are_refused_whatever_content_is_allowed() {
    for (boot, system) in [(true, false), (false, true)] {
        let raw = SimDisk::raw(GIB).content(Content::Ext4);
        let empty = unknown(Content::Empty);
        for disk in [raw, empty] {
            let node = node(SimDisk {
                boot,
                system,
                ..disk
            });
            let before = node.snapshot();
            let host = host(&node).allowing_foreign_content();
            let partition = host.disk().partition(ONE, soon(&node));
            assert_error(partition, FailedPrecondition, &["boot or system disk"]);
            assert_unchanged(&node, before);
        }
        let node = node(SimDisk {
            boot,
            system,
            ..unknown(Content::Ext4)
        });
        let before = node.snapshot();
        let host = host(&node).allowing_foreign_content();
        let volume = volume_of(&node, ONE);
        let options = FormatOptions::default();
        let format = host.volume().format(&volume, &options, soon(&node));
        assert_error(format, FailedPrecondition, &["disk of the node"]);
        assert_unchanged(&node, before);
    }
}

#[test]
fn without_a_state_directory_nothing_is_formatted() {
    let node = node(unknown(Content::Empty));
    let before = node.snapshot();
    let result = stage(&node.process().host(), &node);
    crate::assert_error(result, FailedPrecondition, &["state directory"]);
    crate::assert_unchanged(&node, before);
}

fn stage(host: &Host, node: &csi_proxy_sim::SimNode) -> Result<()> {
    host.staging().stage(&request(), soon(node)).map(drop)
}

/// Writes one byte on disk 1.
fn write(node: &csi_proxy_sim::SimNode, place: u64) {
    node.change(|state| {
        let (_, disk) = state.storage.disk_by_number(1).unwrap();
        let medium = disk.medium;
        let medium = state.storage.media.get_mut(&medium).unwrap();
        medium.bytes.write(place, &[0x5a]);
    });
}

/// Where the last partition of disk 1 is.
fn extent(node: &csi_proxy_sim::SimNode) -> (u64, u64) {
    let storage = node.snapshot().storage;
    let (_, disk) = storage.disk_by_number(1).unwrap();
    let partition = storage.media[&disk.medium].partitions.last().unwrap();
    (partition.offset, partition.size)
}
