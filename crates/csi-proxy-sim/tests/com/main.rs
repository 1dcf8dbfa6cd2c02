//! The library over its own client of WMI, which reaches a simulated node through the COM
//! face. Windows and Wine only.

#![cfg(windows)]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod answers;
mod faults;
mod iscsi;
mod memory;
mod other_clients;
mod smb;
mod storage;
mod system;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csi_proxy::clock::Deadline;
use csi_proxy::windows::Cim;
use csi_proxy::{Host, HostPath};
use csi_proxy_sim::com::Face;
use csi_proxy_sim::{Process, SimNode};

const NEVER: Deadline = Deadline::Never;
const GIB: u64 = 1 << 30;

fn path(text: &str) -> HostPath {
    HostPath::from_kubelet(text).unwrap()
}

/// A node that is reached through the face. The face is the process's, so one test at a time
/// has it.
struct Reached {
    node: SimNode,
    process: Process,
    host: Host,
    face: Face,
    _turn: MutexGuard<'static, ()>,
}

impl Reached {
    fn new(node: SimNode) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let process = node.process();
        let cim = Cim::new(node.clock());
        Self {
            face: Face::register(process.cim()).unwrap(),
            host: Host::new(Arc::new(cim), process.os())
                .with_state_dir(path(r"C:\var\lib\csi-proxy")),
            process,
            node,
            _turn: turn,
        }
    }
}

/// Two nodes that are alike: one reached directly, one through the face.
struct Compared {
    plain: SimNode,
    plain_host: Host,
    reached: Reached,
}

impl Compared {
    fn new(build: impl Fn() -> SimNode) -> Self {
        let plain = build();
        let reached = Reached::new(build());
        assert_eq!(plain.snapshot(), reached.node.snapshot());
        Self {
            plain_host: plain
                .process()
                .host()
                .with_state_dir(path(r"C:\var\lib\csi-proxy")),
            plain,
            reached,
        }
    }

    /// Makes a call on both; what they answer and what becomes of the nodes must be the same.
    #[track_caller]
    fn same<T: std::fmt::Debug>(&self, call: impl Fn(&Host) -> csi_proxy::Result<T>) {
        let expected = outcome(call(&self.plain_host));
        let got = outcome(call(&self.reached.host));
        assert_eq!(got, expected);
        assert_eq!(self.reached.node.snapshot(), self.plain.snapshot());
    }
}

/// What a caller can tell of an answer. The words of the port's error are not the same: WMI
/// names its functions.
fn outcome<T: std::fmt::Debug>(answer: csi_proxy::Result<T>) -> String {
    match answer {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!(
            "{:?} {} {}",
            error.kind(),
            error.operation(),
            error.object()
        ),
    }
}
