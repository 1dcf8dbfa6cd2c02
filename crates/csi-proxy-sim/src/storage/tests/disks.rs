//! Disks and their partitions.

use super::*;

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

#[test]
fn a_condition_on_a_key_makes_one_row_of_many_disks() {
    let mut builder = SimNode::builder();
    for _ in 0..100 {
        builder = builder.disk(SimDisk::ntfs(GIB));
    }
    let state = builder.build().snapshot();
    let (_, disk) = state.storage.disk_by_number(50).unwrap();
    let volume = state.storage.media[&disk.medium].partitions[1]
        .volume
        .clone();
    let volume = volume.unwrap();
    for (class, property, value, rows) in [
        (
            &disk_class::CLASS,
            "Number",
            csi_proxy::cim::Argument::from(50u32),
            1,
        ),
        (
            &disk_class::CLASS,
            "UniqueId",
            disk.unique_id.as_str().into(),
            1,
        ),
        (&partition_class::CLASS, "DiskNumber", 50u32.into(), 2),
        (&volume_class::CLASS, "UniqueId", volume.as_str().into(), 1),
    ] {
        let query = Query::new(Namespace::Storage, class.name, &[]).with(property, value);
        let hint = crate::cim::Hint {
            conditions: &query.conditions,
            ..Default::default()
        };
        let made = (class.rows)(&state, &hint).len();
        assert_eq!(made, rows, "{} by {property}", class.name);
    }
}

#[test]
fn a_query_for_what_a_class_does_not_have_is_refused() {
    let (_, process) = node_with(SimDisk::raw(GIB));
    for query in [
        Query::new(Namespace::Storage, "MSFT_Disk", &["Colour"]),
        Query::new(Namespace::Storage, "MSFT_Disk", &["Number"]).with("Colour", "red"),
        Query::new(Namespace::Storage, "MSFT_Dusk", &[]),
        Query::new(Namespace::Cimv2, "MSFT_Disk", &["Number"]),
    ] {
        assert!(process.cim().query(&query, NOW).is_err(), "{query:?}");
    }
    let object = disk(&process, 1, &["Number"]);
    for invoke in [
        method("Explode"),
        method("Initialize").with("Colour", "red"),
        method("Initialize").with("PartitionStyle", "two"),
    ] {
        let invoke = Invoke {
            arguments: invoke.arguments,
            ..Invoke::on(
                Namespace::Storage,
                "MSFT_Disk",
                &object.path,
                &invoke.method,
            )
        };
        assert!(process.cim().invoke(&invoke, NOW).is_err(), "{invoke:?}");
    }
}

#[test]
fn a_text_condition_is_compared_without_case_and_nothing_equals_null() {
    let (_, process) = node_with(SimDisk::raw(GIB).serial("AbC"));
    let with = |property: &str, value: &str| {
        let all = Query::new(Namespace::Storage, "MSFT_Disk", &["Number"]);
        query(&process, all.with(property, value)).len()
    };
    assert_eq!(with("serialnumber", "aBc"), 1);
    assert_eq!(with("SerialNumber", ""), 0);
}

#[test]
fn c03_two_disks_may_have_one_serial_and_one_unique_id() {
    let twin = SimDisk::raw(GIB)
        .serial("twin")
        .unique_id("6002248000000001");
    let node = SimNode::builder().disk(twin.clone()).disk(twin).build();
    let by_id = Query::new(Namespace::Storage, "MSFT_Disk", &["Number"]);
    let rows = query(&node.process(), by_id.with("UniqueId", "6002248000000001"));
    assert_eq!(rows.len(), 2);
    assert_ne!(rows[0].path, rows[1].path);
}

#[test]
fn an_mbr_disk_takes_four_partitions() {
    let (_, process) = node_with(SimDisk::raw(GIB));
    assert_eq!(
        on_disk(&process, method("Initialize").with("PartitionStyle", 1u32)),
        0
    );
    assert!(partitions(&process, 1).is_empty());
    let create = method("CreatePartition").with("Size", 64 * MIB);
    for code in [0, 0, 0, 0, 41004] {
        assert_eq!(on_disk(&process, create.clone()), code);
    }
    let gpt = create.with("GptType", "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}");
    assert_eq!(on_disk(&process, gpt), 41004);
}

