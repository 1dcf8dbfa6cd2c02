//! How full a volume is, and how it is.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{GIB, Rig, STAGING, TARGET, path};
use csi_node::proto::VolumeCondition;
use csi_node::proto::volume_usage::Unit;
use csi_proxy::VolumeId;
use csi_proxy::clock::Deadline;
use csi_proxy::os::At;
use csi_proxy_sim::NodeChange;

fn with_volume() -> Rig {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig
}

#[test]
fn stats_are_the_volumes_own_in_bytes() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    rig.publish("v").unwrap();
    for at in [STAGING, TARGET] {
        let stats = rig.stats("v", at).unwrap();
        let usage = &stats.usage[0];
        assert_eq!(usage.unit(), Unit::Bytes);
        assert!(
            usage.total < GIB && usage.total > GIB - 64 * common::MIB,
            "{usage:?}"
        );
        assert_eq!(usage.used + usage.available, usage.total);
        assert!(!stats.volume_condition.unwrap().abnormal);
    }
}

/// The Windows volume that is staged.
fn staged(rig: &Rig) -> VolumeId {
    rig.host()
        .os()
        .mounted_volume(&At::path(&path(STAGING)), Deadline::Never)
        .unwrap()
}

fn condition(rig: &Rig, at: &str) -> VolumeCondition {
    rig.stats("v", at).unwrap().volume_condition.unwrap()
}

#[test]
fn a_volume_that_windows_wants_to_repair_is_abnormal_until_it_is_repaired() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    rig.publish("v").unwrap();
    let volume = staged(&rig);
    let set = |health| {
        let volume = volume.clone();
        let change = NodeChange::SetVolumeHealth { volume, health };
        rig.node.change(|state| change.apply(state).unwrap());
    };
    for (health, words) in [
        (
            1,
            "HealthStatus is Scan Needed; OperationalStatus is 53261 (Scan Needed)",
        ),
        (
            2,
            "HealthStatus is Spot Fix Needed; OperationalStatus is 53262 (Spot Fix Needed)",
        ),
        (
            3,
            "HealthStatus is Full Repair Needed; OperationalStatus is 53263 (Full Repair Needed)",
        ),
    ] {
        set(health);
        for at in [STAGING, TARGET] {
            let condition = condition(&rig, at);
            assert!(condition.abnormal, "{health} at {at}");
            assert_eq!(condition.message, format!("{volume}: {words}"));
        }
        // What is full is told all the same.
        assert!(rig.stats("v", STAGING).unwrap().usage[0].total > 0);
        set(0);
        for at in [STAGING, TARGET] {
            let condition = condition(&rig, at);
            assert!(!condition.abnormal, "after {health} at {at}");
            assert_eq!(condition.message, "healthy");
        }
    }
}
