//! Following links, in bounded steps.
//!
//! Windows follows links by itself when an object is opened. Where the library must know
//! what stands between (which volume, which share), it walks here, by Windows' rules: at
//! most 63 links on the way, and a relative link begins at the real directory of the link.
//!
//! Source: <https://learn.microsoft.com/windows/win32/fileio/symbolic-link-programming-consideration>.

use crate::clock::Deadline;
use crate::error::{Error, ErrorKind, Result};
use crate::host::Host;
use crate::ids::VolumeId;
use crate::os::{At, Reparse, Stat};
use crate::path::HostPath;

/// The most links that Windows follows on one path.
const LINK_LIMIT: usize = 63;

/// Where a path ends when the link at its end, if there is one, is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A file or directory that is not a link.
    Object {
        /// Its path.
        path: HostPath,
        /// What it is.
        stat: Stat,
    },
    /// A volume's mount point.
    MountPoint {
        /// Its path.
        path: HostPath,
        /// The volume.
        volume: VolumeId,
    },
    /// A share or a directory in it, as the link names it.
    Share(String),
    /// Nothing: the path that was looked for last.
    Missing(HostPath),
}

/// One walk: links count over all of it, so it ends whatever the links do.
pub(crate) struct Walk<'a> {
    host: &'a Host,
    operation: &'static str,
    deadline: Deadline,
    links: Vec<HostPath>,
}

impl<'a> Walk<'a> {
    /// A walk of an operation, for its errors.
    pub(crate) fn new(host: &'a Host, operation: &'static str, deadline: Deadline) -> Self {
        Self {
            host,
            operation,
            deadline,
            links: Vec::new(),
        }
    }

    /// Follows the link at the end of `path`, and the links it leads to.
    pub(crate) fn end(&mut self, path: &HostPath) -> Result<End> {
        let mut path = path.clone();
        loop {
            let Some(stat) = self.stat(&path)? else {
                return Ok(End::Missing(path));
            };
            match stat.reparse {
                Some(Reparse::MountPoint { volume }) => {
                    return Ok(End::MountPoint { path, volume });
                }
                Some(Reparse::SymbolicLink { target } | Reparse::Junction { target }) => {
                    // A link may name a volume instead of a path that it is mounted at.
                    if let Ok(volume) = VolumeId::new(&target) {
                        return Ok(End::MountPoint { path, volume });
                    }
                    if is_share(&target) {
                        return Ok(End::Share(target));
                    }
                    path = self.target(&path, &target)?;
                }
                None | Some(Reparse::Other { .. }) => return Ok(End::Object { path, stat }),
            }
        }
    }

    /// The volume that holds `path`: follows links, else goes up one directory, until there
    /// is a mount point or the root of a drive.
    pub(crate) fn closest_volume(&mut self, path: &HostPath) -> Result<VolumeId> {
        let mut path = path.clone();
        loop {
            match self.end(&path)? {
                End::MountPoint { volume, .. } => return Ok(volume),
                End::Object { path: end, .. } => match end.parent() {
                    Some(parent) => path = parent,
                    None => return self.volume_of_root(&end),
                },
                End::Share(target) => {
                    let detail = format!("it leads to the share {target}, which is no volume");
                    return Err(self.error(ErrorKind::FailedPrecondition, &path, detail));
                }
                End::Missing(end) => {
                    let detail = format!("{end} does not exist");
                    return Err(self.error(ErrorKind::NotFound, &path, detail));
                }
            }
        }
    }

    fn volume_of_root(&self, root: &HostPath) -> Result<VolumeId> {
        self.host
            .os()
            .mounted_volume(&At::path(root), self.deadline)
            .map_err(|error| Error::from_port(self.operation, root, error))
    }

