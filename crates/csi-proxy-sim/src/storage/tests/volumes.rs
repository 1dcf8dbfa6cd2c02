//! Volumes, their formats and sizes, and the bytes on them.

use super::*;

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
fn c05_an_offline_disk_has_partitions_but_no_volumes() {
    let (_, process) = node_with(SimDisk::ntfs(GIB).offline());
    assert_eq!(on_disk(&process, create_partition()), 41003);
    let partition = partitions(&process, 1).pop().unwrap();
    assert!(volumes_of(&process, &partition).is_empty());
    assert_eq!(on_disk(&process, method("Online")), 0);
    assert_eq!(volumes_of(&process, &partition).len(), 1);
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
fn c05_a_partition_of_an_offline_disk_is_not_resized_and_stays_as_it_is() {
    let partition = SimPartition::of(Content::Ntfs).size(100 * MIB);
    let (node, process) = node_with(SimDisk::gpt(GIB).partition(partition).offline());
    let before = node.snapshot();
    for name in ["Online", "Offline"] {
        assert_eq!(on_last_partition(&process, method(name)), 4, "{name}");
    }
    let resize = method("Resize").with("Size", 200 * MIB);
    assert_eq!(on_last_partition(&process, resize), 4);
    assert_eq!(node.snapshot(), before);
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
    for content in [Content::Ext4, Content::DamagedNtfs, Content::Unknown] {
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
fn c08_a_volume_that_bitlocker_has_locked_is_raw_and_cannot_be_read() {
    let partition = SimPartition::of(Content::Bitlocker);
    let (_, process) = node_with(SimDisk::gpt(GIB).partition(partition));
    let volume = last_volume(&process);
    assert_eq!(number(&volume, "FileSystemType"), 0);
    let request = ReadRange {
        device: DevicePath(volume.properties["UniqueId"].as_str().unwrap().to_owned()),
        offset: 0,
        length: 512,
    };
    let result = process.os().read_range(&request, NOW);
    assert!(
        matches!(
            &result,
            Err(PortError::System {
                code: SystemCode::Win32(0x8031_0000),
                ..
            })
        ),
        "{result:?}"
    );
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
fn c08_a_dynamic_disk_and_a_linux_partition_have_no_volumes() {
    for kind in [SimKind::Dynamic, SimKind::Linux] {
        for disk in [SimDisk::gpt(GIB), SimDisk::mbr(GIB)] {
            let partition = SimPartition::of(Content::Unknown).kind(kind);
            let (_, process) = node_with(disk.partition(partition));
            let last = partitions(&process, 1).pop().unwrap();
            assert!(volumes_of(&process, &last).is_empty(), "{kind:?}");
            let first = read(&process, r"\\.\PhysicalDrive1", 0, 1 << 20);
            assert!(first.iter().any(|byte| *byte != 0), "{kind:?}");
        }
    }
}

#[test]
fn access_paths_come_and_go_with_their_codes() {
    let (node, process) = node_with(SimDisk::ntfs(GIB));
    node.change(|state| state.put_directory(r"C:\mnt").unwrap());
    let add =
        |path: &str| on_last_partition(&process, method("AddAccessPath").with("AccessPath", path));
    let remove = |path: &str| {
        on_last_partition(
            &process,
            method("RemoveAccessPath").with("AccessPath", path),
        )
    };
    let paths = || partitions(&process, 1).pop().unwrap().properties["AccessPaths"].clone();
    let volume = last_volume(&process).properties["UniqueId"].clone();
    assert_eq!(paths(), vec![volume.clone()].into());
    assert_eq!(
        [add("C:"), add(r"C:\nowhere"), add("E:"), add(r"C:\mnt")],
        [42002, 42007, 0, 0]
    );
    let all: Vec<_> = [r"E:\", r"C:\mnt\"]
        .into_iter()
        .map(csi_proxy::cim::Value::from)
        .collect();
    assert_eq!(paths(), [all, vec![volume.clone()]].concat().into());
    assert_eq!(remove(volume.as_str().unwrap()), 42005);
    assert_eq!(
        [remove("F:"), remove("E:"), remove(r"C:\mnt")],
        [42007, 0, 0]
    );
    assert_eq!(paths(), vec![volume].into());
}

#[test]
fn a_deleted_partition_takes_its_volume_and_the_boot_partition_stays() {
    let (_, process) = node_with(SimDisk::ntfs(GIB));
    assert_eq!(on_last_partition(&process, method("DeleteObject")), 0);
    assert_eq!(partitions(&process, 1).len(), 1);
    let boot = partitions(&process, 0).pop().unwrap();
    assert_eq!(
        call(&process, "MSFT_Partition", &boot, method("DeleteObject")),
        6
    );
}
