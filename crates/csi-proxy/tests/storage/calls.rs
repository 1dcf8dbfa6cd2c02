//! How many port calls an operation makes, and that it does not depend on the other disks.

use csi_proxy::Host;
use csi_proxy::volume::{FormatOptions, NewSize};
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};
use csi_proxy_sim::{Counts, SimNode};

use crate::common::report;
use crate::{GIB, NEVER, ONE, host, path, request, soon, volume_of};

/// A node with disk `one` as number 1 and others up to a number of disks.
fn crowded(disk: &SimDisk, disks: u32) -> SimNode {
    let disk = disk.clone().number(1).unique_id("one").serial("first");
    let mut builder = SimNode::builder().disk(disk);
    for number in 2..=disks {
        let serial = format!("other{number}");
        builder = builder.disk(SimDisk::ntfs(GIB).number(number).serial(&serial));
    }
    builder.build()
}

fn counted(node: &SimNode, run: impl FnOnce(&SimNode, &Host)) -> Counts {
    let host = host(node);
    node.reset_counts();
    run(node, &host);
    node.counts()
}

fn stage(node: &SimNode, host: &Host) {
    host.staging().stage(&request(), soon(node)).unwrap();
}

fn unstage(node: &SimNode, host: &Host) {
    host.staging()
        .unstage(&request().path, None, soon(node))
        .unwrap();
}

#[test]
fn a_stage_of_a_formatted_volume_takes_few_wmi_calls() {
    let node = crowded(&SimDisk::ntfs(GIB), 1);
    let first = counted(&node, stage);
    assert!(first.cim <= 4, "{first:?}");
    assert_eq!(counted(&node, stage).cim, 3);
    assert_eq!(counted(&node, unstage).cim, 5);
}

#[test]
fn the_number_of_calls_does_not_depend_on_the_other_disks() {
    type Run = fn(&SimNode, &Host);
    let empty = SimDisk::gpt(GIB).partition(SimPartition::of(Content::Empty));
    let small = SimDisk::gpt(GIB).partition(SimPartition::of(Content::Ntfs).size(GIB / 2));
    let runs: &[(&str, SimDisk, Run)] = &[
        ("stage fresh", SimDisk::raw(GIB), stage),
        ("stage", SimDisk::ntfs(GIB), stage),
        ("stage and unstage", SimDisk::ntfs(GIB), |node, host| {
            stage(node, host);
            unstage(node, host);
        }),
        ("partition", SimDisk::raw(GIB), |node, host| {
            host.disk().partition(ONE, soon(node)).unwrap();
        }),
        ("format", empty, |node, host| {
            let volume = volume_of(node, ONE);
            let options = FormatOptions::default();
            host.volume().format(&volume, &options, soon(node)).unwrap();
        }),
        ("resize", small, |node, host| {
            let volume = volume_of(node, ONE);
            host.volume()
                .resize(&volume, NewSize::Largest, NEVER)
                .unwrap();
        }),
        ("stats", SimDisk::ntfs(GIB), |node, host| {
            let volume = volume_of(node, ONE);
            host.volume().stats(&volume, NEVER).unwrap();
            host.volume().disk_number(&volume, NEVER).unwrap();
            host.volume().list_on_disk(ONE, None, NEVER).unwrap();
            host.volume()
                .closest_id_from_target_path(&path(r"C:\Windows"), NEVER)
                .unwrap();
        }),
    ];
    for (name, disk, run) in runs {
        let alone = counted(&crowded(disk, 1), run);
        let crowd = counted(&crowded(disk, 256), run);
        assert_eq!(alone, crowd, "{name}");
        report(&format!(
            "{name}: {} WMI calls, {} of the system",
            alone.cim, alone.os
        ));
    }
}

#[test]
fn finding_by_lun_or_serial_is_one_query_and_by_page_83_one_call_a_disk_more() {
    let node = crowded(&SimDisk::raw(GIB).location("Adapter 0 : LUN 7"), 256);
    let find = |locator: &str| {
        let locator = locator.parse().unwrap();
        counted(&node, |_, host| {
            assert_eq!(host.disk().find(&locator, NEVER).unwrap().number, ONE);
        })
    };
    for locator in ["lun=7", "serial=first", "unique-id=one"] {
        let counts = find(locator);
        assert_eq!((counts.cim, counts.os), (1, 0), "{locator}");
    }
    let page83 = host(&node).disk().list_ids(NEVER).unwrap()[&ONE]
        .page83
        .clone()
        .unwrap();
    let counts = find(&format!("page83={page83}"));
    assert_eq!((counts.cim, counts.os), (1, 256));
}
