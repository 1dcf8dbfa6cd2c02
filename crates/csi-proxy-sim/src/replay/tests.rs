//! Traces that differ from the simulated node, each in one place.

use csi_proxy::clock::Deadline;
use csi_proxy::os::At;
use csi_proxy::trace::{Header, NodeKind, Output, Secrets, Snapshot, Start, Trace};
use csi_proxy::volume::FormatOptions;
use csi_proxy::{DiskNumber, Host, HostPath};
use serde_json::{Value, json};

use super::{Difference, replay};
use crate::storage::SimDisk;
use crate::{Fault, SimNode};

const NEVER: Deadline = Deadline::Never;
const GIB: u64 = 1 << 30;

fn path(text: &str) -> HostPath {
    HostPath::from_kubelet(text).unwrap()
}

/// Whether the header tells the node itself, or what its ports answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    Exactly,
    BySnapshot,
}

/// A trace of what `run` does on the node.
fn recorded(node: &SimNode, begin: Begin, run: impl FnOnce(&Host)) -> String {
    let host = node.process().host();
    let mut secrets = Secrets::default();
    let start = match begin {
        Begin::Exactly => node.trace_start(&mut secrets),
        Begin::BySnapshot => {
            Start::Snapshot(Box::new(Snapshot::take(host.cim(), host.os(), NEVER)))
        }
    };
    let file = tempfile("trace");
    let writer = std::fs::File::create(&file).unwrap();
    let header = Header::new(NodeKind::Simulated, Some(start));
    let output = Output::begin(writer, &header, host.os().now(), secrets, |_| {}).unwrap();
    run(&host.recorded(&output));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    text
}

fn tempfile(name: &str) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    std::env::temp_dir().join(format!("csi-proxy-sim-{process}-{name}-{number}"))
}

/// Where the node answers another thing than the trace after `change` was made to the line of
/// the `nth` call of that operation.
fn differences(
    text: &str,
    operation: &str,
    nth: usize,
    change: impl FnOnce(&mut Value),
) -> Vec<Difference> {
    let trace = Trace::parse(text).unwrap();
    let mut of_operation = trace.entries();
    let entry = of_operation
        .by_ref()
        .filter(|entry| entry.call.operation() == operation)
        .nth(nth)
        .unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = &mut lines[entry.line - 1];
    let mut value: Value = serde_json::from_str(line).unwrap();
    let before = value.clone();
    change(&mut value);
    assert_ne!(value, before);
    *line = value.to_string();
    let differences = replay(&Trace::parse(&(lines.join("\n") + "\n")).unwrap())
        .unwrap()
        .differences;
    for difference in &differences {
        assert_eq!(
            (difference.line, difference.operation.as_str()),
            (entry.line, operation)
        );
    }
    differences
}

/// A disk that is partitioned, formatted and mounted.
fn one_disk() -> SimNode {
    SimNode::builder().disk(SimDisk::raw(GIB).number(1)).build()
}

fn life(host: &Host) {
    let host = host.clone().with_state_dir(path(r"C:\state"));
    host.disk().partition(DiskNumber(1), NEVER).unwrap();
    let ids = host
        .volume()
        .list_on_disk(DiskNumber(1), None, NEVER)
        .unwrap();
    host.volume()
        .format(&ids[0], &FormatOptions::default(), NEVER)
        .unwrap();
    host.filesystem().mkdir(&path(r"C:\mount"), NEVER).unwrap();
    host.volume()
        .mount(&ids[0], &path(r"C:\mount"), NEVER)
        .unwrap();
    host.volume().stats(&ids[0], NEVER).unwrap();
}

fn only(differences: &[Difference]) -> (&str, &str, &str) {
    let [one] = differences else {
        panic!("{differences:?}");
    };
    (&one.place, &one.recorded, &one.simulated)
}

#[test]
fn a_trace_of_the_simulated_node_has_no_difference() {
    for begin in [Begin::Exactly, Begin::BySnapshot] {
        let text = recorded(&one_disk(), begin, life);
        let replay = replay(&Trace::parse(&text).unwrap()).unwrap();
        assert_eq!(replay.differences, []);
        assert!(replay.left_out.is_empty(), "{:?}", replay.left_out);
    }
}

#[test]
fn another_return_value_property_or_row_is_told() {
    let text = recorded(&one_disk(), Begin::Exactly, life);
    let found = differences(&text, "MSFT_Volume.Format", 0, |line| {
        line["answer"]["ok"]["cim"]["invoke"]["return_value"] = json!(43006);
    });
    assert_eq!(only(&found), ("ReturnValue", "43006", "0"));
    let found = differences(&text, "query MSFT_Disk", 0, |line| {
        line["answer"]["ok"]["cim"]["query"][0]["properties"]["BusType"] = json!(17);
    });
    assert_eq!(only(&found), ("Number 1: BusType", "17", "10"));
    let found = differences(&text, "query MSFT_Disk", 0, |line| {
        line["answer"]["ok"]["cim"]["query"] = json!([]);
    });
    let (place, recorded, simulated) = only(&found);
    assert_eq!((place, recorded), ("row", "none"));
    assert!(simulated.contains("MSFT_Disk"), "{simulated}");
    let found = differences(&text, "query MSFT_Disk", 0, |line| {
        let rows = line["answer"]["ok"]["cim"]["query"].as_array_mut().unwrap();
        rows.push(json!({"path": "another", "properties": {"Number": 9}}));
    });
    assert_eq!(only(&found).2, "none");
}