#[test]
fn a_partition_type_of_the_other_style_is_refused() {
    let (_, process) = node_with(SimDisk::gpt(GIB));
    assert_eq!(
        on_disk(&process, create_partition().with("MbrType", 7u32)),
        41006
    );
    assert_eq!(
        on_disk(&process, create_partition().with("GptType", "data")),
        41010
    );
    assert_eq!(
        on_disk(&process, create_partition().with("Alignment", 100u32)),
        41005
    );
}

#[test]
fn clear_wants_to_be_told_that_data_go() {
    let (node, process) = node_with(SimDisk::ntfs(GIB));
    assert_eq!(on_disk(&process, method("Clear")), 41008);
    assert_eq!(
        on_disk(&process, method("Clear").with("RemoveData", true)),
        0
    );
    assert_eq!(on_disk(&process, method("Clear")), 41000);
    assert!(partitions(&process, 1).is_empty());
    let state = node.snapshot();
    let (_, disk) = state.storage.disk_by_number(1).unwrap();
    assert_eq!(state.storage.media[&disk.medium].bytes.read(512, 8), [0; 8]);
}

#[test]
fn a_refused_method_changes_nothing() {
    let (node, process) = node_with(SimDisk::gpt(GIB).read_only());
    let before = node.snapshot();
    for wanted in [
        create_partition(),
        method("Initialize"),
        method("ConvertStyle").with("PartitionStyle", 1u32),
        method("Clear").with("RemoveData", true),
    ] {
        let name = wanted.method.clone();
        assert_ne!(on_disk(&process, wanted), 0, "{name}");
    }
    assert_eq!(node.snapshot(), before);
}

#[test]
fn each_code_is_one_that_is_documented_or_assumed() {
    // The codes that the tests above and the model answer, by method.
    for (name, codes) in [
        ("MSFT_Disk.Initialize", &[41001u32, 41014][..]),
        (
            "MSFT_Disk.CreatePartition",
            &[
                40000, 40005, 41000, 41002, 41003, 41004, 41005, 41006, 41010, 41011, 41012, 42002,
                42004, 4097,
            ],
        ),
        (
            "MSFT_Disk.Clear",
            &[41000, 41002, 41003, 41007, 41008, 41009],
        ),
        ("MSFT_Disk.Offline", &[41009]),
        ("MSFT_Disk.Refresh", &[41000, 41003]),
        ("MSFT_Disk.SetAttributes", &[41000, 41003, 41006, 41009]),
        ("MSFT_Partition.AddAccessPath", &[42002, 42004, 42007]),
        ("MSFT_Partition.RemoveAccessPath", &[42005, 42006, 42007]),
        ("MSFT_Partition.DeleteObject", &[6]),
        ("MSFT_Partition.GetSupportedSize", &[42009]),
        ("MSFT_Partition.Resize", &[4097, 42008, 42009]),
        ("MSFT_Partition.Offline", &[42011]),
        ("MSFT_Partition.SetAttributes", &[41006, 42010]),
        ("MSFT_Volume.Format", &[42010, 43000, 43001, 43003, 43006]),
    ] {
        for code in codes {
            let meaning = csi_proxy::codes::method_meaning(name, *code);
            assert!(meaning.is_some(), "{name} {code}");
        }
    }
}

