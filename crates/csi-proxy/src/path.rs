//! Paths of the host, and the two grammars in which they arrive.

use std::fmt;

use serde::{Deserialize, Serialize};
use typed_path::{Utf8WindowsPath, Utf8WindowsPrefix};

use crate::error::{Error, ErrorKind};

/// The longest path that [`HostPath::strict`] takes, in UTF-16 units (`MAX_PATH`).
const STRICT_LIMIT: usize = 260;

/// The longest path that Win32 takes with `\\?\` before it and a NUL behind, in UTF-16
/// units.
///
/// Source: <https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation>.
const LIMIT: usize = 32_767 - r"\\?\".len() - 1;

/// The longest name that NTFS and ReFS take, in UTF-16 units.
const NAME_LIMIT: usize = 255;

/// Names that Windows takes for devices, whatever extension follows.
///
/// Source: <https://learn.microsoft.com/windows/win32/fileio/naming-a-file>.
const RESERVED: &[&str] = &["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Devices whose name ends in a digit.
const RESERVED_WITH_DIGIT: &[&str] = &["COM", "LPT"];

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

impl NotAHostPath {
    fn new(path: &str, reason: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    /// The error of an operation that was given this text in the field of its request.
    pub fn in_field(&self, operation: &'static str, field: &str) -> Error {
        let detail = format!(
            "{}; expected an absolute path with a drive letter",
            self.reason
        );
        Error::new(
            ErrorKind::InvalidArgument,
            operation,
            format_args!("{field} {:?}", self.path),
            detail,
        )
    }
}

impl HostPath {
    /// Reads a path as the v1 API takes it: absolute with a drive letter, `\` between its
    /// parts, at most 260 UTF-16 units, no `..`, none of `" / : ? * |` after the drive, no
    /// share and no `\\?\`. Every such path is one of [`HostPath::from_kubelet`] too, with
    /// the same meaning.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn strict(text: &str) -> Result<Self, NotAHostPath> {
        let length = text.encode_utf16().count();
        if length > STRICT_LIMIT {
            let reason = format!("has {length} UTF-16 units; at most {STRICT_LIMIT} are allowed");
            return Err(NotAHostPath::new(text, reason));
        }
        if text.contains('/') {
            return Err(NotAHostPath::new(text, r"has a / where \ is expected"));
        }
        match text.as_bytes() {
            [drive, b':', ..] if drive.is_ascii_alphabetic() => Self::from_kubelet(text),
            _ => Err(NotAHostPath::new(
                text,
                "does not begin with a drive letter",
            )),
        }
    }

    /// Reads a path as the kubelet and Kubernetes' manifests write them on Windows:
    /// `C:\var\lib`, `c:/var/lib`, `\var\lib` and `/var/lib` (on drive `C:`), `\\?\C:\var`.
    /// Empty parts and `.` are dropped; `..`, device paths, streams, reserved names and
    /// names that Windows would change (trailing dot or blank) are refused.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn from_kubelet(text: &str) -> Result<Self, NotAHostPath> {
        let fail = |reason: &str| NotAHostPath::new(text, reason);
        let plain = text.replace('/', r"\");
        let (drive, rest) = split_drive(&plain).map_err(fail)?;
        if !rest.starts_with('\\') {
            return Err(fail("is not absolute"));
        }
        let mut path = format!("{drive}:");
        for name in rest.split('\\').filter(|name| !matches!(*name, "" | ".")) {
            if let Some(reason) = wrong_name(name) {
                return Err(fail(reason));
            }
            path.push('\\');
            path.push_str(name);
        }
        if path.len() == 2 {
            path.push('\\');
        }
        match path.encode_utf16().count() > LIMIT {
            true => Err(fail("is longer than Windows allows")),
            false => Ok(Self(path)),
        }
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

    /// The root of the drive, `C:\`.
    #[must_use]
    pub fn root(&self) -> Self {
        Self(self.0[..3].to_owned())
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
    ///
    /// # Errors
    /// `name` is not one name that Windows allows.
    pub fn join(&self, name: &str) -> Result<Self, NotAHostPath> {
        let path = format!(r"{}\{name}", self.0.trim_end_matches('\\'));
        match name {
            "" | "." => Err(NotAHostPath::new(&path, "has no name at its end")),
            _ if name.contains(['\\', '/']) => {
                Err(NotAHostPath::new(&path, "has a separator in a name"))
            }
            _ => Self::from_kubelet(&path),
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

/// The drive of a path with `\` between its parts, and what follows it; or what is wrong.
fn split_drive(path: &str) -> Result<(char, &str), &'static str> {
    // The NT namespace, which Win32 passes on as it is.
    if path.starts_with(r"\??") {
        return Err("is a device path");
    }
    let components = Utf8WindowsPath::new(path).components();
    let Some(prefix) = components.prefix() else {
        return match path.starts_with('\\') && !path.starts_with(r"\\") {
            true => Ok(('C', path)),
            false => Err("has no drive letter"),
        };
    };
    match prefix.kind() {
        Utf8WindowsPrefix::Disk(drive) | Utf8WindowsPrefix::VerbatimDisk(drive) => path
            .get(prefix.len()..)
            .filter(|_| drive.is_ascii_alphabetic())
            .map(|rest| (drive.to_ascii_uppercase(), rest))
            .ok_or("has no drive letter"),
        Utf8WindowsPrefix::UNC(..) | Utf8WindowsPrefix::VerbatimUNC(..) => {
            Err("is the path of a share, not of the host")
        }
        Utf8WindowsPrefix::Verbatim(_) | Utf8WindowsPrefix::DeviceNS(_) => Err("is a device path"),
    }
}

/// A name as Windows compares it: each UTF-16 unit in upper case by itself.
pub(crate) fn folded(name: &str) -> String {
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

/// Why Windows does not take a name, or would take it for another.
pub(crate) fn wrong_name(name: &str) -> Option<&'static str> {
    if name == ".." {
        return Some("has a .. part");
    }
    if name.contains(|char: char| char < ' ') {
        return Some("has a control character");
    }
    if name.contains(':') {
        return Some("has a : after the drive, which would name a stream");
    }
    if name.contains(['"', '<', '>', '?', '*', '|', '/', '\\']) {
        return Some("has a character that Windows does not allow in names");
    }
    if name.ends_with(['.', ' ']) {
        return Some("has a name that ends in a dot or a blank, which Windows would drop");
    }
    if is_reserved(name) {
        return Some("has a name that Windows takes for a device");
    }
    (name.encode_utf16().count() > NAME_LIMIT).then_some("has a name of more than 255 UTF-16 units")
}

fn is_reserved(name: &str) -> bool {
    let base = name.split('.').next().unwrap_or(name).trim_end_matches(' ');
    let mut front = base.chars();
    let last = front.next_back();
    let is_digit = last.is_some_and(|char| matches!(char, '1'..='9' | '¹' | '²' | '³'));
    RESERVED
        .iter()
        .any(|device| device.eq_ignore_ascii_case(base))
        || is_digit
            && RESERVED_WITH_DIGIT
                .iter()
                .any(|device| device.eq_ignore_ascii_case(front.as_str()))
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

#[cfg(test)]
mod tests;
