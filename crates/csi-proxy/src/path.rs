//! Paths of the host, and the two grammars in which they arrive.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An absolute path of the host with a drive letter and `\` between its parts, without `.`
/// and `..`, in a form that every Win32 call takes when `\\?\` is put before it
/// ([`HostPath::verbatim`]).
///
/// It compares to the letter; Windows does not, see [`HostPath::same_as`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPath(String);

/// A text that is not a path of the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path {path:?} {reason}")]
pub struct NotAHostPath {
    /// The text.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

impl HostPath {
    /// Reads a path as the kubelet and Kubernetes' manifests write them on Windows:
    /// `C:\var\lib`, `c:/var/lib`, `\var\lib` and `/var/lib` (on drive `C:`), `\\?\C:\var`.
    /// Empty parts and `.` are dropped; `..`, device paths, streams, reserved names and
    /// names that Windows would change (trailing dot or blank) are refused.
    pub fn from_kubelet(text: &str) -> Result<Self, NotAHostPath> {
        let fail = |reason: &str| NotAHostPath {
            path: text.to_owned(),
            reason: reason.to_owned(),
        };
        let plain = text.replace('/', r"\");
        let plain = plain.strip_prefix(r"\\?\").unwrap_or(&plain);
        let mut chars = plain.chars();
        let (drive, rest) = match (chars.next(), chars.next()) {
            (Some(drive), Some(':')) if drive.is_ascii_alphabetic() => (drive, &plain[2..]),
            (Some('\\'), second) if second != Some('\\') => ('C', plain),
            _ => return Err(fail("has no drive letter")),
        };
        if !rest.is_empty() && !rest.starts_with('\\') {
            return Err(fail("is not absolute"));
        }
        let mut path = format!("{}:", drive.to_ascii_uppercase());
        for part in rest.split('\\') {
            if part.is_empty() || part == "." {
                continue;
            }
            if let Some(reason) = wrong_name(part) {
                return Err(fail(reason));
            }
            path.push('\\');
            path.push_str(part);
        }
        if path.len() == 2 {
            path.push('\\');
        }
        Ok(Self(path))
    }

    /// The path as text: `C:\` for a drive, otherwise without a trailing `\`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path for Win32 calls: with `\\?\` before it, so that neither its length nor its
    /// names are changed.
    pub fn verbatim(&self) -> String {
        format!(r"\\?\{}", self.0)
    }

    /// The drive's letter, in upper case.
    pub fn drive(&self) -> char {
        char::from(self.0.as_bytes()[0])
    }

    /// The names after the drive.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0[3..].split('\\').filter(|name| !name.is_empty())
    }

    /// The last name; nothing for a drive.
    pub fn file_name(&self) -> Option<&str> {
        self.names().next_back()
    }

    /// The directory that holds it; nothing for a drive.
    pub fn parent(&self) -> Option<Self> {
        let name = self.file_name()?;
        let end = self.0.len() - name.len() - 1;
        Some(Self(self.0[..end.max(3)].to_owned()))
    }

    /// The path of `name` in this directory.
    pub fn join(&self, name: &str) -> Result<Self, NotAHostPath> {
        let mut path = self.0.trim_end_matches('\\').to_owned();
        path.push('\\');
        path.push_str(name);
        match name.contains(['\\', '/']) {
            true => Err(NotAHostPath {
                path,
                reason: "has a separator in a name".to_owned(),
            }),
            false => Self::from_kubelet(&path),
        }
    }

    /// Whether both name the same object as far as text can tell: without case.
    pub fn same_as(&self, other: &Self) -> bool {
        folded(&self.0) == folded(&other.0)
    }

    /// Whether this path is `root` or lies below it, compared by whole names without case.
    pub fn is_within(&self, root: &Self) -> bool {
        let mut names = self.names();
        self.drive() == root.drive()
            && root
                .names()
                .all(|name| names.next().is_some_and(|own| folded(own) == folded(name)))
    }
}

/// A name as Windows compares it: each UTF-16 unit in upper case by itself.
fn folded(name: &str) -> String {
    name.chars()
        .map(|char| {
            let mut upper = char.to_uppercase();
            match (upper.next(), upper.next()) {
                (Some(upper), None) => upper,
                _ => char,
            }
        })
        .collect()
}

fn wrong_name(name: &str) -> Option<&'static str> {
    if name == ".." {
        return Some("has a .. part");
    }
    if name.ends_with(['.', ' ']) {
        return Some("has a name that ends in a dot or a blank");
    }
    if name.contains(|char: char| r#""<>:?*|"#.contains(char) || char < ' ') {
        return Some("has a character that Windows does not allow in names");
    }
    None
}

impl fmt::Display for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for HostPath {
    type Error = NotAHostPath;

    fn try_from(text: String) -> Result<Self, NotAHostPath> {
        Self::from_kubelet(&text)
    }
}

impl From<HostPath> for String {
    fn from(path: HostPath) -> Self {
        path.0
    }
}
