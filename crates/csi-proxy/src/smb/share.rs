//! The path of a share.

use std::fmt;

use crate::invalid::InvalidValue;
use crate::os::Reach;
use crate::path::wrong_name;

const EXPECTED: &str = r"\\server\share, with or without a directory in it";

/// The longest names of a server (DNS) and of a share.
///
/// Source: <https://learn.microsoft.com/openspecs/windows_protocols/ms-dtyp/>, section
/// "UNC".
const SERVER_LIMIT: usize = 255;
const SHARE_LIMIT: usize = 80;

/// Names that SMB servers keep for something else than files.
const NOT_FOR_FILES: &[&str] = &["ipc$", "pipe", "mailslot"];

/// A share, `\\server\share`, or a directory in it. Server and share are in lower case, as
/// Windows compares them; the directory keeps its case, since the server decides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharePath {
    text: String,
    share_end: usize,
}

impl SharePath {
    /// Reads `\\server\share\dir` or `//server/share/dir`. Empty parts and `.` are dropped.
    ///
    /// # Errors
    /// The server or the share is missing, a part is `..`, a name is not allowed, or it is
    /// a device path.
    pub fn new(text: &str) -> Result<Self, InvalidValue> {
        let fail = |reason: &str| InvalidValue::new(text, reason, EXPECTED);
        let plain = text.replace('/', r"\");
        let rest = plain
            .strip_prefix(r"\\")
            .ok_or_else(|| fail("does not begin with two separators"))?;
        let (server, rest) = rest.split_once('\\').unwrap_or((rest, ""));
        if let Some(reason) = wrong_server(server) {
            return Err(fail(reason));
        }
        let mut names = rest.split('\\').filter(|name| !matches!(*name, "" | "."));
        let share = names.next().ok_or_else(|| fail("names no share"))?;
        if let Some(reason) = wrong_share(share) {
            return Err(fail(reason));
        }
        let mut path = format!(r"\\{}\{}", lower_case(server), lower_case(share));
        let share_end = path.len();
        for name in names {
            if let Some(reason) = wrong_name(name) {
                return Err(fail(reason));
            }
            path.push('\\');
            path.push_str(name);
        }
        Ok(Self {
            text: path,
            share_end,
        })
    }

    /// The share, `\\server\share` in lower case: what Windows maps, and the same text for
    /// every spelling of the same share.
    pub fn share(&self) -> &str {
        &self.text[..self.share_end]
    }

    /// The directory in the share, without separators around it; empty for the share
    /// itself.
    pub fn directory(&self) -> &str {
        self.text[self.share_end..].trim_start_matches('\\')
    }

    /// All of it, without a `\` at its end.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for SharePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The root of a share is opened with a `\` at its end.
impl From<&SharePath> for Reach {
    fn from(share: &SharePath) -> Self {
        Self {
            target: format!(r"{share}\"),
        }
    }
}

fn wrong_server(server: &str) -> Option<&'static str> {
    let legal = |char: char| char.is_alphanumeric() || matches!(char, '-' | '.' | '_');
    match server {
        "" => Some("names no server"),
        "." | "?" | ".." => Some("is a device path"),
        _ if !server.chars().all(legal) => Some("has a character that no server name has"),
        _ if server.len() > SERVER_LIMIT => Some("has a server name of more than 255 bytes"),
        _ => None,
    }
}

fn wrong_share(share: &str) -> Option<&'static str> {
    if NOT_FOR_FILES.contains(&lower_case(share).as_str()) {
        return Some("names a share that holds no files");
    }
    if share.encode_utf16().count() > SHARE_LIMIT {
        return Some("has a share name of more than 80 characters");
    }
    wrong_name(share)
}

/// As Windows does it: each character by itself.
fn lower_case(name: &str) -> String {
    name.chars()
        .map(|char| {
            let mut lower = char.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(lower), None) => lower,
                _ => char,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn c15_every_spelling_of_a_share_is_one_mapping() {
        for text in [
            "//h/s/",
            r"\\h\s\",
            r"\\h\s",
            r"\\H\S",
            r"\/h\s",
            r"\\h\s\.\",
        ] {
            let share = SharePath::new(text).expect(text);
            assert_eq!(share.share(), r"\\h\s", "{text}");
            assert_eq!(share.as_str(), r"\\h\s", "{text}");
            assert_eq!(share.directory(), "", "{text}");
        }
    }

    #[test]
    fn c15_the_part_after_the_share_keeps_its_case() {
        let share = SharePath::new("//H/S/Dir//Sub Dir/").unwrap();
        assert_eq!(share.share(), r"\\h\s");
        assert_eq!(share.directory(), r"Dir\Sub Dir");
        assert_eq!(share.to_string(), r"\\h\s\Dir\Sub Dir");
    }

    #[test]
    fn c15_what_is_no_share_is_an_invalid_argument() {
        for text in [
            r"\\h",
            r"\\h\",
            "//",
            r"\\h\s\..\t",
            r"\\?\C:\x",
            "",
            r"\h\s",
            "h/s",
            r"C:\x",
            r"\\.\pipe\x",
            r"\\?\UNC\h\s",
            "///h/s",
            r"\\h\..",
            r"\\h o\s",
            r"\\h:445\s",
            r"\\h@ssl\s",
            "\\\\h\\s\nx",
            "\\\\h\\s\0",
            r"\\h\s*",
            r"\\h\s:x",
            r"\\h\s\a:b",
            r"\\h\ipc$",
            r"\\h\PIPE\x",
            r"\\..\s",
            r"\\h\s\con",
            r"\\h\s\a.",
        ] {
            let error = SharePath::new(text)
                .expect_err(text)
                .in_field("smb", "source");
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
            let shown = error.to_string();
            assert!(shown.contains(&format!("source {text:?}")), "{shown}");
            assert!(shown.contains(r"expected \\server\share"), "{shown}");
        }
    }

    #[test]
    fn hidden_shares_and_addresses_are_shares() {
        for text in [
            r"\\10.0.0.4\c$",
            r"\\fs-1.contoso.com\k8s_data",
            r"\\server\with blank",
        ] {
            assert!(SharePath::new(text).is_ok(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_share_reads_back_as_itself(
            text in r"(\\|/){1,3}[a-zA-Z0-9İß.? -]{0,4}((\\|/)[a-zA-Z.$İ :]{0,5}){0,4}"
        ) {
            if let Ok(share) = SharePath::new(&text) {
                prop_assert_eq!(SharePath::new(share.as_str()), Ok(share.clone()));
                let alone = SharePath::new(share.share()).unwrap();
                prop_assert_eq!(alone.as_str(), share.share());
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = SharePath::new(&format!(r"\\{text}"));
        }
    }
}
