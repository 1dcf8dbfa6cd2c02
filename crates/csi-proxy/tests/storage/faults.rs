//! Every port call of every operation fails once with each code that it can answer, loses
//! its answer, or is where the process or the node ends: the error says what it was, and the
//! operation made again ends well, without doing anything twice.

use csi_proxy::ErrorKind::{
    DeadlineExceeded, FailedPrecondition, NotFound, OutcomeUnknown, Unavailable,
};
use csi_proxy::codes::{Row, documented};
use csi_proxy::disk::DiskState;
use csi_proxy::port::Call;
use csi_proxy::staging::StageRequest;
use csi_proxy::volume::{FormatOptions, NewSize};
use csi_proxy::{DiskNumber, Host, Result, VolumeId};
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};
use csi_proxy_sim::{Fault, Latency, SimNode, State};

use crate::common::{failures, report};
use crate::{GIB, NEVER, ONE, STAGING, host, node, path, request, soon, volume_of};

/// An operation, the node that it is tried on, and what it must have done.
struct Case {
    name: &'static str,
    node: fn() -> SimNode,
    run: fn(&SimNode, &Host) -> Result<()>,
    done: fn(&SimNode) -> bool,
}

const CASES: &[Case] = &[
    Case {
        name: "stage a fresh disk",
        node: || node(SimDisk::raw(GIB)),
        run: stage,
        done: is_staged,
    },
    Case {
        name: "stage a fresh disk that formats slowly",
        node: || {
            let node = node(SimDisk::raw(GIB));
            node.set_latency(Latency {
                format_per_gib: std::time::Duration::from_secs(3),
                ..Latency::NONE
            });
            node
        },
        run: stage,
        done: is_staged,
    },
    Case {
        name: "stage a formatted volume",
        node: formatted,
        run: stage,
        done: is_staged,
    },
    Case {
        name: "stage what is staged",
        node: staged,
        run: stage,
        done: is_staged,
    },
    Case {
        name: "stage an offline and read-only disk over a dead link",
        node: || {
            let node = node(SimDisk::ntfs(GIB).offline().read_only());
            node.change(|state| {
                state
                    .put_directory(r"C:\var\lib\kubelet\plugins\staging")
                    .unwrap();
                let target = r"C:\gone".to_owned();
                let link = csi_proxy::os::Reparse::SymbolicLink { target };
                state.put_link(STAGING, link).unwrap();
            });
            node
        },
        run: stage,
        done: is_staged,
    },
    Case {
        name: "stage over the mount point of a volume that is gone",
        node: || {
            let node = formatted();
            let second = node.attach_disk(&SimDisk::ntfs(GIB).unique_id("two"));
            let theirs = StageRequest {
                disk: "two".to_owned(),
                ..request()
            };
            host(&node).staging().stage(&theirs, NEVER).unwrap();
            node.detach_disk(second).unwrap();
            node
        },
        run: stage,
        done: is_staged,
    },
    Case {
        name: "unstage",
        node: staged,
        run: unstage,
        done: is_unstaged,
    },
    Case {
        name: "unstage a volume that is gone",
        node: || {
            let node = staged();
            node.detach_disk(ONE).unwrap();
            node
        },
        run: unstage,
        done: is_unstaged,
    },
    Case {
        name: "partition",
        node: || node(SimDisk::raw(GIB)),
        run: |node, host| host.disk().partition(ONE, soon(node)),
        done: |node| partitions(node).len() == 2,
    },
    Case {
        name: "partition what is offline",
        node: || {
            let partition = SimPartition {
                offline: true,
                ..SimPartition::of(Content::Ntfs)
            };
            node(SimDisk::gpt(GIB).partition(partition))
        },
        run: |node, host| host.disk().partition(ONE, soon(node)),
        done: |node| partitions(node).iter().all(|partition| !partition.offline),
    },
    Case {
        name: "format",
        node: || node(SimDisk::gpt(GIB).partition(SimPartition::of(Content::Empty))),
        run: |node, host| {
            let options = FormatOptions::default();
            match host.volume().format(&volume(node), &options, soon(node)) {
                // Made by the call before, and its record is gone: callers ask first.
                Err(error)
                    if error.kind() == FailedPrecondition
                        && host.volume().is_formatted(&volume(node), NEVER)? =>
                {
                    Ok(())
                }
                answer => answer,
            }
        },
        done: |node| partitions(node)[1].file_system.is_some(),
    },
    Case {
        name: "resize",
        node: || {
            let small = SimPartition::of(Content::Ntfs).size(GIB / 2);
            node(SimDisk::gpt(GIB).partition(small))
        },
        run: |node, host| {
            let size = NewSize::Bytes(GIB / 4 * 3);
            host.volume()
                .resize(&volume(node), size, soon(node))
                .map(drop)
        },
        done: |node| partitions(node)[1].size == GIB / 4 * 3,
    },
    Case {
        name: "set_state offline",
        node: formatted,
        run: |node, host| host.disk().set_state(ONE, DiskState::Offline, soon(node)),
        done: is_offline,
    },
    Case {
        name: "set_state online",
        node: || node(SimDisk::ntfs(GIB).offline()),
        run: |node, host| host.disk().set_state(ONE, DiskState::Online, soon(node)),
        done: |node| !is_offline(node),
    },
    Case {
        name: "clear_read_only",
        node: || node(SimDisk::ntfs(GIB).read_only()),
        run: |node, host| host.disk().clear_read_only(ONE, soon(node)),
        done: |node| {
            !node
                .snapshot()
                .storage
                .disk_by_number(1)
                .unwrap()
                .1
                .read_only
        },
    },
    Case {
        name: "mount",
        node: || {
            let node = formatted();
            node.change(|state| state.put_directory(STAGING).unwrap());
            node
        },
        run: |node, host| {
            host.volume()
                .mount(&volume(node), &path(STAGING), soon(node))
        },
        done: is_staged,
    },
    Case {
        name: "unmount",
        node: staged,
        run: |node, host| {
            host.volume()
                .unmount(&volume(node), &path(STAGING), soon(node))
        },
        done: |node| mounts(node).is_empty(),
    },
    Case {
        name: "reading of disks",
        node: staged,
        run: |node, host| {
            let deadline = soon(node);
            host.disk().list_locations(deadline)?;
            host.disk().list_ids(deadline)?;
            host.disk().rescan(deadline)?;
            host.disk().stats(ONE, deadline)?;
            host.disk().state(ONE, deadline)?;
            host.disk()
                .find(&"unique-id=one".parse().unwrap(), deadline)
                .map(drop)
        },
        done: |_| true,
    },
    Case {
        name: "find by page 83",
        node: formatted,
        run: |node, host| {
            let locator = "page83=one".parse().unwrap();
            host.disk().find(&locator, soon(node)).map(drop)
        },
        done: |_| true,
    },
    Case {
        name: "reading of volumes",
        node: staged,
        run: |node, host| {
            let (volume, deadline) = (volume(node), soon(node));
            host.volume().list_on_disk(ONE, None, deadline)?;
            host.volume().is_formatted(&volume, deadline)?;
            host.volume().stats(&volume, deadline)?;
            host.volume().health(&volume, deadline)?;
            host.volume().disk_number(&volume, deadline)?;
            host.volume().write_cache(&volume, deadline)?;
            host.volume()
                .id_from_target_path(&path(STAGING), deadline)?;
            let windows = path(r"C:\Windows");
            host.volume()
                .closest_id_from_target_path(&windows, deadline)
                .map(drop)
        },
        done: |_| true,
    },
];

