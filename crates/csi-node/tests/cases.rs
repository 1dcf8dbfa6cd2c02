//! Cases from real reports, through the driver `local`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::time::Duration;

use common::{GIB, Rig, STAGING, TARGET, config, parent, publish, stage, within};
use csi_node::proto::node_server::Node as _;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_proxy::clock::Clock as _;
use csi_proxy_sim::{Latency, NodeChange, SimClock, SimNode};
use tokio::task::JoinHandle;
use tonic::{Code, Status};

const FORMAT: &str = "MSFT_Volume.Format";

/// A node on which a format takes 150 s and time passes only when the test says so.
fn slow() -> Rig {
    let node = SimNode::builder().clock(SimClock::manual()).build();
    let rig = Rig::with(node, config());
    rig.create("v", GIB).unwrap();
    // The partition has a little less than the disk's GiB.
    rig.node.set_latency(Latency {
        format_per_gib: Duration::from_millis(152_600),
        ..Latency::NONE
    });
    rig
}

/// A stage with a deadline of 120 s, on its way.
fn stage_now(rig: &Rig) -> JoinHandle<Result<(), Status>> {
    let plugin = rig.plugin.clone();
    let request = within(120, stage("v", STAGING, Mode::SingleNodeWriter));
    rig.runtime
        .spawn(async move { plugin.node_stage_volume(request).await.map(drop) })
}

/// Lets the node's clock come to a second, at the pace of those who wait on it.
fn until(rig: &Rig, second: u64) {
    let clock = rig.node.clock();
    while clock.now().0 < Duration::from_secs(second) {
        std::thread::yield_now();
        clock.advance(Duration::from_secs(1));
    }
}

/// Waits until the format has begun, without time passing.
fn format_begun(rig: &Rig) {
    while rig.node.counts().of(FORMAT) == 0 {
        std::thread::yield_now();
    }
}

/// A plugin at second 50 that has taken the place of one whose format still runs.
fn restarted_while_formatting() -> Rig {
    let mut rig = slow();
    let at_0 = stage_now(&rig);
    format_begun(&rig);
    until(&rig, 50);
    rig.restart_at_once();
    at_0.abort();
    rig
}

fn code(rig: &Rig, answer: JoinHandle<Result<(), Status>>) -> Code {
    let answer = rig.runtime.block_on(answer).unwrap();
    answer.err().map_or(Code::Ok, |status| status.code())
}

#[test]
fn c07_the_slow_format_is_joined_by_the_retries() {
    let rig = slow();
    let at_0 = stage_now(&rig);
    format_begun(&rig);
    until(&rig, 120);
    assert_eq!(code(&rig, at_0), Code::DeadlineExceeded);
    until(&rig, 121);
    let at_121 = stage_now(&rig);
    until(&rig, 130);
    let at_130 = stage_now(&rig);
    // A different call meanwhile is told to wait.
    assert_eq!(rig.unstage("v").unwrap_err().code(), Code::Aborted);
    until(&rig, 160);
    let at_160 = stage_now(&rig);
    for answer in [at_121, at_130, at_160] {
        // Who looks for the end of the format waits on a clock that must not stand still.
        while !answer.is_finished() {
            std::thread::sleep(Duration::from_millis(5));
            rig.node.clock().advance(Duration::from_millis(100));
        }
        assert_eq!(code(&rig, answer), Code::Ok);
    }
    assert_eq!(rig.node.counts().of(FORMAT), 1);
    assert_eq!(rig.node.counts().of("set_mount_point"), 1);
    rig.stats("v", STAGING).unwrap();
}

#[test]
fn c07_a_restarted_plugin_does_not_format_while_the_first_format_runs() {
    let rig = restarted_while_formatting();
    for second in [60, 100, 140] {
        until(&rig, second);
        let answer = stage_now(&rig);
        until(&rig, second + 9);
        assert_eq!(code(&rig, answer), Code::Aborted, "at {second} s");
        assert_eq!(rig.node.snapshot().storage.jobs.len(), 1, "at {second} s");
    }
    until(&rig, 160);
    assert!(rig.node.snapshot().storage.jobs.is_empty());
    let formats = rig.node.counts().of(FORMAT);
    let answer = stage_now(&rig);
    until(&rig, 169);
    assert_eq!(code(&rig, answer), Code::Ok);
    rig.stats("v", STAGING).unwrap();
    // What the first plugin began has become the file system.
    assert_eq!(rig.node.counts().of(FORMAT), formats);
    assert_eq!(rig.node.counts().of("set_mount_point"), 1);
}

#[test]
fn c07_a_restarted_plugin_does_not_cut_a_format_off() {
    let rig = restarted_while_formatting();
    for second in [60, 140] {
        until(&rig, second);
        let error = rig.unstage("v").unwrap_err();
        assert_eq!(error.code(), Code::Aborted, "at {second} s");
        assert!(error.message().contains("format"), "{}", error.message());
        assert!(rig.exists(STAGING), "at {second} s");
        // Nor is the disk attached anew for a reader.
        let error = rig
            .stage_with(stage("v", STAGING, Mode::SingleNodeReaderOnly))
            .unwrap_err();
        assert_eq!(error.code(), Code::Aborted, "{}", error.message());
        assert_eq!(
            rig.delete("v").unwrap_err().code(),
            Code::FailedPrecondition
        );
        assert_eq!(rig.node.snapshot().storage.jobs.len(), 1, "at {second} s");
    }
    until(&rig, 160);
    assert!(rig.node.snapshot().storage.jobs.is_empty());
    rig.unstage("v").unwrap();
    // What was formatted is not formatted again.
    let formats = rig.node.counts().of(FORMAT);
    let answer = stage_now(&rig);
    until(&rig, 169);
    assert_eq!(code(&rig, answer), Code::Ok);
    assert_eq!(rig.node.counts().of(FORMAT), formats);
    rig.unstage("v").unwrap();
    rig.delete("v").unwrap();
}

