//! The texts that name a place: targets of links, and paths that are reached.

use csi_proxy::{HostPath, VolumeId};

use super::name::same_name;

/// Where a text leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Below a drive, a volume or a share.
    Absolute(Anchor, Vec<String>),
    /// Below the root of what the link lies on (`\dir`).
    Rooted(Vec<String>),
    /// From the link's directory so many directories up, and then down.
    Relative(usize, Vec<String>),
    /// Text that no path looks like.
    Nonsense,
}

/// What a path starts at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Drive(char),
    Volume(VolumeId),
    Share(String, String),
    /// A server without a share.
    Server,
}

impl Target {
    /// The place of a path of the host.
    pub(crate) fn of_path(path: &HostPath) -> Self {
        let names = path.names().map(ToOwned::to_owned).collect();
        Self::Absolute(Anchor::Drive(path.drive()), names)
    }

    /// Reads the target of a link, or a text that is opened.
    pub(crate) fn parse(text: &str) -> Self {
        let verbatim = text
            .strip_prefix(r"\\?\")
            .or_else(|| text.strip_prefix(r"\??\"));
        match verbatim {
            Some(rest) => verbatim_target(rest),
            None => plain_target(text),
        }
    }
}

/// What follows `\\?\`: names are taken as they are.
fn verbatim_target(rest: &str) -> Target {
    let (head, tail) = rest.split_once('\\').unwrap_or((rest, ""));
    if same_name(head, "UNC") {
        return share_target(names(tail));
    }
    let anchor = match VolumeId::new(&format!(r"\\?\{head}\")) {
        Ok(volume) => Anchor::Volume(volume),
        Err(_) => match drive(head) {
            Some(letter) => Anchor::Drive(letter),
            None => return Target::Nonsense,
        },
    };
    Target::Absolute(anchor, names(tail))
}

/// A path that Windows tidies up first: `/` is `\`, and `.` and `..` are worked out on the
/// text. It does not do so for a relative link's `/`.
fn plain_target(text: &str) -> Target {
    let tidy = text.replace('/', r"\");
    if let Some(rest) = tidy.strip_prefix(r"\\") {
        return share_target(collapse(rest).1);
    }
    if let Some(letter) = tidy.get(..2).and_then(drive) {
        return match tidy[2..].strip_prefix('\\') {
            Some(rest) => Target::Absolute(Anchor::Drive(letter), collapse(rest).1),
            None => Target::Nonsense,
        };
    }
    if text.is_empty() {
        return Target::Nonsense;
    }
    let (up, names) = collapse(text);
    match text.starts_with('\\') {
        true => Target::Rooted(names),
        false => Target::Relative(up, names),
    }
}

fn share_target(names: Vec<String>) -> Target {
    let mut names = names.into_iter();
    match (names.next(), names.next()) {
        (Some(server), Some(share)) => {
            Target::Absolute(Anchor::Share(server, share), names.collect())
        }
        (Some(_), None) => Target::Absolute(Anchor::Server, Vec::new()),
        _ => Target::Nonsense,
    }
}

fn drive(text: &str) -> Option<char> {
    let mut chars = text.chars();
    match (chars.next(), chars.next(), chars.next()) {
        (Some(letter), Some(':'), None) if letter.is_ascii_alphabetic() => {
            Some(letter.to_ascii_uppercase())
        }
        _ => None,
    }
}

fn names(text: &str) -> Vec<String> {
    text.split('\\')
        .filter(|name| !name.is_empty())
        .map(ToOwned::to_owned)
        .collect()
}

/// Works out `.` and `..` on the text; answers how many `..` are left at its start.
fn collapse(text: &str) -> (usize, Vec<String>) {
    let mut up = 0;
    let mut kept: Vec<String> = Vec::new();
    for name in names(text) {
        match name.as_str() {
            "." => {}
            ".." if kept.pop().is_none() => up += 1,
            ".." => {}
            _ => kept.push(name),
        }
    }
    (up, kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_form_of_a_target_is_read() {
        let drive = |names: &[&str]| Target::Absolute(Anchor::Drive('C'), owned(names));
        assert_eq!(Target::parse(r"c:\a\b\"), drive(&["a", "b"]));
        assert_eq!(Target::parse(r"c:/a/./x/../b"), drive(&["a", "b"]));
        assert_eq!(Target::parse(r"\\?\C:\a"), drive(&["a"]));
        assert_eq!(Target::parse(r"\??\C:\"), drive(&[]));
        let share = Anchor::Share("s".to_owned(), "d".to_owned());
        let share = Target::Absolute(share, owned(&["x"]));
        assert_eq!(Target::parse(r"\\s\d\x"), share);
        assert_eq!(Target::parse(r"\\?\UNC\s\d\x"), share);
        assert_eq!(Target::parse(r"\x"), Target::Rooted(owned(&["x"])));
        assert_eq!(Target::parse(r"..\x"), Target::Relative(1, owned(&["x"])));
        assert_eq!(
            Target::parse(r"a\..\..\x"),
            Target::Relative(1, owned(&["x"]))
        );
        let volume = r"\\?\Volume{6e6fb07c-1a2b-4c3d-8e9f-0123456789ab}\";
        let anchor = Anchor::Volume(VolumeId::new(volume).unwrap());
        assert_eq!(Target::parse(volume), Target::Absolute(anchor, Vec::new()));
    }

    #[test]
    fn text_that_is_no_path_is_nonsense() {
        for text in ["", "C:", "C:x", r"\\", r"\\?\", r"\\?\x\y"] {
            assert_eq!(Target::parse(text), Target::Nonsense, "{text}");
        }
        let server = Target::Absolute(Anchor::Server, Vec::new());
        assert_eq!(Target::parse(r"\\server"), server);
    }
}
