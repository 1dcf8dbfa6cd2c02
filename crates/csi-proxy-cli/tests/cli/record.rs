//! `csi-proxy record` and `csi-proxy replay`, as a user runs them.

use std::path::Path;
use std::process::Output;

use crate::program::{Directory, failure, run, stderr, stdout};

fn record(trace: &Path, command: &[&str]) -> Output {
    let output = format!("--output={}", trace.display());
    let arguments = [&["record", output.as_str(), "--"], command].concat();
    run(&arguments)
}

fn replay(trace: &Path, more: &[&str]) -> Output {
    let path = trace.display().to_string();
    run(&[&["replay", path.as_str()], more].concat())
}

#[test]
fn the_demo_is_recorded_and_replayed_without_a_difference() {
    let directory = Directory::new("record");
    let trace = directory.join("trace.jsonl");
    let recorded = record(&trace, &["demo"]);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    assert!(stdout(&recorded).contains("18 steps passed"));
    assert_eq!(stderr(&recorded), "");
    let replayed = replay(&trace, &[]);
    let text = stdout(&replayed);
    assert!(replayed.status.success(), "{text}{}", stderr(&replayed));
    assert!(text.contains("calls made, 0 differences"), "{text}");
}

#[test]
fn a_difference_is_a_line_and_exit_code_1() {
    let directory = Directory::new("differs");
    let trace = directory.join("trace.jsonl");
    // What the fault makes of the call, the simulated node does not answer by itself.
    let fault = "MSFT_Volume.Format=returns:43006";
    record(&trace, &["demo", "--fault", fault]);
    let replayed = replay(&trace, &[]);
    assert_eq!(replayed.status.code(), Some(1));
    let text = stdout(&replayed);
    let expected = "MSFT_Volume.Format: ReturnValue: recorded 43006, simulated 0";
    assert!(text.contains(expected), "{text}");
    let replayed = replay(&trace, &["--json"]);
    let lines: Vec<serde_json::Value> = stdout(&replayed)
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    let difference = &lines[0]["difference"];
    assert_eq!(difference["operation"], "MSFT_Volume.Format");
    assert_eq!(difference["recorded"], "43006");
    let summary = &lines.last().expect("there are lines")["summary"];
    assert_eq!(summary["differences"], lines.len() - 1);
}

#[test]
fn a_file_that_is_there_is_kept() {
    let directory = Directory::new("kept");
    let trace = directory.join("trace.jsonl");
    std::fs::write(&trace, "older").expect("it can be written");
    record(&trace, &["demo"]);
    let old = std::fs::read_to_string(directory.join("trace.jsonl.old"));
    assert_eq!(old.expect("it was kept"), "older");
    assert!(replay(&trace, &[]).status.success());
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_a_trace() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = Directory::new("mode");
    let trace = directory.join("trace.jsonl");
    record(&trace, &["demo"]);
    let mode = std::fs::metadata(&trace)
        .expect("it is there")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
}

#[test]
fn what_cannot_be_recorded_is_one_line() {
    let directory = Directory::new("refused");
    let trace = directory.join("trace.jsonl");
    let line = failure(&record(&trace, &["sim", "example"]));
    assert!(
        line.contains("expected selftest, node, serve or demo"),
        "{line}"
    );
    let line = failure(&record(&trace, &["demo", "--record", "other"]));
    assert!(line.contains("expected one of both"), "{line}");
    assert!(!trace.exists());
    let nowhere = directory.join("none").join("trace.jsonl");
    let line = failure(&record(&nowhere, &["demo"]));
    assert!(line.contains("none"), "{line}");
    // The command line of the command is read as ever.
    let output = record(&trace, &["demo", "--fault", "stat"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_is_no_trace_is_one_line_that_says_what_was_expected() {
    let directory = Directory::new("notrace");
    let file = directory.join("file");
    let line = failure(&replay(&file, &[]));
    assert!(line.contains("file"), "{line}");
    std::fs::write(&file, "diary\n").expect("it can be written");
    let line = failure(&replay(&file, &[]));
    assert!(line.contains("line 1: expected the header"), "{line}");
}

/// A running `csi-proxy node` or `serve`.
#[cfg(unix)]
mod running {
    use std::path::Path;

    use super::replay;
    use crate::plugin::{create, stage, unstage};
    use crate::program::{Directory, stderr, stdout};
    use crate::running::Node;
    use crate::serve::map_a_share;

    fn flag(trace: &Path) -> String {
        format!("--record={}", trace.display())
    }

    #[track_caller]
    fn assert_replays(trace: &Path) {
        let replayed = replay(trace, &["--json"]);
        let text = stdout(&replayed);
        assert!(replayed.status.success(), "{text}{}", stderr(&replayed));
        let summary = text.lines().last().expect("there is a summary");
        let summary: serde_json::Value = serde_json::from_str(summary).expect("it is JSON");
        assert!(summary["summary"]["calls"].as_u64() > Some(10), "{text}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn node_records_on_its_own_simulated_node_and_on_that_of_another_program() {
        let (directory, other) = (Directory::new("recnode"), Directory::new("recother"));
        let (trace, joined) = (directory.join("trace.jsonl"), other.join("trace.jsonl"));
        let node = Node::start(&directory, &[&flag(&trace)]);
        let endpoint = directory.socket("csi.sock");
        create(&endpoint, "one").await.expect("it is made");
        stage(&endpoint, "one").await.expect("it is staged");
        unstage(&endpoint, "one").await.expect("it is unstaged");
        // It finds a node in use, of which its trace only has what its ports answer.
        let at = format!("--simulate-at={}", directory.socket("sim.sock"));
        let second = Node::start(&other, &[&at, &flag(&joined)]);
        let endpoint = other.socket("csi.sock");
        create(&endpoint, "two").await.expect("it is made");
        stage(&endpoint, "two").await.expect("it is staged");
        unstage(&endpoint, "two").await.expect("it is unstaged");
        second.terminate();
        node.terminate();
        assert_replays(&trace);
        assert_replays(&joined);
    }

    #[test]
    fn serve_records_with_a_flag_as_csi_proxy_has_them_and_without_the_password() {
        let directory = Directory::new("recserve");
        let trace = directory.join("trace.jsonl");
        let flag = format!("-record={}", trace.display());
        let server = Node::serve(&directory, &["serve", &flag]);
        map_a_share(&directory.join(""));
        server.terminate();
        let text = std::fs::read_to_string(&trace).expect("there is a trace");
        assert!(
            text.contains(r#""Credential":"ann:(hidden 00001)""#),
            "{text}"
        );
        assert!(!text.contains("hunter2"), "{text}");
        assert!(replay(&trace, &[]).status.success(), "{text}");
    }
}
