//! What must not be in a trace.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use csi_proxy::Host;
use csi_proxy::HostPath;
use csi_proxy::clock::Deadline::Never;
use csi_proxy::os::{At, Bytes, ReadFile, WriteFile};

use crate::operations::{
    Begin, CHAP_SECRET, GROUPS, MUTUAL_SECRET, PASSWORD, WRONG_PASSWORD, node, recorded,
};

fn all_groups(host: &Host) {
    for group in GROUPS {
        (group.run)(host);
    }
}

/// Every way in which a text could stand in a line.
fn spellings(text: &str) -> Vec<String> {
    let json = serde_json::to_string(text).unwrap();
    let bytes = serde_json::to_string(text.as_bytes()).unwrap();
    let mut all = vec![text.to_owned(), json.trim_matches('"').to_owned(), bytes];
    // Base64 of a text that begins at any place of a group of three bytes.
    for before in ["", "-", "--"] {
        let encoded = BASE64.encode(format!("{before}{text}"));
        all.push(encoded[4..encoded.len() - 4].to_owned());
    }
    all
}

#[test]
fn no_secret_of_any_operation_is_in_the_trace() {
    for begin in [Begin::Exactly, Begin::BySnapshot] {
        let text = recorded(&node(), begin, all_groups);
        for secret in [PASSWORD, WRONG_PASSWORD, CHAP_SECRET, MUTUAL_SECRET] {
            for spelling in spellings(secret) {
                assert!(!text.contains(&spelling), "{begin:?}: {spelling}");
            }
        }
        // They were sent: each has its placeholder, with the user beside it.
        assert!(text.contains(r"DOM\\\\user:(hidden 0"), "{begin:?}");
        let sent = text.matches(r#""ChapSecret":"(hidden 0"#).count();
        assert_eq!(sent, 3, "{begin:?}");
    }
}

#[test]
fn no_contents_of_files_and_disks_are_in_the_trace() {
    const DIARY: &str = "canary of a diary, long enough to be found anywhere";
    let path = HostPath::from_kubelet(r"C:\diary").unwrap();
    let at = At::path(&path);
    let simulated = node();
    let text = recorded(&simulated, Begin::BySnapshot, |host| {
        let contents = Bytes(DIARY.into());
        let write = WriteFile {
            at: at.clone(),
            contents,
        };
        host.os().write_file(&write, Never).unwrap();
        let read = ReadFile {
            at: at.clone(),
            limit: 1000,
        };
        assert_eq!(
            host.os().read_file(&read, Never).unwrap().0,
            DIARY.as_bytes()
        );
        simulated.change(|state| {
            let medium = state.storage.disk_by_number(1).unwrap().1.medium;
            let medium = state.storage.media.get_mut(&medium).unwrap();
            medium.bytes.write(4096, DIARY.as_bytes());
        });
        let refused = host.disk().partition(csi_proxy::DiskNumber(1), Never);
        assert!(refused.unwrap_err().to_string().contains("at byte 4096"));
    });
    for spelling in spellings(DIARY) {
        assert!(!text.contains(&spelling), "{spelling}");
    }
    assert!(text.contains(r#""foreign":4096"#), "{text}");
    assert_eq!(text.matches(r#""file":{"length":51,"#).count(), 2, "{text}");
}