#[test]
fn another_kind_of_answer_and_another_error_are_told() {
    let text = recorded(&one_disk(), Begin::Exactly, |host| {
        life(host);
        host.filesystem()
            .rmdir(&path(r"C:\Windows"), false, NEVER)
            .unwrap_err();
    });
    let refused = json!({"error": {"System": {"api": "x", "code": {"Win32": 5}, "message": ""}}});
    let found = differences(&text, "set_mount_point", 0, |line| {
        line["answer"] = refused.clone();
    });
    assert_eq!(only(&found).0, "answer");
    let found = differences(&text, "remove_directory", 0, |line| {
        line["answer"] = refused;
    });
    let (place, recorded, simulated) = only(&found);
    assert_eq!(place, "error");
    assert!(
        recorded.contains("error 5") && simulated.contains("error 145"),
        "{found:?}"
    );
}

#[test]
fn bytes_are_told_as_they_are_kept() {
    let text = recorded(&one_disk(), Begin::Exactly, life);
    let found = differences(&text, "read_range", 0, |line| {
        line["call"]["devices"]["read_range"]["device"] = json!("none");
    });
    let expected = r#"{"range":{"length":1048576,"fill":0}}"#;
    assert_eq!((only(&found).0, only(&found).1), ("answer", expected));
    let found = differences(&text, "read_range", 0, |line| {
        line["got"]["range"]["foreign"] = json!(4711);
    });
    let (place, recorded, simulated) = only(&found);
    assert_eq!((place, simulated), ("bytes", expected));
    assert!(recorded.contains(r#""foreign":4711"#), "{recorded}");
}

#[test]
fn the_language_of_a_message_and_the_order_of_rows_are_no_difference() {
    let text = recorded(&one_disk(), Begin::Exactly, |host| {
        host.disk().list_ids(NEVER).unwrap();
        host.filesystem()
            .rmdir(&path(r"C:\Windows"), false, NEVER)
            .unwrap_err();
    });
    let same = |operation: &str, change: fn(&mut Value)| {
        assert_eq!(differences(&text, operation, 0, change), []);
    };
    same("remove_directory", |line| {
        line["answer"]["error"]["System"]["message"] = json!("Das Verzeichnis ist nicht leer.");
    });
    same("query MSFT_Disk", |line| {
        line["answer"]["ok"]["cim"]["query"]
            .as_array_mut()
            .unwrap()
            .reverse();
    });
}

/// What a node with other ids would have recorded.
fn with_other_ids(text: &str, node: &SimNode) -> String {
    let state = node.snapshot();
    let (_, disk) = state.storage.disk_by_number(1).unwrap();
    let volume = state.storage.media[&disk.medium].partitions.last().unwrap();
    let guid = volume.volume.as_ref().unwrap().guid().to_owned();
    let (header, calls) = text.split_once('\n').unwrap();
    let calls = calls
        .replace(&guid, "99999999-8888-4777-8666-555555555555")
        .replace(&disk.unique_id, "OTHERUNIQUEID")
        .replace(r#""Number":1"#, r#""Number":7"#)
        .replace(r#""DiskNumber":1"#, r#""DiskNumber":7"#)
        .replace(
            r#""property":"Number","value":1"#,
            r#""property":"Number","value":7"#,
        )
        .replace(r"\\\\NODE\\ROOT", r"\\\\WIN-1\\ROOT")
        .replace(r#"{"try_lock":1}"#, r#"{"try_lock":71}"#)
        .replace(r#"{"unlock":1}"#, r#"{"unlock":71}"#);
    format!("{header}\n{calls}")
}

#[test]
fn ids_that_cannot_be_equal_are_unified() {
    let node = one_disk();
    let text = recorded(&node, Begin::Exactly, |host| {
        // A node that gives other numbers shows them first.
        host.disk().list_ids(NEVER).unwrap();
        life(host);
    });
    let other = with_other_ids(&text, &node);
    for gone in [
        "WIN-1",
        "OTHERUNIQUEID",
        "99999999-",
        r#""Number":7"#,
        r#"lock":71"#,
    ] {
        assert!(other.contains(gone), "{gone}");
    }
    let replay = replay(&Trace::parse(&other).unwrap()).unwrap();
    assert_eq!(replay.differences, []);
}

#[test]
fn an_id_that_names_another_thing_than_before_is_a_difference() {
    let node = one_disk();
    let text = recorded(&node, Begin::Exactly, life);
    let found = differences(&text, "set_mount_point", 0, |line| {
        // The call is translated, and one with an unknown volume is made as it is.
        line["call"]["mount_points"]["set_mount_point"]["volume"] =
            json!(r"\\?\Volume{99999999-8888-4777-8666-555555555555}\");
    });
    assert_eq!(only(&found).0, "answer");
    let found = differences(&text, "query MSFT_Disk", 1, |line| {
        line["answer"]["ok"]["cim"]["query"][0]["properties"]["UniqueId"] = json!("another");
    });
    assert_eq!(only(&found).0, "Number 1: UniqueId");
}

#[test]
fn what_was_there_at_the_start_and_is_in_no_snapshot_is_taken_from_the_calls() {
    let node = one_disk();
    node.change(|state| {
        state
            .put_directory(r"C:\var\lib\kubelet\plugins\x")
            .unwrap();
        state.put_file(r"C:\var\lib\kubelet\file", b"abc").unwrap();
    });
    let text = recorded(&node, Begin::BySnapshot, |host| {
        let files = host.filesystem();
        assert!(
            files
                .path_exists(&path(r"C:\var\lib\kubelet\plugins\x"), NEVER)
                .unwrap()
        );
        let at = At::path(&path(r"C:\var\lib\kubelet"));
        host.os().list(&at, NEVER).unwrap();
        host.system().bios_serial_number(NEVER).unwrap();
    });
    let replay = replay(&Trace::parse(&text).unwrap()).unwrap();
    assert_eq!(replay.differences, []);
}

#[test]
fn what_the_node_should_have_kept_is_a_difference_once() {
    let node = one_disk();
    let text = recorded(&node, Begin::BySnapshot, |host| {
        let files = host.filesystem();
        files.mkdir(&path(r"C:\a"), NEVER).unwrap();
        files.rmdir(&path(r"C:\a"), true, NEVER).unwrap();
        // Someone else makes it again, which no call tells.
        node.change(|state| state.put_directory(r"C:\a\b").unwrap());
        assert!(files.path_exists(&path(r"C:\a"), NEVER).unwrap());
        assert!(files.path_exists(&path(r"C:\a"), NEVER).unwrap());
        assert!(files.path_exists(&path(r"C:\a\b"), NEVER).unwrap());
    });
    let replay = replay(&Trace::parse(&text).unwrap()).unwrap();
    let found: Vec<_> = replay
        .differences
        .iter()
        .map(|one| one.operation.as_str())
        .collect();
    assert_eq!(found, ["stat", "stat"], "{:?}", replay.differences);
}

#[test]
fn a_call_that_was_given_up_is_given_up_again() {
    let node = one_disk();
    node.inject(Fault::on("MSFT_Disk.Initialize").stalls(std::time::Duration::from_secs(90)));
    let text = recorded(&node, Begin::BySnapshot, |host| {
        let deadline = host.os().deadline_in(std::time::Duration::from_secs(60));
        host.disk().partition(DiskNumber(1), deadline).unwrap_err();
        node.clock().advance(std::time::Duration::from_secs(60));
        host.disk().partition(DiskNumber(1), NEVER).unwrap();
    });
    assert!(text.contains("DeadlineExceeded"));
    let replay = replay(&Trace::parse(&text).unwrap()).unwrap();
    assert_eq!(replay.differences, []);
}

#[test]
fn a_start_that_is_not_known_is_an_error() {
    let text = recorded(&one_disk(), Begin::Exactly, life);
    let mut trace = Trace::parse(&text).unwrap();
    trace.header.start = None;
    let error = replay(&trace).unwrap_err().to_string();
    assert!(error.contains("does not tell"), "{error}");
    trace.header.start = Some(Start::Simulated(Box::new(json!({"clock": 1}))));
    let error = replay(&trace).unwrap_err().to_string();
    assert!(error.contains("another version"), "{error}");
}

/// Distinct numbers for distinct seeds.
fn mixed(seed: u64) -> usize {
    let value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from((value ^ (value >> 29)) >> 16).unwrap_or(0)
}

#[test]
fn a_damaged_trace_is_an_error_or_a_difference() {
    for begin in [Begin::Exactly, Begin::BySnapshot] {
        let text = recorded(&one_disk(), begin, life);
        let mut read = 0;
        for seed in 0..150 {
            let mut bytes = text.clone().into_bytes();
            let place = mixed(seed) % bytes.len();
            bytes[place] = b"09\"}-eAz"[mixed(seed + 1_000_000) % 8];
            let Ok(trace) = Trace::parse(std::str::from_utf8(&bytes).unwrap()) else {
                continue;
            };
            read += 1;
            if trace.check().is_ok() {
                // That it answers at all is what is shown.
                let _ = replay(&trace);
            }
        }
        assert!(read > 30, "{read}");
    }
}
