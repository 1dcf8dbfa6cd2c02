//! Formatting: options, C07, and what a format that was cut off leaves.

use std::time::Duration;

use csi_proxy::ErrorKind::{
    Aborted, DeadlineExceeded, FailedPrecondition, InvalidArgument, Unavailable,
};
use csi_proxy::cim::{Argument, CimCall, Invoke};
use csi_proxy::clock::{Clock, Deadline, Moment};
use csi_proxy::port::Call;
use csi_proxy::volume::{FileSystem, FormatOptions};
use csi_proxy::{DiskNumber, Host, VolumeId};
use csi_proxy_sim::storage::{Content, FileSystemKind, SimDisk, SimPartition};
use csi_proxy_sim::{Fault, SimClock, SimNode};

use crate::{
    GIB, NEVER, ONE, STAGING, assert_error, assert_refused, assert_unchanged, host, node, request,
    soon, volume_of,
};

fn empty(size: u64) -> (SimNode, VolumeId) {
    let node = node(SimDisk::gpt(size).partition(SimPartition::of(Content::Empty)));
    let volume = volume_of(&node, ONE);
    (node, volume)
}

/// The file system on disk 1.
fn made(node: &SimNode) -> Option<csi_proxy_sim::storage::FileSystem> {
    let storage = node.snapshot().storage;
    let (_, disk) = storage.disk_by_number(1).unwrap();
    let partition = storage.media[&disk.medium].partitions.last().unwrap();
    partition.file_system.clone()
}

