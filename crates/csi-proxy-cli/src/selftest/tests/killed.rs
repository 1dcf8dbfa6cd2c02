//! A run that was killed, and the next one.

use csi_proxy::Host;
use csi_proxy::clock::Deadline;
use csi_proxy::os::LockName;
use csi_proxy_sim::{Fault, SimNode};

use super::{folder, look, node, run};

/// How far apart the calls are at which a run is killed: it has to do with nothing in the
/// suite, so that all kinds of calls are met.
const STRIDE: usize = 37;

fn kill_everywhere(first: u64, end: impl Fn(Fault) -> Fault) {
    let clean = run(&node());
    let calls = clean.calls.last().copied().unwrap();
    for call in (first..calls).step_by(STRIDE) {
        let node = node();
        let before = look(&node);
        node.inject(end(Fault::at_call(call)));
        assert!(!run(&node).passed, "call {call}");
        assert_eq!(node.faults_left(), 0, "call {call}");
        let again = run(&node);
        assert!(
            again.passed,
            "after a kill at call {call}: {:?}",
            again.failed()
        );
        assert_eq!(look(&node), before, "after a kill at call {call}");
    }
}

#[test]
fn a_run_after_one_that_was_killed_cleans_up_after_both() {
    kill_everywhere(2, Fault::crash_after);
}

#[test]
fn a_run_after_one_that_was_killed_before_a_call_cleans_up_after_both() {
    kill_everywhere(15, Fault::crash_before);
}

#[test]
fn a_run_after_a_reboot_cleans_up_after_both() {
    kill_everywhere(9, Fault::reboot_after);
}

fn fails_and_changes_nothing(node: &SimNode, words: &str) {
    let before = look(node);
    let run = run(node);
    assert!(!run.passed);
    assert_eq!(run.failed(), ["selftest folder"]);
    let error = run.lines[0]["error"].as_str().unwrap();
    assert!(error.contains(words), "{error}");
    assert_eq!(look(node), before);
}

#[test]
fn a_folder_of_someone_else_is_left_alone() {
    for file in [
        r"C:\csi-proxy-selftest\theirs.txt",
        r"C:\csi-proxy-selftest",
    ] {
        let node = node();
        node.change(|state| {
            if file.ends_with("txt") {
                state.put_directory(r"C:\csi-proxy-selftest").unwrap();
            }
            state.put_file(file, b"theirs").unwrap();
        });
        fails_and_changes_nothing(&node, "made by no self-test");
    }
}

#[test]
fn two_runs_at_a_time_are_refused() {
    let node = node();
    let other: Host = node.process().host();
    let name = LockName(format!("selftest:{}", folder()).to_lowercase());
    let held = other.os().try_lock(&name, Deadline::Never).unwrap();
    fails_and_changes_nothing(&node, "another self-test runs");
    other.os().unlock(&held.unwrap(), Deadline::Never).unwrap();
    assert!(run(&node).passed);
}
