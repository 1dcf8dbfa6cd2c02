//! Directories and links: the seven operations of CSI Proxy's filesystem group.
//!
//! Each takes a path ([`HostPath`]) or a path with the root that it must not leave
//! ([`At::within`]); what leads outside is [`ErrorKind::PermissionDenied`], and nothing is
//! changed.

use std::fmt;

use crate::clock::Deadline;
use crate::error::{Code, Error, ErrorKind, Result};
use crate::host::Host;
use crate::operation::Operation;
use crate::os::{At, CreateLink, Reach, RemoveTree, Reparse};
use crate::path::{HostPath, folded};
use crate::port::{PortError, PortResult, SystemCode};
use crate::smb::SharePath;

const ERROR_FILE_NOT_FOUND: u32 = 2;
const ERROR_PATH_NOT_FOUND: u32 = 3;
const ERROR_ALREADY_EXISTS: u32 = 183;

/// The group; made by [`Host::filesystem`].
#[derive(Clone, Copy)]
pub struct Filesystem<'a> {
    host: &'a Host,
}

/// What a directory link leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// A path of the host. It need not exist; a root is enforced on what exists.
    Path(At),
    /// A share or a directory in it.
    Share(SharePath),
}

impl Host {
    /// Directories and links.
    pub fn filesystem(&self) -> Filesystem<'_> {
        Filesystem { host: self }
    }
}

