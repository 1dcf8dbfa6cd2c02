//! The rules of the SMB client, each with its code.

use csi_proxy::cim::{Invoke, Namespace, Object, Query};
use csi_proxy::clock::Deadline;
use csi_proxy::os::Reach;
use csi_proxy::port::{PortError, SystemCode};
use csi_proxy::{Host, Secret};

use super::{Server, Share};
use crate::SimNode;

const CLASS: &str = "MSFT_SmbGlobalMapping";
const SIZE: u64 = 1 << 30;

fn node() -> (SimNode, Host) {
    let share = |user: &str| Share::new(SIZE).writer(user).reader("guest");
    let server = Server::new()
        .account("u", "p")
        .account(r"DOMAIN\u", "p:q")
        .account("guest", "g")
        .account("stranger", "s")
        .share("a", share("u"))
        .share("b", share("u"))
        .share("d", share(r"domain\u"));
    let node = SimNode::builder().smb_server("S", server).build();
    let host = node.process().host();
    (node, host)
}

fn create(path: &str) -> Invoke {
    Invoke::on_class(Namespace::Smb, CLASS, "Create").with("RemotePath", path)
}

fn with(path: &str, credential: &str) -> Invoke {
    create(path).with("Credential", Secret::new(credential))
}

/// The code of the failure; 0 is success.
fn run(host: &Host, invoke: &Invoke) -> u32 {
    match host.cim().invoke(invoke, Deadline::Never) {
        Ok(output) => output.return_value,
        Err(PortError::System {
            code: SystemCode::HResult(code),
            ..
        }) if code >> 16 == 0x8007 => code & 0xFFFF,
        Err(error) => panic!("{error}"),
    }
}

fn mappings(host: &Host) -> Vec<Object> {
    let query = Query::new(
        Namespace::Smb,
        CLASS,
        &["RemotePath", "LocalPath", "Status"],
    );
    host.cim().query(&query, Deadline::Never).unwrap()
}

fn status(host: &Host) -> Vec<u32> {
    let status = |object: &Object| object.properties["Status"].as_u32().unwrap();
    mappings(host).iter().map(status).collect()
}

fn reach(host: &Host, target: &str) -> u32 {
    let target = target.to_owned();
    match host.os().reach(&Reach { target }, Deadline::Never) {
        Ok(()) => 0,
        Err(PortError::System {
            code: SystemCode::Win32(code),
            ..
        }) => code,
        Err(error) => panic!("{error}"),
    }
}

fn remove(host: &Host, mapping: &Object) -> u32 {
    let remove = Invoke::on(Namespace::Smb, CLASS, &mapping.path, "Remove");
    run(host, &remove.with("Force", true))
}

#[test]
fn a_share_is_reached_through_its_mapping_only() {
    let (_, host) = node();
    assert_eq!(reach(&host, r"\\s\a"), 1326);
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 0);
    assert_eq!(reach(&host, r"\\S\A\"), 0);
    assert_eq!(reach(&host, r"\\s\b"), 1326);
    assert_eq!(status(&host), [0]);
    assert_eq!(remove(&host, &mappings(&host)[0]), 0);
    assert_eq!(mappings(&host).len(), 0);
    assert_eq!(reach(&host, r"\\s\a"), 1326);
}

#[test]
fn a_share_that_cannot_be_used_is_not_mapped() {
    let (node, host) = node();
    let before = node.snapshot();
    assert_eq!(run(&host, &with(r"\\s\a", "u:wrong")), 1326);
    assert_eq!(run(&host, &with(r"\\s\a", "nobody:p")), 1326);
    assert_eq!(run(&host, &create(r"\\s\a")), 1326);
    assert_eq!(run(&host, &with(r"\\s\a", "stranger:s")), 5);
    assert_eq!(run(&host, &with(r"\\s\nothing", "u:p")), 67);
    assert_eq!(run(&host, &with(r"\\other\a", "u:p")), 53);
    for path in [r"\\s", r"\\s\", r"\\s\a\b", r"//s/a", r"C:\a"] {
        assert_eq!(run(&host, &with(path, "u:p")), 67, "{path}");
    }
    assert_eq!(node.snapshot(), before);
}

#[test]
fn the_credential_is_one_text_with_the_user_escaped() {
    let (_, host) = node();
    assert_eq!(run(&host, &with(r"\\s\d", r"DOMAIN\u:p:q")), 87);
    assert_eq!(run(&host, &with(r"\\s\d", r"no-separator")), 87);
    assert_eq!(run(&host, &with(r"\\s\d", r"DOMAIN\\u:p:q")), 0);
}

#[test]
fn a_share_is_mapped_once_whatever_its_spelling() {
    let (_, host) = node();
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 0);
    assert_eq!(run(&host, &with(r"\\S\A\", "u:p")), 85);
    assert_eq!(mappings(&host).len(), 1);
}

#[test]
fn a_server_is_used_with_one_user_at_a_time() {
    let (_, host) = node();
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 0);
    assert_eq!(run(&host, &with(r"\\s\b", "guest:g")), 1219);
    assert_eq!(run(&host, &with(r"\\s\b", "u:p")), 0);
}

#[test]
fn c16_a_changed_password_leaves_a_mapping_that_says_it_is_fine() {
    let (node, host) = node();
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 0);
    node.change(|state| {
        let server = state.smb.server_mut("s").unwrap();
        server.set_password("u", "new");
    });
    assert_eq!(status(&host), [0]);
    assert_eq!(reach(&host, r"\\s\a"), 1326);
    assert_eq!(remove(&host, &mappings(&host)[0]), 0);
    assert_eq!(run(&host, &with(r"\\s\a", "u:new")), 0);
    assert_eq!(reach(&host, r"\\s\a"), 0);
}

#[test]
fn c16_a_server_that_is_away_leaves_a_disconnected_mapping() {
    let (node, host) = node();
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 0);
    let set_online = |online| {
        node.change(|state| state.smb.server_mut("s").unwrap().online = online);
    };
    set_online(false);
    assert_eq!(status(&host), [2]);
    assert_eq!(reach(&host, r"\\s\a"), 53);
    set_online(true);
    assert_eq!((status(&host), reach(&host, r"\\s\a")), (vec![0], 0));
    node.change(|state| state.smb.break_mapping("s", "a"));
    assert_eq!((status(&host), reach(&host, r"\\s\a")), (vec![2], 64));
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 85);
    assert_eq!(remove(&host, &mappings(&host)[0]), 0);
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 0);
    assert_eq!(reach(&host, r"\\s\a"), 0);
}

