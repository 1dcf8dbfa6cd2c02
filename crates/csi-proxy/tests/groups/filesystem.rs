//! The seven operations of the filesystem group.

use csi_proxy::ErrorKind::{
    AlreadyExists, FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unauthenticated,
};
use csi_proxy::os::{At, Reparse};
use csi_proxy::{ErrorKind, Host, Result, SharePath, VolumeId};
use csi_proxy_sim::smb::{Server, Share};
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};
use csi_proxy_sim::{SimNode, State};

use crate::{KUBELET, NEVER, node, path, symbolic_link};

const GIB: u64 = 1 << 30;

/// What stands below the kubelet's directory: `link` and `dead` lead to directories,
/// `file` is a file, `full` a directory with contents.
fn arranged() -> SimNode {
    node(|state| {
        state.put_directory(r"C:\data\sub").unwrap();
        state.put_file(r"C:\data\kept", b"x").unwrap();
        state.put_directory(r"C:\var\lib\kubelet\full\sub").unwrap();
        state
            .put_file(r"C:\var\lib\kubelet\full\file", b"x")
            .unwrap();
        state.put_directory(r"C:\var\lib\kubelet\empty").unwrap();
        state.put_file(r"C:\var\lib\kubelet\file", b"x").unwrap();
        link(state, "link", r"C:\data");
        link(state, "dead", r"C:\gone");
    })
}

fn link(state: &mut State, name: &str, target: &str) {
    let path = format!(r"{KUBELET}\{name}");
    state.put_link(&path, symbolic_link(target)).unwrap();
}

