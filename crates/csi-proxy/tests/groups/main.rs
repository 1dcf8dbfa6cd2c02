//! The groups filesystem, smb, iscsi and system on a simulated node.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod filesystem;
mod iscsi;
mod links;
mod smb;
mod system;

use csi_proxy::HostPath;
use csi_proxy::clock::Deadline;
use csi_proxy::os::Reparse;
use csi_proxy_sim::{SimNode, State};

/// All calls of these tests may take as long as they need.
const NEVER: Deadline = Deadline::Never;

const KUBELET: &str = r"C:\var\lib\kubelet";

fn path(text: &str) -> HostPath {
    HostPath::from_kubelet(text).unwrap()
}

/// A node with drive `C:`, arranged by hand.
fn node(arrange: impl FnOnce(&mut State)) -> SimNode {
    let node = SimNode::builder().build();
    node.change(arrange);
    node
}

fn symbolic_link(target: &str) -> Reparse {
    Reparse::SymbolicLink {
        target: target.to_owned(),
    }
}