fn formatted() -> SimNode {
    node(SimDisk::ntfs(GIB))
}

fn staged() -> SimNode {
    let node = formatted();
    host(&node).staging().stage(&request(), NEVER).unwrap();
    node
}

fn stage(node: &SimNode, host: &Host) -> Result<()> {
    host.staging().stage(&request(), soon(node)).map(drop)
}

fn unstage(node: &SimNode, host: &Host) -> Result<()> {
    host.staging().unstage(&path(STAGING), None, soon(node))
}

fn volume(node: &SimNode) -> VolumeId {
    volume_of(node, ONE)
}

fn partitions(node: &SimNode) -> Vec<csi_proxy_sim::storage::Partition> {
    let storage = node.snapshot().storage;
    let (_, disk) = storage.disk_by_number(1).unwrap();
    storage.media[&disk.medium].partitions.clone()
}

fn is_offline(node: &SimNode) -> bool {
    let storage = node.snapshot().storage;
    storage.disk_by_number(1).unwrap().1.offline.is_some()
}

fn mounts(node: &SimNode) -> Vec<String> {
    node.process()
        .os()
        .mount_points_of(&volume(node), NEVER)
        .unwrap()
}

/// One data partition with NTFS, mounted at the staging path alone.
fn is_staged(node: &SimNode) -> bool {
    let partitions = partitions(node);
    partitions.len() == 2
        && partitions[1].file_system.is_some()
        && mounts(node) == [format!(r"{STAGING}\")]
}

fn is_unstaged(node: &SimNode) -> bool {
    !system_paths(node).iter().any(|path| path == &STAGING[2..])
}

fn system_paths(node: &SimNode) -> Vec<String> {
    let system = volume_of(node, DiskNumber(0));
    let paths = node.snapshot().paths_of(&system);
    paths.into_iter().map(|(path, _)| path).collect()
}

/// The operation is done, and nothing is left of it: no record, no lock, no work.
#[track_caller]
fn check_end(case: &Case, node: &SimNode, what: &str) {
    assert!((case.done)(node), "{what}");
    let records = system_paths(node);
    let left = records.iter().find(|path| path.starts_with(r"\state\"));
    assert_eq!(left, None, "{what}");
    let state = node.snapshot();
    assert_eq!(state.locks, State::default().locks, "{what}");
    assert!(state.storage.jobs.is_empty(), "{what}");
}

/// The port calls that an operation makes when nothing goes wrong.
fn calls(case: &Case) -> Vec<Call> {
    let node = (case.node)();
    let before = node.call_log().len();
    (case.run)(&node, &host(&node)).expect(case.name);
    let log = node.call_log();
    check_end(case, &node, case.name);
    let calls = log[before..].iter().map(|entry| entry.call.clone());
    calls.collect()
}

/// Codes that are no errors, or others, for the operation that meets them.
fn is_told_otherwise(call: &Call, row: Row) -> bool {
    match call.operation().as_str() {
        // What is said to be gone although it is there is in the way later.
        "stat" => row.kind == NotFound,
        // Windows has created the partition, which then does not come.
        "MSFT_Disk.CreatePartition" => row.code == 42002,
        _ => false,
    }
}

/// Failures after which an operation is done all the same. Every other one is an error.
fn is_no_failure(case: &Case, call: &Call, row: Row) -> bool {
    match call.operation().as_str() {
        // Giving a lock back, and ids that cannot be read, fail no operation.
        "unlock" | "device_ids" => true,
        // The case takes this kind for "made before" when the volume is formatted.
        "remove_file" if case.name == "format" => {
            [NotFound, FailedPrecondition].contains(&row.kind)
        }
        // What is not there need not be read or removed.
        "stat" | "read_file" | "remove_file" | "remove_directory" => row.kind == NotFound,
        _ => false,
    }
}

/// All return values of a method, which come first, and of the codes that any call can fail
/// with every 7th, from another one on at each call: all are tried over all calls.
fn sample(call: &Call, n: u64) -> Vec<(Fault, Row)> {
    let values = documented(&call.operation()).len() as u64;
    (0..)
        .zip(failures(call, n))
        .filter(|(at, _)| *at < values || (at + n).is_multiple_of(7))
        .map(|(_, one)| one)
        .collect()
}

#[test]
fn every_call_that_fails_is_told_by_kind_and_meaning_and_the_retry_works() {
    let (mut count, mut errors) = (0, 0);
    for case in CASES {
        // One node, set back each time: making one takes longer than an operation.
        let node = (case.node)();
        let start = node.snapshot();
        for (n, call) in (1..).zip(calls(case)) {
            for (fault, row) in sample(&call, n) {
                let what = format!("{}: {} with {row:?}", case.name, call.operation());
                node.change(|state| state.clone_from(&start));
                node.inject(fault);
                let host = host(&node);
                match (case.run)(&node, &host) {
                    Ok(()) => assert!(is_no_failure(case, &call, row), "{what}"),
                    Err(_) if is_told_otherwise(&call, row) => {}
                    Err(error) => {
                        assert_eq!(error.kind(), row.kind, "{what}: {error}");
                        assert!(error.to_string().contains(row.meaning), "{what}: {error}");
                        errors += 1;
                    }
                }
                assert_eq!(node.faults_left(), 0, "{what}");
                (case.run)(&node, &host).expect(&what);
                check_end(case, &node, &what);
                count += 1;
            }
        }
    }
    report(&format!("{count} failures, {errors} of them told"));
    assert!(errors * 10 > count * 7, "{errors} of {count}");
}

/// Calls whose effect must not come twice.
const ONCE: &[&str] = &[
    "MSFT_Disk.Initialize",
    "MSFT_Disk.CreatePartition",
    "MSFT_Disk.Online",
    "MSFT_Disk.Offline",
    "MSFT_Disk.SetAttributes",
    "MSFT_Partition.Online",
    "MSFT_Partition.Resize",
    "MSFT_Volume.Format",
    "set_mount_point",
    "delete_mount_point",
];

#[test]
fn a_lost_answer_is_told_and_the_retry_does_nothing_twice() {
    for case in CASES {
        let clean = calls(case);
        for (n, call) in (1..).zip(&clean) {
            let what = format!("{}: {}", case.name, call.operation());
            let node = (case.node)();
            node.reset_counts();
            node.inject(Fault::at_call(n).loses_answer());
            let process = node.process();
            let mut host = process.host().with_state_dir(path(r"C:\state"));
            match (case.run)(&node, &host) {
                // Giving a lock back, and ids that cannot be read, fail no operation.
                Ok(()) => {
                    let swallowed = ["unlock", "device_ids"];
                    assert!(swallowed.contains(&call.operation().as_str()), "{what}");
                }
                Err(error) => assert_eq!(error.kind(), OutcomeUnknown, "{what}: {error}"),
            }
            // A lock that nobody knows of lasts as long as its process.
            if call.operation() == "try_lock" {
                process.crash();
                host = crate::host(&node);
            }
            (case.run)(&node, &host).expect(&what);
            for operation in ONCE {
                let once = clean.iter().filter(|one| one.operation() == *operation);
                assert_eq!(node.counts().of(operation), once.count() as u64, "{what}");
            }
            // A lock that could not be given back is given back at the next attempt.
            (case.run)(&node, &host).expect(&what);
            check_end(case, &node, &what);
        }
    }
}

#[test]
fn a_process_or_a_node_that_ends_at_any_call_leaves_work_that_a_new_process_ends() {
    let mut cuts = 0;
    for case in CASES {
        for (n, call) in (1..).zip(calls(case)) {
            for fault in [
                Fault::at_call(n).crash_before(),
                Fault::at_call(n).crash_after(),
                Fault::at_call(n).reboot_before(),
                Fault::at_call(n).reboot_after(),
            ] {
                let what = format!("{}: {fault:?} at {}", case.name, call.operation());
                let node = (case.node)();
                node.inject(fault);
                match (case.run)(&node, &host(&node)) {
                    Ok(()) => {
                        let swallowed = ["unlock", "device_ids"];
                        assert!(swallowed.contains(&call.operation().as_str()), "{what}");
                    }
                    Err(error) => assert_eq!(error.kind(), Unavailable, "{what}: {error}"),
                }
                (case.run)(&node, &host(&node)).expect(&what);
                check_end(case, &node, &what);
                cuts += 1;
            }
        }
    }
    report(&format!("{cuts} cut points"));
}

/// Calls that are made without the caller's deadline: locks, which answer at once, and those
/// around a format.
fn goes_on(case: &str, operation: &str) -> bool {
    let formats = ["stage a fresh disk", "format"]
        .iter()
        .any(|name| case.starts_with(name));
    let around = [
        "create_directories",
        "write_file",
        "query MSFT_Disk",
        "query MSFT_Volume",
        "MSFT_Volume.Format",
        "remove_file",
    ];
    ["try_lock", "unlock"].contains(&operation) || formats && around.contains(&operation)
}

#[test]
fn a_call_that_stalls_ends_the_operation_at_its_deadline() {
    for case in CASES {
        for (n, call) in (1..).zip(calls(case)) {
            let operation = call.operation();
            if goes_on(case.name, &operation) {
                continue;
            }
            let what = format!("{}: {operation}", case.name);
            let node = (case.node)();
            let hour = std::time::Duration::from_secs(3600);
            node.inject(Fault::at_call(n).stalls(hour));
            let host = host(&node);
            let error = (case.run)(&node, &host).expect_err(&what);
            // A disk that cannot be read is another one, and none was found in time.
            let unread = operation == "device_ids" && error.kind() == NotFound;
            assert!(
                unread || error.kind() == DeadlineExceeded,
                "{what}: {error}"
            );
            node.clock().advance(hour);
            (case.run)(&node, &host).expect(&what);
            check_end(case, &node, &what);
        }
    }
}
