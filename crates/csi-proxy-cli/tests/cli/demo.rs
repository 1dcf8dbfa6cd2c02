//! `csi-proxy demo`, as a user sees it.

use crate::program::{json_lines, run, stderr, stdout};

const STEPS: [&str; 18] = [
    "probe",
    "create",
    "stage",
    "publish",
    "write",
    "stats",
    "expand",
    "unpublish",
    "unstage",
    "expand",
    "stage",
    "publish",
    "node-expand",
    "stats",
    "read",
    "unpublish",
    "unstage",
    "delete",
];

#[test]
fn the_life_of_a_volume_ends_well() {
    let output = run(&["demo"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert!(text.contains("18 steps passed, 0 failed"), "{text}");
    assert!(
        !text.contains('\x1b'),
        "no colours but on a terminal: {text:?}"
    );
    assert_eq!(stderr(&output), "");
}

#[test]
fn json_names_every_step_with_its_costs() {
    let output = run(&["demo", "--json"]);
    let lines = json_lines(&stdout(&output));
    let (summary, steps) = lines.split_last().expect("there are lines");
    let names: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["step"].as_str())
        .collect();
    assert_eq!(names, STEPS);
    for step in steps {
        assert_eq!(step["ok"], true, "{step}");
        assert!(step["milliseconds"].is_number(), "{step}");
        assert!(step["node_milliseconds"].is_number(), "{step}");
    }
    for number in ["wmi_calls", "os_calls"] {
        let sum: u64 = steps.iter().filter_map(|step| step[number].as_u64()).sum();
        assert_eq!(summary["summary"][number], sum);
        assert!(sum > 0, "{number}");
    }
    assert_eq!(summary["summary"]["ok"], true);
    assert_eq!(summary["summary"]["steps"], STEPS.len());
}

#[test]
fn a_fault_ends_it_at_the_step_that_met_it_with_exit_code_1() {
    let output = run(&[
        "demo",
        "--json",
        "--fault",
        "MSFT_Volume.Format=returns:43006",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let lines = json_lines(&stdout(&output));
    let [.., step, summary] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(step["step"], "stage");
    assert_eq!(step["ok"], false);
    let error = step["error"].as_str().expect("the step has an error");
    assert!(error.contains("43006"), "{error}");
    assert_eq!(summary["summary"]["ok"], false);
    assert_eq!(summary["summary"]["not_run"], STEPS.len() - 3);
}

#[test]
fn a_file_that_is_not_as_it_was_written_fails_the_demo() {
    // Each of the two stages looks for the volume context, the first for the record of a
    // format too, and then the pod reads.
    let change = r#"read_file#4=before:{"make_file":{"path":"C:\\var\\lib\\kubelet\\pods\\demo\\volumes\\kubernetes.io~csi\\demo\\mount\\data.bin","contents":"other"}}"#;
    let output = run(&["demo", "--json", "--fault", change]);
    assert_eq!(output.status.code(), Some(1));
    let lines = json_lines(&stdout(&output));
    let [.., step, summary] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(
        (&step["step"], &step["ok"]),
        (&"read".into(), &false.into())
    );
    let error = step["error"].as_str().expect("the step has an error");
    assert!(error.contains("differs from what was written"), "{error}");
    assert_eq!(summary["summary"]["ok"], false);
}

#[test]
fn a_failed_step_is_marked_in_the_table() {
    let output = run(&["demo", "--fault", "create_link=win32:5"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let line = text.lines().find(|line| line.starts_with("publish"));
    assert!(line.is_some_and(|line| line.contains("FAILED")), "{text}");
    assert!(
        text.contains("3 steps passed, 1 failed, 14 not run"),
        "{text}"
    );
}

#[test]
fn a_fault_that_cannot_be_read_is_told_what_was_expected() {
    let output = run(&["demo", "--fault", "stat"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("expected OPERATION=EFFECT"));
}

#[test]
fn a_reader_that_has_seen_enough_ends_nothing() {
    for arguments in [
        &["demo"][..],
        &["demo", "--json"],
        &["sim", "example"],
        &["--help"],
    ] {
        let mut child = crate::program::csi_proxy()
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        // Nobody reads from the start.
        child.stdout = None;
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
}

#[test]
fn a_fault_that_there_cannot_be_is_refused_with_the_names_near_it() {
    let output = run(&["demo", "--fault", "MSFT_Volum.Format=returns:43006"]);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("MSFT_Volume.Format"), "{told}");
}

#[test]
fn a_fault_that_never_happens_fails_the_demo() {
    let fault = ["--fault", "MSFT_Disk.Initialize#2=returns:41014"];
    let output = run(&[&["demo"][..], &fault].concat());
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.contains("18 steps passed, 0 failed"), "{text}");
    let line = text.lines().last().expect("there are lines");
    assert!(
        line.starts_with("fault left: MSFT_Disk.Initialize#2: Returns(41014)"),
        "{line}"
    );
    let output = run(&[&["demo", "--json"][..], &fault].concat());
    assert_eq!(output.status.code(), Some(1));
    let lines = json_lines(&stdout(&output));
    let summary = &lines.last().expect("there are lines")["summary"];
    assert_eq!(summary["ok"], false);
    assert_eq!(summary["faults_left"].as_array().map(Vec::len), Some(1));
}

#[cfg(not(windows))]
#[test]
fn this_machine_is_refused_where_it_is_no_windows_node() {
    let output = run(&["demo", "--host", "local"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("no Windows node"), "{text}");
    assert_eq!(stdout(&output), "");
}

#[test]
fn this_machine_gets_no_faults() {
    let fault = ["--fault", "create_link=win32:5"];
    let output = run(&[&["demo", "--host", "local"], &fault[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("--fault"), "{text}");
}