    /// What stands at the path; nothing when it is missing.
    fn stat(&self, path: &HostPath) -> Result<Option<Stat>> {
        match self.host.os().stat(&At::path(path), self.deadline) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) => {
                let error = Error::from_port(self.operation, path, error);
                match error.kind() {
                    ErrorKind::NotFound => Ok(None),
                    _ => Err(error),
                }
            }
        }
    }

    /// The path that the link at `link` leads to.
    fn target(&mut self, link: &HostPath, target: &str) -> Result<HostPath> {
        self.count(link)?;
        let plain = target.replace('/', r"\");
        if plain.starts_with(r"\\") || plain.as_bytes().get(1) == Some(&b':') {
            return HostPath::from_kubelet(&without_dots(&plain))
                .map_err(|error| self.unusable(link, target, &error.reason));
        }
        self.relative_target(link, target, &plain)
    }

    /// A relative link begins at the directory that really holds it, and one that begins
    /// with `\` at the root of the volume that really holds it.
    fn relative_target(
        &mut self,
        link: &HostPath,
        target: &str,
        relative: &str,
    ) -> Result<HostPath> {
        let parent = link.parent().unwrap_or_else(|| link.root());
        let (mut directory, root) = self.real_directory(&parent)?;
        if relative.starts_with('\\') {
            directory.clone_from(&root);
        }
        for name in relative
            .split('\\')
            .filter(|name| !matches!(*name, "" | "."))
        {
            directory = match name {
                ".." => directory
                    .parent()
                    .filter(|_| directory != root)
                    .ok_or_else(|| {
                        self.unusable(link, target, "leads above the root of its volume")
                    })?,
                name => directory
                    .join(name)
                    .map_err(|error| self.unusable(link, target, &error.reason))?,
            };
        }
        Ok(directory)
    }

    /// The path of a directory with the links on the way replaced by what they lead to, and
    /// the root of its volume: the last mount point on the way, or the drive.
    fn real_directory(&mut self, path: &HostPath) -> Result<(HostPath, HostPath)> {
        let (mut real, mut root) = (path.root(), path.root());
        for name in path.names() {
            let next = real
                .join(name)
                .map_err(|error| self.error(ErrorKind::FailedPrecondition, path, error.reason))?;
            match self.end(&next)? {
                End::Object { path: end, .. } if end == next => real = end,
                // A link's target may lie below links again.
                End::Object { path: end, .. } => (real, root) = self.real_directory(&end)?,
                End::MountPoint { path: end, .. } => {
                    root.clone_from(&end);
                    real = end;
                }
                End::Share(target) => {
                    let detail = format!("{next} leads to the share {target}");
                    return Err(self.error(ErrorKind::FailedPrecondition, path, detail));
                }
                End::Missing(end) => {
                    let detail = format!("{end} does not exist");
                    return Err(self.error(ErrorKind::NotFound, path, detail));
                }
            }
        }
        Ok((real, root))
    }

    fn count(&mut self, link: &HostPath) -> Result<()> {
        if self.links.len() >= LINK_LIMIT {
            let detail = match self.links.iter().any(|seen| seen.same_as(link)) {
                true => "its links form a loop".to_owned(),
                false => format!("it leads over more than {LINK_LIMIT} links"),
            };
            let first = self.links.first().unwrap_or(link);
            return Err(self.error(ErrorKind::FailedPrecondition, first, detail));
        }
        self.links.push(link.clone());
        Ok(())
    }

    fn unusable(&self, link: &HostPath, target: &str, reason: &str) -> Error {
        let detail = format!("its target {target:?} {reason}");
        self.error(ErrorKind::FailedPrecondition, link, detail)
    }

    fn error(&self, kind: ErrorKind, path: &HostPath, detail: impl std::fmt::Display) -> Error {
        Error::new(kind, self.operation, path, detail)
    }
}

/// Whether a link's target is `\\server\share…`.
fn is_share(target: &str) -> bool {
    let plain = target.replace('/', r"\");
    let device = plain.starts_with(r"\\?\") || plain.starts_with(r"\\.\");
    let unc = plain
        .get(..8)
        .is_some_and(|front| front.eq_ignore_ascii_case(r"\\?\UNC\"));
    unc || plain.starts_with(r"\\") && !device
}

/// An absolute target with its `..` taken out, as `CreateSymbolicLinkW` does for targets
/// that are not verbatim.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('\\') {
        match part {
            ".." if parts.len() > 1 => {
                parts.pop();
            }
            ".." => {}
            part => parts.push(part),
        }
    }
    match parts.as_slice() {
        [drive] => format!(r"{drive}\"),
        _ => parts.join(r"\"),
    }
}
