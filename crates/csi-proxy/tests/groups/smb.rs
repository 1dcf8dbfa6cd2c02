//! Global mappings of shares.

use std::time::Duration;

use csi_proxy::ErrorKind::{
    Aborted, AlreadyExists, DeadlineExceeded, FailedPrecondition, NotFound, Unauthenticated,
    Unavailable,
};
use csi_proxy::clock::{Clock, Moment};
use csi_proxy::os::At;
use csi_proxy::smb::MappingStatus;
use csi_proxy::{Credentials, Host, Secret, SharePath};
use csi_proxy_sim::smb::{Mapping, Server, Share};
use csi_proxy_sim::{Fault, SimClock, SimNode};

use crate::{KUBELET, NEVER, path};

const GIB: u64 = 1 << 30;

/// What no error may show.
pub(crate) const PASSWORD: &str = "pa:ss\\word-5e7c";

pub(crate) fn credentials(user: &str, password: &str) -> Credentials {
    Credentials::new(user, Secret::new(password)).unwrap()
}

pub(crate) fn user() -> Credentials {
    credentials(r"DOM\user", PASSWORD)
}

fn other() -> Credentials {
    credentials("other", "secret-of-other")
}

/// A server `s` whose share `share` two users may write.
pub(crate) fn shared_node() -> SimNode {
    shared_node_on(SimClock::auto())
}

fn shared_node_on(clock: SimClock) -> SimNode {
    let share = || Share::new(GIB).writer(r"DOM\user").writer("other");
    let server = Server::new()
        .account(r"DOM\user", PASSWORD)
        .account("other", "secret-of-other")
        .share("share", share())
        .share("second", share())
        .share("open", Share::open(GIB));
    let node = SimNode::builder().clock(clock).build();
    node.change(|state| {
        state.put_smb_server("s", server);
        state.put_directory(r"\\s\share\a").unwrap();
        state.put_directory(r"\\s\share\b").unwrap();
    });
    node
}

fn share(text: &str) -> SharePath {
    SharePath::new(text).unwrap()
}

fn at(name: &str) -> At {
    At::path(&path(&format!(r"{KUBELET}\{name}")))
}

fn map(host: &Host, remote: &str) -> csi_proxy::Result<()> {
    host.smb()
        .new_global_mapping(&share(remote), Some(&user()), None, true, NEVER)
}

fn mappings(node: &SimNode) -> Vec<Mapping> {
    node.snapshot().smb.mappings
}

