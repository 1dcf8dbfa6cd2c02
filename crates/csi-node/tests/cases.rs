//! Cases from real reports, through the driver `local`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::time::Duration;

use common::{GIB, POOL, Rig, STAGING, TARGET, config, parent, path, publish, stage, within};
use csi_node::proto::node_server::Node as _;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_proxy::clock::{Clock as _, Deadline};
use csi_proxy::os::{At, CreateLink, SetMountPoint};
use csi_proxy_sim::{Fault, Latency, SimClock, SimNode};
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
        assert_eq!(code(&rig, answer), Code::Ok);
    }
    assert_eq!(rig.node.counts().of(FORMAT), 1);
    assert_eq!(rig.node.counts().of("set_mount_point"), 1);
    rig.stats("v", STAGING).unwrap();
}

#[test]
fn c07_a_restarted_plugin_does_not_format_while_the_first_format_runs() {
    let mut rig = slow();
    let at_0 = stage_now(&rig);
    format_begun(&rig);
    until(&rig, 50);
    rig.restart_at_once();
    at_0.abort();
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

/// Puts something at the staging path and says what stage and unstage have to answer.
struct Place {
    name: &'static str,
    make: fn(&Rig),
    stage: Code,
    unstage: Code,
    /// Whether it is still there after a stage that was refused and an unstage.
    stays: bool,
}

fn mount_other(rig: &Rig) {
    let other = r"C:\other";
    rig.make_directory(other);
    rig.create("other", GIB).unwrap();
    rig.stage_with(stage("other", other, Mode::SingleNodeWriter))
        .unwrap();
    let os = rig.host();
    let volume = os
        .os()
        .mounted_volume(&At::path(&path(other)), Deadline::Never)
        .unwrap();
    let request = SetMountPoint {
        at: At::path(&path(STAGING)),
        volume,
    };
    os.os().set_mount_point(&request, Deadline::Never).unwrap();
}

fn remove_staging(rig: &Rig) {
    rig.host()
        .os()
        .remove_directory(&At::path(&path(STAGING)), Deadline::Never)
        .unwrap();
}

fn link(rig: &Rig, target: &str) {
    remove_staging(rig);
    let request = CreateLink {
        at: At::path(&path(STAGING)),
        target: target.to_owned(),
    };
    rig.host()
        .os()
        .create_link(&request, Deadline::Never)
        .unwrap();
}

const PLACES: &[Place] = &[
    Place {
        name: "missing",
        make: remove_staging,
        stage: Code::Ok,
        unstage: Code::Ok,
        stays: false,
    },
    Place {
        name: "an empty directory",
        make: |_| (),
        stage: Code::Ok,
        unstage: Code::Ok,
        stays: false,
    },
    Place {
        name: "a directory with files",
        make: |rig| rig.write(&format!(r"{STAGING}\precious.txt"), "precious"),
        stage: Code::FailedPrecondition,
        unstage: Code::Ok,
        stays: true,
    },
    Place {
        name: "the right volume",
        make: |rig| rig.stage("v").unwrap(),
        stage: Code::Ok,
        unstage: Code::Ok,
        stays: false,
    },
    Place {
        name: "another volume",
        make: mount_other,
        stage: Code::FailedPrecondition,
        unstage: Code::FailedPrecondition,
        stays: true,
    },
    Place {
        name: "a file",
        make: |rig| {
            remove_staging(rig);
            rig.write(STAGING, "precious");
        },
        stage: Code::FailedPrecondition,
        unstage: Code::Ok,
        stays: true,
    },
    Place {
        name: "a dead link",
        make: |rig| link(rig, r"C:\nowhere"),
        stage: Code::Ok,
        unstage: Code::Ok,
        stays: false,
    },
    Place {
        name: "a dead mount point",
        make: |rig| {
            mount_other(rig);
            let file = At::path(&path(&format!(r"{POOL}\other.vhdx")));
            rig.host()
                .os()
                .detach_virtual_disk(&file, Deadline::Never)
                .unwrap();
        },
        stage: Code::Ok,
        unstage: Code::Ok,
        stays: false,
    },
];

#[test]
fn c11_what_is_at_the_staging_path() {
    for place in PLACES {
        println!("{}", place.name);
        // Unstage alone.
        let rig = Rig::new();
        rig.create("v", GIB).unwrap();
        (place.make)(&rig);
        let before = rig.tree(parent(STAGING));
        let unstage = rig
            .unstage("v")
            .err()
            .map_or(Code::Ok, |status| status.code());
        assert_eq!(unstage, place.unstage, "unstage of {}", place.name);
        if place.stays {
            assert_eq!(rig.tree(parent(STAGING)), before, "{}", place.name);
        }
        // Stage, and unstage after it.
        let rig = Rig::new();
        rig.create("v", GIB).unwrap();
        (place.make)(&rig);
        let stage = rig
            .stage("v")
            .err()
            .map_or(Code::Ok, |status| status.code());
        assert_eq!(stage, place.stage, "stage at {}", place.name);
        if place.stays {
            assert_eq!(rig.tree(parent(STAGING)), before, "{}", place.name);
            // A refusal leaves nothing attached.
            rig.delete("v").unwrap();
        } else {
            rig.stats("v", STAGING).unwrap();
            rig.unstage("v").unwrap();
            rig.delete("v").unwrap();
        }
    }
}

#[test]
fn c11_links_at_the_staging_path() {
    for target in [r"C:\Windows", r"\\server\share\dir"] {
        let rig = Rig::new();
        rig.create("v", GIB).unwrap();
        link(&rig, target);
        let before = rig.tree(parent(STAGING));
        let error = rig.stage("v").unwrap_err();
        assert_eq!(
            error.code(),
            Code::FailedPrecondition,
            "{target}: {}",
            error.message()
        );
        assert!(error.message().contains(STAGING), "{}", error.message());
        assert_eq!(rig.tree(parent(STAGING)), before);
        rig.delete("v").unwrap();
    }
}

#[test]
fn c11_a_staging_path_that_may_not_be_read() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.node.inject(Fault::on("stat").times(50).win32(5));
    for answer in [rig.stage("v"), rig.unstage("v")] {
        let error = answer.unwrap_err();
        assert_eq!(error.code(), Code::PermissionDenied);
        assert!(
            error.message().contains("access is denied"),
            "{}",
            error.message()
        );
        assert!(error.message().contains(STAGING), "{}", error.message());
    }
    rig.node.clear_faults();
    rig.stage("v").unwrap();
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
