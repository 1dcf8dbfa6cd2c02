//! `csi-proxy sim` against a simulated node in another process.

use std::io::Write as _;
use std::process::{Output, Stdio};

use crate::program::{Directory, csi_proxy, failure, run, stderr, stdout};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::control::ControlServer;

/// A simulated node that this test serves.
struct Served {
    node: SimNode,
    server: ControlServer,
}

impl Served {
    fn new() -> Self {
        let node = SimNode::builder().build();
        let server = ControlServer::start(node.clone(), "tcp://127.0.0.1:0");
        Self {
            node,
            server: server.expect("the endpoint opens"),
        }
    }

    fn sim(&self, arguments: &[&str]) -> Output {
        csi_proxy()
            .arg("sim")
            .args(arguments)
            .env("CSI_PROXY_SIM", self.server.uri())
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    }

    /// The output of a verb that must go well.
    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.sim(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    }
}

#[test]
fn paths_are_made_checked_and_removed() {
    let node = Served::new();
    let directory = r"C:\var\lib\kubelet\a b";
    assert_eq!(node.ok(&["check", directory]), "not_found\n");
    assert_eq!(node.ok(&["mkdir", directory]), "");
    assert_eq!(node.ok(&["mkdir", directory]), "");
    assert_eq!(node.ok(&["check", "/var/lib/kubelet/a b"]), "directory\n");
    let file = format!(r"{directory}\file");
    node.ok(&["write", &file, "--text", "hello"]);
    assert_eq!(node.ok(&["check", &file]), "file\n");
    assert_eq!(node.ok(&["read", &file]), "hello");
    assert_eq!(node.ok(&["rm", directory]), "");
    assert_eq!(node.ok(&["rm", directory]), "");
    assert_eq!(node.ok(&["check", directory]), "not_found\n");
}

#[test]
fn a_file_is_copied_from_standard_input_to_the_byte() {
    let node = Served::new();
    let contents = [0, 255, b'\r', b'\n', 0x80];
    let mut child = csi_proxy()
        .args(["sim", "write", r"C:\bytes"])
        .args(["--control", &node.server.uri()])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().expect("its input is piped");
    stdin.write_all(&contents).expect("it reads");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(node.sim(&["read", r"C:\bytes"]).stdout, contents);
}

#[test]
fn disks_come_and_go() {
    let node = Served::new();
    let number = node.ok(&[
        "attach-disk",
        "10GiB",
        "--kind",
        "ntfs",
        "--serial",
        "vol0123",
    ]);
    assert_eq!(number, "1\n");
    let shown = node.ok(&["show"]);
    assert!(shown.contains("disk 1: 10 GiB, GPT"), "{shown}");
    assert!(shown.contains("vol0123"), "{shown}");
    node.ok(&["detach-disk", "1"]);
    let shown = node.ok(&["show"]);
    assert!(!shown.contains("disk 1"), "{shown}");
    let line = failure(&node.sim(&["detach-disk", "1"]));
    assert!(line.contains("disk 1"), "{line}");
}

#[test]
fn a_disk_that_cannot_be_is_refused_by_the_field() {
    let node = Served::new();
    for (arguments, field) in [
        (&["10GiB", "--number", "4294967295"][..], "number"),
        (&["0"], "size"),
        (&["18446744073709551104"], "size"),
        (&["1MiB", "--kind", "ntfs"], "size"),
    ] {
        let line = failure(&node.sim(&[&["attach-disk"], arguments].concat()));
        assert!(line.contains(field), "{arguments:?}: {line}");
    }
    let number = node.ok(&["attach-disk", "10GiB", "--number", "4294967294"]);
    assert_eq!(number, "4294967294\n");
}

#[test]
fn files_are_shown_when_asked_for() {
    let node = Served::new();
    node.ok(&["write", r"C:\ProgramData\x.txt", "--text", "1234"]);
    let shown = node.ok(&["show", "--files"]);
    assert!(shown.contains(r"C:\ProgramData\x.txt (4 B)"), "{shown}");
    assert!(!node.ok(&["show"]).contains("x.txt"));
}

