//! Probe tells whether the plugin can work.

mod common;

use common::{Rig, config, path};
use csi_node::local::LocalConfig;
use csi_node::proto::identity_server::Identity as _;
use csi_node::proto::{ProbeRequest, ProbeResponse};
use csi_proxy_sim::{Fault, SimNode};
use tonic::{Code, Request};

fn probe(rig: &Rig) -> common::Answer<ProbeResponse> {
    rig.call(rig.plugin.probe(Request::new(ProbeRequest {})))
}

#[test]
fn a_plugin_is_ready_before_its_pool_is_made() {
    let rig = Rig::new();
    let before = rig.node.snapshot();
    rig.node.reset_counts();
    assert_eq!(probe(&rig).unwrap().ready, Some(true));
    // Often asked, so it must cost little.
    assert!(rig.node.counts().total() <= 2);
    rig.assert_unchanged(&before);
}

#[test]
fn a_plugin_whose_pool_is_on_no_drive_is_not_ready() {
    let pool = path(r"Q:\csi\pool");
    let config = LocalConfig { pool, ..config() };
    let rig = Rig::with(SimNode::builder().build(), config);
    let error = probe(&rig).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:?}");
    for part in ["pool", r"Q:\"] {
        assert!(error.message().contains(part), "{part} in {error:?}");
    }
}

#[test]
fn a_drive_that_cannot_be_looked_at_is_told_as_such() {
    let rig = Rig::new();
    rig.node.inject(Fault::on("stat").win32(1117));
    let error = probe(&rig).unwrap_err();
    assert_eq!(error.code(), Code::Internal, "{error:?}");
    assert_eq!(probe(&rig).unwrap().ready, Some(true));
}
