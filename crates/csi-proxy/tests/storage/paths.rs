//! C10 and C12: links and names, where volumes are looked for.

use csi_proxy::ErrorKind::{FailedPrecondition, NotFound};
use csi_proxy::os::Reparse;
use csi_proxy::staging::StageRequest;
use csi_proxy::{HostPath, VolumeId};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::storage::SimDisk;

use crate::{
    GIB, NEVER, ONE, assert_error, assert_unchanged, host, node, path, request, soon, volume_of,
};

fn link(node: &SimNode, at: &str, target: &str) {
    let target = target.to_owned();
    node.change(|state| {
        state
            .put_link(at, Reparse::SymbolicLink { target })
            .unwrap();
    });
}

/// A node with disk 1 mounted at `C:\vol`.
fn mounted() -> (SimNode, VolumeId) {
    let node = node(SimDisk::ntfs(GIB));
    let volume = volume_of(&node, ONE);
    node.change(|state| state.put_directory(r"C:\vol").unwrap());
    host(&node)
        .volume()
        .mount(&volume, &path(r"C:\vol"), NEVER)
        .unwrap();
    (node, volume)
}

#[test]
fn c10_links_to_a_volume_are_followed() {
    let (node, volume) = mounted();
    node.change(|state| {
        state.put_directory(r"C:\vol\sub\deep").unwrap();
        state.put_directory(r"C:\links").unwrap();
    });
    link(&node, r"C:\links\abs", r"C:\vol");
    link(&node, r"C:\links\rel", r"..\vol");
    link(&node, r"C:\links\two", r"rel");
    link(&node, r"C:\links\below", r"C:\vol\sub");
    link(&node, r"C:\links\name", volume.as_str());
    let host = host(&node);
    for at in ["abs", "rel", "two", "name"] {
        let at = path(&format!(r"C:\links\{at}"));
        assert_eq!(
            host.volume().id_from_target_path(&at, NEVER).unwrap(),
            volume,
            "{at}"
        );
    }
    for at in [
        r"C:\links\below",
        r"C:\links\below\deep",
        r"C:\links\abs\sub",
        r"C:\links\rel",
        r"C:\vol\sub\deep",
    ] {
        let id = host.volume().closest_id_from_target_path(&path(at), NEVER);
        assert_eq!(id.unwrap(), volume, "{at}");
    }
    let below = host
        .volume()
        .id_from_target_path(&path(r"C:\links\below"), NEVER);
    assert_error(below, FailedPrecondition, &["no volume is mounted"]);
}

#[test]
fn c10_what_leads_nowhere_ends_with_a_clear_error() {
    let (node, _) = mounted();
    link(&node, r"C:\a", r"C:\b");
    link(&node, r"C:\b", r"C:\a");
    link(&node, r"C:\dead", r"C:\gone");
    link(&node, r"C:\share", r"\\server\share\dir");
    for n in 0..300 {
        link(
            &node,
            &format!(r"C:\chain{n}"),
            &format!(r"C:\chain{}", n + 1),
        );
    }
    let host = host(&node);
    for (at, kind, part) in [
        (r"C:\a", FailedPrecondition, "loop"),
        (r"C:\chain0", FailedPrecondition, "more than 63 links"),
        (r"C:\dead", NotFound, r"C:\gone does not exist"),
        (r"C:\share", FailedPrecondition, r"\\server\share\dir"),
        (r"C:\none", NotFound, r"C:\none"),
    ] {
        let exact = host.volume().id_from_target_path(&path(at), NEVER);
        assert_error(exact, kind, &[part]);
        let closest = host.volume().closest_id_from_target_path(&path(at), NEVER);
        assert_error(closest, kind, &[part]);
    }
}

#[test]
fn c10_a_staging_path_that_is_a_link_to_nowhere_or_to_a_share() {
    let staging = r"C:\staging\a";
    for (target, part) in [
        (r"C:\a", "loop"),
        (r"C:\chain0", "more than 63 links"),
        (r"\\server\share\dir", r"\\server\share\dir"),
        (r"..\x", r"C:\x"),
    ] {
        let (node, volume) = mounted();
        node.change(|state| {
            state.put_directory(r"C:\x").unwrap();
            state.put_directory(r"C:\staging").unwrap();
        });
        link(&node, r"C:\a", r"C:\b");
        link(&node, r"C:\b", r"C:\a");
        for n in 0..300 {
            let next = format!(r"C:\chain{}", n + 1);
            link(&node, &format!(r"C:\chain{n}"), &next);
        }
        link(&node, staging, target);
        let before = node.snapshot();
        let request = StageRequest {
            path: path(staging),
            ..request()
        };
        let staging = host(&node);
        let staged = staging.staging().stage(&request, soon(&node));
        assert_error(staged, FailedPrecondition, &[part]);
        let unstaged = staging
            .staging()
            .unstage(&request.path, Some(&volume), soon(&node));
        assert_error(unstaged, FailedPrecondition, &[part]);
        assert_unchanged(&node, before);
    }
}

#[test]
fn c12_odd_names_are_names() {
    for name in [
        "a b",
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
        let node = node(SimDisk::ntfs(GIB));
        let host = host(&node);
        let request = StageRequest {
            path: path(&format!(r"C:\var\lib\kubelet\{name}\globalmount")),
            ..request()
        };
        let staged = host.staging().stage(&request, soon(&node)).unwrap();
        let found = host.volume().id_from_target_path(&request.path, NEVER);
        assert_eq!(found.unwrap(), staged.volume, "{name}");
        let volume = Some(&staged.volume);
        host.staging()
            .unstage(&request.path, volume, soon(&node))
            .unwrap();
        let paths = node
            .snapshot()
            .paths_of(&volume_of(&node, csi_proxy::DiskNumber(0)));
        let last = paths.iter().any(|(path, _)| path.ends_with("globalmount"));
        assert!(!last, "{name}");
    }
}

#[test]
fn c12_a_nul_and_a_newline_are_refused() {
    for text in ["C:\\a\0b", "C:\\a\nb"] {
        let error = HostPath::from_kubelet(text).unwrap_err();
        let error = error.in_field("stage", "staging_target_path");
        assert_eq!(error.kind(), csi_proxy::ErrorKind::InvalidArgument);
    }
}
