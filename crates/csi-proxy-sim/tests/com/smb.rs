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