impl Filesystem<'_> {
    /// Whether something is at the path. A link is there even when its target is not.
    pub fn path_exists(&self, at: impl Into<At>, deadline: Deadline) -> Result<bool> {
        let at = at.into();
        let stat = self.host.os().stat(&at, deadline);
        Ok(found(stat)
            .map_err(|error| failed("filesystem path exists", &at, error))?
            .is_some())
    }

    /// Whether what the path leads to can be opened: for a link to a share, whether the
    /// share is still connected. Credentials that the server refuses are an error
    /// ([`ErrorKind::Unauthenticated`], [`ErrorKind::PermissionDenied`]), not "false".
    pub fn path_valid(&self, at: impl Into<At>, deadline: Deadline) -> Result<bool> {
        const OPERATION: &str = "filesystem path valid";
        let at = at.into();
        if at.within.is_some() {
            let stat = self.host.os().stat(&at, deadline);
            if found(stat)
                .map_err(|error| failed(OPERATION, &at, error))?
                .is_none()
            {
                return Ok(false);
            }
        }
        self.is_reachable(OPERATION, &at, deadline)
    }

    /// Makes a directory and its missing parents. An existing directory is success.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when something else is there.
    pub fn mkdir(&self, at: impl Into<At>, deadline: Deadline) -> Result<()> {
        let at = at.into();
        self.host
            .os()
            .create_directories(&at, deadline)
            .map(|_| ())
            .map_err(|error| failed("filesystem mkdir", &at, error))
    }

    /// Removes a directory; with `force` whatever is in it too. No link and no mount point
    /// is ever followed: a link goes, its target stays. A missing path is success.
    ///
    /// # Errors
    /// [`ErrorKind::FailedPrecondition`] when the directory is not empty and `force` is not
    /// set; [`ErrorKind::InvalidArgument`] for the root of a drive.
    pub fn rmdir(&self, at: impl Into<At>, force: bool, deadline: Deadline) -> Result<()> {
        const OPERATION: &str = "filesystem rmdir";
        let at = at.into();
        refuse_root(OPERATION, &at)?;
        let removed = if force {
            self.remove_tree(&at, false, deadline)
        } else {
            self.host.os().remove_directory(&at, deadline)
        };
        found(removed)
            .map(|_| ())
            .map_err(|error| failed(OPERATION, &at, error))
    }

    /// Removes what is in a directory and keeps the directory. No link and no mount point
    /// is followed.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the directory is missing;
    /// [`ErrorKind::FailedPrecondition`] when there is a link or a file;
    /// [`ErrorKind::InvalidArgument`] for the root of a drive.
    pub fn rmdir_contents(&self, at: impl Into<At>, deadline: Deadline) -> Result<()> {
        const OPERATION: &str = "filesystem rmdir contents";
        let at = at.into();
        refuse_root(OPERATION, &at)?;
        self.remove_tree(&at, true, deadline)
            .map_err(|error| failed(OPERATION, &at, error))
    }

    /// Makes the path a directory link to `source`. A link to the same target that is
    /// already there is success.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when a link to another target or anything else is
    /// there; the error says what.
    pub fn create_symlink(
        &self,
        source: impl Into<LinkTarget>,
        at: impl Into<At>,
        deadline: Deadline,
    ) -> Result<()> {
        const OPERATION: &str = "filesystem create symlink";
        let (source, at) = (source.into(), at.into());
        self.check_source(OPERATION, &source, deadline)?;
        let request = CreateLink {
            at: at.clone(),
            target: source.to_string(),
        };
        match self.host.os().create_link(&request, deadline) {
            Ok(()) => Ok(()),
            Err(error) if is_win32(&error, &[ERROR_ALREADY_EXISTS]) => {
                let refused = failed(OPERATION, &at, error);
                self.check_link(refused, &at, &request.target, deadline)
            }
            Err(error) => Err(failed(OPERATION, &at, error)),
        }
    }

    /// Whether a link or a volume mount point is at the path and what it leads to exists.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when nothing is at the path;
    /// [`ErrorKind::FailedPrecondition`] when its links form a loop.
    pub fn is_symlink(&self, at: impl Into<At>, deadline: Deadline) -> Result<bool> {
        const OPERATION: &str = "filesystem is symlink";
        let at = at.into();
        let stat = self
            .host
            .os()
            .stat(&at, deadline)
            .map_err(|error| failed(OPERATION, &at, error))?;
        match stat.reparse {
            None | Some(Reparse::Other { .. }) => Ok(false),
            Some(_) => self.is_reachable(OPERATION, &at, deadline),
        }
    }

    fn remove_tree(&self, at: &At, keep_root: bool, deadline: Deadline) -> PortResult<()> {
        let request = RemoveTree {
            at: at.clone(),
            keep_root,
        };
        self.host.os().remove_tree(&request, deadline)
    }

    /// What Windows says when it opens the path through all its links.
    fn is_reachable(&self, operation: &'static str, at: &At, deadline: Deadline) -> Result<bool> {
        let request = Reach {
            target: at.path.as_str().to_owned(),
        };
        let Err(error) = self.host.os().reach(&request, deadline) else {
            return Ok(true);
        };
        let error = failed(operation, at, error);
        match is_gone(&error) {
            true => Ok(false),
            false => Err(error),
        }
    }

    /// A source with a root must lie in it, as far as it exists.
    fn check_source(
        &self,
        operation: &'static str,
        source: &LinkTarget,
        deadline: Deadline,
    ) -> Result<()> {
        let LinkTarget::Path(
            at @ At {
                path,
                within: Some(root),
            },
        ) = source
        else {
            return Ok(());
        };
        if !path.is_within(root) {
            let detail = format!("the link's target lies outside {root}");
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                operation,
                path,
                detail,
            ));
        }
        found(self.host.os().stat(at, deadline))
            .map(|_| ())
            .map_err(|error| failed(operation, at, error))
    }

    /// Success if what keeps the link from being made is the same link.
    fn check_link(&self, refused: Error, at: &At, target: &str, deadline: Deadline) -> Result<()> {
        let stat = self.host.os().stat(at, deadline);
        // Gone in the meantime.
        let Some(stat) = found(stat).map_err(|error| failed(refused.operation(), at, error))?
        else {
            return Err(refused);
        };
        let there = match &stat.reparse {
            Some(
                Reparse::SymbolicLink { target: present } | Reparse::Junction { target: present },
            ) if same_target(present, target) => return Ok(()),
            _ => stat.to_string(),
        };
        let detail = format!("{there} is there; expected nothing or a link to {target}");
        Err(refused.with_detail(detail))
    }
}

