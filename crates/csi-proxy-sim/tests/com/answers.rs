//! How calls of the client arrive, and what its answers are.

use csi_proxy::cim::{Invoke, Namespace, Query, Value};
use csi_proxy::port::{PortError, SystemCode};
use csi_proxy::{DiskNumber, Host, HostPath, SharePath};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::com::FaceCounts;
use csi_proxy_sim::services::Service;
use csi_proxy_sim::smb::{Server, Share};
use csi_proxy_sim::storage::SimDisk;

use crate::{GIB, NEVER, Reached, path};

fn reached() -> Reached {
    let disk = SimDisk::raw(4 * GIB).number(1);
    Reached::new(SimNode::builder().disk(disk).build())
}

fn disks(properties: &[&str]) -> Query {
    Query::new(Namespace::Storage, "MSFT_Disk", properties)
}

/// The code of a refused call.
fn hresult<T: std::fmt::Debug>(answer: Result<T, PortError>) -> u32 {
    match answer {
        Err(PortError::System {
            code: SystemCode::HResult(code),
            ..
        }) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_query_is_one_call_and_the_connection_lives() {
    let reached = reached();
    let query = disks(&["Number"]).with("Number", 1_u32);
    reached.host.cim().query(&query, NEVER).unwrap();
    for _ in 0..50 {
        reached.host.cim().query(&query, NEVER).unwrap();
    }
    let expected = FaceCounts {
        connects: 1,
        queries: 51,
        ..FaceCounts::default()
    };
    assert_eq!(reached.face.counts(), expected);
}

/// Operations that only read, in three namespaces.
fn look_around(host: &Host, mount: &HostPath, share: &SharePath) {
    host.disk().list_locations(NEVER).unwrap();
    host.disk().list_ids(NEVER).unwrap();
    let disk = DiskNumber(1);
    host.disk().stats(disk, NEVER).unwrap();
    host.disk().info(disk, NEVER).unwrap();
    host.disk().state(disk, NEVER).unwrap();
    let volumes = host.volume().list_on_disk(disk, None, NEVER).unwrap();
    let volume = &volumes[0];
    host.volume().is_formatted(volume, NEVER).unwrap();
    host.volume().stats(volume, NEVER).unwrap();
    host.volume().health(volume, NEVER).unwrap();
    host.volume().disk_number(volume, NEVER).unwrap();
    host.volume().id_from_target_path(mount, NEVER).unwrap();
    host.iscsi().list_target_portals(NEVER).unwrap();
    host.smb().status(share, NEVER).unwrap();
    host.system().service("MSiSCSI", NEVER).unwrap();
    host.system().bios_serial_number(NEVER).unwrap();
}

#[test]
fn no_operation_connects_again_and_each_query_is_made_once() {
    let node = SimNode::builder()
        .disk(SimDisk::ntfs(4 * GIB).number(1))
        .build();
    node.change(|state| {
        state
            .services
            .put(Service::new("MSiSCSI", "Initiator").running());
        state.put_smb_server("s", Server::new().share("share", Share::open(GIB)));
    });
    let reached = Reached::new(node);
    let mount = path(r"C:\var\lib\kubelet\mount");
    let volumes = reached.host.volume();
    reached.host.filesystem().mkdir(&mount, NEVER).unwrap();
    let volume = volumes
        .list_on_disk(DiskNumber(1), None, NEVER)
        .unwrap()
        .remove(0);
    volumes.mount(&volume, &mount, NEVER).unwrap();
    let share = SharePath::new(r"\\s\share").unwrap();
    let smb = reached.host.smb();
    smb.new_global_mapping(&share, None, None, false, NEVER)
        .unwrap();
    look_around(&reached.host, &mount, &share);
    let before = reached.face.counts();
    let asked = reached.node.counts().cim;
    for _ in 0..20 {
        look_around(&reached.host, &mount, &share);
    }
    let asked = reached.node.counts().cim - asked;
    assert!(asked >= 20 * 10, "{asked}");
    let expected = FaceCounts {
        queries: before.queries + asked,
        ..before
    };
    assert_eq!(reached.face.counts(), expected);
    // One for storage with iSCSI, one for SMB, one for the rest.
    assert_eq!(before.connects, 3);
}

#[test]
fn a_signature_is_asked_for_once() {
    let reached = reached();
    for _ in 0..20 {
        reached.host.disk().rescan(NEVER).unwrap();
    }
    let expected = FaceCounts {
        connects: 1,
        methods: 20,
        objects: 1,
        ..FaceCounts::default()
    };
    assert_eq!(reached.face.counts(), expected);
}

#[test]
fn values_keep_their_types_on_the_way() {
    let reached = reached();
    let properties = [
        "Number",
        "Size",
        "IsBoot",
        "OperationalStatus",
        "Location",
        "Guid",
        "PartitionStyle",
    ];
    let answer = reached
        .host
        .cim()
        .query(&disks(&properties).with("Number", 1_u32), NEVER);
    let disk = answer.unwrap().remove(0);
    let plain = reached.process.cim();
    let expected = plain.query(&disks(&properties).with("Number", 1_u32), NEVER);
    let mut expected = expected.unwrap().remove(0);
    // What travelled as text is a number again.
    expected
        .properties
        .insert("Size".to_owned(), Value::from(4 * GIB));
    assert_eq!(disk, expected);
}

#[test]
fn null_is_told_from_absent_and_from_an_empty_array() {
    let reached = reached();
    let query = disks(&["Guid"]).with("Number", 1_u32);
    let disk = reached.host.cim().query(&query, NEVER).unwrap().remove(0);
    assert_eq!(disk.properties["Guid"], Value::Null);
    let missing = reached.host.cim().query(&disks(&["NoSuchProperty"]), NEVER);
    // WBEM_E_INVALID_QUERY
    assert_eq!(hresult(missing), 0x8004_1017);
}

#[test]
fn a_class_that_is_not_there_is_an_error_of_wmi() {
    let reached = reached();
    let query = Query::new(Namespace::Storage, "MSFT_NoSuchClass", &["Number"]);
    // WBEM_E_INVALID_CLASS
    assert_eq!(
        hresult(reached.host.cim().query(&query, NEVER)),
        0x8004_1010
    );
}

#[test]
fn a_parameter_that_the_method_does_not_have_is_named() {
    let reached = reached();
    let query = disks(&[]).with("Number", 1_u32);
    let disk = reached.host.cim().query(&query, NEVER).unwrap().remove(0);
    let initialize = Invoke::on(Namespace::Storage, "MSFT_Disk", &disk.path, "Initialize");
    let before = reached.node.snapshot();
    for wrong in [
        initialize.clone().with("NoSuchParameter", 2_u32),
        // Number of 16 bits.
        initialize.with("PartitionStyle", 70_000_u32),
    ] {
        let parameter = wrong.arguments.keys().next().unwrap().clone();
        let answer = reached.host.cim().invoke(&wrong, NEVER);
        assert!(
            matches!(answer, Err(PortError::System { .. })),
            "{parameter}: {answer:?}"
        );
    }
    assert_eq!(reached.node.snapshot(), before);
    assert_eq!(reached.face.counts().methods, 0);
}

#[test]
fn a_value_with_quotes_changes_no_query() {
    let reached = reached();
    let plain = reached.process.cim();
    for value in [
        "'",
        "\\",
        "' OR '1' = '1",
        "\"",
        "\\' OR 1 = 1",
        "\u{1F980}",
        "%_",
    ] {
        let query = disks(&["Number"]).with("SerialNumber", value);
        let through_com = reached.host.cim().query(&query, NEVER).unwrap();
        assert_eq!(through_com, plain.query(&query, NEVER).unwrap(), "{value}");
        assert_eq!(through_com, []);
    }
}
