//! The group iscsi, with and without COM.

use csi_proxy::iscsi::{Authentication, ChapSecret};
use csi_proxy::{NodeAddress, Portal, Secret};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::iscsi::SimTarget;
use csi_proxy_sim::services::Service;
use csi_proxy_sim::storage::SimDisk;

use crate::{Compared, GIB, NEVER};

const IQN: &str = "iqn.1991-05.com.example:data";
const GUARDED: &str = "iqn.1991-05.com.example:guarded";
const SECRET: &str = "chap-secret-5e7c";
const MUTUAL: &str = "mutual-chap-5e7c";

fn node() -> SimNode {
    let node = SimNode::builder().build();
    node.change(|state| {
        let target = SimTarget::at("10.0.0.4", 3260)
            .lun(SimDisk::raw(GIB))
            .lun(SimDisk::raw(2 * GIB));
        state.put_iscsi_target(IQN, target);
        let guarded = SimTarget::at("10.0.0.5", 3260).lun(SimDisk::raw(GIB));
        let guarded = guarded.chap("initiator", SECRET);
        state.put_iscsi_target(GUARDED, guarded.mutual_chap(MUTUAL));
        state
            .services
            .put(Service::new("MSiSCSI", "Initiator").running());
    });
    node
}

#[test]
fn the_iscsi_group_answers_the_same_through_com() {
    let both = Compared::new(node);
    let portal = Portal::new("10.0.0.4", 0).unwrap();
    let target = NodeAddress::new(IQN).unwrap();
    let secret = ChapSecret::new(Secret::new(SECRET)).unwrap();
    let wrong = Authentication::OneWayChap {
        username: "initiator".to_owned(),
        secret: ChapSecret::new(Secret::new(SECRET)).unwrap(),
    };
    both.same(|host| host.iscsi().discover_target_portal(&portal, NEVER));
    for _ in 0..2 {
        both.same(|host| host.iscsi().add_target_portal(&portal, NEVER));
    }
    both.same(|host| host.iscsi().list_target_portals(NEVER));
    both.same(|host| host.iscsi().discover_target_portal(&portal, NEVER));
    both.same(|host| host.iscsi().target_disks(&target, NEVER));
    both.same(|host| host.iscsi().set_mutual_chap_secret(&secret, NEVER));
    both.same(|host| host.iscsi().connect_target(&portal, &target, &wrong, NEVER));
    for _ in 0..2 {
        let none = Authentication::None;
        both.same(|host| host.iscsi().connect_target(&portal, &target, &none, NEVER));
    }
    both.same(|host| host.iscsi().target_disks(&target, NEVER));
    both.same(|host| host.disk().list_locations(NEVER));
    for _ in 0..2 {
        both.same(|host| host.iscsi().disconnect_target(&target, NEVER));
    }
    for _ in 0..2 {
        both.same(|host| host.iscsi().remove_target_portal(&portal, NEVER));
    }
    let log = format!("{:?}", both.reached.node.call_log());
    assert!(!log.contains("5e7c"), "{log}");
}

#[test]
fn chap_is_the_same_through_com() {
    let both = Compared::new(node);
    let portal = Portal::new("10.0.0.5", 3260).unwrap();
    let target = NodeAddress::new(GUARDED).unwrap();
    let chap = |secret: &str| ChapSecret::new(Secret::new(secret)).unwrap();
    let one_way = |secret: &str| Authentication::OneWayChap {
        username: "initiator".to_owned(),
        secret: chap(secret),
    };
    let both_ways = Authentication::MutualChap {
        username: "initiator".to_owned(),
        secret: chap(SECRET),
    };
    both.same(|host| host.iscsi().add_target_portal(&portal, NEVER));
    for authentication in [
        Authentication::None,
        one_way("other-chap-5e7c"),
        both_ways.clone(),
    ] {
        both.same(|host| {
            host.iscsi()
                .connect_target(&portal, &target, &authentication, NEVER)
        });
    }
    both.same(|host| host.iscsi().set_mutual_chap_secret(&chap(MUTUAL), NEVER));
    both.same(|host| {
        host.iscsi()
            .connect_target(&portal, &target, &both_ways, NEVER)
    });
    both.same(|host| host.iscsi().target_disks(&target, NEVER));
    both.same(|host| host.iscsi().disconnect_target(&target, NEVER));
    let log = format!("{:?}", both.reached.node.call_log());
    assert!(!log.contains("5e7c"), "{log}");
}
