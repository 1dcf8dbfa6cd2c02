//! Finding the one disk that is meant.

use std::time::Duration;

use csi_proxy::ErrorKind::{FailedPrecondition, InvalidArgument, NotFound};
use csi_proxy::clock::Clock;
use csi_proxy::disk::DiskInfo;
use csi_proxy::{DiskNumber, Locator, Result};
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};
use csi_proxy_sim::{Fault, SimNode};

use crate::{GIB, NEVER, ONE, assert_error, assert_unchanged, host};

const TEMPORARY: &str =
    "Integrated : Bus 0 : Device 63667 : Function 30746 : Adapter 0 : Port 0 : Target 0 : LUN 1";
const DATA: &str =
    "Integrated : Bus 0 : Device 63667 : Function 30746 : Adapter 1 : Port 0 : Target 0 : LUN 1";

fn find(node: &SimNode, locator: &str) -> Result<DiskInfo> {
    let deadline = node.clock().deadline_in(Duration::from_secs(20));
    host(node)
        .disk()
        .find(&locator.parse::<Locator>().unwrap(), deadline)
}

fn temporary() -> SimDisk {
    SimDisk::mbr(GIB)
        .partition(SimPartition::of(Content::Ntfs))
        .number(1)
        .location(TEMPORARY)
}

fn data() -> SimDisk {
    SimDisk::raw(GIB).number(3).location(DATA)
}

#[test]
fn c01_same_lun_twice() {
    for (first, second) in [(temporary(), data()), (data(), temporary())] {
        let node = SimNode::builder().disk(first).disk(second).build();
        let before = node.snapshot();
        let parts = ["disk 1", "disk 3", TEMPORARY, DATA, "2 disks match"];
        assert_error(find(&node, "lun=1"), FailedPrecondition, &parts);
        assert_unchanged(&node, before);
        let found = find(&node, "lun=1,adapter=1").unwrap();
        assert_eq!(found.number, DiskNumber(3));
        assert_error(find(&node, "lun=1,adapter=2"), NotFound, &["adapter=2"]);
    }
}

#[test]
fn c01_boot_and_system_disks_are_never_candidates() {
    let node = SimNode::builder()
        .disk(data().location("PCI Slot 0 : Adapter 0 : Port 0 : Target 0 : LUN 0"))
        .build();
    assert_eq!(find(&node, "lun=0").unwrap().number, DiskNumber(3));
    node.detach_disk(DiskNumber(3)).unwrap();
    assert_error(find(&node, "lun=0"), NotFound, &["none of 0 disks"]);
    let own = host(&node).disk().info(DiskNumber(0), NEVER).unwrap();
    let by_id = format!("unique-id={}", own.unique_id);
    assert_error(find(&node, &by_id), NotFound, &[]);
}

#[test]
fn c01_a_boot_disk_alone_and_a_system_disk_alone_are_no_candidates() {
    for (boot, system) in [(true, false), (false, true)] {
        let own = SimDisk {
            boot,
            system,
            ..data().serial("own").unique_id("own")
        };
        let node = SimNode::builder().disk(own).disk(temporary()).build();
        let before = node.snapshot();
        for locator in ["lun=1,adapter=1", "serial=own", "unique-id=own"] {
            let result = find(&node, locator);
            let what = format!("{locator}, boot {boot}, system {system}: {result:?}");
            assert_eq!(result.unwrap_err().kind(), NotFound, "{what}");
        }
        // Nor does it make the other one ambiguous.
        assert_eq!(find(&node, "lun=1").unwrap().number, ONE);
        assert_unchanged(&node, before);
    }
}

#[test]
fn c02_locations_of_every_kind() {
    let file = r"C:\ProgramData\containerd\root\io.containerd.snapshotter.v1.windows\snapshots\136\sandbox.vhdx";
    let mut builder = SimNode::builder();
    for location in [
        None,
        Some(""),
        Some("   "),
        Some(file),
        Some("Integrated : Adapter 0"),
    ]
    .into_iter()
    .cycle()
    .take(20)
    {
        let disk = SimDisk::raw(GIB);
        builder = builder.disk(match location {
            Some(location) => disk.location(location),
            None => disk,
        });
    }
    let node = builder
        .disk(SimDisk::raw(GIB).location("PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 11"))
        .disk(SimDisk::raw(GIB).location("  PCI Slot 3 :  Adapter 0 : Target 1 :LUN  1 "))
        .build();
    assert_eq!(find(&node, "lun=1").unwrap().number, DiskNumber(22));
    assert_eq!(
        find(&node, "lun=11,target=1").unwrap().number,
        DiskNumber(21)
    );
    let locations = host(&node).disk().list_locations(NEVER).unwrap();
    // The system disk, four with an adapter alone, and the two.
    assert_eq!(locations.len(), 7);
    let last = locations[&DiskNumber(22)];
    assert_eq!(
        (last.adapter, last.bus, last.target, last.lun),
        (Some(0), None, Some(1), Some(1))
    );
}