fn at(name: &str) -> At {
    At::path(&path(&format!(r"{KUBELET}\{name}")))
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// Runs an operation and checks that it changed nothing.
fn unchanged<T>(node: &SimNode, run: impl FnOnce(&Host) -> T) -> T {
    let before = node.snapshot();
    let answer = run(&node.process().host());
    assert_eq!(node.snapshot(), before);
    answer
}

#[test]
fn a_path_exists_even_as_a_broken_link() {
    let node = arranged();
    for (name, expected) in [
        ("full", true),
        ("FULL", true),
        ("file", true),
        ("link", true),
        ("dead", true),
        (r"link\kept", true),
        (r"dead\x", false),
        (r"file\x", false),
        ("missing", false),
        (r"missing\x", false),
    ] {
        let exists = unchanged(&node, |host| host.filesystem().path_exists(at(name), NEVER));
        assert_eq!(exists.unwrap(), expected, "{name}");
    }
}

#[test]
fn a_path_is_valid_when_what_it_leads_to_can_be_opened() {
    let node = arranged();
    for (name, expected) in [
        ("full", true),
        ("file", true),
        ("link", true),
        (r"link\sub", true),
        ("dead", false),
        ("missing", false),
    ] {
        let valid = unchanged(&node, |host| host.filesystem().path_valid(at(name), NEVER));
        assert_eq!(valid.unwrap(), expected, "{name}");
    }
}

#[test]
fn a_link_to_a_share_is_valid_while_the_share_is_connected() {
    let node = arranged();
    let share = SharePath::new(r"\\fs\k8s").unwrap();
    node.change(|state| {
        let server = Server::new().share("k8s", Share::open(GIB));
        state.put_smb_server("fs", server);
        link(state, "share", r"\\fs\k8s\");
    });
    let host = node.process().host();
    host.smb()
        .new_global_mapping(&share, None, None, false, NEVER)
        .unwrap();
    assert!(host.filesystem().path_valid(at("share"), NEVER).unwrap());
    node.change(|state| state.smb.servers.get_mut("FS").unwrap().online = false);
    assert!(!host.filesystem().path_valid(at("share"), NEVER).unwrap());
}

#[test]
fn a_changed_password_is_an_error_and_not_an_invalid_path() {
    let node = arranged();
    let share = SharePath::new(r"\\fs\k8s").unwrap();
    node.change(|state| {
        let server = Server::new()
            .account("user", "old")
            .share("k8s", Share::new(GIB).writer("user"));
        state.put_smb_server("fs", server);
        link(state, "share", r"\\fs\k8s\");
    });
    let host = node.process().host();
    let credentials = crate::smb::credentials("user", "old");
    host.smb()
        .new_global_mapping(&share, Some(&credentials), None, false, NEVER)
        .unwrap();
    node.change(|state| {
        let server = state.smb.servers.get_mut("FS").unwrap();
        server.set_password("user", "new");
    });
    let valid = host.filesystem().path_valid(at("share"), NEVER);
    assert_eq!(kind(valid), Unauthenticated);
}

#[test]
fn mkdir_makes_the_parents_and_takes_what_is_there() {
    let node = arranged();
    let host = node.process().host();
    for _ in 0..2 {
        host.filesystem().mkdir(at(r"new\deep\er"), NEVER).unwrap();
    }
    assert!(
        host.filesystem()
            .path_exists(at(r"new\deep\er"), NEVER)
            .unwrap()
    );
    unchanged(&node, |host| host.filesystem().mkdir(at("full"), NEVER)).unwrap();
    unchanged(&node, |host| host.filesystem().mkdir(at("link"), NEVER)).unwrap();
}

#[test]
fn mkdir_over_something_else_says_so() {
    let node = arranged();
    let made = unchanged(&node, |host| host.filesystem().mkdir(at("file"), NEVER));
    assert_eq!(kind(made), AlreadyExists);
    unchanged(&node, |host| host.filesystem().mkdir(at(r"file\x"), NEVER)).unwrap_err();
}

#[test]
fn rmdir_without_force_removes_what_is_empty() {
    let node = arranged();
    let host = node.process().host();
    for _ in 0..2 {
        host.filesystem().rmdir(at("empty"), false, NEVER).unwrap();
    }
    assert!(!host.filesystem().path_exists(at("empty"), NEVER).unwrap());
    let full = unchanged(&node, |host| {
        host.filesystem().rmdir(at("full"), false, NEVER)
    });
    assert_eq!(kind(full), FailedPrecondition);
    let file = unchanged(&node, |host| {
        host.filesystem().rmdir(at("file"), false, NEVER)
    });
    assert_eq!(kind(file), FailedPrecondition);
}

#[test]
fn rmdir_removes_a_link_and_never_its_target() {
    for force in [false, true] {
        let node = arranged();
        let host = node.process().host();
        for name in ["link", "dead"] {
            host.filesystem().rmdir(at(name), force, NEVER).unwrap();
            assert!(!host.filesystem().path_exists(at(name), NEVER).unwrap());
        }
        assert_eq!(node.snapshot().file(r"C:\data\kept").unwrap(), b"x");
    }
}

#[test]
fn rmdir_with_force_follows_no_link_inside() {
    let node = arranged();
    node.change(|state| {
        link(state, r"full\out", r"C:\data");
        let junction = Reparse::Junction {
            target: r"C:\data\sub".to_owned(),
        };
        state
            .put_link(r"C:\var\lib\kubelet\full\sub\out", junction)
            .unwrap();
    });
    let host = node.process().host();
    for _ in 0..2 {
        host.filesystem().rmdir(at("full"), true, NEVER).unwrap();
    }
    assert!(!host.filesystem().path_exists(at("full"), NEVER).unwrap());
    let state = node.snapshot();
    assert_eq!(state.file(r"C:\data\kept").unwrap(), b"x");
    assert!(
        host.filesystem()
            .path_exists(&path(r"C:\data\sub"), NEVER)
            .unwrap()
    );
}

const GUID: &str = "6e6fb07c-1a2b-4c3d-8e9f-0123456789ab";

/// A data disk with a file on its volume.
fn with_volume() -> (SimNode, VolumeId) {
    let disk = SimDisk::gpt(GIB).partition(SimPartition::of(Content::Ntfs).guid(GUID));
    let node = SimNode::builder().disk(disk).build();
    let volume = VolumeId::new(&format!(r"\\?\Volume{{{GUID}}}\")).unwrap();
    node.change(|state| {
        state.put_file(&format!("{volume}kept"), b"x").unwrap();
        state.put_directory(r"C:\var\lib\kubelet\full").unwrap();
    });
    (node, volume)
}

#[test]
fn rmdir_with_force_leaves_a_mounted_volume_alone() {
    let (node, volume) = with_volume();
    let host = node.process().host();
    node.change(|state| {
        let mount = Reparse::MountPoint {
            volume: volume.clone(),
        };
        state
            .put_link(r"C:\var\lib\kubelet\full\mnt", mount)
            .unwrap();
    });
    host.filesystem().rmdir(at("full"), true, NEVER).unwrap();
    assert!(!host.filesystem().path_exists(at("full"), NEVER).unwrap());
    let kept = node.snapshot().file(&format!("{volume}kept"));
    assert_eq!(kept.unwrap(), b"x");
}

#[test]
fn rmdir_contents_keeps_the_directory() {
    let node = arranged();
    node.change(|state| link(state, r"full\out", r"C:\data"));
    let host = node.process().host();
    for _ in 0..2 {
        host.filesystem().rmdir_contents(at("full"), NEVER).unwrap();
    }
    assert!(host.filesystem().path_exists(at("full"), NEVER).unwrap());
    assert!(
        !host
            .filesystem()
            .path_exists(at(r"full\file"), NEVER)
            .unwrap()
    );
    assert_eq!(node.snapshot().file(r"C:\data\kept").unwrap(), b"x");
}

#[test]
fn rmdir_contents_of_anything_but_a_directory_is_refused() {
    let node = arranged();
    for (name, expected) in [
        ("link", FailedPrecondition),
        ("file", FailedPrecondition),
        ("missing", NotFound),
    ] {
        let removed = unchanged(&node, |host| {
            host.filesystem().rmdir_contents(at(name), NEVER)
        });
        assert_eq!(kind(removed), expected, "{name}");
    }
}

#[test]
fn the_root_of_a_drive_is_never_removed() {
    let node = arranged();
    let root = path(r"C:\");
    for removed in [
        unchanged(&node, |host| host.filesystem().rmdir(&root, true, NEVER)),
        unchanged(&node, |host| host.filesystem().rmdir(&root, false, NEVER)),
        unchanged(&node, |host| host.filesystem().rmdir_contents(&root, NEVER)),
    ] {
        assert_eq!(kind(removed), InvalidArgument);
    }
}

#[test]
fn a_link_is_made_once_and_found_again() {
    let node = arranged();
    let host = node.process().host();
    for target in [r"C:\data", r"c:\DATA"] {
        host.filesystem()
            .create_symlink(&path(target), at("new"), NEVER)
            .unwrap();
    }
    assert!(host.filesystem().is_symlink(at("new"), NEVER).unwrap());
    assert!(
        host.filesystem()
            .path_exists(at(r"new\kept"), NEVER)
            .unwrap()
    );
    // The target may be missing, and a path with odd names.
    host.filesystem()
        .create_symlink(&path(r"C:\not yet\$(x) [1] 😀"), at("early"), NEVER)
        .unwrap();
    assert!(!host.filesystem().is_symlink(at("early"), NEVER).unwrap());
}

#[test]
fn a_link_over_something_else_says_what_is_there() {
    let node = arranged();
    for (name, word) in [
        ("link", r"a link to C:\data"),
        ("dead", r"a link to C:\gone"),
        ("full", "a directory"),
        ("empty", "a directory"),
        ("file", "a file"),
    ] {
        let error = unchanged(&node, |host| {
            host.filesystem()
                .create_symlink(&path(r"C:\other"), at(name), NEVER)
        })
        .unwrap_err();
        assert_eq!(error.kind(), AlreadyExists, "{name}");
        assert!(error.to_string().contains(word), "{error}");
        assert!(error.to_string().contains(r"C:\other"), "{error}");
    }
}

#[test]
fn a_link_needs_its_parent_directory() {
    let node = arranged();
    let made = unchanged(&node, |host| {
        host.filesystem()
            .create_symlink(&path(r"C:\data"), at(r"missing\link"), NEVER)
    });
    assert_eq!(kind(made), NotFound);
}

#[test]
fn a_link_whose_target_exists_is_a_symlink() {
    let node = arranged();
    for (name, expected) in [
        ("link", true),
        ("dead", false),
        ("full", false),
        ("file", false),
    ] {
        let is = unchanged(&node, |host| host.filesystem().is_symlink(at(name), NEVER));
        assert_eq!(is.unwrap(), expected, "{name}");
    }
    let missing = unchanged(&node, |host| {
        host.filesystem().is_symlink(at("missing"), NEVER)
    });
    assert_eq!(kind(missing), NotFound);
}

#[test]
fn a_mount_point_is_a_symlink_as_long_as_its_volume_is_there() {
    let (node, volume) = with_volume();
    let host = node.process().host();
    node.change(|state| {
        let mount = Reparse::MountPoint { volume };
        state.put_link(r"C:\var\lib\kubelet\mnt", mount).unwrap();
    });
    assert!(host.filesystem().is_symlink(at("mnt"), NEVER).unwrap());
    node.detach_disk(csi_proxy::DiskNumber(1)).unwrap();
    assert!(!host.filesystem().is_symlink(at("mnt"), NEVER).unwrap());
}

#[test]
fn what_leads_outside_the_root_is_refused_and_untouched() {
    let node = arranged();
    let root = path(KUBELET);
    let inside = |name: &str| At::within(&path(&format!(r"{KUBELET}\{name}")), &root);
    let fs = |run: &dyn Fn(csi_proxy::filesystem::Filesystem<'_>) -> Result<()>| {
        kind(unchanged(&node, |host| run(host.filesystem())))
    };
    for (operation, refused) in [
        ("mkdir", fs(&|fs| fs.mkdir(inside(r"link\new"), NEVER))),
        (
            "rmdir",
            fs(&|fs| fs.rmdir(inside(r"link\sub"), true, NEVER)),
        ),
        (
            "rmdir",
            fs(&|fs| fs.rmdir(inside(r"link\sub"), false, NEVER)),
        ),
        (
            "contents",
            fs(&|fs| fs.rmdir_contents(inside(r"link\sub"), NEVER)),
        ),
        (
            "exists",
            fs(&|fs| fs.path_exists(inside(r"link\kept"), NEVER).map(|_| ())),
        ),
        (
            "valid",
            fs(&|fs| fs.path_valid(inside(r"link\kept"), NEVER).map(|_| ())),
        ),
        (
            "symlink",
            fs(&|fs| fs.is_symlink(inside(r"link\sub"), NEVER).map(|_| ())),
        ),
        (
            "link",
            fs(&|fs| fs.create_symlink(inside("full"), inside(r"link\new"), NEVER)),
        ),
        (
            "source",
            fs(&|fs| fs.create_symlink(inside(r"link\sub"), inside("new"), NEVER)),
        ),
        (
            "source by name",
            fs(&|fs| fs.create_symlink(At::within(&path(r"C:\data"), &root), inside("new"), NEVER)),
        ),
        (
            "sibling",
            fs(&|fs| fs.mkdir(At::within(&path(r"C:\var\lib\kubelet-x\a"), &root), NEVER)),
        ),
    ] {
        assert_eq!(refused, PermissionDenied, "{operation}");
    }
    // What lies inside is done, and a link itself lies inside.
    let host = node.process().host();
    host.filesystem().mkdir(inside(r"full\new"), NEVER).unwrap();
    host.filesystem()
        .rmdir(inside("link"), true, NEVER)
        .unwrap();
    host.filesystem()
        .create_symlink(inside("full"), inside("new"), NEVER)
        .unwrap();
}

#[test]
fn c12_odd_but_legal_names_work_as_names() {
    let node = arranged();
    let host = node.process().host();
    for name in [
        "with blanks",
        "[vsanDatastore] x",
        "(1)",
        "#",
        ";",
        "$(x)",
        "`",
        "%VAR%",
        "'",
        "’",
        "😀",
    ] {
        let directory = at(&format!(r"full\{name}\globalmount"));
        host.filesystem().mkdir(directory.clone(), NEVER).unwrap();
        assert!(
            host.filesystem()
                .path_exists(directory.clone(), NEVER)
                .unwrap(),
            "{name}"
        );
        let link = at(&format!("link {name}"));
        host.filesystem()
            .create_symlink(directory, link.clone(), NEVER)
            .unwrap();
        assert!(
            host.filesystem().is_symlink(link.clone(), NEVER).unwrap(),
            "{name}"
        );
        host.filesystem().rmdir(link, false, NEVER).unwrap();
    }
    let names: Vec<_> = node
        .process()
        .os()
        .list(&at("full"), NEVER)
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert!(names.contains(&"%VAR%".to_owned()), "{names:?}");
}

#[test]
fn access_denied_is_told_and_nothing_else_happens() {
    let node = arranged();
    node.change(|state| {
        let denied = csi_proxy_sim::fs::FileChange::Denied(true);
        state
            .change_file(r"C:\var\lib\kubelet\full", denied)
            .unwrap();
    });
    let removed = unchanged(&node, |host| {
        host.filesystem().rmdir(at("full"), true, NEVER)
    });
    assert_eq!(kind(removed), PermissionDenied);
}