/// The records that lie in the state directory.
fn records(node: &SimNode) -> usize {
    let paths = node.snapshot().paths_of(&volume_of(node, DiskNumber(0)));
    paths
        .iter()
        .filter(|(path, _)| path.starts_with(r"\state\"))
        .count()
}

#[test]
fn a_volume_is_formatted_as_asked() {
    let (node, volume) = empty(4 * GIB);
    let options = FormatOptions {
        file_system: FileSystem::Refs,
        allocation_unit: Some(65536),
        label: Some("data (1)".to_owned()),
    };
    host(&node)
        .volume()
        .format(&volume, &options, soon(&node))
        .unwrap();
    let made = made(&node).unwrap();
    assert_eq!(made.kind, FileSystemKind::Refs);
    assert_eq!(made.allocation_unit, 65536);
    assert_eq!(made.label, "data (1)");
    assert_eq!(records(&node), 0);
}

#[test]
fn ntfs_with_windows_own_choices_is_the_default() {
    let (node, volume) = empty(GIB);
    let options = FormatOptions::default();
    host(&node)
        .volume()
        .format(&volume, &options, soon(&node))
        .unwrap();
    let made = made(&node).unwrap();
    assert_eq!(
        (made.kind, made.allocation_unit),
        (FileSystemKind::Ntfs, 4096)
    );
}

/// The one call of a method, as it went to Windows.
fn invoked(node: &SimNode, method: &str) -> Invoke {
    let mut calls: Vec<_> = node
        .call_log()
        .into_iter()
        .filter(|entry| entry.call.operation() == method)
        .collect();
    assert_eq!(calls.len(), 1, "{method}");
    match calls.remove(0).call {
        Call::Cim(CimCall::Invoke(invoke)) => invoke,
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_format_is_forced_or_full_and_no_partition_gets_a_drive_letter() {
    let node = node(SimDisk::raw(GIB));
    host(&node).staging().stage(&request(), NEVER).unwrap();
    let no = Some(&Argument::Boolean(false));
    let format = invoked(&node, "MSFT_Volume.Format").arguments;
    assert_eq!(format.get("Force"), no);
    assert_eq!(format.get("Full"), no);
    let create = invoked(&node, "MSFT_Disk.CreatePartition").arguments;
    assert_eq!(create.get("AssignDriveLetter"), no);
    assert_eq!(create.get("DriveLetter"), None);
    let storage = node.snapshot().storage;
    let (_, disk) = storage.disk_by_number(1).unwrap();
    for partition in &storage.media[&disk.medium].partitions {
        assert_eq!(partition.drive_letter, None, "{partition:?}");
    }
}

#[test]
fn options_that_windows_does_not_take_are_refused_before_it_is_asked() {
    let (node, volume) = empty(GIB);
    let before = node.snapshot();
    let options = |file_system, allocation_unit, label: &str| FormatOptions {
        file_system,
        allocation_unit,
        label: Some(label.to_owned()),
    };
    let long = "x".repeat(33);
    for (options, part) in [
        (options(FileSystem::Ntfs, Some(1000), ""), "1000"),
        (options(FileSystem::Ntfs, Some(4 << 20), ""), "4194304"),
        (options(FileSystem::Refs, Some(8192), ""), "4096, 65536"),
        (options(FileSystem::Ntfs, None, &long), "33 UTF-16 units"),
        (options(FileSystem::Ntfs, None, "a|b"), "'|'"),
    ] {
        let result = host(&node).volume().format(&volume, &options, soon(&node));
        assert_error(result, InvalidArgument, &[part]);
        let mut request = request();
        request.format = options;
        let result = host(&node).staging().stage(&request, soon(&node));
        assert_error(result, InvalidArgument, &[part]);
    }
    // 2^32 units of 512 bytes are 2 TiB.
    let (large, volume) = empty(3 << 40);
    let small_unit = options(FileSystem::Ntfs, Some(512), "");
    let result = host(&large)
        .volume()
        .format(&volume, &small_unit, soon(&large));
    assert_error(result, InvalidArgument, &["512", "larger"]);
    assert_unchanged(&node, before);
}

#[test]
fn what_has_a_file_system_is_not_formatted() {
    for content in [Content::Ntfs, Content::Refs, Content::Fat32] {
        let node = node(SimDisk::gpt(GIB).partition(SimPartition::of(content)));
        let volume = volume_of(&node, ONE);
        assert_refused(&node, &["has the file system"], |host| {
            host.volume()
                .format(&volume, &FormatOptions::default(), soon(&node))
        });
    }
}

#[test]
fn c06_a_read_only_disk_is_not_formatted() {
    let disk = SimDisk::gpt(GIB).partition(SimPartition::of(Content::Empty));
    let node = node(disk.read_only());
    let volume = volume_of(&node, ONE);
    assert_refused(&node, &["read-only"], |host| {
        host.volume()
            .format(&volume, &FormatOptions::default(), soon(&node))
    });
}

#[test]
fn c06_the_codes_of_a_read_only_drive_are_told() {
    let (node, volume) = empty(GIB);
    node.inject(Fault::on("MSFT_Volume.Format").returns(43006));
    let result = host(&node)
        .volume()
        .format(&volume, &FormatOptions::default(), soon(&node));
    assert_error(result, FailedPrecondition, &["43006", "read-only"]);
    // Windows has not begun, so there is nothing to remember.
    assert_eq!(records(&node), 0);
}

#[test]
fn a_format_whose_answer_is_lost_is_found_done() {
    let (node, volume) = empty(GIB);
    let host = host(&node);
    let options = FormatOptions::default();
    node.inject(Fault::on("MSFT_Volume.Format").loses_answer());
    assert!(
        host.volume()
            .format(&volume, &options, soon(&node))
            .is_err()
    );
    assert_eq!(records(&node), 1);
    host.volume()
        .format(&volume, &options, soon(&node))
        .unwrap();
    assert_eq!(node.counts().of("MSFT_Volume.Format"), 1);
    assert_eq!(records(&node), 0);
}

#[test]
fn a_format_that_goes_on_as_a_job_is_waited_for() {
    let (node, volume) = empty(GIB);
    let host = host(&node);
    let format = || {
        host.volume()
            .format(&volume, &FormatOptions::default(), NEVER)
    };
    node.inject(Fault::on("MSFT_Volume.Format").returns(4096));
    // The queries of the volume: two observations, the check before the format, and those
    // that wait for its end.
    node.inject(
        Fault::on("query MSFT_Volume")
            .nth(7)
            .before(|state| make(state, "job")),
    );
    format().unwrap();
    assert_eq!(made(&node).unwrap().label, "job");
    assert_eq!(node.counts().of("MSFT_Volume.Format"), 1);
    assert!(node.clock().now().0 >= Duration::from_secs(1));
}

#[test]
fn a_job_that_does_not_end_is_told_after_the_longest_time_of_a_format() {
    let (node, volume) = empty(GIB);
    node.inject(Fault::on("MSFT_Volume.Format").returns(4096));
    let result = host(&node)
        .volume()
        .format(&volume, &FormatOptions::default(), soon(&node));
    assert_error(result, DeadlineExceeded, &["the end of the format"]);
    assert_eq!(node.clock().now().0, csi_proxy::volume::FORMAT_LIMIT);
    assert_eq!(records(&node), 1);
}

/// A disk on which a format takes 150 s.
fn slow(clock: SimClock) -> SimNode {
    let partition = SimPartition::of(Content::Empty).format_seconds(150);
    SimNode::builder()
        .clock(clock)
        .disk(SimDisk::gpt(GIB).partition(partition).unique_id("one"))
        .build()
}

fn at(seconds: u64) -> Deadline {
    Deadline::At(Moment(Duration::from_secs(seconds)))
}

/// Moves the clock to a time.
fn go_to(node: &SimNode, seconds: u64) {
    let clock = node.clock();
    clock.advance(Duration::from_secs(seconds) - clock.now().0);
}

/// Returns once a format runs.
fn wait_for_format(node: &SimNode) {
    while node.snapshot().storage.jobs.is_empty() {
        std::thread::yield_now();
    }
}

fn put_file(node: &SimNode) {
    node.change(|state| state.put_file(&format!(r"{STAGING}\kept"), b"x").unwrap());
}

fn has_file(node: &SimNode) -> bool {
    node.snapshot().file(&format!(r"{STAGING}\kept")).is_ok()
}

#[test]
fn c07_the_slow_format() {
    let node = slow(SimClock::manual());
    let host = host(&node);
    let stage = |deadline| host.staging().stage(&request(), at(deadline));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| stage(120));
        wait_for_format(&node);
        for now in [121, 130] {
            go_to(&node, now);
            assert_error(
                stage(now + 120),
                Aborted,
                &["disk one", "another operation"],
            );
        }
        go_to(&node, 150);
        // The format was not cut, but what follows it is not begun after the deadline.
        assert_error(first.join().unwrap(), DeadlineExceeded, &[]);
    });
    go_to(&node, 160);
    stage(280).unwrap();
    put_file(&node);
    stage(280).unwrap();
    assert!(has_file(&node));
    assert_eq!(node.counts().of("MSFT_Volume.Format"), 1);
    assert_eq!(node.counts().of("set_mount_point"), 1);
    assert_eq!(records(&node), 0);
}

#[test]
fn c07_the_process_is_restarted_during_the_slow_format() {
    let node = slow(SimClock::manual());
    let process = node.process();
    let old = process.host().with_state_dir(crate::path(r"C:\state"));
    let new = host(&node);
    let stage = |host: &Host, deadline| host.staging().stage(&request(), at(deadline));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| stage(&old, 120));
        wait_for_format(&node);
        go_to(&node, 60);
        process.crash();
        for now in [61, 121, 130, 149] {
            go_to(&node, now);
            let error = assert_error(stage(&new, now + 120), Aborted, &["earlier format"]);
            assert!(error.to_string().contains("MSFT_Volume.Format"), "{error}");
            assert_eq!(node.snapshot().storage.jobs.len(), 1);
        }
        go_to(&node, 160);
        assert_error(first.join().unwrap(), Unavailable, &[]);
    });
    stage(&new, 280).unwrap();
    put_file(&node);
    stage(&new, 280).unwrap();
    assert!(has_file(&node));
    assert_eq!(node.counts().of("set_mount_point"), 1);
    assert_eq!(records(&node), 0);
}

