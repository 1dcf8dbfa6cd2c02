//! The rules of the iSCSI initiator, each with its status.

use csi_proxy::cim::{Associators, Invoke, Namespace, Object, ObjectPath, Query};
use csi_proxy::clock::Deadline;
use csi_proxy::port::{PortError, SystemCode};
use csi_proxy::{Host, Secret};

use super::{SimTarget, status};
use crate::SimNode;
use crate::fs::FileChange;
use crate::services::{Service, StartMode};
use crate::storage::SimDisk;

const IQN: &str = "iqn.2024-01.example:store";
const SECRET: &str = "secret-of-12";
const PORTAL: &str = "MSFT_iSCSITargetPortal";
const TARGET: &str = "MSFT_iSCSITarget";
const SESSION: &str = "MSFT_iSCSISession";
const CONNECTION: &str = "MSFT_iSCSIConnection";
const GIB: u64 = 1 << 30;

fn initiator(start_mode: StartMode) -> Service {
    Service {
        start_mode,
        ..Service::new("MSiSCSI", "Microsoft iSCSI Initiator Service").running()
    }
}

fn target() -> SimTarget {
    let lun = |serial: &str| SimDisk::raw(GIB).serial(serial);
    SimTarget::at("10.0.0.1", 3260)
        .lun(lun("lun-0"))
        .lun(lun("lun-1"))
}

fn node(target: SimTarget) -> (SimNode, Host) {
    let builder = SimNode::builder().service(initiator(StartMode::Auto));
    let node = builder.iscsi_target(IQN, target).build();
    let host = node.process().host();
    (node, host)
}

fn on_class(class: &str, method: &str) -> Invoke {
    Invoke::on_class(Namespace::Storage, class, method)
}

fn at_portal(invoke: Invoke) -> Invoke {
    invoke
        .with("TargetPortalAddress", "10.0.0.1")
        .with("TargetPortalPortNumber", 3260_u32)
}

fn new_portal() -> Invoke {
    at_portal(on_class(PORTAL, "New"))
}

fn connect() -> Invoke {
    at_portal(on_class(TARGET, "Connect")).with("NodeAddress", IQN)
}

fn chap(kind: &str, user: &str, secret: &str) -> Invoke {
    connect()
        .with("AuthenticationType", kind)
        .with("ChapUsername", user)
        .with("ChapSecret", Secret::new(secret))
}

/// The status of the failure; 0 is success.
fn run(host: &Host, invoke: &Invoke) -> u32 {
    match host.cim().invoke(invoke, Deadline::Never) {
        Ok(output) => output.return_value,
        Err(PortError::System {
            code: SystemCode::HResult(code),
            ..
        }) => code,
        Err(error) => panic!("{error}"),
    }
}

fn all(host: &Host, class: &str, property: &str) -> Vec<Object> {
    let query = Query::new(Namespace::Storage, class, &[property]);
    host.cim().query(&query, Deadline::Never).unwrap()
}

fn texts(objects: &[Object], property: &str) -> Vec<String> {
    let text = |object: &Object| object.properties[property].as_str().unwrap().to_owned();
    objects.iter().map(text).collect()
}

fn follow(
    host: &Host,
    of: &ObjectPath,
    association: &str,
    class: &str,
    property: &str,
) -> Vec<Object> {
    let request = Associators::new(Namespace::Storage, of, association, class, &[property]);
    host.cim().associators(&request, Deadline::Never).unwrap()
}

fn disks(host: &Host) -> usize {
    all(host, "MSFT_Disk", "Number").len()
}

fn session(host: &Host) -> Object {
    all(host, SESSION, "SessionIdentifier").remove(0)
}

fn on_session(host: &Host, method: &str) -> Invoke {
    Invoke::on(Namespace::Storage, SESSION, &session(host).path, method)
}

fn disconnect(host: &Host, identifier: &str) -> Invoke {
    let target = all(host, TARGET, "NodeAddress").remove(0);
    Invoke::on(Namespace::Storage, TARGET, &target.path, "Disconnect")
        .with("SessionIdentifier", identifier)
}

