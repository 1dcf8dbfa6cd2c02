//! Case C10: links that lead round and round, far, or nowhere.

use std::sync::LazyLock;

use csi_proxy::ErrorKind::{FailedPrecondition, NotFound};
use csi_proxy::VolumeId;
use csi_proxy::os::{At, Reparse};
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};
use csi_proxy_sim::{SimNode, State};
use proptest::prelude::*;

use crate::{NEVER, node, path, symbolic_link};

/// A→B→A, a chain of 300 links, a link to a removed directory, a relative one, one to a
/// share, and a directory below a link.
fn arranged() -> SimNode {
    node(|state| {
        state.put_link(r"C:\a", symbolic_link(r"C:\b")).unwrap();
        state.put_link(r"C:\b", symbolic_link(r"C:\a")).unwrap();
        state.put_directory(r"C:\end").unwrap();
        state
            .put_link(r"C:\chain0", symbolic_link(r"C:\end"))
            .unwrap();
        for number in 1..300 {
            let target = format!(r"C:\chain{}", number - 1);
            state
                .put_link(&format!(r"C:\chain{number}"), symbolic_link(&target))
                .unwrap();
        }
        state
            .put_link(r"C:\removed", symbolic_link(r"C:\was\here"))
            .unwrap();
        state.put_directory(r"C:\dir\below").unwrap();
        state.put_directory(r"C:\x\here").unwrap();
        state
            .put_link(r"C:\dir\relative", symbolic_link(r"..\x"))
            .unwrap();
        state.put_link(r"C:\to", symbolic_link(r"C:\dir")).unwrap();
        state
            .put_link(r"C:\share", symbolic_link(r"\\server\share\dir"))
            .unwrap();
        let junction = Reparse::Junction {
            target: r"C:\junction".to_owned(),
        };
        state.put_link(r"C:\junction", junction).unwrap();
    })
}

#[test]
fn c10_link_loops_end_with_the_right_answer() {
    let node = arranged();
    let host = node.process().host();
    for (link, expected) in [
        (r"C:\a", Err(FailedPrecondition)),
        (r"C:\junction", Err(FailedPrecondition)),
        (r"C:\chain299", Err(FailedPrecondition)),
        (r"C:\chain62", Ok(true)),
        (r"C:\removed", Ok(false)),
        (r"C:\dir\relative", Ok(true)),
        (r"C:\to\relative", Ok(true)),
        (r"C:\share", Ok(false)),
    ] {
        let is = host.filesystem().is_symlink(&path(link), NEVER);
        assert_eq!(
            is.map_err(|error| error.kind()),
            expected,
            "is_symlink {link}"
        );
        let valid = host.filesystem().path_valid(&path(link), NEVER);
        assert_eq!(
            valid.map_err(|error| error.kind()),
            expected,
            "path_valid {link}"
        );
        let exists = host.filesystem().path_exists(&path(link), NEVER);
        assert!(exists.unwrap(), "path_exists {link}");
    }
}

#[test]
fn c10_what_is_below_links_is_found_through_them() {
    let node = arranged();
    let host = node.process().host();
    for (below, expected) in [
        (r"C:\to\below", Ok(true)),
        (r"C:\to\relative\here", Ok(true)),
        (r"C:\removed\x", Ok(false)),
        (r"C:\a\x", Err(FailedPrecondition)),
        (r"C:\chain299\x", Err(FailedPrecondition)),
    ] {
        let exists = host.filesystem().path_exists(&path(below), NEVER);
        assert_eq!(exists.map_err(|error| error.kind()), expected, "{below}");
    }
    let made = host.filesystem().mkdir(&path(r"C:\a\x"), NEVER);
    assert_eq!(made.unwrap_err().kind(), FailedPrecondition);
    let made = host
        .filesystem()
        .create_symlink(&path(r"C:\x"), &path(r"C:\a\x"), NEVER);
    assert_eq!(made.unwrap_err().kind(), FailedPrecondition);
    let emptied = host
        .filesystem()
        .rmdir_contents(&path(r"C:\removed\x"), NEVER);
    assert_eq!(emptied.unwrap_err().kind(), NotFound);
}

#[test]
fn c10_links_of_a_loop_are_removed_like_others() {
    let node = arranged();
    let host = node.process().host();
    for link in [
        r"C:\a",
        r"C:\b",
        r"C:\junction",
        r"C:\chain299",
        r"C:\removed",
        r"C:\share",
    ] {
        host.filesystem().rmdir(&path(link), true, NEVER).unwrap();
        assert!(
            !host.filesystem().path_exists(&path(link), NEVER).unwrap(),
            "{link}"
        );
    }
}

const GUID: &str = "6e6fb07c-1a2b-4c3d-8e9f-0123456789ab";
const GIB: u64 = 1 << 30;

