//! C09 and C11: what may stand at a staging path, and what stage and unstage make of it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Answer, GIB, POOL, Rig, STAGING, parent, path, stage};
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_proxy::clock::Deadline;
use csi_proxy::os::{At, AttachVirtualDisk, Reparse, SetMountPoint};
use csi_proxy_sim::NodeChange;
use csi_proxy_sim::fs::FileChange;
use tonic::Code;

const OTHER: &str = r"C:\other";

/// What stands at the staging path, and what stage and unstage have to answer.
struct Place {
    name: &'static str,
    make: fn(&Rig),
    stage: Code,
    unstage: Code,
    /// Whether it is somebody else's and is still there after all of them.
    stays: bool,
}

const fn ours(name: &'static str, make: fn(&Rig)) -> Place {
    Place {
        name,
        make,
        stage: Code::Ok,
        unstage: Code::Ok,
        stays: false,
    }
}

/// Something else, in the place of which nothing is staged.
const fn foreign(name: &'static str, make: fn(&Rig), unstage: Code) -> Place {
    Place {
        name,
        make,
        stage: Code::FailedPrecondition,
        unstage,
        stays: true,
    }
}

const PLACES: &[Place] = &[
    ours("nothing", remove_staging),
    ours("an empty directory", |_| ()),
    ours("a link to nothing", |rig| link(rig, r"C:\nowhere")),
    ours("a mount point of a volume that is gone", |rig| {
        mount_other(rig);
        let file = At::path(&path(&format!(r"{POOL}\other.vhdx")));
        rig.host()
            .os()
            .detach_virtual_disk(&file, Deadline::Never)
            .unwrap();
    }),
    foreign(
        "a directory with files",
        |rig| rig.write(&format!(r"{STAGING}\precious.txt"), "precious"),
        Code::Ok,
    ),
    foreign(
        "a file",
        |rig| {
            remove_staging(rig);
            rig.write(STAGING, "precious");
        },
        Code::Ok,
    ),
    foreign("another volume", mount_other, Code::Ok),
    foreign(
        "a link to another volume",
        |rig| {
            stage_other(rig);
            link(rig, OTHER);
        },
        Code::Ok,
    ),
    foreign(
        "a link to a directory",
        |rig| link(rig, r"C:\Windows"),
        Code::Ok,
    ),
    foreign(
        "a link to an empty directory",
        |rig| {
            rig.make_directory(OTHER);
            link(rig, OTHER);
        },
        Code::Ok,
    ),
    foreign(
        "a link into another volume",
        |rig| {
            stage_other(rig);
            rig.make_directory(r"C:\other\data");
            link(rig, r"C:\other\data");
        },
        Code::Ok,
    ),
    foreign(
        "a junction to a directory",
        |rig| {
            let target = r"C:\Windows".to_owned();
            put_link(rig, STAGING, Reparse::Junction { target });
        },
        Code::Ok,
    ),
    foreign(
        "a link to a share",
        |rig| link(rig, r"\\server\share\dir"),
        Code::Ok,
    ),
    foreign(
        "a link to itself",
        |rig| {
            let target = STAGING.to_owned();
            let back = r"C:\back".to_owned();
            put_link(rig, &back, Reparse::SymbolicLink { target });
            link(rig, &back);
        },
        Code::Ok,
    ),
    Place {
        stage: Code::PermissionDenied,
        ..foreign(
            "a directory that may not be read",
            |rig| change_access(rig, true),
            Code::PermissionDenied,
        )
    },
];

fn remove_staging(rig: &Rig) {
    change(
        rig,
        NodeChange::Remove {
            path: STAGING.to_owned(),
        },
    );
}

fn link(rig: &Rig, target: &str) {
    let target = target.to_owned();
    put_link(rig, STAGING, Reparse::SymbolicLink { target });
}

fn put_link(rig: &Rig, at: &str, link: Reparse) {
    rig.node.change(|state| state.put_link(at, link).unwrap());
}

