//! The suite on simulated nodes: what it finds, and what it leaves.

mod faults;
mod guard;
mod killed;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use csi_proxy::{Host, HostPath};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::storage::{Content, SimDisk};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::area::{Area, NAME};
use super::suite::{self, Interrupt, Suite};
use crate::life::join;
use crate::onlooker::{Onlooker, Traces};
use crate::report::{Form, Report};

/// A node with disks of other people: one with files, one that Windows does not know, one
/// that is offline, and one that looks empty.
fn node() -> SimNode {
    SimNode::builder()
        .disk(SimDisk::ntfs(10 << 30).serial("theirs"))
        .disk(SimDisk::raw(10 << 30).content(Content::Ext4))
        .disk(SimDisk::ntfs(5 << 30).offline())
        .disk(SimDisk::raw(5 << 30))
        .build()
}

fn path(text: &str) -> HostPath {
    HostPath::from_kubelet(text).unwrap()
}

fn folder() -> HostPath {
    join(&path(r"C:\"), &[NAME]).unwrap()
}

/// What a node is like, in so far as the self-test could change it.
fn look(node: &SimNode) -> (String, Traces) {
    let onlooker = Onlooker::new(node.process().host());
    (node.show(), onlooker.traces(&path(r"C:\")).unwrap())
}

/// How a run has ended.
struct Run {
    passed: bool,
    lines: Vec<Value>,
    /// How many port calls the node had seen at the end of each line.
    calls: Vec<u64>,
}

impl Run {
    /// The steps that failed.
    fn failed(&self) -> Vec<&str> {
        let failed = self.lines.iter().filter(|line| line["ok"] == false);
        failed.filter_map(|line| line["step"].as_str()).collect()
    }
}

/// Runs the suite in a new process of the node.
fn run(node: &SimNode) -> Run {
    run_on(node, node.process().host(), &Interrupt::default())
}

fn run_on(node: &SimNode, host: Host, interrupt: &Interrupt) -> Run {
    let lines = Lines::new(node);
    let names = suite::names();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let report = Report::begin(Form::Json, lines.clone(), "", &names).unwrap();
    let passed = suite_of(host, interrupt, report).unwrap();
    let lines = lines.0.lock().unwrap();
    let text = std::str::from_utf8(&lines.text).unwrap();
    Run {
        passed,
        lines: text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
        calls: lines.calls.clone(),
    }
}

fn suite_of<W: Write>(
    host: Host,
    interrupt: &Interrupt,
    report: Report<W>,
) -> crate::failure::Result<bool> {
    let runtime = Runtime::new().unwrap();
    let socket = Socket::new();
    let suite = Suite {
        area: Area::new(host, folder()),
        socket: socket.0.join("s"),
        interrupt: interrupt.clone(),
        runtime: &runtime,
        report,
    };
    suite.run(Vec::new)
}

/// A directory for a socket, which goes with the run.
struct Socket(PathBuf);

impl Socket {
    fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("csi-proxy-st-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The lines of a report, with the calls of the node at each.
#[derive(Clone)]
struct Lines(Arc<Mutex<Written>>);

struct Written {
    node: SimNode,
    text: Vec<u8>,
    calls: Vec<u64>,
}

impl Lines {
    fn new(node: &SimNode) -> Self {
        Self(Arc::new(Mutex::new(Written {
            node: node.clone(),
            text: Vec::new(),
            calls: Vec::new(),
        })))
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap();
        if bytes == b"\n" {
            let calls = written.node.counts().total();
            written.calls.push(calls);
        }
        written.text.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_right_node_passes_and_is_as_before() {
    let node = node();
    let before = look(&node);
    let run = run(&node);
    assert!(run.passed, "{:?}", run.lines);
    let names: Vec<_> = run
        .lines
        .iter()
        .filter_map(|line| line["step"].as_str())
        .collect();
    assert_eq!(names, suite::names());
    assert_eq!(look(&node), before);
}

/// A reader that has gone, or a bug in the suite.
struct Gone {
    left: usize,
    panics: bool,
}

impl Write for Gone {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None if self.panics => panic!("the report panics"),
            None => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_is_closed_and_a_panic_leave_nothing_behind() {
    for panics in [false, true] {
        // In the middle of the disk's checks, and of the life.
        for left in [900, 1500] {
            let node = node();
            let before = look(&node);
            let host = node.process().host();
            let report = Report::begin(Form::Json, Gone { left, panics }, "", &[]).unwrap();
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                suite_of(host, &Interrupt::default(), report)
            }));
            match ended {
                Ok(ended) => assert!(!panics && ended.is_err()),
                Err(_) => assert!(panics),
            }
            let work = node.counts().of("attach_virtual_disk");
            assert!(work >= 1, "nothing had to be cleared");
            assert_eq!(look(&node), before, "{panics} {left}");
        }
    }
}