#[test]
fn c07_the_volume_is_locked_while_the_earlier_format_runs() {
    let node = slow(SimClock::manual());
    let process = node.process();
    let old = process.host().with_state_dir(crate::path(r"C:\state"));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| old.staging().stage(&request(), at(120)));
        wait_for_format(&node);
        process.crash();
        for code in [5, 32, 33] {
            node.inject(Fault::on("read_range").win32(code));
            let result = host(&node).staging().stage(&request(), at(120));
            assert_error(result, Aborted, &["earlier format", &code.to_string()]);
        }
        go_to(&node, 160);
        first.join().unwrap().unwrap_err();
    });
}

fn check_not_formatting(node: &SimNode) -> csi_proxy::Result<()> {
    host(node).staging().check_not_formatting("one", soon(node))
}

#[test]
fn a_format_that_goes_on_without_its_process_is_told_until_it_ends() {
    let node = slow(SimClock::manual());
    let process = node.process();
    let old = process.host().with_state_dir(crate::path(r"C:\state"));
    check_not_formatting(&node).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| old.staging().stage(&request(), at(120)));
        wait_for_format(&node);
        // The first process holds the disk's lock.
        assert_error(check_not_formatting(&node), Aborted, &["another operation"]);
        process.crash();
        for now in [1, 149] {
            go_to(&node, now);
            let result = check_not_formatting(&node);
            assert_error(result, Aborted, &["earlier format", "may still run"]);
        }
        // Of another disk nothing is recorded.
        let staging = host(&node);
        staging
            .staging()
            .check_not_formatting("two", NEVER)
            .unwrap();
        go_to(&node, 151);
        first.join().unwrap().unwrap_err();
    });
    assert_eq!(records(&node), 1);
    check_not_formatting(&node).unwrap();
}

