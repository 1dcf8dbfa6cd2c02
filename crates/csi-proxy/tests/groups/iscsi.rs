//! iSCSI portals, targets and disks.

use csi_proxy::ErrorKind::{
    FailedPrecondition, InvalidArgument, NotFound, Unauthenticated, Unavailable,
};
use csi_proxy::iscsi::{Authentication, ChapSecret};
use csi_proxy::{DiskNumber, ErrorKind, Host, NodeAddress, Portal, Secret};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::iscsi::SimTarget;
use csi_proxy_sim::services::ServiceState;
use csi_proxy_sim::storage::SimDisk;

use crate::NEVER;

const GIB: u64 = 1 << 30;
const IQN: &str = "iqn.1991-05.com.example:data";
const GUARDED: &str = "iqn.1991-05.com.example:guarded";

/// What no error may show.
pub(crate) const SECRET: &str = "chap-secret-5e7c";
const MUTUAL: &str = "mutual-secret-1";

pub(crate) fn portal() -> Portal {
    Portal::new("10.0.0.4", 0).unwrap()
}

pub(crate) fn target() -> NodeAddress {
    NodeAddress::new(IQN).unwrap()
}

pub(crate) fn guarded() -> NodeAddress {
    NodeAddress::new(GUARDED).unwrap()
}

pub(crate) fn chap_secret(text: &str) -> ChapSecret {
    ChapSecret::new(Secret::new(text)).unwrap()
}

fn one_way(secret: &str) -> Authentication {
    Authentication::OneWayChap {
        username: "initiator".to_owned(),
        secret: chap_secret(secret),
    }
}

pub(crate) fn mutual() -> Authentication {
    Authentication::MutualChap {
        username: "initiator".to_owned(),
        secret: chap_secret(SECRET),
    }
}

/// A node whose initiator runs, and two targets at one portal; one asks for CHAP.
pub(crate) fn storage_node() -> SimNode {
    let node = SimNode::builder().build();
    node.change(|state| {
        let open = SimTarget::at("10.0.0.4", 3260)
            .lun(SimDisk::raw(GIB))
            .lun(SimDisk::raw(2 * GIB));
        state.put_iscsi_target(IQN, open);
        let guarded = SimTarget::at("10.0.0.4", 3260)
            .lun(SimDisk::raw(GIB))
            .chap("initiator", SECRET)
            .mutual_chap(MUTUAL);
        state.put_iscsi_target(GUARDED, guarded);
        let initiator = state.services.get_mut("MSiSCSI").unwrap();
        initiator.state = ServiceState::Running;
    });
    node
}

