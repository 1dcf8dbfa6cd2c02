//! What each fault does.

use std::time::Duration;

use csi_proxy::HostPath;
use csi_proxy::cim::{Invoke, Namespace, Output, Query};
use csi_proxy::clock::{Clock, Deadline};
use csi_proxy::os::At;
use csi_proxy::port::{CallId, PortError, PortResult, SystemCode};

use crate::storage::SimDisk;
use crate::{Fault, Latency, Process, SimClock, SimNode};

const INITIALIZE: &str = "MSFT_Disk.Initialize";

fn node() -> (SimNode, Process) {
    let node = SimNode::builder().disk(SimDisk::raw(1 << 30)).build();
    let process = node.process();
    (node, process)
}

fn query(process: &Process, deadline: Deadline) -> PortResult<csi_proxy::cim::ObjectPath> {
    let query = Query::new(Namespace::Storage, "MSFT_Disk", &["PartitionStyle"]);
    let rows = process.cim().query(&query.with("Number", 1u32), deadline)?;
    Ok(rows[0].path.clone())
}

fn initialize(node: &SimNode, process: &Process, deadline: Deadline) -> PortResult<Output> {
    let path = query(&node.process(), Deadline::Never)?;
    let invoke = Invoke::on(Namespace::Storage, "MSFT_Disk", &path, "Initialize");
    process.cim().invoke(&invoke, deadline)
}

fn is_raw(node: &SimNode) -> bool {
    let state = node.snapshot();
    let (_, disk) = state.storage.disk_by_number(1).unwrap();
    state.storage.media[&disk.medium].partitions.is_empty()
}

#[test]
fn a_method_answers_the_value_and_does_nothing() {
    let (node, process) = node();
    node.inject(Fault::on(INITIALIZE).returns(41014));
    let output = initialize(&node, &process, Deadline::Never).unwrap();
    assert_eq!((output.return_value, is_raw(&node)), (41014, true));
    let output = initialize(&node, &process, Deadline::Never).unwrap();
    assert_eq!((output.return_value, is_raw(&node)), (0, false));
}

#[test]
fn a_code_is_of_the_family_that_was_asked_for() {
    let (node, process) = node();
    node.inject(Fault::on("query MSFT_Disk").hresult(0x8004_1003));
    let Err(PortError::System { code, .. }) = query(&process, Deadline::Never) else {
        panic!("it did not fail");
    };
    assert_eq!(code, SystemCode::HResult(0x8004_1003));
    node.inject(Fault::on("try_lock").win32(5));
    let name = csi_proxy::os::LockName(String::new());
    let Err(PortError::System { code, .. }) = process.os().try_lock(&name, Deadline::Never) else {
        panic!("it did not fail");
    };
    assert_eq!(code, SystemCode::Win32(5));
}

#[test]
fn the_nth_call_and_as_many_as_wanted_fail() {
    let (node, process) = node();
    node.inject(
        Fault::on("query MSFT_Disk")
            .nth(2)
            .times(2)
            .hresult(0x8004_1001),
    );
    let failed: Vec<bool> = (0..5)
        .map(|_| query(&process, Deadline::Never).is_err())
        .collect();
    assert_eq!(failed, [false, true, true, false, false]);
    assert_eq!(node.faults_left(), 0);
}

#[test]
fn a_lost_answer_has_taken_effect() {
    let (node, process) = node();
    node.inject(Fault::on(INITIALIZE).loses_answer());
    let answer = initialize(&node, &process, Deadline::Never);
    assert!(
        matches!(answer, Err(PortError::OutcomeUnknown { .. })),
        "{answer:?}"
    );
    assert!(!is_raw(&node));
}

#[test]
fn a_crash_before_does_nothing_and_after_does_all() {
    for (fault, raw) in [
        (Fault::on(INITIALIZE).crash_before(), true),
        (Fault::on(INITIALIZE).crash_after(), false),
        (Fault::on(INITIALIZE).reboot_before(), true),
        (Fault::on(INITIALIZE).reboot_after(), false),
    ] {
        let (node, process) = node();
        let shown = format!("{fault:?}");
        node.inject(fault);
        let answer = initialize(&node, &process, Deadline::Never);
        assert!(
            matches!(answer, Err(PortError::Unavailable { .. })),
            "{shown}"
        );
        assert_eq!(is_raw(&node), raw, "{shown}");
        let before = node.snapshot();
        let again = query(&process, Deadline::Never);
        assert!(
            matches!(again, Err(PortError::Unavailable { .. })),
            "{shown}"
        );
        assert_eq!(node.snapshot(), before);
        assert!(query(&node.process(), Deadline::Never).is_ok(), "{shown}");
    }
}