/// Lays down a record of a format of disk `one`, begun at a time.
fn put_record(node: &SimNode, began: u64) {
    let volume = volume_of(node, ONE);
    let contents = format!(r#"{{"disk":"one","partition":null,"offset":0,"began":{began}}}"#);
    node.change(|state| {
        state.put_directory(r"C:\state").unwrap();
        let path = format!(r"C:\state\format-{}.json", volume.guid());
        state.put_file(&path, contents.as_bytes()).unwrap();
    });
}

#[test]
fn an_old_record_tells_of_a_running_format_only_while_the_volume_is_in_use() {
    let (node, _) = empty(GIB);
    put_record(&node, 0);
    check_not_formatting(&node).unwrap();
    for code in [5, 32, 33] {
        node.inject(Fault::on("read_range").win32(code));
        let result = check_not_formatting(&node);
        assert_error(result, Aborted, &["earlier format", &code.to_string()]);
    }
    // Another fault of the device tells nothing about a format.
    node.inject(Fault::on("read_range").win32(23));
    check_not_formatting(&node).unwrap();
    // So does a time that has not come: the clock was set back.
    put_record(&node, u64::MAX);
    check_not_formatting(&node).unwrap();
}

#[test]
fn a_format_that_windows_says_has_failed_does_not_run() {
    let (node, volume) = empty(GIB);
    let format = || {
        let options = FormatOptions::default();
        host(&node).volume().format(&volume, &options, soon(&node))
    };
    // 2, 4: failed, in a way that does not say whether anything was written.
    for code in [2, 4] {
        node.inject(Fault::on("MSFT_Volume.Format").returns(code));
        let error = format().unwrap_err();
        assert!(!error.to_string().contains("may still run"), "{error}");
        assert_eq!(records(&node), 1);
        check_not_formatting(&node).unwrap();
    }
    // What it left is formatted again.
    node.change(|state| write(state, 256 << 10, b"FILE0"));
    format().unwrap();
    assert_eq!(records(&node), 0);
}

#[test]
fn a_volume_that_is_gone_is_not_formatted_any_more() {
    let node = slow(SimClock::auto());
    node.inject(Fault::on("MSFT_Volume.Format").crash_before());
    host(&node).staging().stage(&request(), NEVER).unwrap_err();
    assert_error(check_not_formatting(&node), Aborted, &["may still run"]);
    node.detach_disk(ONE).unwrap();
    check_not_formatting(&node).unwrap();
}

#[test]
fn a_format_that_a_reboot_cut_off_is_made_again() {
    let node = slow(SimClock::auto());
    node.inject(Fault::on("MSFT_Volume.Format").reboot_before());
    let first = host(&node).staging().stage(&request(), NEVER);
    assert_error(first, Unavailable, &[]);
    let volume = volume_of(&node, ONE);
    assert_eq!(records(&node), 1);
    // What a format leaves that is cut off in its middle.
    node.change(|state| write(state, 256 << 10, b"FILE0"));
    let other_state = node
        .process()
        .host()
        .with_state_dir(crate::path(r"C:\other"));
    let result = other_state.staging().stage(&request(), NEVER);
    assert_error(result, FailedPrecondition, &["not empty", volume.guid()]);
    host(&node).staging().stage(&request(), NEVER).unwrap();
    assert_eq!(records(&node), 0);
}

#[test]
fn a_record_does_not_allow_to_format_what_others_wrote() {
    let node = slow(SimClock::auto());
    node.inject(Fault::on("MSFT_Volume.Format").crash_before());
    host(&node).staging().stage(&request(), NEVER).unwrap_err();
    assert_eq!(records(&node), 1);
    node.change(|state| write(state, 1080, &[0x53, 0xef]));
    assert_refused(&node, &["ext2, ext3 or ext4"], |host| {
        host.staging().stage(&request(), NEVER)
    });
}

#[test]
fn a_record_of_another_disk_or_that_is_none_does_not_count() {
    for contents in [
        "",
        "{}",
        "no record",
        r#"{"disk":"two","partition":null,"offset":16777216,"began":0}"#,
    ] {
        let node = slow(SimClock::auto());
        node.change(|state| write(state, 256 << 10, b"FILE0"));
        let volume = volume_of(&node, ONE);
        node.change(|state| {
            state.put_directory(r"C:\state").unwrap();
            let path = format!(r"C:\state\format-{}.json", volume.guid());
            state.put_file(&path, contents.as_bytes()).unwrap();
        });
        let result = host(&node).staging().stage(&request(), NEVER);
        assert_error(result, FailedPrecondition, &["not empty"]);
    }
}

/// A record that a crash left behind would later allow to format over content.
#[test]
fn a_stage_of_a_formatted_volume_removes_the_record() {
    let node = slow(SimClock::auto());
    node.inject(Fault::on("MSFT_Volume.Format").crash_after());
    host(&node).staging().stage(&request(), NEVER).unwrap_err();
    assert_eq!(records(&node), 1);
    host(&node).staging().stage(&request(), NEVER).unwrap();
    assert_eq!(records(&node), 0);
    assert_eq!(node.counts().of("MSFT_Volume.Format"), 1);
}

#[test]
fn a_volume_that_changes_right_before_the_format_is_left_alone() {
    let node = slow(SimClock::auto());
    // The query right before the format finds that someone else has formatted it.
    node.inject(Fault::on("query MSFT_Volume").before(|state| make(state, "theirs")));
    let result = host(&node).staging().stage(&request(), NEVER);
    assert_error(result, Aborted, &["changed the volume"]);
    assert_eq!(node.counts().of("MSFT_Volume.Format"), 0);
    assert_eq!(records(&node), 0);
}

/// Writes on the last partition of disk 1.
fn write(state: &mut csi_proxy_sim::State, place: u64, bytes: &[u8]) {
    let (_, disk) = state.storage.disk_by_number(1).unwrap();
    let medium = disk.medium;
    let medium = state.storage.media.get_mut(&medium).unwrap();
    let offset = medium.partitions.last().unwrap().offset;
    medium.bytes.write(offset + place, bytes);
}

/// Someone else has formatted the last partition of disk 1.
fn make(state: &mut csi_proxy_sim::State, label: &str) {
    let (_, disk) = state.storage.disk_by_number(1).unwrap();
    let medium = disk.medium;
    let medium = state.storage.media.get_mut(&medium).unwrap();
    medium.partitions.last_mut().unwrap().file_system = Some(csi_proxy_sim::storage::FileSystem {
        kind: FileSystemKind::Ntfs,
        label: label.to_owned(),
        allocation_unit: 4096,
        health: 0,
    });
}