fn change_access(rig: &Rig, denied: bool) {
    let how = FileChange::Denied(denied);
    let path = STAGING.to_owned();
    change(rig, NodeChange::ChangeFile { path, how });
}

fn change(rig: &Rig, change: NodeChange) {
    rig.node.change(|state| change.apply(state).unwrap());
}

fn stage_other(rig: &Rig) {
    rig.make_directory(OTHER);
    rig.create("other", GIB).unwrap();
    rig.stage_with(stage("other", OTHER, Mode::SingleNodeWriter))
        .unwrap();
}

fn mount_other(rig: &Rig) {
    stage_other(rig);
    let host = rig.host();
    let os = host.os();
    let volume = os
        .mounted_volume(&At::path(&path(OTHER)), Deadline::Never)
        .unwrap();
    let request = SetMountPoint {
        at: At::path(&path(STAGING)),
        volume,
    };
    os.set_mount_point(&request, Deadline::Never).unwrap();
}

/// What a stage that was cut off leaves: the file is attached and nothing is mounted.
fn attach(rig: &Rig) {
    let request = AttachVirtualDisk {
        at: At::path(&path(&format!(r"{POOL}\v.vhdx"))),
        read_only: false,
    };
    rig.host()
        .os()
        .attach_virtual_disk(&request, Deadline::Never)
        .unwrap();
}

fn is_attached(rig: &Rig) -> bool {
    let listed = rig.list(0, "").unwrap().entries;
    let v = listed
        .into_iter()
        .find(|entry| entry.volume.as_ref().unwrap().volume_id == "v");
    !v.unwrap().status.unwrap().published_node_ids.is_empty()
}

fn code(answer: &Answer<()>) -> Code {
    answer
        .as_ref()
        .err()
        .map_or(Code::Ok, |status| status.code())
}

fn begin(place: &Place) -> Rig {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    (place.make)(&rig);
    rig
}

/// What stands at the path, and the files that are found over it.
fn seen(rig: &Rig) -> Vec<String> {
    let mut seen = rig.tree(parent(STAGING));
    for directory in [OTHER, r"C:\Windows"] {
        seen.extend(rig.tree(directory));
    }
    seen
}

#[test]
fn c11_unstage_removes_only_what_a_stage_has_made() {
    for place in PLACES {
        for attached in [false, true] {
            let name = format!("unstage of {}, attached: {attached}", place.name);
            let rig = begin(place);
            if attached {
                attach(&rig);
            }
            let before = seen(&rig);
            let answer = rig.unstage("v");
            assert_eq!(code(&answer), place.unstage, "{name}: {answer:?}");
            match (place.stays, attached) {
                (true, _) => assert_eq!(seen(&rig), before, "{name}"),
                (false, true) => assert!(!rig.exists(STAGING), "{name}"),
                // Nothing says that it was made for this volume.
                (false, false) => {}
            }
            // A refusal changes nothing; otherwise the volume is no longer in use.
            let kept = attached && place.unstage != Code::Ok;
            assert_eq!(is_attached(&rig), kept, "{name}");
            if let Err(status) = answer {
                assert!(status.message().contains(STAGING), "{name}: {status:?}");
            }
        }
    }
}

#[test]
fn c11_stage_replaces_only_what_is_nobodys() {
    for place in PLACES {
        for attached in [false, true] {
            let name = format!("stage at {}, attached: {attached}", place.name);
            let rig = begin(place);
            if attached {
                attach(&rig);
            }
            let before = seen(&rig);
            let answer = rig.stage("v");
            assert_eq!(code(&answer), place.stage, "{name}: {answer:?}");
            match answer {
                Ok(()) => {
                    rig.stats("v", STAGING).unwrap();
                    rig.stage("v").unwrap();
                    rig.unstage("v").unwrap();
                    assert!(!rig.exists(STAGING), "{name}");
                    rig.delete("v").unwrap();
                }
                Err(status) => {
                    assert_eq!(seen(&rig), before, "{name}");
                    assert!(status.message().contains(STAGING), "{name}: {status:?}");
                    assert_eq!(is_attached(&rig), attached, "{name}");
                }
            }
        }
    }
}