#[test]
fn c07_what_a_gone_volume_left_at_the_path_does_not_cut_a_format_off() {
    let rig = restarted_while_formatting();
    let gone = r"\\?\Volume{00000000-0000-0000-0000-000000000001}\";
    let volume = csi_proxy::VolumeId::new(gone).unwrap();
    rig.node.change(|state| {
        let mount_point = csi_proxy::os::Reparse::MountPoint { volume };
        state.put_link(STAGING, mount_point).unwrap();
    });
    let error = rig.unstage("v").unwrap_err();
    assert_eq!(error.code(), Code::Aborted, "{error:?}");
    assert!(rig.exists(STAGING));
    assert_eq!(rig.node.snapshot().storage.jobs.len(), 1);
    until(&rig, 160);
    rig.unstage("v").unwrap();
    assert!(!rig.exists(STAGING));
    rig.delete("v").unwrap();
}

#[test]
fn c12_odd_but_legal_names_are_names() {
    let names = [
        "with blanks in it",
        "[vsanDatastore] x",
        "(1)",
        "#",
        ";",
        "$(x)",
        "`",
        "%VAR%",
        "'",
        "\u{2019}",
        "\u{1f4be}",
    ];
    for name in names {
        let rig = Rig::new();
        rig.create("v", GIB).unwrap();
        let staging = format!(r"{}\{name}", parent(STAGING));
        let target = format!(r"{}\{name}", parent(TARGET));
        rig.stage_with(stage("v", &staging, Mode::SingleNodeWriter))
            .unwrap();
        rig.publish_with(publish("v", &staging, &target)).unwrap();
        rig.write(&format!(r"{target}\{name}"), name);
        assert_eq!(rig.read(&format!(r"{staging}\{name}")), name);
        assert_eq!(rig.tree(parent(TARGET)), [format!("{target} -> {staging}")]);
        rig.unpublish_at("v", &target).unwrap();
        rig.unstage_at("v", &staging).unwrap();
        assert!(!rig.exists(&target));
        rig.delete("v").unwrap();
    }
}

#[test]
fn c12_names_that_windows_has_not_are_invalid() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    let before = rig.node.snapshot();
    for name in [
        "a\0b", "a\nb", "a\u{1}", "a:stream", "a?", "a*", "con", "nul.txt", "x.", "x ",
    ] {
        let staging = format!(r"{}\{name}", parent(STAGING));
        let request = stage("v", &staging, Mode::SingleNodeWriter);
        let error = rig.stage_with(request).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{name:?}");
        assert!(
            error.message().contains("staging_target_path"),
            "{}",
            error.message()
        );
        let error = rig.unpublish_at("v", &staging).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{name:?}");
    }
    rig.assert_unchanged(&before);
}

#[test]
fn c12_a_volume_id_changes_no_query() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.node.reset_counts();
    for id in ["v' OR '1'='1", r"v\", r"..\pool\v", "v\"", "%", "v.new"] {
        assert_eq!(rig.stage(id).unwrap_err().code(), Code::NotFound, "{id}");
        assert_eq!(
            rig.stats(id, STAGING).unwrap_err().code(),
            Code::NotFound,
            "{id}"
        );
        rig.delete(id).unwrap();
    }
    assert_eq!(rig.node.counts().cim, 0);
    // A name may have them all.
    let odd = rig.create(r"it's a \ name", GIB).unwrap();
    rig.stage(&odd.volume_id).unwrap();
    rig.unstage(&odd.volume_id).unwrap();
    rig.delete(&odd.volume_id).unwrap();
}

/// Sets the read-only flag of the volume's disk, as somebody does who should not.
fn flag_read_only(rig: &Rig) {
    let change = NodeChange::SetReadOnly {
        number: 1,
        read_only: true,
    };
    rig.node.change(|state| change.apply(state).unwrap());
}

#[test]
fn c06_a_flag_that_is_set_while_the_volume_is_staged_goes_with_the_next_stage() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.stage("v").unwrap();
    flag_read_only(&rig);
    rig.stage("v").unwrap();
    rig.publish("v").unwrap();
    rig.write(&format!(r"{TARGET}\file"), "written");
    assert_eq!(rig.read(&format!(r"{STAGING}\file")), "written");
}

#[test]
fn c06_a_volume_that_is_staged_for_reading_is_not_made_writable() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.stage("v").unwrap();
    rig.unstage("v").unwrap();
    rig.stage_with(stage("v", STAGING, Mode::SingleNodeReaderOnly))
        .unwrap();
    let status = rig.stage("v").unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists, "{status:?}");
    rig.stage_with(stage("v", STAGING, Mode::SingleNodeReaderOnly))
        .unwrap();
}