#[test]
fn a_reboot_ends_all_processes_a_crash_only_one() {
    let (node, process) = node();
    let other = node.process();
    process.crash();
    assert!(query(&other, Deadline::Never).is_ok());
    node.reboot();
    assert!(query(&other, Deadline::Never).is_err());
}

#[test]
fn a_stalled_call_takes_effect_after_its_caller_has_gone() {
    let (node, process) = node();
    node.inject(Fault::on(INITIALIZE).stalls(Duration::from_secs(60)));
    let deadline = node.clock().deadline_in(Duration::from_secs(10));
    let answer = initialize(&node, &process, deadline);
    let Err(PortError::DeadlineExceeded { running: Some(id) }) = answer else {
        panic!("{answer:?}");
    };
    assert!(is_raw(&node));
    let cim = node.process().cim();
    assert_eq!(cim.is_running(&id, Deadline::Never), Ok(true));
    node.clock().advance(Duration::from_secs(50));
    assert_eq!(cim.is_running(&id, Deadline::Never), Ok(false));
    assert!(!is_raw(&node));
}

/// A node on which the process waits for a call that hangs for a minute, and what the call
/// will answer.
fn hanging<T: Send + 'static>(
    operation: &str,
    call: impl FnOnce(Process) -> PortResult<T> + Send + 'static,
) -> (SimNode, Process, std::thread::JoinHandle<PortResult<T>>) {
    let node = SimNode::builder()
        .disk(SimDisk::raw(1 << 30))
        .clock(SimClock::manual())
        .build();
    node.inject(Fault::on(operation).stalls(Duration::from_secs(60)));
    let process = node.process();
    let waiting = {
        let process = process.clone();
        std::thread::spawn(move || call(process))
    };
    while node.counts().of(operation) == 0 {
        std::thread::yield_now();
    }
    let id = CallId(node.counts().total());
    while node.process().cim().is_running(&id, Deadline::Never) != Ok(true) {
        std::thread::yield_now();
    }
    (node, process, waiting)
}

#[test]
fn a_method_that_hangs_takes_effect_though_its_caller_crashes_and_not_after_a_reboot() {
    for (reboots, raw) in [(false, false), (true, true)] {
        let (node, process, waiting) = hanging(INITIALIZE, |process| {
            let path = query(&process, Deadline::Never)?;
            let invoke = Invoke::on(Namespace::Storage, "MSFT_Disk", &path, "Initialize");
            process.cim().invoke(&invoke, Deadline::Never)
        });
        match reboots {
            true => node.reboot(),
            false => process.crash(),
        }
        node.clock().advance(Duration::from_secs(59));
        assert!(is_raw(&node));
        node.clock().advance(Duration::from_secs(1));
        assert_eq!(is_raw(&node), raw, "a reboot: {reboots}");
        let answer = waiting.join().unwrap();
        assert!(
            matches!(answer, Err(PortError::Unavailable { .. })),
            "{answer:?}"
        );
        assert_eq!(is_raw(&node), raw, "a reboot: {reboots}");
    }
}

#[test]
fn a_call_of_the_operating_system_that_hangs_ends_with_its_process() {
    let path = At::path(&HostPath::from_kubelet("/tmp/x").unwrap());
    let (node, process, waiting) = hanging("create_directories", move |process| {
        process.os().create_directories(&path, Deadline::Never)
    });
    let before = node.snapshot();
    process.crash();
    node.clock().advance(Duration::from_secs(60));
    assert!(waiting.join().unwrap().is_err());
    assert_eq!(node.snapshot(), before);
}

#[test]
fn a_stall_within_the_deadline_only_takes_time() {
    let (node, process) = node();
    node.inject(Fault::on(INITIALIZE).stalls(Duration::from_secs(60)));
    let deadline = node.clock().deadline_in(Duration::from_secs(100));
    assert!(initialize(&node, &process, deadline).is_ok());
    assert_eq!(node.clock().now().0, Duration::from_secs(60));
}

#[test]
fn the_machine_changes_just_before_the_call() {
    let (node, process) = node();
    node.inject(Fault::on(INITIALIZE).before(|state| {
        let disk = state.storage.disks.values_mut().last().unwrap();
        disk.read_only = true;
    }));
    let output = initialize(&node, &process, Deadline::Never).unwrap();
    assert_eq!((output.return_value, is_raw(&node)), (4, true));
}

