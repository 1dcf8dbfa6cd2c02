//! Case C10: links that lead round and round, far, or nowhere.

use csi_proxy::ErrorKind::{FailedPrecondition, NotFound};
use csi_proxy::os::Reparse;
use csi_proxy_sim::SimNode;

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