#[test]
fn c13_a_disk_that_has_grown_has_its_old_size_until_windows_looks_again() {
    let rescan = |process: &Process| {
        let class = "MSFT_StorageSetting";
        let rescan = Invoke::on_class(Namespace::Storage, class, "UpdateHostStorageCache");
        assert!(process.cim().invoke(&rescan, NOW).is_ok());
    };
    let refresh = |process: &Process| assert_eq!(on_disk(process, method("Refresh")), 0);
    let looks: [&dyn Fn(&Process); 2] = [&rescan, &refresh];
    for look in looks {
        let (node, process) = node_with(SimDisk::ntfs(GIB));
        let grow = crate::NodeChange::GrowDisk {
            number: 1,
            size: 2 * GIB,
        };
        node.change(|state| grow.apply(state).unwrap());
        let size = || {
            disk(&process, 1, &["Size"]).properties["Size"]
                .as_str()
                .map(str::to_owned)
        };
        let resize = || on_last_partition(&process, method("Resize").with("Size", GIB));
        assert_eq!((size(), resize()), (Some(GIB.to_string()), 4097));
        look(&process);
        assert_eq!((size(), resize()), (Some((2 * GIB).to_string()), 0));
    }
}

#[test]
fn a_disk_does_not_shrink_and_grows_by_whole_sectors() {
    let mut state = node_with(SimDisk::ntfs(GIB)).0.snapshot();
    let before = state.clone();
    for (number, size) in [(1, GIB - 512), (1, GIB + 1), (9, 2 * GIB)] {
        let grow = crate::NodeChange::GrowDisk { number, size };
        assert!(grow.apply(&mut state).is_err(), "disk {number} to {size}");
    }
    assert_eq!(state, before);
}

#[test]
fn a_disk_that_cannot_be_is_refused_by_the_field() {
    use crate::storage::SimPartition;

    let at = |offset: u64, size: u64| SimPartition::of(Content::Ntfs).offset(offset).size(size);
    let unit = |allocation_unit| SimPartition {
        allocation_unit: Some(allocation_unit),
        ..SimPartition::of(Content::Ntfs)
    };
    for (disk, field) in [
        (SimDisk::raw(0), "size"),
        (SimDisk::raw(513), "size"),
        (SimDisk::raw(1 << 63), "size"),
        (SimDisk::gpt(u64::MAX - 511), "size"),
        (SimDisk::raw(GIB).number(u32::MAX), "number"),
        (SimDisk::gpt(GIB).partition(at(0, 0)), "partitions[0].size"),
        (
            SimDisk::gpt(GIB).partition(at(64 << 20, 0)),
            "partitions[0].size",
        ),
        (
            SimDisk::gpt(GIB).partition(at(64 << 20, 1000)),
            "partitions[0].size",
        ),
        (
            SimDisk::gpt(GIB).partition(at(1000, 1 << 20)),
            "partitions[0].size",
        ),
        (
            SimDisk::gpt(GIB).partition(at(64 << 20, u64::MAX)),
            "partitions[0].size",
        ),
        (
            SimDisk::gpt(GIB).partition(at(u64::MAX, 1)),
            "partitions[0].size",
        ),
        (
            SimDisk::mbr(GIB).partition(at(u64::MAX - 511, 512)),
            "partitions[0].size",
        ),
        (
            SimDisk::gpt(GIB)
                .partition(at(64 << 20, GIB / 2))
                .partition(at(64 << 20, 512)),
            "partitions[1].size",
        ),
        (
            SimDisk::gpt(GIB).partition(unit(0)),
            "partitions[0].allocation_unit",
        ),
        (
            SimDisk::gpt(GIB).partition(unit(1000)),
            "partitions[0].allocation_unit",
        ),
    ] {
        let error = disk.check().unwrap_err().to_string();
        assert!(error.starts_with(field), "{field}: {error}");
    }
    for disk in [
        SimDisk::raw(512),
        SimDisk::gpt((1 << 63) - 512),
        SimDisk::ntfs(1 << 50),
    ] {
        assert_eq!(disk.check(), Ok(()));
    }
}

#[test]
fn a_read_far_behind_the_end_of_a_volume_answers_nothing() {
    let node = SimNode::builder().disk(SimDisk::ntfs(1 << 30)).build();
    let process = node.process();
    let volume = last_volume(&process);
    let volume = volume.properties["UniqueId"].as_str().unwrap();
    assert!(read(&process, volume, u64::MAX - 511, 512).is_empty());
}
