//! One path has many spellings: over a link above it, and with 8.3 names. What the driver
//! does and what it protects must not depend on the text.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Answer, GIB, Rig, STAGING, TARGET, path, publish, stage};
use csi_node::Plugin;
use csi_node::local::{LocalConfig, LocalDriver};
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_proxy::clock::Deadline;
use csi_proxy::os::{At, Reparse};
use csi_proxy_sim::SimNode;
use tonic::Code;

/// The directory of all paths that the kubelet gives.
const KUBELET: &str = r"C:\var\lib\kubelet";
/// A pool whose name has an 8.3 name beside it, and a link to it.
const LONG_POOL: &str = r"C:\csi-volumes";
const SHORT_POOL: &str = r"C:\CSI-VO~1";
const LINK: &str = r"C:\alias";

fn put_link(rig: &Rig, at: &str, target: &str) {
    let target = target.to_owned();
    rig.node.change(|state| {
        let link = Reparse::SymbolicLink { target };
        state.put_link(at, link).unwrap();
    });
}

/// A kind of nodes, and the spellings of the staging path on them.
struct Kind {
    node: fn() -> Rig,
    spellings: [String; 3],
}

/// The kubelet's directory lies on `C:`, or a link leads from there to another drive.
fn kinds() -> [Kind; 2] {
    let spellings = |third| [STAGING.to_owned(), over_link(STAGING), third];
    [
        Kind {
            node: || with_link(Rig::new()),
            spellings: spellings(short(STAGING)),
        },
        Kind {
            node: || with_link(Rig::over_link()),
            spellings: spellings(STAGING.replace(KUBELET, r"D:\kubelet")),
        },
    ]
}

/// Makes a volume, and a link `C:\k` to the kubelet's directory.
fn with_link(rig: Rig) -> Rig {
    put_link(&rig, r"C:\k", KUBELET);
    rig.create("v", GIB).unwrap();
    rig
}

fn over_link(path: &str) -> String {
    path.replace(KUBELET, r"C:\k")
}

/// With the 8.3 name that Windows gives the staging directory on `C:`.
fn short(path: &str) -> String {
    path.replace("globalmount", "GLOBAL~1")
}

fn refused(answer: &Answer<()>, parts: &[&str]) {
    let status = answer.as_ref().unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    for part in parts {
        assert!(status.message().contains(part), "{part}: {status:?}");
    }
}

#[test]
fn a_volume_staged_by_any_spelling_is_unstaged_by_any() {
    for Kind { node, spellings } in kinds() {
        for by in &spellings {
            for again in &spellings {
                stage_and_unstage(&node(), by, again);
            }
        }
    }
}

fn stage_and_unstage(rig: &Rig, by: &str, again: &str) {
    let name = format!("staged at {by}, unstaged at {again}");
    let disks = rig.disks();
    for at in [by, again] {
        rig.stage_with(stage("v", at, Mode::SingleNodeWriter))
            .unwrap_or_else(|status| panic!("{name}: {status:?}"));
    }
    rig.write(&format!(r"{by}\file"), "kept");
    rig.publish_with(publish("v", again, &over_link(TARGET)))
        .unwrap();
    assert_eq!(rig.read(&format!(r"{TARGET}\file")), "kept", "{name}");
    rig.unpublish("v").unwrap();
    assert!(!rig.exists(TARGET), "{name}");
    rig.unstage_at("v", again).unwrap();
    assert!(!rig.exists(STAGING), "{name}");
    assert_eq!(rig.disks(), disks, "{name}: the file is still attached");
    rig.delete("v").unwrap();
}

#[test]
fn a_volume_mounted_at_two_directories_stays_attached_until_both_are_gone() {
    let rig = with_link(Rig::new());
    rig.stage("v").unwrap();
    rig.write(&format!(r"{STAGING}\file"), "kept");
    rig.make_directory(r"C:\second");
    let host = rig.host();
    let volume = host
        .os()
        .mounted_volume(&At::path(&path(STAGING)), Deadline::Never)
        .unwrap();
    let request = csi_proxy::os::SetMountPoint {
        at: At::path(&path(r"C:\second")),
        volume,
    };
    host.os()
        .set_mount_point(&request, Deadline::Never)
        .unwrap();
    rig.unstage_at("v", &over_link(STAGING)).unwrap();
    assert!(!rig.exists(STAGING));
    assert_eq!(rig.read(r"C:\second\file"), "kept");
    rig.unstage_at("v", r"C:\second").unwrap();
    rig.delete("v").unwrap();
}

#[test]
fn nothing_is_staged_or_published_in_a_volume() {
    for Kind { node, spellings } in kinds() {
        let rig = node();
        rig.create("w", GIB).unwrap();
        rig.stage("v").unwrap();
        rig.publish("v").unwrap();
        rig.make_directory(&format!(r"{STAGING}\empty"));
        for volume in spellings.iter().map(String::as_str).chain([TARGET]) {
            for below in ["x", r"in\w", r"in\some\more\w", "empty", r"empty\w"] {
                refused_in_volume(&rig, &format!(r"{volume}\{below}"));
            }
        }
    }
}