fn kind<T: std::fmt::Debug>(result: csi_proxy::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn connect(host: &Host, to: &NodeAddress, with: &Authentication) -> csi_proxy::Result<()> {
    host.iscsi().add_target_portal(&portal(), NEVER)?;
    host.iscsi().connect_target(&portal(), to, with, NEVER)
}

#[test]
fn a_portal_is_added_once_listed_and_removed() {
    let node = storage_node();
    let host = node.process().host();
    assert_eq!(host.iscsi().list_target_portals(NEVER).unwrap(), []);
    for _ in 0..2 {
        host.iscsi().add_target_portal(&portal(), NEVER).unwrap();
    }
    assert_eq!(node.counts().of("MSFT_iSCSITargetPortal.New"), 1);
    assert_eq!(host.iscsi().list_target_portals(NEVER).unwrap(), [portal()]);
    for _ in 0..2 {
        host.iscsi().remove_target_portal(&portal(), NEVER).unwrap();
    }
    assert_eq!(node.counts().of("MSFT_iSCSITargetPortal.Remove"), 1);
    assert_eq!(host.iscsi().list_target_portals(NEVER).unwrap(), []);
}

#[test]
fn a_portal_that_windows_writes_otherwise_is_the_same() {
    let node = storage_node();
    node.change(|state| {
        let target = SimTarget::at("FE80:0::0001", 3260);
        state.put_iscsi_target("iqn.2001-04.com.example:v6", target);
        state.iscsi.portals.push(csi_proxy_sim::iscsi::Portal {
            address: "FE80:0::0001".to_owned(),
            port: 3260,
            targets: ["iqn.2001-04.com.example:v6".to_owned()].into(),
        });
    });
    let host = node.process().host();
    let portal: Portal = "[fe80::1]:3260".parse().unwrap();
    let found = host.iscsi().discover_target_portal(&portal, NEVER).unwrap();
    assert_eq!(found.len(), 1);
    host.iscsi().add_target_portal(&portal, NEVER).unwrap();
    assert_eq!(node.counts().of("MSFT_iSCSITargetPortal.New"), 0);
    host.iscsi().remove_target_portal(&portal, NEVER).unwrap();
    assert!(node.snapshot().iscsi.portals.is_empty());
}

#[test]
fn a_portal_where_nobody_is_cannot_be_added() {
    let node = storage_node();
    let host = node.process().host();
    let nobody = Portal::new("10.9.9.9", 0).unwrap();
    assert_eq!(
        kind(host.iscsi().add_target_portal(&nobody, NEVER)),
        Unavailable
    );
}

#[test]
fn a_registered_portal_names_its_targets() {
    let node = storage_node();
    let host = node.process().host();
    let unknown = host.iscsi().discover_target_portal(&portal(), NEVER);
    assert_eq!(kind(unknown), NotFound);
    host.iscsi().add_target_portal(&portal(), NEVER).unwrap();
    let mut found = host
        .iscsi()
        .discover_target_portal(&portal(), NEVER)
        .unwrap();
    found.sort_unstable();
    assert_eq!(found, [target(), guarded()]);
}

#[test]
fn a_target_is_connected_once_and_brings_its_disks() {
    let node = storage_node();
    let host = node.process().host();
    for _ in 0..2 {
        connect(&host, &target(), &Authentication::None).unwrap();
    }
    assert_eq!(node.counts().of("MSFT_iSCSITarget.Connect"), 1);
    let disks = host.iscsi().target_disks(&target(), NEVER).unwrap();
    assert_eq!(disks, [DiskNumber(1), DiskNumber(2)]);
}

#[test]
fn chap_is_spoken_one_way_and_mutually() {
    for with in [one_way(SECRET), mutual()] {
        let node = storage_node();
        let host = node.process().host();
        host.iscsi()
            .set_mutual_chap_secret(&chap_secret(MUTUAL), NEVER)
            .unwrap();
        connect(&host, &guarded(), &with).unwrap();
        let disks = host.iscsi().target_disks(&guarded(), NEVER).unwrap();
        assert_eq!(disks.len(), 1);
    }
}

#[test]
fn credentials_that_a_target_refuses_are_told_without_them() {
    let node = storage_node();
    let host = node.process().host();
    for with in [Authentication::None, one_way("wrong-secret-x"), mutual()] {
        let error = connect(&host, &guarded(), &with).unwrap_err();
        assert_eq!(error.kind(), Unauthenticated, "{error}");
        let shown = format!("{error} {error:?}");
        assert!(
            !shown.contains("wrong-secret") && !shown.contains(SECRET),
            "{shown}"
        );
    }
    assert!(node.snapshot().iscsi.sessions.is_empty());
}

#[test]
fn an_empty_chap_user_is_an_invalid_argument() {
    let node = storage_node();
    let host = node.process().host();
    let with = Authentication::OneWayChap {
        username: String::new(),
        secret: chap_secret(SECRET),
    };
    assert_eq!(kind(connect(&host, &target(), &with)), InvalidArgument);
}

#[test]
fn a_target_that_no_portal_has_offered_is_not_found() {
    let node = storage_node();
    let host = node.process().host();
    let unknown = NodeAddress::new("iqn.2001-04.com.example:unknown").unwrap();
    assert_eq!(
        kind(connect(&host, &unknown, &Authentication::None)),
        NotFound
    );
    assert_eq!(kind(host.iscsi().target_disks(&unknown, NEVER)), NotFound);
    host.iscsi().disconnect_target(&unknown, NEVER).unwrap();
}

#[test]
fn the_disks_of_a_target_that_is_not_connected_are_refused() {
    let node = storage_node();
    let host = node.process().host();
    host.iscsi().add_target_portal(&portal(), NEVER).unwrap();
    let disks = host.iscsi().target_disks(&target(), NEVER);
    assert_eq!(kind(disks), FailedPrecondition);
}

#[test]
fn disconnecting_ends_the_session_for_good() {
    for persistent in [false, true] {
        let node = storage_node();
        let host = node.process().host();
        connect(&host, &target(), &Authentication::None).unwrap();
        if persistent {
            node.change(|state| {
                let login = state.iscsi.sessions[0].login.clone();
                state.iscsi.persistent.push(login);
            });
        }
        for _ in 0..2 {
            host.iscsi().disconnect_target(&target(), NEVER).unwrap();
        }
        let iscsi = node.snapshot().iscsi;
        assert!(iscsi.sessions.is_empty());
        assert!(iscsi.persistent.is_empty());
        let counts = node.counts();
        assert_eq!(counts.of("MSFT_iSCSITarget.Disconnect"), 1);
        assert_eq!(
            counts.of("MSFT_iSCSISession.Unregister"),
            u64::from(persistent)
        );
    }
}

#[test]
fn every_operation_without_the_service_says_to_start_it() {
    let node = storage_node();
    node.change(|state| {
        state.services.get_mut("MSiSCSI").unwrap().state = ServiceState::Stopped;
    });
    let before = node.snapshot();
    let host = node.process().host();
    let (iscsi, portal, target) = (host.iscsi(), portal(), target());
    let none = Authentication::None;
    for (operation, answer) in [
        ("add", iscsi.add_target_portal(&portal, NEVER)),
        (
            "discover",
            iscsi.discover_target_portal(&portal, NEVER).map(|_| ()),
        ),
        ("list", iscsi.list_target_portals(NEVER).map(|_| ())),
        ("remove", iscsi.remove_target_portal(&portal, NEVER)),
        (
            "connect",
            iscsi.connect_target(&portal, &target, &none, NEVER),
        ),
        ("disconnect", iscsi.disconnect_target(&target, NEVER)),
        ("disks", iscsi.target_disks(&target, NEVER).map(|_| ())),
        (
            "secret",
            iscsi.set_mutual_chap_secret(&chap_secret(MUTUAL), NEVER),
        ),
    ] {
        let error = answer.expect_err(operation);
        assert_eq!(error.kind(), FailedPrecondition, "{operation}: {error}");
        let shown = error.to_string();
        assert!(
            shown.contains("MSiSCSI is Stopped; start it"),
            "{operation}: {shown}"
        );
    }
    assert_eq!(node.snapshot(), before);
}

#[test]
fn a_node_without_the_initiator_says_so() {
    let node = storage_node();
    node.change(|state| {
        state.services.0.remove("MSISCSI");
    });
    let host = node.process().host();
    let error = host.iscsi().list_target_portals(NEVER).unwrap_err();
    assert_eq!(error.kind(), FailedPrecondition);
    assert!(error.to_string().contains("no service MSiSCSI"), "{error}");
}