#[test]
fn a_portal_names_its_targets() {
    let (_, host) = node(target());
    assert_eq!(all(&host, TARGET, "NodeAddress").len(), 0);
    assert_eq!(run(&host, &new_portal()), 0);
    assert_eq!(run(&host, &new_portal()), status::PORTAL_EXISTS);
    let portal = all(&host, PORTAL, "TargetPortalAddress").remove(0);
    let association = "MSFT_iSCSITargetToiSCSITargetPortal";
    let targets = follow(&host, &portal.path, association, TARGET, "NodeAddress");
    assert_eq!(texts(&targets, "NodeAddress"), [IQN]);
    let portals = follow(
        &host,
        &targets[0].path,
        association,
        PORTAL,
        "TargetPortalAddress",
    );
    assert_eq!(texts(&portals, "TargetPortalAddress"), ["10.0.0.1"]);
    let remove = Invoke::on(Namespace::Storage, PORTAL, &portal.path, "Remove");
    assert_eq!(run(&host, &remove), 0);
    assert_eq!(all(&host, PORTAL, "TargetPortalAddress").len(), 0);
    assert_eq!(all(&host, TARGET, "NodeAddress").len(), 0);
}

#[test]
fn a_portal_where_nobody_answers_is_not_added() {
    let (node, host) = node(target());
    let wrong = new_portal().with("TargetPortalPortNumber", 3261_u32);
    let before = node.snapshot();
    assert_eq!(run(&host, &wrong), status::CONNECTION_FAILED);
    let none = on_class(PORTAL, "New");
    assert_eq!(run(&host, &none), status::INVALID_PARAMETER);
    let large = new_portal().with("TargetPortalPortNumber", 65_536_u32);
    assert_eq!(run(&host, &large), status::INVALID_PARAMETER);
    assert_eq!(node.snapshot(), before);
}

#[test]
fn a_target_that_comes_later_is_found_by_an_update() {
    let (node, host) = node(target());
    assert_eq!(run(&host, &new_portal()), 0);
    let second = "iqn.2024-01.example:second";
    node.change(|state| state.put_iscsi_target(second, SimTarget::at("10.0.0.1", 3260)));
    assert_eq!(all(&host, TARGET, "NodeAddress").len(), 1);
    assert_eq!(run(&host, &on_class(TARGET, "Update")), 0);
    assert_eq!(all(&host, TARGET, "NodeAddress").len(), 2);
}

#[test]
fn a_connected_target_brings_its_disks_and_takes_them_away() {
    let (_, host) = node(target());
    let before = disks(&host);
    assert_eq!(run(&host, &connect()), status::TARGET_UNKNOWN);
    assert_eq!(run(&host, &new_portal()), 0);
    assert_eq!(run(&host, &connect()), 0);
    assert_eq!(run(&host, &connect()), status::ALREADY_LOGGED_IN);
    assert_eq!(disks(&host), before + 2);
    let identifier = session(&host).properties["SessionIdentifier"].clone();
    let identifier = identifier.as_str().unwrap();
    let wrong = disconnect(&host, "nonsense");
    assert_eq!(run(&host, &wrong), status::INVALID_SESSION_ID);
    assert_eq!(run(&host, &disconnect(&host, identifier)), 0);
    assert_eq!(disks(&host), before);
    let again = disconnect(&host, identifier);
    assert_eq!(run(&host, &again), status::INVALID_SESSION_ID);
    assert_eq!(run(&host, &connect()), 0);
    assert_ne!(texts(&[session(&host)], "SessionIdentifier"), [identifier]);
}

#[test]
fn the_disks_of_a_target_are_found_through_its_connection() {
    let (_, host) = node(target());
    assert_eq!(run(&host, &new_portal()), 0);
    assert_eq!(run(&host, &connect()), 0);
    let target = all(&host, TARGET, "IsConnected").remove(0);
    assert_eq!(target.properties["IsConnected"].as_bool(), Some(true));
    let association = "MSFT_iSCSITargetToiSCSIConnection";
    let connections = follow(
        &host,
        &target.path,
        association,
        CONNECTION,
        "TargetAddress",
    );
    assert_eq!(texts(&connections, "TargetAddress"), ["10.0.0.1"]);
    let of = |path: &ObjectPath, association: &str| {
        let disks = follow(&host, path, association, "MSFT_Disk", "SerialNumber");
        texts(&disks, "SerialNumber")
    };
    let expected = ["lun-0", "lun-1"];
    assert_eq!(
        of(&connections[0].path, "MSFT_iSCSIConnectionToDisk"),
        expected
    );
    let association = "MSFT_iSCSITargetToiSCSISession";
    let sessions = follow(
        &host,
        &target.path,
        association,
        SESSION,
        "SessionIdentifier",
    );
    assert_eq!(of(&sessions[0].path, "MSFT_iSCSISessionToDisk"), expected);
    let back = follow(&host, &sessions[0].path, association, TARGET, "NodeAddress");
    assert_eq!(texts(&back, "NodeAddress"), [IQN]);
    let association = "MSFT_iSCSISessionToiSCSIConnection";
    let connection = follow(
        &host,
        &sessions[0].path,
        association,
        CONNECTION,
        "TargetAddress",
    );
    assert_eq!(connection, connections);
}