/// `at` is a path in the volume `v`, and nothing stands there but an empty directory.
fn refused_in_volume(rig: &Rig, at: &str) {
    let before = rig.node.snapshot();
    for id in ["v", "w"] {
        let staged = rig.stage_with(stage(id, at, Mode::SingleNodeWriter));
        refused(&staged, &["staging_target_path", at, "volume v"]);
    }
    let published = rig.publish_with(publish("v", STAGING, at));
    refused(&published, &["target_path", at, "volume v"]);
    // What was never there is gone.
    rig.unpublish_at("v", at).unwrap();
    rig.unstage_at("v", at).unwrap();
    rig.assert_unchanged(&before);
}

/// The volume `v`, staged, of a pool that has other names too; perhaps with a state directory
/// apart from it.
fn with_pool(state: Option<&str>) -> Rig {
    let node = SimNode::builder().build();
    let config = || LocalConfig::new(path(LONG_POOL), "node-1");
    let mut rig = Rig::with(node, config());
    if let Some(state) = state {
        let host = rig.process.host().with_state_dir(path(state));
        rig.plugin = Plugin::new(LocalDriver::new(host, config()).unwrap());
    }
    rig.create("v", GIB).unwrap();
    rig.stage("v").unwrap();
    put_link(&rig, LINK, LONG_POOL);
    rig
}

fn assert_protected(rig: &Rig, at: &str) {
    let before = rig.node.snapshot();
    for answer in [
        rig.stage_with(stage("v", at, Mode::SingleNodeWriter)),
        rig.publish_with(publish("v", STAGING, at)),
        rig.unpublish_at("v", at),
        rig.unstage_at("v", at),
    ] {
        refused(&answer, &["target_path", at]);
        rig.assert_unchanged(&before);
    }
}

#[test]
fn the_pool_is_protected_whatever_it_is_called() {
    let rig = with_pool(None);
    put_link(&rig, r"C:\records", r"C:\alias\state");
    put_link(&rig, r"C:\csi-volumes\link", r"C:\elsewhere");
    rig.make_directory(r"C:\csi-volumes\empty");
    for at in [
        SHORT_POOL,
        r"C:\CSI-VO~1\x",
        r"C:\CSI-VO~1\state",
        r"C:\CSI-VO~1\state\v\deep",
        r"C:\CSI-VO~1\link",
        r"C:\CSI-VO~1\empty",
        r"C:\alias\x",
        r"C:\alias\x\y",
        r"C:\alias\link",
        r"C:\alias\state",
        r"C:\records\x",
    ] {
        assert_protected(&rig, at);
    }
}

#[test]
fn the_state_directory_is_protected_whatever_it_is_called() {
    let rig = with_pool(Some(r"C:\csi-records"));
    put_link(&rig, r"C:\records", r"C:\csi-records");
    for at in [
        r"C:\csi-records\x",
        r"C:\CSI-RE~1",
        r"C:\CSI-RE~1\x",
        r"C:\records\x",
        r"C:\alias\x",
    ] {
        assert_protected(&rig, at);
    }
}

#[test]
fn a_drive_that_is_missing_is_not_the_pool() {
    let rig = with_pool(None);
    let before = rig.disks();
    for at in [r"Q:\x", r"Q:\x\y"] {
        rig.unpublish_at("v", at).unwrap();
        rig.unstage_at("v", at).unwrap();
        for answer in [
            rig.stage_with(stage("v", at, Mode::SingleNodeWriter)),
            rig.publish_with(publish("v", STAGING, at)),
        ] {
            let status = answer.unwrap_err();
            assert_ne!(status.code(), Code::InvalidArgument, "{status:?}");
        }
    }
    assert_eq!(rig.disks(), before);
}

#[test]
fn a_link_goes_wherever_it_leads_except_to_another_volume() {
    let rig = with_link(Rig::new());
    rig.stage("v").unwrap();
    rig.publish("v").unwrap();
    // The mount is lost, and the link leads to a plain directory.
    let host = rig.host();
    let os = host.os();
    os.delete_mount_point(&At::path(&path(STAGING)), Deadline::Never)
        .unwrap();
    rig.write(&format!(r"{STAGING}\file"), "kept");
    rig.unpublish("v").unwrap();
    assert!(!rig.exists(TARGET));
    assert_eq!(rig.read(&format!(r"{STAGING}\file")), "kept");
    put_link(&rig, TARGET, r"C:\");
    let before = rig.node.snapshot();
    let status = rig.unpublish("v").unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
    rig.assert_unchanged(&before);
}

#[test]
fn a_link_in_a_volume_stays_however_its_path_is_spelled() {
    for Kind { node, spellings } in kinds() {
        let rig = node();
        rig.stage("v").unwrap();
        rig.publish("v").unwrap();
        put_link(&rig, &format!(r"{STAGING}\link"), r"C:\elsewhere");
        let before = rig.node.snapshot();
        for volume in spellings.iter().map(String::as_str).chain([TARGET]) {
            for id in ["v", "nonexistent", "No Id"] {
                rig.unpublish_at(id, &format!(r"{volume}\link")).unwrap();
                rig.assert_unchanged(&before);
            }
        }
    }
}
