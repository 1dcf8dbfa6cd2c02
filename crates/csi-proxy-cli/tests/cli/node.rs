//! `csi-proxy node`, as the kubelet and an operator see it.

use std::os::unix::net::UnixListener;

use crate::program::{Directory, failure, run, stderr};
use crate::running::{Node, exists};

#[test]
fn sigterm_ends_it_cleanly() {
    let directory = Directory::new("sigterm");
    let node = Node::start(&directory, &[]);
    let sockets = ["csi.sock", "sim.sock"].map(|name| directory.join(name));
    assert!(sockets.iter().all(|path| exists(path)));
    let (code, told) = node.terminate();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("SIGTERM"), "{told}");
    assert!(!sockets.iter().any(|path| exists(path)));
}

#[test]
fn c18_a_socket_from_the_last_run_is_replaced() {
    let directory = Directory::new("stale");
    Node::start(&directory, &[]).kill();
    assert!(exists(&directory.join("csi.sock")));
    let (code, told) = Node::start(&directory, &[]).terminate();
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn c18_a_socket_that_another_program_serves_is_left_alone() {
    let directory = Directory::new("busy");
    let path = directory.join("csi.sock");
    let _other = UnixListener::bind(&path).expect("the socket is free");
    let endpoint = directory.socket("csi.sock");
    let output = run(&[
        "node",
        "--driver",
        "local",
        "--simulate",
        "--endpoint",
        &endpoint,
    ]);
    let line = failure(&output);
    assert!(line.contains("another program"), "{line}");
    assert!(exists(&path));
}

#[test]
fn c18_a_directory_that_does_not_exist_is_made() {
    let directory = Directory::new("missing");
    let endpoint = directory.socket("plugins/local/csi.sock");
    let node = Node::start(&directory, &["--endpoint", &endpoint]);
    assert!(exists(&directory.join("plugins/local/csi.sock")));
    assert_eq!(node.terminate().0, Some(0));
}

#[test]
fn the_node_is_kept_in_a_file_over_restarts() {
    let directory = Directory::new("kept");
    let file = directory.join("node.json").display().to_string();
    let node = Node::start(&directory, &["--sim-state", &file]);
    node.sim_ok(&["write", r"C:\kept", "--text", "over the restart"]);
    assert_eq!(node.terminate().0, Some(0));
    let node = Node::start(&directory, &["--sim-state", &file]);
    assert_eq!(node.sim_ok(&["read", r"C:\kept"]), "over the restart");
}

#[test]
fn a_file_in_which_the_node_cannot_be_kept_is_refused_at_the_start() {
    let directory = Directory::new("unkept");
    let file = directory.join("missing/node.json").display().to_string();
    let output = run(&[
        "node",
        "--driver=local",
        "--simulate",
        "--endpoint=tcp://127.0.0.1:0",
        &format!("--sim-state={file}"),
    ]);
    let line = failure(&output);
    assert!(
        line.contains("--sim-state") && line.contains(&file),
        "{line}"
    );
}

#[test]
fn the_machine_file_that_sim_example_prints_describes_a_node() {
    let directory = Directory::new("example");
    let file = directory.join("machine.toml");
    std::fs::write(&file, run(&["sim", "example"]).stdout).expect("it can be written");
    let node = Node::start(&directory, &[&format!("--simulate={}", file.display())]);
    let shown = node.sim_ok(&["show"]);
    assert!(shown.contains("vol0123456789abcdef0_00000001."), "{shown}");
}

#[test]
fn a_machine_file_that_is_wrong_is_told_with_the_place() {
    let directory = Directory::new("wrong");
    let file = directory.join("machine.toml");
    std::fs::write(&file, "[[disks]]\nsize = \"ten\"\n").expect("it can be written");
    let simulate = format!("--simulate={}", file.display());
    let endpoint = directory.socket("csi.sock");
    let output = run(&[
        "node",
        "--driver",
        "local",
        &simulate,
        "--endpoint",
        &endpoint,
    ]);
    let line = failure(&output);
    assert!(line.contains("ten"), "{line}");
}

#[test]
fn wrong_arguments_are_told_what_was_expected() {
    for (arguments, expected) in [
        (&["--endpoint", "http://x"][..], "unix://"),
        (&["--endpoint", "tcp://0.0.0.0:1"], "loopback"),
        (
            &["--endpoint", "tcp://127.0.0.1:0", "--pool", "pool"],
            "pool",
        ),
        (
            &[
                "--endpoint",
                "tcp://127.0.0.1:0",
                "--capacity-limit",
                "10 apples",
            ],
            "10GiB",
        ),
    ] {
        let output = run(&[&["node", "--driver", "local", "--simulate"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let told = stderr(&output);
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
}

#[test]
fn names_that_csi_does_not_allow_are_refused_at_the_start() {
    let long = "n".repeat(64);
    for (setting, field) in [
        ("--plugin-name=", "plugin_name"),
        ("--plugin-name=local plugin", "plugin_name"),
        ("--plugin-name=.io", "plugin_name"),
        ("--node-id=", "node_id"),
        ("--node-id=a\nb", "node_id"),
        (&format!("--node-id={long}"), "node_id"),
    ] {
        let node = [
            "node",
            "--driver=local",
            "--simulate",
            "--endpoint=tcp://127.0.0.1:0",
        ];
        let line = failure(&run(&[&node[..], &[setting]].concat()));
        assert!(
            line.contains(field) && line.contains("expected"),
            "{setting:?}: {line}"
        );
    }
}

#[test]
fn relative_sockets_are_told_how_to_write_them_wherever_they_are_given() {
    let node = ["node", "--driver=local", "--simulate"];
    for more in [
        &["--endpoint=unix://csi.sock"][..],
        &[
            "--endpoint=tcp://127.0.0.1:0",
            "--sim-control=unix://sim.sock",
        ],
    ] {
        let output = run(&[&node[..], more].concat());
        let told = stderr(&output);
        assert!(!output.status.success());
        assert!(told.contains("unix:///"), "{more:?}: {told}");
    }
    let line = failure(&run(&["sim", "--control=unix://sim.sock", "show"]));
    assert!(line.contains("unix:///path"), "{line}");
}

#[test]
fn a_relative_socket_is_made_where_the_program_was_started() {
    let directory = Directory::new("relative");
    let mut command = crate::program::csi_proxy();
    let node = Node::spawn(
        {
            command
                .current_dir(directory.join(""))
                .args(["node", "--driver=local", "--simulate"])
                .args(["--endpoint=unix:csi.sock", "--sim-control=unix:sim.sock"]);
            command
        },
        directory.socket("sim.sock"),
        "listening on ",
    );
    assert!(exists(&directory.join("csi.sock")));
    assert_eq!(node.sim_ok(&["check", "/"]), "directory\n");
}

#[test]
fn a_standard_error_that_nobody_reads_costs_nothing() {
    let directory = Directory::new("unread");
    let node = Node::start(&directory, &["-vv"]);
    node.leave_unread();
    for _ in 0..20 {
        node.sim_ok(&["reboot"]);
    }
    assert_eq!(node.sim_ok(&["check", "/"]), "directory\n");
    assert_eq!(node.terminate().0, Some(0));
}

#[test]
fn without_a_real_node_it_says_what_to_do() {
    let output = run(&[
        "node",
        "--driver",
        "local",
        "--endpoint",
        "tcp://127.0.0.1:0",
    ]);
    let line = failure(&output);
    assert!(line.contains("--simulate"), "{line}");
}

#[test]
fn the_help_names_units_and_defaults() {
    let output = run(&["node", "--help"]);
    let text = crate::program::stdout(&output);
    for part in ["100GiB", r"[default: C:\csi-volumes]", "bytes", "unix:///"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn log_lines_are_json_when_asked() {
    let directory = Directory::new("json");
    let node = Node::start(&directory, &["--log-format", "json"]);
    let (code, told) = node.terminate();
    assert_eq!(code, Some(0), "{told}");
    for line in told.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        assert!(line["fields"]["message"].is_string(), "{line}");
    }
    assert!(told.contains("SIGTERM"), "{told}");
}

#[test]
fn a_file_in_which_another_program_keeps_its_node_is_refused() {
    let directory = Directory::new("shared");
    let file = directory.join("node.json").display().to_string();
    let keep = format!("--sim-state={file}");
    let first = Node::start(&directory, &[&keep]);
    let output = run(&[
        "node",
        "--driver=local",
        "--simulate",
        "--endpoint=tcp://127.0.0.1:0",
        &keep,
    ]);
    let line = failure(&output);
    for part in ["--sim-state", &file, "another program"] {
        assert!(line.contains(part), "{part} in {line}");
    }
    // However the first one ends, the next one goes on.
    first.kill();
    assert_eq!(Node::start(&directory, &[&keep]).terminate().0, Some(0));
}
