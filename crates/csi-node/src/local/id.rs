//! Volume ids, which are also the names of the files.

use sha2::{Digest as _, Sha256};

/// The longest name that is its own id.
const PLAIN_LIMIT: usize = 60;
/// Before the hash of any other name. With it an id is longer than [`PLAIN_LIMIT`], so that
/// no plain name looks like one.
const HASHED: &str = "h-";
/// Names of devices, which Windows allows to no file.
const RESERVED: [&str; 4] = ["con", "prn", "aux", "nul"];

/// The id of the volume with this name. Two names never share one: a name of small letters,
/// digits and `-`, as Kubernetes gives, is kept; any other is hashed (SHA-256), since file
/// names are shorter than names and know no case.
pub(super) fn of_name(name: &str) -> String {
    if is_plain(name) && name.len() <= PLAIN_LIMIT {
        return name.to_owned();
    }
    let hash = Sha256::digest(name.as_bytes());
    let hex = hash.iter().map(|byte| format!("{byte:02x}"));
    format!("{HASHED}{}", hex.collect::<String>())
}

/// Whether the text can be an id of this driver. Any other names no volume.
pub(super) fn is_id(text: &str) -> bool {
    text.len() <= HASHED.len() + 64 && is_plain(text)
}

fn is_plain(text: &str) -> bool {
    let right = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let port = |text: &str| matches!(text.as_bytes(), [.., b'0'..=b'9'] if text.len() == 4);
    let device = RESERVED.contains(&text)
        || (text.starts_with("com") || text.starts_with("lpt")) && port(text);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(right) && !device
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_as_kubernetes_gives_is_its_own_id() {
        let name = "pvc-3d1c7a52-7a4b-4f3f-9a55-0c3c9a0f1f11";
        assert_eq!(of_name(name), name);
        assert!(is_id(name));
    }

    #[test]
    fn names_that_differ_have_ids_that_differ_on_windows_too() {
        let names = [
            "a",
            "A",
            "a ",
            "a.",
            "con",
            "CON",
            "com1",
            "com10",
            "ä",
            "é",
            "e\u{301}",
            "a/b",
            r"a\b",
            "a'b",
            "..",
            "-a",
            &"a".repeat(60),
            &"a".repeat(61),
            &"a".repeat(128),
        ];
        let mut ids: Vec<_> = names.iter().map(|name| of_name(name)).collect();
        for id in &ids {
            assert!(is_id(id) && id.len() <= 128, "{id}");
            assert_eq!(*id, id.to_lowercase());
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), names.len());
    }

    #[test]
    fn the_hash_of_a_name_is_not_the_id_of_another() {
        let hashed = of_name("A");
        assert_eq!(hashed.len(), 66);
        assert_ne!(of_name(&hashed), hashed);
    }

    #[test]
    fn other_text_is_no_id() {
        for text in [
            "",
            "A",
            "a.vhdx",
            r"..\a",
            "a/b",
            "a'",
            "nul",
            "lpt9",
            &"a".repeat(67),
        ] {
            assert!(!is_id(text), "{text}");
        }
    }
}
