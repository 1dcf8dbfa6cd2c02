//! The rules, one test each.

use csi_proxy::cim::{Invoke, Namespace, Object, Query};
use csi_proxy::clock::Deadline;
use csi_proxy::os::ReadRange;
use csi_proxy::port::PortError;
use csi_proxy::{DevicePath, DiskNumber};

use super::*;
use crate::{Process, SimNode};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const NOW: Deadline = Deadline::Never;

/// A node with a system disk and the given disk as number 1.
fn node_with(disk: SimDisk) -> (SimNode, Process) {
    let node = SimNode::builder().disk(disk).build();
    let process = node.process();
    (node, process)
}

fn query(process: &Process, query: Query) -> Vec<Object> {
    process.cim().query(&query, NOW).unwrap()
}

fn disk(process: &Process, number: u32, properties: &[&str]) -> Object {
    let wanted = Query::new(Namespace::Storage, "MSFT_Disk", properties).with("Number", number);
    query(process, wanted).remove(0)
}

fn partitions(process: &Process, number: u32) -> Vec<Object> {
    let properties = [
        "PartitionNumber",
        "Offset",
        "Size",
        "GptType",
        "AccessPaths",
        "Guid",
    ];
    let wanted = Query::new(Namespace::Storage, "MSFT_Partition", &properties);
    query(process, wanted.with("DiskNumber", number))
}

fn volumes_of(process: &Process, partition: &Object) -> Vec<Object> {
    let request = csi_proxy::cim::Associators::new(
        Namespace::Storage,
        &partition.path,
        "MSFT_PartitionToVolume",
        "MSFT_Volume",
        &[
            "UniqueId",
            "FileSystemType",
            "Size",
            "SizeRemaining",
            "FileSystemLabel",
        ],
    );
    process.cim().associators(&request, NOW).unwrap()
}

/// Calls a method and answers its return value.
fn call(process: &Process, class: &str, object: &Object, method: Invoke) -> u32 {
    let invoke = Invoke {
        arguments: method.arguments,
        ..Invoke::on(Namespace::Storage, class, &object.path, &method.method)
    };
    process.cim().invoke(&invoke, NOW).unwrap().return_value
}

fn method(name: &str) -> Invoke {
    Invoke::on_class(Namespace::Storage, "", name)
}

fn on_disk(process: &Process, wanted: Invoke) -> u32 {
    let object = disk(process, 1, &["Number"]);
    call(process, "MSFT_Disk", &object, wanted)
}

fn on_last_partition(process: &Process, wanted: Invoke) -> u32 {
    let object = partitions(process, 1).pop().unwrap();
    call(process, "MSFT_Partition", &object, wanted)
}

fn last_volume(process: &Process) -> Object {
    volumes_of(process, &partitions(process, 1).pop().unwrap()).remove(0)
}

fn on_last_volume(process: &Process, wanted: Invoke) -> u32 {
    call(process, "MSFT_Volume", &last_volume(process), wanted)
}

fn number(object: &Object, property: &str) -> u64 {
    object.properties[property].as_u64().unwrap()
}

fn read(process: &Process, device: &str, offset: u64, length: u32) -> Vec<u8> {
    let request = ReadRange {
        device: DevicePath(device.to_owned()),
        offset,
        length,
    };
    process.os().read_range(&request, NOW).unwrap().0
}

fn create_partition() -> Invoke {
    method("CreatePartition").with("UseMaximumSize", true)
}

fn format_ntfs() -> Invoke {
    method("Format").with("FileSystem", "NTFS")
}

#[test]
fn a_raw_disk_becomes_an_ntfs_volume_in_three_steps() {
    let (_, process) = node_with(SimDisk::raw(10 * GIB));
    assert_eq!(on_disk(&process, create_partition()), 41000);
    assert_eq!(
        on_disk(&process, method("Initialize").with("PartitionStyle", 2u32)),
        0
    );
    let reserved = partitions(&process, 1);
    assert_eq!(reserved.len(), 1);
    assert_eq!(number(&reserved[0], "Offset"), 17408);
    assert_eq!(
        reserved[0].properties["GptType"].as_str(),
        Some("{e3c9e316-0b5c-4db8-817d-f92df00215ae}")
    );
    assert!(volumes_of(&process, &reserved[0]).is_empty());
    assert_eq!(on_disk(&process, create_partition()), 0);
    let volume = last_volume(&process);
    assert_eq!(number(&volume, "FileSystemType"), 0);
    assert_eq!(
        on_last_volume(&process, format_ntfs().with("FileSystemLabel", "data")),
        0
    );
    let volume = last_volume(&process);
    assert_eq!(number(&volume, "FileSystemType"), 14);
    assert_eq!(volume.properties["FileSystemLabel"].as_str(), Some("data"));
    assert_eq!(number(&volume, "Size"), 10 * GIB - 17 * MIB);
}