#[test]
fn a_share_is_mapped_with_the_credentials_and_linked() {
    let node = shared_node();
    let host = node.process().host();
    let remote = share("//S/Share/a");
    for _ in 0..2 {
        host.smb()
            .new_global_mapping(&remote, Some(&user()), Some(&at("mnt")), true, NEVER)
            .unwrap();
    }
    let made = mappings(&node);
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].remote_path, r"\\s\share");
    assert_eq!(made[0].user.as_deref(), Some(r"DOM\USER"));
    assert!(made[0].require_privacy);
    assert_eq!(node.counts().of("MSFT_SmbGlobalMapping.Create"), 1);
    let stat = node.process().os().stat(&at("mnt"), NEVER).unwrap();
    assert_eq!(stat.reparse, Some(crate::symbolic_link(r"\\s\share\a\")));
    assert!(host.filesystem().is_symlink(at("mnt"), NEVER).unwrap());
}

#[test]
fn a_share_without_a_user_is_mapped_without_credentials() {
    let node = shared_node();
    let host = node.process().host();
    host.smb()
        .new_global_mapping(&share(r"\\s\open"), None, None, false, NEVER)
        .unwrap();
    assert_eq!(mappings(&node)[0].user, None);
    assert!(!mappings(&node)[0].require_privacy);
}

#[test]
fn c15_all_spellings_of_a_share_are_one_mapping() {
    let node = shared_node();
    let host = node.process().host();
    for text in ["//s/share/", r"\\s\share\", r"\\s\share", r"\\S\SHARE"] {
        map(&host, text).unwrap();
    }
    assert_eq!(mappings(&node).len(), 1);
    host.smb()
        .remove_global_mapping(&share(r"\\S\Share\x"), NEVER)
        .unwrap();
    assert!(mappings(&node).is_empty());
}

#[test]
fn what_the_server_says_is_told_by_kind() {
    let node = shared_node();
    let host = node.process().host();
    let refused = |remote: &str, credentials: &Credentials| {
        host.smb()
            .new_global_mapping(&share(remote), Some(credentials), None, true, NEVER)
            .unwrap_err()
            .kind()
    };
    assert_eq!(
        refused(r"\\s\share", &credentials("other", "wrong")),
        Unauthenticated
    );
    assert_eq!(
        refused(r"\\s\share", &credentials("nobody", "x")),
        Unauthenticated
    );
    assert_eq!(refused(r"\\s\missing", &user()), NotFound);
    assert_eq!(refused(r"\\gone\share", &user()), Unavailable);
    assert!(mappings(&node).is_empty());
}

#[test]
fn something_else_at_the_local_path_is_told_and_stays() {
    let node = shared_node();
    node.change(|state| state.put_file(r"C:\var\lib\kubelet\mnt", b"x").unwrap());
    let host = node.process().host();
    let mapped = host.smb().new_global_mapping(
        &share(r"\\s\share"),
        Some(&user()),
        Some(&at("mnt")),
        true,
        NEVER,
    );
    assert_eq!(mapped.unwrap_err().kind(), AlreadyExists);
    assert_eq!(
        node.snapshot().file(r"C:\var\lib\kubelet\mnt").unwrap(),
        b"x"
    );
}

#[test]
fn removing_what_is_not_mapped_is_success() {
    let node = shared_node();
    let before = node.snapshot();
    let host = node.process().host();
    host.smb()
        .remove_global_mapping(&share(r"\\s\share"), NEVER)
        .unwrap();
    assert_eq!(node.snapshot(), before);
}

#[test]
fn the_status_is_that_of_the_mapping() {
    let node = shared_node();
    let host = node.process().host();
    let status = || host.smb().status(&share(r"\\s\share\a"), NEVER).unwrap();
    assert_eq!(status(), None);
    map(&host, r"\\s\share").unwrap();
    assert_eq!(status(), Some(MappingStatus::Ok));
    node.change(|state| state.smb.break_mapping("s", "share"));
    assert_eq!(status(), Some(MappingStatus::Disconnected));
}

#[test]
fn c14_two_volumes_on_one_share() {
    let node = shared_node();
    let host = node.process().host();
    let (v1, v2) = (share(r"\\S\share\a"), share("//s/SHARE/b"));
    let acquire = |remote: &SharePath, who: &Credentials, users: &[Option<String>]| {
        host.smb()
            .acquire_global_mapping(remote, Some(who), true, users, NEVER)
    };
    let one = vec![Some(r"DOM\user".to_owned())];
    acquire(&v1, &user(), &[]).unwrap();
    acquire(&v2, &user(), &one).unwrap();
    assert_eq!(node.counts().of("MSFT_SmbGlobalMapping.Create"), 1);

    // V3 with another user while V1 is staged.
    let before = node.snapshot();
    let error = acquire(&v1, &other(), &one).unwrap_err();
    assert_eq!(error.kind(), FailedPrecondition);
    let shown = error.to_string();
    for word in [r"\\s\share", r#""DOM\\user""#, r#""other""#, "in use"] {
        assert!(shown.contains(word), "{word} in {shown}");
    }
    assert_eq!(node.snapshot(), before);

    // Unstage V1: V2 keeps working. Unstage V2: the mapping goes.
    assert!(!host.smb().release_global_mapping(&v1, 1, NEVER).unwrap());
    assert_eq!(mappings(&node).len(), 1);
    assert!(host.smb().release_global_mapping(&v2, 0, NEVER).unwrap());
    assert!(mappings(&node).is_empty());

    // Nobody is left: the other user may.
    acquire(&v1, &other(), &[]).unwrap();
    assert_eq!(mappings(&node)[0].user.as_deref(), Some("OTHER"));
}

#[test]
fn c14_a_left_over_mapping_of_nobody_is_made_again_with_the_own_user() {
    let node = shared_node();
    let host = node.process().host();
    map(&host, r"\\s\share").unwrap();
    host.smb()
        .acquire_global_mapping(&share(r"\\s\share"), Some(&other()), true, &[], NEVER)
        .unwrap();
    let made = mappings(&node);
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].user.as_deref(), Some("OTHER"));
}

#[test]
fn c14_another_user_on_another_share_of_the_server_is_told_why() {
    let node = shared_node();
    let host = node.process().host();
    map(&host, r"\\s\share").unwrap();
    let error = host
        .smb()
        .new_global_mapping(&share(r"\\s\second"), Some(&other()), None, true, NEVER)
        .unwrap_err();
    assert_eq!(error.kind(), FailedPrecondition);
    assert!(error.to_string().contains("another user"), "{error}");
    assert_eq!(mappings(&node).len(), 1);
}