#[test]
fn a_replaced_disk_has_the_number_and_another_path() {
    let (node, process) = node();
    let path = query(&process, Deadline::Never).unwrap();
    node.inject(
        Fault::on(INITIALIZE).before_change(crate::NodeChange::ReplaceDisk {
            number: 1,
            with: Box::new(SimDisk::raw(1 << 30)),
        }),
    );
    let invoke = Invoke::on(Namespace::Storage, "MSFT_Disk", &path, "Initialize");
    assert!(process.cim().invoke(&invoke, Deadline::Never).is_err());
    assert!(is_raw(&node));
    assert_ne!(query(&process, Deadline::Never), Ok(path));
}

#[test]
fn a_call_whose_deadline_has_passed_does_nothing() {
    let (node, process) = node();
    let passed = node.clock().deadline_in(Duration::ZERO);
    let answer = initialize(&node, &process, passed);
    assert_eq!(answer, Err(PortError::DeadlineExceeded { running: None }));
    assert!(is_raw(&node));
}

#[test]
fn a_busy_node_takes_its_time() {
    let (node, process) = node();
    node.set_latency(Latency::MEASURED);
    query(&process, Deadline::Never).unwrap();
    assert_eq!(node.clock().now().0, Latency::MEASURED.query);
}

#[test]
fn calls_are_counted_by_operation_and_port() {
    let (node, process) = node();
    query(&process, Deadline::Never).unwrap();
    query(&process, Deadline::Never).unwrap();
    let name = csi_proxy::os::LockName("x".to_owned());
    process.os().try_lock(&name, Deadline::Never).unwrap();
    let counts = node.counts();
    assert_eq!(
        (counts.cim, counts.os, counts.of("query MSFT_Disk")),
        (2, 1, 2)
    );
    assert_eq!(node.call_log().len(), 3);
    node.reset_counts();
    assert_eq!(node.counts().total(), 0);
}

#[test]
fn a_fault_is_read_from_json() {
    let fault: Fault =
        serde_json::from_str(r#"{"operation": "rename", "nth": 2, "effect": {"win32": 5}}"#)
            .unwrap();
    let again = serde_json::to_string(&fault).unwrap();
    assert_eq!(
        again,
        r#"{"operation":"rename","nth":2,"times":1,"effect":{"win32":5}}"#
    );
    assert!(serde_json::from_str::<Fault>(r#"{"effect": {"explodes": 1}}"#).is_err());
}

#[test]
fn a_fault_whose_change_could_not_be_made_is_left_and_says_why() {
    let (node, process) = node();
    let change = crate::NodeChange::DetachDisk { number: 77 };
    node.inject(Fault::on("query MSFT_Disk").before_change(change));
    assert!(query(&process, Deadline::Never).is_ok());
    assert_eq!(node.faults_left(), 1);
    let shown = node.show_faults();
    assert!(shown[0].contains("there is no disk 77"), "{shown:?}");
}

#[test]
fn faults_that_are_left_are_shown_as_they_were_injected() {
    let (node, process) = node();
    node.inject(
        Fault::on("query MSFT_Disk")
            .nth(2)
            .times(3)
            .hresult(0x8004_1001),
    );
    for _ in 0..3 {
        // Which of them fail does not matter here.
        let _ = query(&process, Deadline::Never);
    }
    let shown = node.show_faults();
    assert!(
        shown[0].starts_with("query MSFT_Disk#2x3: Hresult"),
        "{shown:?}"
    );
    assert!(shown[0].ends_with("(happened 2 of 3 times)"), "{shown:?}");
}

#[test]
fn a_stall_without_end_beside_latencies_is_one() {
    let (node, process) = node();
    node.set_latency(Latency::MEASURED);
    node.inject(Fault::on(INITIALIZE).stalls(Duration::MAX));
    let deadline = node.clock().deadline_in(Duration::from_secs(10));
    let answer = initialize(&node, &process, deadline);
    assert!(
        matches!(
            answer,
            Err(PortError::DeadlineExceeded { running: Some(_) })
        ),
        "{answer:?}"
    );
}

#[test]
fn what_a_process_waits_for_ends_with_it() {
    for reboots in [false, true] {
        let (node, process, waiting) = hanging("stat", |process| {
            let at = At::path(&HostPath::from_kubelet("/").unwrap());
            process.os().stat(&at, Deadline::Never)
        });
        let clock = process.os();
        let sleeping = std::thread::spawn(move || clock.pause(Duration::MAX, Deadline::Never));
        match reboots {
            true => node.reboot(),
            false => process.crash(),
        }
        assert!(!process.is_alive());
        // The clock stands still all the time.
        let answer = waiting.join().unwrap();
        assert!(
            matches!(answer, Err(PortError::Unavailable { .. })),
            "{answer:?}"
        );
        sleeping.join().unwrap();
    }
}