/// [`arranged`], and a volume that is mounted at `C:\mnt`.
fn with_volume() -> (SimNode, VolumeId) {
    let partition = SimPartition::of(Content::Ntfs).guid(GUID);
    let node = arranged();
    node.attach_disk(&SimDisk::gpt(GIB).partition(partition));
    let volume = VolumeId::new(&format!(r"\\?\Volume{{{GUID}}}\")).unwrap();
    node.change(|state| {
        state.put_directory(&format!(r"{volume}in\deep")).unwrap();
        let mount = Reparse::MountPoint {
            volume: volume.clone(),
        };
        state.put_link(r"C:\mnt", mount).unwrap();
    });
    (node, volume)
}

/// The volume of drive `C:`.
fn system_volume(node: &SimNode) -> VolumeId {
    let root = At::path(&path(r"C:\"));
    node.process().os().mounted_volume(&root, NEVER).unwrap()
}

#[test]
fn c10_the_closest_volume_is_found_through_links_or_the_reason_why_not() {
    let (node, mounted) = with_volume();
    let system = system_volume(&node);
    node.change(|state| {
        let out = symbolic_link(r"..\..\x");
        state
            .put_link(&format!(r"{mounted}in\deep\out"), symbolic_link(r".."))
            .unwrap();
        state.put_link(&format!(r"{mounted}in\above"), out).unwrap();
        state
            .put_link(r"C:\dir\tomnt", symbolic_link(r"..\mnt\in"))
            .unwrap();
        state.put_link(r"C:\root", symbolic_link(r"\x")).unwrap();
    });
    let host = node.process().host();
    for (from, expected) in [
        (r"C:\", Ok(&system)),
        (r"C:\dir\below", Ok(&system)),
        (r"C:\dir\relative", Ok(&system)),
        (r"C:\to\relative\here", Ok(&system)),
        (r"C:\root", Ok(&system)),
        (r"C:\chain62", Ok(&system)),
        (r"C:\mnt", Ok(&mounted)),
        (r"C:\mnt\in\deep", Ok(&mounted)),
        (r"C:\mnt\in\deep\out", Ok(&mounted)),
        (r"C:\dir\tomnt", Ok(&mounted)),
        (r"C:\dir\tomnt\deep", Ok(&mounted)),
        (
            r"C:\mnt\in\above",
            Err((FailedPrecondition, "above the root")),
        ),
        (r"C:\a", Err((FailedPrecondition, "loop"))),
        (r"C:\junction", Err((FailedPrecondition, "loop"))),
        (
            r"C:\chain299",
            Err((FailedPrecondition, "more than 63 links")),
        ),
        (
            r"C:\share",
            Err((FailedPrecondition, r"\\server\share\dir")),
        ),
        (r"C:\removed", Err((NotFound, r"C:\was\here"))),
        (r"C:\missing", Err((NotFound, r"C:\missing"))),
    ] {
        let found = host
            .volume()
            .closest_id_from_target_path(&path(from), NEVER);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, *expected, "{from}"),
            (Err(error), Err((kind, word))) => {
                assert_eq!(error.kind(), kind, "{from}: {error}");
                assert!(error.to_string().contains(word), "{from}: {error}");
            }
            (found, _) => panic!("{from}: {found:?}"),
        }
    }
}

#[test]
fn c10_the_walk_over_a_loop_makes_at_most_64_calls() {
    let (node, _) = with_volume();
    let host = node.process().host();
    for from in [r"C:\a", r"C:\chain299"] {
        node.reset_counts();
        let found = host.volume().id_from_target_path(&path(from), NEVER);
        assert_eq!(found.unwrap_err().kind(), FailedPrecondition);
        assert!(node.counts().total() <= 64, "{from}: {:?}", node.counts());
    }
}

/// Places for links, in directories and volumes of all kinds.
const PLACES: &[&str] = &[
    r"C:\p",
    r"C:\dir\q",
    r"C:\dir\below\r",
    r"C:\mnt\s",
    r"C:\mnt\in\t",
];

/// What links may lead to.
const TARGETS: &[&str] = &[
    r"C:\dir",
    r"C:\dir\below",
    r"C:\mnt",
    r"C:\mnt\in",
    r"C:\x\..\dir",
    r"C:\p",
    r"C:\dir\q",
    r"C:\mnt\s",
    r"\dir\q",
    r"\mnt\in\t",
    r"\\?\C:\dir\below\r",
    "..",
    ".",
    r"..\in",
    r"..\mnt",
    r"..\..\dir",
    r"..\p",
    r"q",
    r"in\t",
    r"below\r",
    r"\\server\share\dir",
    r"missing",
];

/// What is asked for, seen from a link or a directory.
const TAILS: &[&str] = &["", r"\below", r"\q", r"\r", r"\in", r"\t", r"\s", r"\deep"];

static NODE: LazyLock<(SimNode, VolumeId, VolumeId, State)> = LazyLock::new(|| {
    let (node, mounted) = with_volume();
    let (system, start) = (system_volume(&node), node.snapshot());
    (node, mounted, system, start)
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Windows opens the path through all links by itself: the volume that it ends on is the
    /// one that the walk finds, and where Windows cannot get, the walk does not either.
    #[test]
    fn c10_the_walk_ends_where_windows_ends(
        links in proptest::collection::vec((0..TARGETS.len(), any::<bool>()), PLACES.len()),
        tails in proptest::collection::vec((0..PLACES.len(), 0..TAILS.len()), 12),
    ) {
        // One node, set back each time: making one takes longer than a walk.
        let (node, mounted, system, start) = &*NODE;
        node.change(|state| {
            state.clone_from(start);
            for (place, (target, there)) in PLACES.iter().zip(&links) {
                if *there {
                    state.put_link(place, symbolic_link(TARGETS[*target])).unwrap();
                }
            }
        });
        let host = node.process().host();
        for (place, tail) in tails {
            let from = path(&format!("{}{}", PLACES[place], TAILS[tail]));
            let walked = host.volume().closest_id_from_target_path(&from, NEVER);
            let opened = node.process().os().space(&At::path(&from), NEVER);
            match (opened, walked) {
                (Ok(space), Ok(volume)) => {
                    let expected = if space.total > GIB { system } else { mounted };
                    prop_assert_eq!(&volume, expected, "{}", from);
                }
                (Err(_), Err(_)) => {}
                (opened, walked) => prop_assert!(false, "{from}: {opened:?} {walked:?}"),
            }
        }
    }
}
