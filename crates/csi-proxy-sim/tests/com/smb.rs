//! The group smb, with and without COM.

use csi_proxy::{Credentials, Secret, SharePath};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::smb::{Server, Share};

use crate::{Compared, GIB, NEVER};

/// What must not be written down anywhere.
const PASSWORD: &str = r#"pa:ss\"word'-5e7c"#;

fn node() -> SimNode {
    let node = SimNode::builder().build();
    node.change(|state| {
        let share = Share::new(GIB).writer(r"DOM\user");
        let server = Server::new().account(r"DOM\user", PASSWORD);
        state.put_smb_server("s", server.share("share", share));
    });
    node
}

fn credentials(password: &str) -> Credentials {
    Credentials::new(r"DOM\user", Secret::new(password)).unwrap()
}

#[test]
fn the_smb_group_answers_the_same_through_com() {
    let both = Compared::new(node);
    let share = SharePath::new(r"\\s\share\dir").unwrap();
    let map = |password: &'static str| {
        let share = share.clone();
        move |host: &csi_proxy::Host| {
            let credentials = credentials(password);
            host.smb()
                .new_global_mapping(&share, Some(&credentials), None, true, NEVER)
        }
    };
    both.same(|host| host.smb().status(&share, NEVER));
    both.same(map("wrong"));
    for _ in 0..2 {
        both.same(map(PASSWORD));
        both.same(|host| host.smb().status(&share, NEVER));
    }
    for _ in 0..2 {
        both.same(|host| host.smb().remove_global_mapping(&share, NEVER));
    }
}

#[test]
fn a_share_that_volumes_have_in_common_is_the_same_through_com() {
    let both = Compared::new(node);
    let share = SharePath::new(r"\\s\share\dir").unwrap();
    let acquire = |password: &'static str, users: &'static [Option<&str>]| {
        let share = share.clone();
        let users: Vec<_> = users.iter().map(|user| user.map(str::to_owned)).collect();
        move |host: &csi_proxy::Host| {
            let credentials = credentials(password);
            host.smb()
                .acquire_global_mapping(&share, Some(&credentials), true, &users, NEVER)
        }
    };
    both.same(acquire("wrong", &[]));
    both.same(acquire(PASSWORD, &[]));
    both.same(acquire(PASSWORD, &[Some(r"DOM\user")]));
    both.same(acquire(PASSWORD, &[Some(r"DOM\other")]));
    for others in [1, 0, 0] {
        both.same(|host| host.smb().release_global_mapping(&share, others, NEVER));
    }
}

#[test]
fn a_password_that_came_through_com_is_not_in_the_log() {
    let both = Compared::new(node);
    let share = SharePath::new(r"\\s\share").unwrap();
    let credentials = credentials(PASSWORD);
    both.same(|host| {
        host.smb()
            .new_global_mapping(&share, Some(&credentials), None, true, NEVER)
    });
    let log = format!("{:?}", both.reached.node.call_log());
    assert!(log.contains("MSFT_SmbGlobalMapping"), "{log}");
    assert!(!log.contains("5e7c"), "{log}");
}