#[test]
fn c16_a_dead_mapping_is_repaired_with_the_own_credentials() {
    // Disconnected, or after a password change, by both operations.
    for disconnected in [true, false] {
        for counted in [true, false] {
            let node = shared_node();
            let host = node.process().host();
            map(&host, r"\\s\share").unwrap();
            node.change(|state| match disconnected {
                true => state.smb.break_mapping("s", "share"),
                false => {
                    let server = state.smb.servers.get_mut("S").unwrap();
                    server.set_password(r"DOM\user", "new-password");
                }
            });
            let own = match disconnected {
                true => user(),
                false => credentials(r"DOM\user", "new-password"),
            };
            let remote = share(r"\\s\share\a");
            let users = [Some(r"dom\USER".to_owned())];
            match counted {
                true => host
                    .smb()
                    .acquire_global_mapping(&remote, Some(&own), true, &users, NEVER),
                false => host
                    .smb()
                    .new_global_mapping(&remote, Some(&own), None, true, NEVER),
            }
            .unwrap();
            assert_eq!(mappings(&node).len(), 1);
            assert_eq!(
                host.smb().status(&remote, NEVER).unwrap(),
                Some(MappingStatus::Ok)
            );
            let reached = node.process().os().reach(&(&remote).into(), NEVER);
            assert_eq!(reached, Ok(()));
        }
    }
}

#[test]
fn c16_a_repair_with_wrong_credentials_is_told() {
    let node = shared_node();
    let host = node.process().host();
    map(&host, r"\\s\share").unwrap();
    node.change(|state| {
        let server = state.smb.servers.get_mut("S").unwrap();
        server.set_password(r"DOM\user", "new-password");
    });
    assert_eq!(
        map(&host, r"\\s\share").unwrap_err().kind(),
        Unauthenticated
    );
}

#[test]
fn a_share_that_denies_its_root_is_mapped_and_not_made_again() {
    let node = shared_node();
    let host = node.process().host();
    map(&host, r"\\s\share").unwrap();
    node.change(|state| {
        let server = state.smb.servers.get_mut("S").unwrap();
        server.shares.get_mut("SHARE").unwrap().writers.clear();
    });
    map(&host, r"\\s\share\a").unwrap();
    assert_eq!(node.counts().of("MSFT_SmbGlobalMapping.Create"), 1);
}

/// A node whose mapping is dead, and whose `MSFT_SmbGlobalMapping.Remove` hangs for a minute.
fn hanging_node() -> SimNode {
    let node = shared_node();
    map(&node.process().host(), r"\\s\share").unwrap();
    node.change(|state| state.smb.break_mapping("s", "share"));
    let remove = Fault::on("MSFT_SmbGlobalMapping.Remove");
    node.inject(remove.stalls(Duration::from_secs(60)));
    node
}

#[test]
fn a_removal_that_hangs_does_not_take_the_next_mapping_away() {
    let node = hanging_node();
    let host = node.process().host();
    let begin = node.clock().now().0;
    let within = |seconds| {
        let deadline = node.clock().deadline_in(Duration::from_secs(seconds));
        host.smb()
            .new_global_mapping(&share(r"\\s\share"), Some(&user()), None, true, deadline)
    };
    assert_eq!(within(20).unwrap_err().kind(), DeadlineExceeded);
    assert_eq!(node.clock().now().0 - begin, Duration::from_secs(20));
    // The removal still runs: nobody makes a mapping that it would take away.
    assert_eq!(within(30).unwrap_err().kind(), Aborted);
    assert_eq!(mappings(&node).len(), 1);
    node.clock()
        .sleep_until(Moment(begin + Duration::from_secs(61)));
    within(20).unwrap();
    node.clock()
        .sleep_until(Moment(begin + Duration::from_secs(600)));
    assert_eq!(mappings(&node).len(), 1);
    assert!(!mappings(&node)[0].broken);
}

#[test]
fn two_processes_repair_a_mapping_one_after_the_other() {
    // A clock that jumps would end the wait for the share's lock at once.
    let node = shared_node_on(SimClock::real(1));
    map(&node.process().host(), r"\\s\share").unwrap();
    node.change(|state| state.smb.break_mapping("s", "share"));
    let results: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| map(&node.process().host(), r"\\s\share")))
            .collect();
        started.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for result in results {
        result.unwrap();
    }
    assert_eq!(mappings(&node).len(), 1);
    assert_eq!(node.counts().of("MSFT_SmbGlobalMapping.Create"), 2);
    assert_eq!(node.counts().of("MSFT_SmbGlobalMapping.Remove"), 1);
}