#[test]
fn one_way_chap_is_checked() {
    let (node, host) = node(target().chap("user", SECRET));
    assert_eq!(run(&host, &new_portal()), 0);
    let before = node.snapshot();
    let refused = |invoke: &Invoke| run(&host, invoke);
    assert_eq!(refused(&connect()), status::AUTHENTICATION_FAILURE);
    for (user, secret) in [
        ("user", "another-secret"),
        ("other", SECRET),
        ("USER", SECRET),
    ] {
        let wrong = chap("ONEWAYCHAP", user, secret);
        assert_eq!(refused(&wrong), status::AUTHENTICATION_FAILURE, "{user}");
    }
    for secret in ["", "11-letters.", "17-letters-are-17"] {
        let wrong = chap("ONEWAYCHAP", "user", secret);
        assert_eq!(refused(&wrong), status::TARGET_SECRET_LENGTH, "{secret}");
    }
    let nobody = chap("ONEWAYCHAP", "", SECRET);
    assert_eq!(refused(&nobody), status::INVALID_USER);
    let unknown = chap("KERBEROS", "user", SECRET);
    assert_eq!(refused(&unknown), status::INVALID_AUTHENTICATION);
    assert_eq!(node.snapshot(), before);
    assert_eq!(run(&host, &chap("ONEWAYCHAP", "user", SECRET)), 0);
}

#[test]
fn a_target_without_chap_refuses_an_initiator_that_insists() {
    let (_, host) = node(target());
    assert_eq!(run(&host, &new_portal()), 0);
    let insists = chap("ONEWAYCHAP", "user", SECRET);
    assert_eq!(run(&host, &insists), status::AUTHENTICATION_FAILURE);
}

#[test]
fn mutual_chap_needs_the_secret_of_both() {
    let (_, host) = node(target().chap("user", SECRET).mutual_chap("mutual-secret"));
    assert_eq!(run(&host, &new_portal()), 0);
    let mutual = chap("MUTUALCHAP", "user", SECRET);
    let set = |secret: &str| {
        let set = on_class(SESSION, "SetCHAPSecret").with("ChapSecret", Secret::new(secret));
        run(&host, &set)
    };
    assert_eq!(run(&host, &mutual), status::AUTHENTICATION_INFO_MISSING);
    assert_eq!(set("too-short"), status::INITIATOR_SECRET_LENGTH);
    assert_eq!(set("wrong-secret"), 0);
    assert_eq!(run(&host, &mutual), status::AUTHENTICATION_FAILURE);
    assert_eq!(set("mutual-secret"), 0);
    assert_eq!(run(&host, &mutual), 0);
}

#[test]
fn a_session_that_is_not_persistent_ends_with_the_node() {
    let (node, host) = node(target());
    let before = disks(&host);
    assert_eq!(run(&host, &new_portal()), 0);
    assert_eq!(run(&host, &connect()), 0);
    node.reboot();
    let host = node.process().host();
    assert_eq!(all(&host, SESSION, "SessionIdentifier").len(), 0);
    assert_eq!(disks(&host), before);
    assert_eq!(all(&host, PORTAL, "TargetPortalAddress").len(), 1);
}

#[test]
fn a_persistent_session_comes_back_with_the_service() {
    let (node, host) = node(target());
    assert_eq!(run(&host, &new_portal()), 0);
    assert_eq!(run(&host, &connect()), 0);
    assert_eq!(
        run(&host, &on_session(&host, "Unregister")),
        status::NOT_PERSISTENT
    );
    assert_eq!(run(&host, &on_session(&host, "Register")), 0);
    let with_target = disks(&host);
    node.reboot();
    let host = node.process().host();
    assert_eq!(disks(&host), with_target);
    let persistent = all(&host, SESSION, "IsPersistent").remove(0);
    assert_eq!(persistent.properties["IsPersistent"].as_bool(), Some(true));
    assert_eq!(run(&host, &on_session(&host, "Unregister")), 0);
    node.reboot();
    let host = node.process().host();
    assert_eq!(disks(&host), with_target - 2);
}

#[test]
fn a_persistent_session_waits_for_a_service_that_is_started_by_hand() {
    let (node, host) = node(target());
    node.change(|state| state.services.put(initiator(StartMode::Manual)));
    assert_eq!(run(&host, &new_portal()), 0);
    assert_eq!(run(&host, &connect().with("IsPersistent", true)), 0);
    let with_target = disks(&host);
    node.reboot();
    let host = node.process().host();
    assert_eq!(disks(&host), with_target - 2);
    let query = Query::new(Namespace::Cimv2, "Win32_Service", &[]).with("Name", "MSiSCSI");
    let service = host.cim().query(&query, Deadline::Never).unwrap().remove(0);
    let start = Invoke::on(
        Namespace::Cimv2,
        "Win32_Service",
        &service.path,
        "StartService",
    );
    assert_eq!(run(&host, &start), 0);
    assert_eq!(disks(&host), with_target);
}

