//! Object paths. Callers read nothing out of them; the node reads class and key.

use csi_proxy::cim::{Namespace, ObjectPath};

/// The path of the instance of `class` with `key`.
pub(super) fn of(namespace: Namespace, class: &str, key: &str) -> ObjectPath {
    let key = key.replace('\\', r"\\").replace('"', r#"\""#);
    ObjectPath(format!(r#"\\NODE\{namespace}:{class}.ObjectId="{key}""#))
}

/// Class and key in a path that [`of`] made.
pub(super) fn read(namespace: Namespace, path: &ObjectPath) -> Option<(&str, String)> {
    let rest = path.0.strip_prefix(r"\\NODE\")?;
    let rest = rest.strip_prefix(namespace.as_str())?.strip_prefix(':')?;
    let (class, key) = rest.split_once(r#".ObjectId=""#)?;
    Some((class, unescaped(key.strip_suffix('"')?)))
}

fn unescaped(key: &str) -> String {
    let mut plain = String::with_capacity(key.len());
    let mut chars = key.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => plain.extend(chars.next()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_and_key_are_read_back_whatever_the_key_holds() {
        for key in ["", "a", r#"a"b\c"#, r"\\?\Volume{g}\", r#"\""#] {
            let path = of(Namespace::Storage, "MSFT_Volume", key);
            let read = read(Namespace::Storage, &path);
            assert_eq!(read, Some(("MSFT_Volume", key.to_owned())), "{path}");
        }
    }

    #[test]
    fn a_path_of_another_namespace_is_not_read() {
        let path = of(Namespace::Smb, "MSFT_SmbGlobalMapping", "x");
        assert_eq!(read(Namespace::Storage, &path), None);
    }
}