impl From<&HostPath> for LinkTarget {
    fn from(path: &HostPath) -> Self {
        Self::Path(At::path(path))
    }
}

impl From<At> for LinkTarget {
    fn from(at: At) -> Self {
        Self::Path(at)
    }
}

impl From<&SharePath> for LinkTarget {
    fn from(share: &SharePath) -> Self {
        Self::Share(share.clone())
    }
}

/// The target as it is written into the link; a share's has a `\` at its end, without which
/// Windows does not open the root of a share.
impl fmt::Display for LinkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(at) => at.path.fmt(f),
            Self::Share(share) => write!(f, r"{share}\"),
        }
    }
}

/// Whether two targets of links are written differently but are the same.
pub(crate) fn same_target(left: &str, right: &str) -> bool {
    plain_target(left) == plain_target(right)
}

/// A target without `\\?\` and without a trailing `\`. A path of the host has no case; in a
/// share the server decides, so a directory there keeps it.
fn plain_target(target: &str) -> String {
    let plain = target.replace('/', r"\");
    let upper = folded(&plain);
    let unc = upper
        .strip_prefix(r"\\?\UNC\")
        .and_then(|_| plain.get(r"\\?\UNC\".len()..));
    let share = unc.map_or(plain.clone(), |rest| format!(r"\\{rest}"));
    if let Ok(share) = SharePath::new(&share) {
        return share.to_string();
    }
    let path = upper
        .strip_prefix(r"\\?\")
        .or_else(|| upper.strip_prefix(r"\??\"))
        .unwrap_or(&upper);
    path.trim_end_matches('\\').to_owned()
}

/// Nothing where Windows says that nothing is there.
fn found<T>(answer: PortResult<T>) -> PortResult<Option<T>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_win32(&error, &[ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND]) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_win32(error: &PortError, codes: &[u32]) -> bool {
    matches!(
        error,
        PortError::System { code: SystemCode::Win32(code), .. } if codes.contains(code)
    )
}

/// Whether Windows says that the target is not there, or that its server is not.
pub(crate) fn is_gone(error: &Error) -> bool {
    matches!(error.code(), Some(Code::System(_)))
        && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unavailable)
}

/// Refuses a path that leads outside its root, if it has one. It need not exist.
pub(crate) fn check_root(operation: &Operation<'_>, at: &At) -> Result<()> {
    if at.within.is_none() {
        return Ok(());
    }
    found(operation.os().stat(at, operation.deadline()))
        .map(|_| ())
        .map_err(|error| operation.port_error(&at.path, error))
}

/// The contents of a drive are never what a volume operation is about.
fn refuse_root(operation: &'static str, at: &At) -> Result<()> {
    match at.path.file_name() {
        Some(_) => Ok(()),
        None => Err(Error::new(
            ErrorKind::InvalidArgument,
            operation,
            &at.path,
            "is the root of a drive; expected a directory below it",
        )),
    }
}

fn failed(operation: &'static str, at: &At, error: PortError) -> Error {
    Error::from_port(operation, &at.path, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_target_in_other_words_is_the_same() {
        for (left, right) in [
            (r"C:\var\x", r"c:/VAR/x/"),
            (r"C:\var\x", r"\\?\C:\var\x"),
            (r"C:\var\x", r"\??\C:\var\x"),
            (r"\\server\share\", r"\\SERVER\share"),
            (r"\\server\share\a", r"\\?\UNC\server\share\a\"),
        ] {
            assert!(same_target(left, right), "{left} {right}");
        }
        for (left, right) in [
            (r"C:\var\x", r"C:\var\xy"),
            (r"C:\var\x", r"D:\var\x"),
            (r"\\server\share", r"\\server\share2"),
            (r"\\server\share\a", r"\\server\share\A"),
        ] {
            assert!(!same_target(left, right), "{left} {right}");
        }
    }
}