#[test]
fn the_help_of_every_verb_has_an_example_that_is_read() {
    let help = stdout(&run(&["sim", "--help"]));
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs: Vec<&str> = verbs
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.strip_prefix("  ")?
                .split_once(' ')
                .map(|(verb, _)| verb)
        })
        .filter(|verb| !verb.is_empty() && *verb != "help")
        .collect();
    assert!(verbs.contains(&"attach-disk"), "{help}");
    for verb in verbs {
        let help = stdout(&run(&["sim", verb, "--help"]));
        assert!(help.contains("Example"), "{verb}: {help}");
    }
}

#[test]
fn a_path_on_a_drive_that_is_not_there_is_told_with_the_code_of_windows() {
    let node = Served::new();
    for arguments in [
        &["mkdir", r"X:\a"][..],
        &["read", r"X:\a"],
        &["write", r"X:\a", "--text", "x"],
    ] {
        let line = failure(&node.sim(arguments));
        assert!(line.contains("Win32 error 3:"), "{line}");
    }
    assert_eq!(node.ok(&["check", r"X:\a"]), "not_found\n");
}

#[test]
fn a_fault_makes_the_next_call_fail() {
    let node = Served::new();
    node.ok(&["fault", "write_file=win32:112"]);
    let line = failure(&node.sim(&["write", r"C:\full", "--text", "x"]));
    assert!(line.contains("112"), "{line}");
    node.ok(&["write", r"C:\full", "--text", "x"]);
}

#[test]
fn a_fault_that_could_never_happen_is_refused() {
    let node = Served::new();
    let output = node.sim(&["fault", "MSFT_Volum.Format=returns:43006"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("MSFT_Volume.Format"), "{output:?}");
    assert_eq!(node.node.faults_left(), 0);
}

#[test]
fn counts_are_json_and_start_anew_when_asked() {
    let node = Served::new();
    node.ok(&["write", r"C:\file", "--text", "x"]);
    let counts = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&node.ok(arguments)).expect("counts are JSON")
    };
    assert_eq!(
        counts(&["counts", "--reset"])["by_operation"]["write_file"],
        1
    );
    assert_eq!(counts(&["counts"])["os"], 0);
}

#[test]
fn the_state_is_that_of_the_node() {
    let node = Served::new();
    let state = serde_json::from_str(&node.ok(&["state"])).expect("a state is JSON");
    assert!(node.node.snapshot() == state);
}

#[test]
fn a_reboot_ends_the_processes_of_the_node() {
    let node = Served::new();
    let process = node.node.process();
    node.ok(&["reboot"]);
    let path = csi_proxy::HostPath::from_kubelet(r"C:\").expect("it is a path");
    let at = csi_proxy::os::At::path(&path);
    let answer = process.os().stat(&at, csi_proxy::clock::Deadline::Never);
    assert!(answer.is_err(), "{answer:?}");
}

#[test]
fn without_an_endpoint_it_says_how_to_name_one() {
    let line = failure(&run(&["sim", "show"]));
    assert!(
        line.contains("--control") && line.contains("CSI_PROXY_SIM"),
        "{line}"
    );
}

#[test]
fn an_endpoint_that_nobody_serves_is_named() {
    let directory = Directory::new("nobody");
    let control = directory.socket("sim.sock");
    let line = failure(&run(&["sim", "--control", &control, "show"]));
    assert!(line.contains(&control), "{line}");
    let line = failure(&run(&["sim", "--control", "http://x", "show"]));
    assert!(line.contains("unix://"), "{line}");
}

#[test]
fn a_path_that_is_none_is_refused() {
    let node = Served::new();
    let line = failure(&node.sim(&["mkdir", r"C:\a:stream"]));
    assert!(line.contains("stream"), "{line}");
    let output = node.sim(&["read", r"\\server\share"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_disk_that_windows_runs_on_is_not_taken_away() {
    let node = Served::new();
    let before = node.node.snapshot();
    let line = failure(&node.sim(&["detach-disk", "0"]));
    assert!(
        line.contains("disk 0") && line.contains("Windows"),
        "{line}"
    );
    assert!(node.node.snapshot() == before);
}