#[test]
fn without_its_service_the_initiator_does_nothing() {
    let (node, host) = node(target());
    assert_eq!(run(&host, &new_portal()), 0);
    node.change(|state| state.services.put(Service::new("MSiSCSI", "stopped")));
    let set = on_class(SESSION, "SetCHAPSecret").with("ChapSecret", Secret::new(SECRET));
    for invoke in [new_portal(), connect(), on_class(TARGET, "Update"), set] {
        assert_eq!(run(&host, &invoke), status::SERVICE_NOT_RUNNING);
    }
    for (class, property) in [
        (PORTAL, "TargetPortalAddress"),
        (TARGET, "NodeAddress"),
        (SESSION, "SessionIdentifier"),
        (CONNECTION, "TargetAddress"),
    ] {
        assert_eq!(all(&host, class, property).len(), 0, "{class}");
    }
}

#[test]
fn a_target_that_is_away_cannot_be_connected() {
    let (node, host) = node(target());
    assert_eq!(run(&host, &new_portal()), 0);
    node.change(|state| state.iscsi.targets.get_mut(IQN).unwrap().online = false);
    assert_eq!(run(&host, &connect()), status::CONNECTION_FAILED);
}

#[test]
fn a_disk_with_an_open_file_keeps_its_session() {
    let target = SimTarget::at("10.0.0.1", 3260).lun(SimDisk::ntfs(GIB));
    let (node, host) = node(target);
    assert_eq!(run(&host, &new_portal()), 0);
    assert_eq!(run(&host, &connect()), 0);
    let volumes = all(&host, "MSFT_Volume", "UniqueId");
    let volume = texts(&volumes, "UniqueId").pop().unwrap();
    let file = format!("{volume}f");
    let set_open = |open| {
        node.change(|state| {
            if open {
                state.put_file(&file, b"1").unwrap();
            }
            state.change_file(&file, FileChange::Open(open)).unwrap();
        });
    };
    set_open(true);
    let identifier = texts(&[session(&host)], "SessionIdentifier").remove(0);
    let disconnect = disconnect(&host, &identifier);
    assert_eq!(run(&host, &disconnect), status::DEVICE_IN_USE);
    set_open(false);
    assert_eq!(run(&host, &disconnect), 0);
}

#[test]
fn the_files_of_a_lun_stay_with_the_target() {
    let target = SimTarget::at("10.0.0.1", 3260).lun(SimDisk::ntfs(GIB));
    let (node, host) = node(target);
    assert_eq!(run(&host, &new_portal()), 0);
    assert_eq!(run(&host, &connect()), 0);
    let volume = texts(&all(&host, "MSFT_Volume", "UniqueId"), "UniqueId")
        .pop()
        .unwrap();
    let file = format!("{volume}f");
    node.change(|state| state.put_file(&file, b"1").unwrap());
    let identifier = texts(&[session(&host)], "SessionIdentifier").remove(0);
    assert_eq!(run(&host, &disconnect(&host, &identifier)), 0);
    assert_eq!(run(&host, &connect()), 0);
    let target = file.clone();
    let reach = csi_proxy::os::Reach { target };
    host.os().reach(&reach, Deadline::Never).unwrap();
    assert_eq!(node.snapshot().file(&file).unwrap(), b"1");
}

#[test]
fn a_target_that_is_removed_leaves_nothing() {
    let (node, host) = node(target());
    let before = node.snapshot().storage;
    let disks_before = disks(&host);
    assert_eq!(run(&host, &new_portal()), 0);
    assert_eq!(run(&host, &connect()), 0);
    node.change(|state| state.remove_iscsi_target(&IQN.to_uppercase()));
    let after = node.snapshot();
    assert_eq!(disks(&host), disks_before);
    assert_eq!(after.iscsi.sessions, []);
    assert_eq!(after.storage.media.len() + 2, before.media.len());
    assert!(after.storage.parked.is_empty());
}

#[test]
fn secrets_are_not_shown() {
    let (node, host) = node(target().chap("user", SECRET).mutual_chap("mutual-secret"));
    assert_eq!(run(&host, &new_portal()), 0);
    assert_eq!(run(&host, &chap("ONEWAYCHAP", "user", SECRET)), 0);
    let shown = format!("{:?}", node.snapshot());
    assert!(!shown.contains(SECRET) && !shown.contains("mutual-secret"));
}
