//! `csi-proxy selftest`, as a user sees it.

use crate::program::{Directory, failure, json_lines, run, stderr, stdout};

#[test]
fn without_yes_it_says_what_it_would_do() {
    let output = run(&["selftest", "--host", "simulated"]);
    assert_eq!(output.status.code(), Some(2));
    let text = stdout(&output);
    for part in [
        r"would make the folder C:\csi-proxy-selftest",
        "a simulated Windows node",
        "--yes",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn all_checks_pass_on_the_simulated_node() {
    let output = run(&["selftest", "--yes", "--host", "simulated"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    for part in ["disk partition", "csi stage", "selftest clean-up"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains(" 0 failed"), "{text}");
    assert!(!text.contains("not run"), "{text}");
    if cfg!(unix) {
        assert!(text.contains("answered at unix://"), "{text}");
    }
}

#[test]
fn a_failed_check_is_told_and_ends_it_with_1() {
    let output = run(&[
        "selftest",
        "--yes",
        "--host=simulated",
        "--json",
        r"--directory=C:\tests",
        "--fault",
        "MSFT_Volume.Format=returns:43006",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let lines = json_lines(&stdout(&output));
    let failed: Vec<_> = lines.iter().filter(|line| line["ok"] == false).collect();
    let [check] = failed.as_slice() else {
        panic!("{failed:?}");
    };
    assert_eq!(check["step"], "volume format");
    let error = check["error"].as_str().expect("it has an error");
    assert!(error.contains("43006"), "{error}");
    // The groups that do not depend on it have been checked all the same.
    assert!(lines.iter().any(|line| line["step"] == "csi delete"));
    let summary = &lines.last().expect("there is a summary")["summary"];
    assert_eq!(
        (&summary["ok"], &summary["failed"]),
        (&false.into(), &1.into())
    );
}

#[test]
fn a_recorded_run_is_answered_the_same_again() {
    let directory = Directory::new("selftest-record");
    let trace = directory.join("trace.jsonl");
    let trace = trace.to_str().expect("the path is text");
    let output = run(&[
        "record",
        "--output",
        trace,
        "--",
        "selftest",
        "--yes",
        "--host=simulated",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = run(&["replay", trace]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains(" 0 differences"), "{text}");
}

#[test]
fn faults_are_for_the_simulated_node() {
    let output = run(&[
        "selftest",
        "--yes",
        "--host=local",
        "--fault",
        "stat=win32:5",
    ]);
    assert!(failure(&output).contains("add --host simulated"));
}

#[cfg(not(windows))]
#[test]
fn only_windows_is_a_node_itself() {
    let output = run(&["selftest", "--yes", "--host=local", r"--directory=C:\tests"]);
    assert!(failure(&output).contains("no Windows node"));
}

#[cfg(unix)]
mod signals {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Child, Command, Stdio};

    use crate::program::{Directory, csi_proxy};
    use crate::running::Node;

    /// A self-test on the node of another program, once it has told its check `step`.
    fn started(node: &Node, step: &str) -> Child {
        let mut child = csi_proxy()
            .args(["selftest", "--yes", "--simulate-at", node.control()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let stdout = child.stdout.as_mut().expect("it is piped");
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        assert!(
            lines.any(|line| line.starts_with(step)),
            "{step} was not told"
        );
        child
    }

    fn nothing_is_left(node: &Node) {
        let shown = node.sim_ok(&["show", "--files"]);
        assert!(!shown.contains("csi-proxy-selftest"), "{shown}");
        assert!(!shown.contains("disk 1"), "{shown}");
    }

    #[test]
    fn a_run_after_one_that_was_killed_cleans_up() {
        let directory = Directory::new("selftest-kill");
        let node = Node::start(&directory, &[]);
        // The format goes on when the caller is killed.
        node.sim_ok(&["fault", "MSFT_Volume.Format=stalls:3"]);
        let mut child = started(&node, "volume list-on-disk");
        child.kill().expect("it can be killed");
        child.wait().expect("it can be waited for");
        let shown = node.sim_ok(&["show"]);
        assert!(shown.contains("csi-proxy-selftest"), "{shown}");

        let again = csi_proxy()
            .args(["selftest", "--yes", "--simulate-at", node.control()])
            .output()
            .expect("the program runs");
        let text = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success(), "{text}");
        assert!(text.contains("an earlier run had left behind"), "{text}");
        nothing_is_left(&node);
    }

    #[test]
    fn a_signal_ends_it_early_and_leaves_nothing_behind() {
        let directory = Directory::new("selftest-int");
        // So slow that it is far from its end when the signal comes.
        let node = Node::start(&directory, &["--sim-speed=busy"]);
        let child = started(&node, "vhdx attach");
        let sent = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
        let output = child.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(
            told.contains("SIGINT has ended the self-test early"),
            "{told}"
        );
        nothing_is_left(&node);
    }
}