#[test]
fn a_share_that_is_removed_under_its_mapping_is_gone() {
    let (node, host) = node();
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 0);
    node.change(|state| {
        let mut server = state.smb.servers["S"].clone();
        server.shares.remove("A");
        state.put_smb_server("s", server);
    });
    assert_eq!(reach(&host, r"\\s\a"), 64);
}

#[test]
fn a_mapping_with_open_files_is_removed_by_force_only() {
    let (node, host) = node();
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 0);
    node.change(|state| {
        let open = crate::fs::FileChange::Open(true);
        state.put_file(r"\\s\a\f", b"1").unwrap();
        state.change_file(r"\\s\a\f", open).unwrap();
    });
    let mapping = mappings(&host).remove(0);
    let gently = Invoke::on(Namespace::Smb, CLASS, &mapping.path, "Remove");
    assert_eq!(run(&host, &gently), 2401);
    assert_eq!(remove(&host, &mapping), 0);
    assert_eq!(mappings(&host).len(), 0);
}

#[test]
fn a_mapping_with_a_drive_is_reached_by_the_drive() {
    let (_, host) = node();
    assert_eq!(reach(&host, r"G:\"), 3);
    let mapped = with(r"\\s\a", "u:p").with("LocalPath", "G:");
    assert_eq!(run(&host, &mapped), 0);
    assert_eq!(reach(&host, r"g:\"), 0);
    assert_eq!(
        mappings(&host)[0].properties["LocalPath"].as_str(),
        Some("G:")
    );
}

#[test]
fn a_server_that_is_described_by_hand_spells_names_in_any_case() {
    let text = r#"{
        "accounts": {"Domain\\User": "p"},
        "shares": {"Share": {"size": 1073741824, "writers": ["domain\\user"]}}
    }"#;
    let server = serde_json::from_str(text).unwrap();
    let node = SimNode::builder().smb_server("Server", server).build();
    let host = node.process().host();
    assert_eq!(run(&host, &with(r"\\server\share", r"DOMAIN\\user:p")), 0);
    assert_eq!(reach(&host, r"\\SERVER\SHARE"), 0);
}

#[test]
fn privacy_needs_a_server_that_encrypts() {
    let (node, host) = node();
    let private = with(r"\\s\a", "u:p").with("RequirePrivacy", true);
    node.change(|state| state.smb.server_mut("s").unwrap().encrypts = false);
    assert_eq!(run(&host, &private), 50);
    node.change(|state| state.smb.server_mut("s").unwrap().encrypts = true);
    assert_eq!(run(&host, &private), 0);
}

#[test]
fn a_reader_cannot_write() {
    let (node, host) = node();
    assert_eq!(run(&host, &with(r"\\s\a", "guest:g")), 0);
    let before = node.snapshot();
    let link = csi_proxy::os::CreateLink {
        at: (&csi_proxy::HostPath::from_kubelet(r"C:\l").unwrap()).into(),
        target: r"\\s\a".to_owned(),
    };
    host.os().create_link(&link, Deadline::Never).unwrap();
    let new = csi_proxy::HostPath::from_kubelet(r"C:\l\new").unwrap();
    let denied = host
        .os()
        .create_directories(&(&new).into(), Deadline::Never);
    let code = match denied.unwrap_err() {
        PortError::System { code, .. } => code,
        error => panic!("{error}"),
    };
    assert_eq!(code, SystemCode::Win32(5));
    assert_ne!(node.snapshot(), before);
}

#[test]
fn a_reboot_ends_mappings_that_are_not_persistent() {
    let (node, host) = node();
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 0);
    let persistent = with(r"\\s\b", "u:p").with("Persistent", true);
    assert_eq!(run(&host, &persistent), 0);
    node.reboot();
    let host = node.process().host();
    let left = mappings(&host);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].properties["RemotePath"].as_str(), Some(r"\\s\b"));
}

#[test]
fn passwords_are_not_shown() {
    let (node, host) = node();
    assert_eq!(run(&host, &with(r"\\s\a", "u:p")), 0);
    node.change(|state| {
        let server = state.smb.server_mut("s").unwrap();
        server.set_password("u", "hunter2");
    });
    assert!(!format!("{:?}", node.snapshot()).contains("hunter2"));
}
