//! Disks, volumes and staging on a simulated node.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod calls;
#[path = "../common/mod.rs"]
mod common;
mod content;
mod disks;
mod faults;
mod find;
mod formats;
mod growth;
mod locks;
mod paths;
mod refusals;
mod staging;
mod volumes;

use std::time::Duration;

use csi_proxy::clock::{Clock, Deadline};
use csi_proxy::staging::StageRequest;
use csi_proxy::volume::FormatOptions;
use csi_proxy::{DiskNumber, Error, ErrorKind, Host, HostPath, VolumeId};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::storage::SimDisk;

const NEVER: Deadline = Deadline::Never;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The disk that most tests work on.
const ONE: DiskNumber = DiskNumber(1);
const STAGING: &str = r"C:\var\lib\kubelet\plugins\staging\a";

fn path(text: &str) -> HostPath {
    HostPath::from_kubelet(text).unwrap()
}

/// A node with its system disk and one more, which is number 1 with the unique id `one`.
fn node(disk: SimDisk) -> SimNode {
    SimNode::builder()
        .disk(disk.number(1).unique_id("one"))
        .build()
}

/// A new process on the node, with a state directory.
fn host(node: &SimNode) -> Host {
    node.process().host().with_state_dir(path(r"C:\state"))
}

/// A deadline that is far enough for all that goes on by itself.
fn soon(node: &SimNode) -> Deadline {
    node.clock().deadline_in(Duration::from_secs(60))
}

/// A stage of disk `one`.
fn request() -> StageRequest {
    StageRequest {
        disk: "one".to_owned(),
        path: path(STAGING),
        format: FormatOptions::default(),
        file_system: None,
        read_only: false,
    }
}

/// The volume of the last partition of a disk, whatever Windows shows of it.
fn volume_of(node: &SimNode, number: DiskNumber) -> VolumeId {
    let storage = node.snapshot().storage;
    let (_, disk) = storage.disk_by_number(number.0).unwrap();
    let medium = &storage.media[&disk.medium];
    medium.partitions.last().unwrap().volume.clone().unwrap()
}

/// An error of that kind whose text holds these parts.
#[track_caller]
fn assert_error<T: std::fmt::Debug>(
    result: Result<T, Error>,
    kind: ErrorKind,
    parts: &[&str],
) -> Error {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} in {error}");
    }
    error
}

/// What is refused changes nothing on the node.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(
    node: &SimNode,
    parts: &[&str],
    run: impl FnOnce(&Host) -> Result<T, Error>,
) {
    let before = node.snapshot();
    let result = run(&host(node));
    assert_error(result, ErrorKind::FailedPrecondition, parts);
    assert_unchanged(node, before);
}

/// The node is as it was.
#[track_caller]
fn assert_unchanged(node: &SimNode, before: csi_proxy_sim::State) {
    // Not assert_eq: what differs would be pages long.
    assert!(node.snapshot() == before, "the node was changed");
}