#[test]
fn c03_serial_numbers() {
    let nvme = "vol0123456789abcdef0_00000001.";
    let eui = "10CC_9636_B6E3_CE3B_0000_0000_0000_0000.";
    let node = SimNode::builder()
        .disk(SimDisk::raw(GIB).serial(nvme))
        .disk(SimDisk::raw(GIB).serial(eui))
        .disk(SimDisk::raw(GIB).serial("   "))
        .disk(SimDisk::raw(GIB).serial(""))
        .disk(SimDisk::raw(GIB))
        .disk(SimDisk::raw(GIB).serial("  PADDED\0\0"))
        .disk(SimDisk::raw(GIB).serial("twin"))
        .disk(SimDisk::raw(GIB).serial("TWIN "))
        .build();
    for (serial, number) in [
        ("vol-0123456789abcdef0", 1),
        (nvme, 1),
        ("10cc9636b6e3ce3b0000000000000000", 2),
        ("padded", 6),
    ] {
        let found = find(&node, &format!("serial={serial}")).unwrap();
        assert_eq!(found.number, DiskNumber(number), "{serial}");
    }
    assert_error(find(&node, "serial=vol-0123"), NotFound, &["vol0123"]);
    assert_error(
        find(&node, "serial=twin"),
        FailedPrecondition,
        &["disk 7", "disk 8"],
    );
    for empty in ["serial=", "serial=  ", "serial=\0"] {
        assert!(empty.parse::<Locator>().is_err(), "{empty:?}");
    }
}

#[test]
fn a_disk_is_found_by_its_unique_id_and_by_page_83() {
    let node = SimNode::builder()
        .disk(SimDisk::raw(GIB).unique_id("6002248012345678"))
        .disk(SimDisk::raw(GIB).unique_id("6002248087654321"))
        .build();
    let found = find(&node, "unique-id=6002248087654321").unwrap();
    assert_eq!(found.number, DiskNumber(2));
    let ids = host(&node).disk().list_ids(NEVER).unwrap();
    let page83 = ids[&ONE].page83.clone().unwrap();
    let found = find(&node, &format!("page83={}", page83.to_uppercase())).unwrap();
    assert_eq!(found.number, ONE);
    let disk = host(&node);
    assert_eq!(disk.disk().number_by_name(&page83, NEVER).unwrap(), ONE);
    assert_error(
        disk.disk().number_by_name("naa.0", NEVER),
        NotFound,
        &["naa.0"],
    );
    assert_error(
        disk.disk().number_by_name(" \0", NEVER),
        InvalidArgument,
        &["page 83"],
    );
}

#[test]
fn a_disk_that_cannot_be_opened_hides_no_other() {
    let unreadable = SimDisk {
        no_page83: true,
        ..SimDisk::raw(GIB)
    };
    let node = SimNode::builder()
        .disk(unreadable)
        .disk(SimDisk::raw(GIB).serial("two"))
        .build();
    let host = host(&node);
    let ids = host.disk().list_ids(NEVER).unwrap();
    assert_eq!(ids[&ONE].page83, None);
    assert_eq!(ids[&DiskNumber(2)].serial_number.as_deref(), Some("two"));
    let page83 = ids[&DiskNumber(2)].page83.clone().unwrap();
    assert_eq!(
        find(&node, &format!("page83={page83}")).unwrap().number,
        DiskNumber(2)
    );
    assert_error(
        find(&node, "page83=x"),
        NotFound,
        &["could not be read", "DeviceIoControl"],
    );
    // The same when Windows denies access to the first that is asked.
    node.inject(Fault::on("device_ids").win32(5));
    assert_eq!(host.disk().list_ids(NEVER).unwrap().len(), 3);
}

#[test]
fn a_disk_that_appears_late_is_waited_for_with_rescans() {
    let late = [
        SimDisk::raw(GIB).after_rescans(3),
        SimDisk::raw(GIB).after(Duration::from_secs(10)),
    ];
    for disk in late {
        let node = SimNode::builder().disk(disk.serial("late")).build();
        assert_eq!(find(&node, "serial=late").unwrap().number, ONE);
        let clock = node.clock().now().0;
        assert!(clock < Duration::from_secs(15), "{clock:?}");
    }
    let never = SimDisk::raw(GIB)
        .after(Duration::from_secs(3600))
        .serial("late");
    let node = SimNode::builder().disk(never).build();
    assert_error(
        find(&node, "serial=late"),
        NotFound,
        &["serial=late", "none of 0 disks"],
    );
    assert_eq!(node.clock().now().0, Duration::from_secs(20));
    assert!(
        node.counts()
            .of("MSFT_StorageSetting.UpdateHostStorageCache")
            > 3
    );
}