#[test]
fn a_volume_is_named_after_its_gpt_partition() {
    let (_, process) = node_with(SimDisk::ntfs(GIB));
    let partition = partitions(&process, 1).pop().unwrap();
    let guid = partition.properties["Guid"].as_str().unwrap();
    let volume = last_volume(&process);
    let id = format!(r"\\?\Volume{guid}\");
    assert_eq!(volume.properties["UniqueId"].as_str(), Some(id.as_str()));
}

#[test]
fn initialising_twice_is_refused() {
    let (_, process) = node_with(SimDisk::gpt(GIB));
    assert_eq!(on_disk(&process, method("Initialize")), 41001);
}

#[test]
fn a_disk_too_small_for_gpt_is_refused() {
    let (_, process) = node_with(SimDisk::raw(8 * MIB));
    assert_eq!(on_disk(&process, method("Initialize")), 41014);
}

#[test]
fn c06_a_read_only_disk_refuses_partition_and_format() {
    let (node, process) = node_with(SimDisk::gpt(GIB).read_only());
    assert_eq!(on_disk(&process, create_partition()), 41002);
    let clear = method("SetAttributes").with("IsReadOnly", false);
    assert_eq!(on_disk(&process, clear), 0);
    assert_eq!(on_disk(&process, create_partition()), 0);
    let set = method("SetAttributes").with("IsReadOnly", true);
    assert_eq!(on_disk(&process, set), 0);
    let before = node.snapshot();
    assert_eq!(on_last_volume(&process, format_ntfs()), 43006);
    assert_eq!(node.snapshot(), before);
}

#[test]
fn c06_the_flag_of_a_write_protected_disk_comes_back_with_a_refresh() {
    let (_, process) = node_with(SimDisk::ntfs(GIB).write_protected());
    let clear = method("SetAttributes").with("IsReadOnly", false);
    assert_eq!(on_disk(&process, clear), 0);
    let read_only =
        |process: &Process| disk(process, 1, &["IsReadOnly"]).properties["IsReadOnly"].as_bool();
    assert_eq!(read_only(&process), Some(false));
    assert_eq!(on_disk(&process, method("Refresh")), 0);
    assert_eq!(read_only(&process), Some(true));
}

#[test]
fn c05_an_offline_disk_has_partitions_but_no_volumes() {
    let (_, process) = node_with(SimDisk::ntfs(GIB).offline());
    assert_eq!(on_disk(&process, create_partition()), 41003);
    let partition = partitions(&process, 1).pop().unwrap();
    assert!(volumes_of(&process, &partition).is_empty());
    assert_eq!(on_disk(&process, method("Online")), 0);
    assert_eq!(volumes_of(&process, &partition).len(), 1);
}

#[test]
fn c05_a_slow_disk_is_offline_for_two_queries_after_online() {
    let (_, process) = node_with(SimDisk::ntfs(GIB).offline().slow_online(2));
    let object = disk(&process, 1, &["Number"]);
    assert_eq!(call(&process, "MSFT_Disk", &object, method("Online")), 0);
    let offline = || disk(&process, 1, &["IsOffline"]).properties["IsOffline"].as_bool();
    assert_eq!(
        [offline(), offline(), offline()],
        [Some(true), Some(true), Some(false)]
    );
}

#[test]
fn a_letter_that_is_taken_leaves_a_partition_and_42002() {
    let (_, process) = node_with(SimDisk::gpt(GIB));
    assert_eq!(
        on_disk(&process, create_partition().with("DriveLetter", "C")),
        42002
    );
    assert_eq!(partitions(&process, 1).len(), 2);
}

#[test]
fn size_and_maximum_size_exclude_each_other() {
    let (_, process) = node_with(SimDisk::gpt(GIB));
    assert_eq!(on_disk(&process, method("CreatePartition")), 40005);
    assert_eq!(
        on_disk(&process, create_partition().with("Size", 64 * MIB)),
        40005
    );
}

#[test]
fn a_partition_larger_than_what_is_free_is_refused() {
    let (_, process) = node_with(SimDisk::gpt(GIB));
    assert_eq!(
        on_disk(&process, method("CreatePartition").with("Size", GIB)),
        40000
    );
}

#[test]
fn the_boot_disk_does_not_go_offline() {
    let (_, process) = node_with(SimDisk::raw(GIB));
    let system = disk(&process, 0, &["IsBoot"]);
    assert_eq!(
        call(&process, "MSFT_Disk", &system, method("Offline")),
        41009
    );
}

#[test]
fn the_boot_volume_is_not_formatted() {
    let (_, process) = node_with(SimDisk::raw(GIB));
    let drive = partitions(&process, 0).pop().unwrap();
    let volume = volumes_of(&process, &drive).remove(0);
    assert_eq!(call(&process, "MSFT_Volume", &volume, format_ntfs()), 42010);
}

#[test]
fn file_system_and_allocation_unit_must_be_ones_that_windows_has() {
    let (_, process) = node_with(SimDisk::ntfs(4 * GIB));
    let format = |system: &str, unit: u32| {
        method("Format")
            .with("FileSystem", system)
            .with("AllocationUnitSize", unit)
    };
    for (system, unit, code) in [
        ("ext4", 4096, 43001),
        ("NTFS", 1000, 43000),
        ("NTFS", 256, 43000),
        ("NTFS", 4 << 20, 43000),
        ("ReFS", 8192, 43000),
        ("NTFS", 2 << 20, 0),
        ("NTFS", 512, 0),
        ("ReFS", 65536, 0),
        ("ReFS", 4096, 0),
    ] {
        let answer = on_last_volume(&process, format(system, unit));
        assert_eq!(answer, code, "{system} {unit}");
    }
}

#[test]
fn c13_the_largest_size_ends_before_the_second_gpt() {
    // 64 KiB more than whole MiB: the partition ends on a MiB, 48,640 bytes are left.
    let size = GIB + (64 << 10);
    let (_, process) = node_with(SimDisk::ntfs(size));
    let partition = partitions(&process, 1).pop().unwrap();
    let invoke = Invoke::on(
        Namespace::Storage,
        "MSFT_Partition",
        &partition.path,
        "GetSupportedSize",
    );
    let output = process.cim().invoke(&invoke, NOW).unwrap();
    let largest = output.properties["SizeMax"].as_u64().unwrap();
    assert_eq!(largest - number(&partition, "Size"), 48_640);
    let resize = |size: u64| on_last_partition(&process, method("Resize").with("Size", size));
    assert_eq!(resize(largest + 512), 4097);
    assert_eq!(resize(largest), 0);
    assert_eq!(number(&last_volume(&process), "Size"), largest);
}

#[test]
fn fat32_is_not_resized() {
    let (_, process) = node_with(SimDisk::gpt(GIB).partition(SimPartition {
        size: Some(100 * MIB),
        ..SimPartition::of(Content::Fat32)
    }));
    assert_eq!(
        on_last_partition(&process, method("GetSupportedSize")),
        42009
    );
    assert_eq!(
        on_last_partition(&process, method("Resize").with("Size", GIB / 2)),
        42009
    );
}

#[test]
fn c08_what_windows_does_not_know_is_a_raw_volume_with_content() {
    for content in [
        Content::Ext4,
        Content::Bitlocker,
        Content::DamagedNtfs,
        Content::Unknown,
    ] {
        let partition = SimPartition::of(content);
        let (_, process) = node_with(SimDisk::gpt(GIB).partition(partition));
        let volume = last_volume(&process);
        assert_eq!(number(&volume, "FileSystemType"), 0, "{content:?}");
        let id = volume.properties["UniqueId"].as_str().unwrap();
        let first = read(&process, id, 0, 1 << 20);
        assert!(first.iter().any(|byte| *byte != 0), "{content:?}");
    }
}

#[test]
fn the_bytes_of_a_formatted_volume_are_those_of_its_file_system() {
    let (_, process) = node_with(SimDisk::ntfs(GIB));
    let volume = last_volume(&process);
    let id = volume.properties["UniqueId"].as_str().unwrap();
    assert_eq!(
        read(&process, id.trim_end_matches('\\'), 0, 512)[3..11],
        *b"NTFS    "
    );
    assert_eq!(
        read(&process, r"\\.\PhysicalDrive1", 512, 512)[..8],
        *b"EFI PART"
    );
}

#[test]
fn reads_must_be_whole_sectors_and_end_with_the_device() {
    let (_, process) = node_with(SimDisk::raw(MIB));
    let read_range = |offset, length| {
        let device = DevicePath::disk(DiskNumber(1));
        let request = ReadRange {
            device,
            offset,
            length,
        };
        process
            .os()
            .read_range(&request, NOW)
            .map(|bytes| bytes.0.len())
    };
    assert_eq!(read_range(MIB - 512, 1024), Ok(512));
    assert_eq!(read_range(MIB, 512), Ok(0));
    for (offset, length) in [(1, 512), (0, 100), (0, 2 << 20)] {
        assert!(matches!(
            read_range(offset, length),
            Err(PortError::System { .. })
        ));
    }
}

#[test]
fn c07_a_slow_format_outlives_its_caller_and_the_volume_is_in_use() {
    let slow = SimPartition::of(Content::Empty).format_seconds(150);
    let (node, process) = node_with(SimDisk::gpt(GIB).partition(slow));
    let volume = last_volume(&process);
    let format = Invoke::on(Namespace::Storage, "MSFT_Volume", &volume.path, "Format");
    let deadline =
        csi_proxy::clock::Clock::deadline_in(&*node.clock(), std::time::Duration::from_secs(120));
    let answer = process.cim().invoke(&format, deadline);
    let Err(PortError::DeadlineExceeded { running: Some(id) }) = answer else {
        panic!("{answer:?}");
    };
    process.crash();
    let next = node.process();
    assert_eq!(next.cim().is_running(&id, NOW), Ok(true));
    assert_eq!(on_last_volume(&next, format_ntfs()), 4);
    assert_eq!(number(&last_volume(&next), "FileSystemType"), 0);
    node.clock().advance(std::time::Duration::from_secs(30));
    assert_eq!(next.cim().is_running(&id, NOW), Ok(false));
    assert_eq!(number(&last_volume(&next), "FileSystemType"), 14);
}

#[test]
fn a_reboot_cuts_a_format_off_and_leaves_content_on_a_raw_volume() {
    let slow = SimPartition::of(Content::Empty).format_seconds(150);
    let (node, process) = node_with(SimDisk::gpt(GIB).partition(slow));
    let volume = last_volume(&process);
    let format = Invoke::on(Namespace::Storage, "MSFT_Volume", &volume.path, "Format");
    let deadline = Deadline::At(csi_proxy::clock::Moment(std::time::Duration::from_secs(1)));
    process.cim().invoke(&format, deadline).unwrap_err();
    node.reboot();
    node.clock().advance(std::time::Duration::from_secs(3600));
    let process = node.process();
    let volume = last_volume(&process);
    assert_eq!(number(&volume, "FileSystemType"), 0);
    let id = volume.properties["UniqueId"].as_str().unwrap();
    assert!(read(&process, id, 0, 1 << 20).iter().any(|byte| *byte != 0));
}

#[test]
fn the_number_of_a_removed_disk_is_given_to_the_next() {
    let (node, process) = node_with(SimDisk::raw(GIB).serial("old"));
    let old = disk(&process, 1, &["SerialNumber"]);
    node.detach_disk(DiskNumber(1)).unwrap();
    assert_eq!(
        node.attach_disk(&SimDisk::raw(GIB).serial("new")),
        DiskNumber(1)
    );
    let new = disk(&process, 1, &["SerialNumber"]);
    assert_eq!(new.properties["SerialNumber"].as_str(), Some("new"));
    let invoke = Invoke::on(Namespace::Storage, "MSFT_Disk", &old.path, "Initialize");
    assert!(process.cim().invoke(&invoke, NOW).is_err());
}

#[test]
fn a_disk_that_was_taken_away_comes_back_with_what_it_holds() {
    let (node, process) = node_with(SimDisk::ntfs(GIB));
    let before = last_volume(&process);
    let medium = node.detach_disk(DiskNumber(1)).unwrap();
    assert!(partitions(&process, 1).is_empty());
    assert_eq!(node.reattach_disk(medium), Some(DiskNumber(1)));
    assert_eq!(last_volume(&process), before);
}

#[test]
fn a_late_disk_is_found_after_rescans_or_in_time() {
    let seconds = std::time::Duration::from_secs;
    let node = SimNode::builder()
        .disk(SimDisk::raw(GIB).after_rescans(2))
        .disk(SimDisk::raw(GIB).after(seconds(60)))
        .build();
    let process = node.process();
    let count = || {
        let all = Query::new(Namespace::Storage, "MSFT_Disk", &["Number"]);
        query(&process, all).len()
    };
    let rescan = Invoke::on_class(
        Namespace::Storage,
        "MSFT_StorageSetting",
        "UpdateHostStorageCache",
    );
    let rescan = || process.cim().invoke(&rescan, NOW).unwrap().return_value;
    assert_eq!((count(), rescan(), count()), (1, 0, 1));
    assert_eq!((rescan(), count()), (0, 2));
    node.clock().advance(seconds(60));
    assert_eq!(count(), 3);
}

#[test]
fn reading_changes_nothing() {
    let (node, process) = node_with(SimDisk::ntfs(GIB));
    let before = node.snapshot();
    last_volume(&process);
    disk(&process, 1, PROPERTIES_OF_A_DISK);
    assert_eq!(node.snapshot(), before);
}

const PROPERTIES_OF_A_DISK: &[&str] = &["Size", "LargestFreeExtent", "OperationalStatus"];