#[test]
fn c11_the_right_volume() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.stage("v").unwrap();
    rig.stage("v").unwrap();
    rig.unstage("v").unwrap();
    assert!(!rig.exists(STAGING));
    rig.delete("v").unwrap();
}

#[test]
fn c11_a_link_to_the_right_volume() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.stage_with(stage("v", OTHER, Mode::SingleNodeWriter))
        .unwrap();
    rig.write(r"C:\other\file", "precious");
    link(&rig, OTHER);
    rig.stage("v").unwrap();
    rig.publish("v").unwrap();
    rig.unpublish("v").unwrap();
    // The link goes, and the volume stays where it is mounted.
    rig.unstage("v").unwrap();
    assert!(!rig.exists(STAGING));
    assert_eq!(rig.read(r"C:\other\file"), "precious");
    rig.unstage_at("v", OTHER).unwrap();
    rig.delete("v").unwrap();
}

#[test]
fn c11_a_path_that_can_be_read_again_is_staged() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    change_access(&rig, true);
    let status = rig.stage("v").unwrap_err();
    assert!(status.message().contains("access is denied"), "{status:?}");
    change_access(&rig, false);
    rig.stage("v").unwrap();
}

/// What is left of a stage whose directory somebody removed: the mount manager keeps the
/// path, and nothing stands there.
#[test]
fn c09_a_left_over_mount_entry_is_not_a_stage() {
    for reboot in [false, true] {
        for round in 1..=2 {
            let name = format!("rebooted: {reboot}, round {round}");
            let mut rig = Rig::new();
            rig.create("v", GIB).unwrap();
            for _ in 0..round {
                rig.stage_with(stage("v", OTHER, Mode::SingleNodeWriter))
                    .unwrap_or_else(|status| panic!("{name}: {status:?}"));
                if reboot {
                    rig.node.reboot();
                    rig.restart_at_once();
                }
                let path = OTHER.to_owned();
                change(&rig, NodeChange::Remove { path });
            }
            rig.stage("v")
                .unwrap_or_else(|status| panic!("{name}: {status:?}"));
            rig.publish("v").unwrap();
            rig.unpublish("v").unwrap();
            rig.unstage("v").unwrap();
            assert!(!rig.exists(STAGING), "{name}");
            assert!(!is_attached(&rig), "{name}");
            rig.delete("v").unwrap();
        }
    }
}

#[test]
fn c09_fifty_stages_at_new_paths_leave_no_mount_entries() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.stage_with(stage("v", OTHER, Mode::SingleNodeWriter))
        .unwrap();
    let path_of_other = OTHER.to_owned();
    change(
        &rig,
        NodeChange::Remove {
            path: path_of_other,
        },
    );
    for round in 0..50 {
        let at = format!(r"C:\stages\{round}");
        rig.stage_with(stage("v", &at, Mode::SingleNodeWriter))
            .unwrap();
        let host = rig.host();
        let os = host.os();
        let volume = os.mounted_volume(&At::path(&path(&at)), Deadline::Never);
        let mounts = os.mount_points_of(&volume.unwrap(), Deadline::Never);
        let expected = [format!(r"{OTHER}\"), format!(r"{at}\")];
        assert_eq!(mounts.unwrap(), expected);
        rig.unstage_at("v", &at).unwrap();
        assert!(!is_attached(&rig), "{at}");
    }
}

#[test]
fn c09_a_mount_entry_at_which_another_volume_stands_is_not_a_stage() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.stage_with(stage("v", r"C:\left\over", Mode::SingleNodeWriter))
        .unwrap();
    stage_other(&rig);
    let os = rig.host();
    let volume = os
        .os()
        .mounted_volume(&At::path(&path(OTHER)), Deadline::Never)
        .unwrap();
    put_link(&rig, r"C:\left\over", Reparse::MountPoint { volume });
    rig.stage("v").unwrap();
    rig.unstage("v").unwrap();
    assert!(!is_attached(&rig));
    rig.stats("other", OTHER).unwrap();
}
