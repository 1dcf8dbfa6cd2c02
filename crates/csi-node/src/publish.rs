//! Publishing: a directory link at the target path that leads to the staging path.
//!
//! Windows has no bind mounts. A link is seen by the container runtime, which mounts what it
//! leads to into the container.

use csi_proxy::clock::Deadline;
use csi_proxy::os::{At, CreateLink, Reparse, Stat};
use csi_proxy::port::PortError;
use csi_proxy::{Error, ErrorKind, Host, HostPath, Result};

/// Makes the link. The right one there already is success; an empty directory that the
/// caller made gives way; anything else is AlreadyExists.
pub(crate) fn link(
    host: &Host,
    operation: &'static str,
    target_path: &HostPath,
    staging_path: &HostPath,
    deadline: Deadline,
) -> Result<()> {
    let paths = Paths {
        host,
        operation,
        deadline,
    };
    match paths.stat(target_path)? {
        None => paths.make_parent(target_path)?,
        Some(stat) if leads_to(&stat, staging_path) => return Ok(()),
        Some(stat) if paths.is_empty_directory(target_path, &stat)? => {
            paths.remove_directory(target_path)?;
        }
        Some(stat) => {
            let detail = format!("{} is there, expected nothing", describe(&stat));
            let kind = ErrorKind::AlreadyExists;
            return Err(Error::new(kind, operation, target_path, detail));
        }
    }
    let request = CreateLink {
        at: At::path(target_path),
        target: staging_path.as_str().to_owned(),
    };
    let made = host.os().create_link(&request, deadline);
    made.map_err(|error| Error::from_port(operation, target_path, error))
}

/// Removes the link. `may_go` is asked before: it can refuse, and a link that it answers
/// `false` for stays. Nothing there is success, and so is an empty directory, which is not
/// what publish makes and stays; anything else is FailedPrecondition and stays.
pub(crate) fn unlink(
    host: &Host,
    operation: &'static str,
    target_path: &HostPath,
    may_go: impl FnOnce() -> Result<bool>,
    deadline: Deadline,
) -> Result<()> {
    let paths = Paths {
        host,
        operation,
        deadline,
    };
    let Some(stat) = paths.stat(target_path)? else {
        return Ok(());
    };
    let link = stat.directory && matches!(stat.reparse, Some(Reparse::SymbolicLink { .. }));
    if link {
        return match may_go()? {
            true => paths.remove_directory(target_path),
            false => Ok(()),
        };
    }
    if paths.is_empty_directory(target_path, &stat)? {
        return Ok(());
    }
    let detail = format!("{} is there, expected a link to a volume", describe(&stat));
    let kind = ErrorKind::FailedPrecondition;
    Err(Error::new(kind, operation, target_path, detail))
}

struct Paths<'a> {
    host: &'a Host,
    operation: &'static str,
    deadline: Deadline,
}

impl Paths<'_> {
    fn stat(&self, path: &HostPath) -> Result<Option<Stat>> {
        let stat = self.host.os().stat(&At::path(path), self.deadline);
        self.unless_missing(path, stat)
    }

    fn is_empty_directory(&self, path: &HostPath, stat: &Stat) -> Result<bool> {
        if !stat.directory || stat.reparse.is_some() {
            return Ok(false);
        }
        let entries = self.host.os().list(&At::path(path), self.deadline);
        let entries = self.unless_missing(path, entries)?;
        Ok(entries.is_none_or(|entries| entries.is_empty()))
    }

    fn remove_directory(&self, path: &HostPath) -> Result<()> {
        let removed = self
            .host
            .os()
            .remove_directory(&At::path(path), self.deadline);
        self.unless_missing(path, removed).map(|_| ())
    }

    fn make_parent(&self, path: &HostPath) -> Result<()> {
        let Some(parent) = path.parent() else {
            return Ok(());
        };
        let made = self
            .host
            .os()
            .create_directories(&At::path(&parent), self.deadline);
        made.map(|_| ())
            .map_err(|error| Error::from_port(self.operation, parent, error))
    }

    fn unless_missing<T>(
        &self,
        path: &HostPath,
        answer: std::result::Result<T, PortError>,
    ) -> Result<Option<T>> {
        match answer {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let error = Error::from_port(self.operation, path, error);
                match error.kind() {
                    ErrorKind::NotFound => Ok(None),
                    _ => Err(error),
                }
            }
        }
    }
}

fn leads_to(stat: &Stat, path: &HostPath) -> bool {
    match &stat.reparse {
        Some(Reparse::SymbolicLink { target }) => {
            stat.directory
                && HostPath::from_kubelet(target).is_ok_and(|target| target.same_as(path))
        }
        _ => false,
    }
}

/// What stands at a path, in words.
fn describe(stat: &Stat) -> String {
    match &stat.reparse {
        Some(Reparse::SymbolicLink { target }) => format!("a link to {target}"),
        Some(Reparse::Junction { target }) => format!("a junction to {target}"),
        Some(Reparse::MountPoint { volume }) => format!("a mount point of {volume}"),
        Some(Reparse::Other { tag }) => format!("a reparse point with the tag {tag:#010x}"),
        None if stat.directory => "a directory with files".to_owned(),
        None => "a file".to_owned(),
    }
}
