//! Publishing: a directory link at the target path that leads to the staging path.
//!
//! Windows has no bind mounts. A link is seen by the container runtime, which mounts what it
//! leads to into the container.

use csi_proxy::clock::Deadline;
use csi_proxy::os::{At, Reparse, Stat};
use csi_proxy::{Error, ErrorKind, Host, HostPath, Result};

use crate::driver::none_if_missing;

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
    let files = host.filesystem();
    match (paths.stat(target_path)?, target_path.parent()) {
        (None, Some(parent)) => files.mkdir(&parent, deadline)?,
        (Some(stat), _) if paths.is_empty_directory(target_path, &stat)? => {
            files.rmdir(target_path, false, deadline)?;
        }
        _ => {}
    }
    files.create_symlink(staging_path, target_path, deadline)
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
    let link = match stat.reparse {
        Some(Reparse::SymbolicLink { .. } | Reparse::Junction { .. }) => stat.directory,
        _ => false,
    };
    if link {
        return match may_go()? {
            true => host.filesystem().rmdir(target_path, false, deadline),
            false => Ok(()),
        };
    }
    if paths.is_empty_directory(target_path, &stat)? {
        return Ok(());
    }
    let detail = format!("{stat} is there; expected a link to a volume");
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
        none_if_missing(stat.map_err(|error| Error::from_port(self.operation, path, error)))
    }

    fn is_empty_directory(&self, path: &HostPath, stat: &Stat) -> Result<bool> {
        if !stat.directory || stat.reparse.is_some() {
            return Ok(false);
        }
        let entries = self.host.os().list(&At::path(path), self.deadline);
        let entries = entries.map_err(|error| Error::from_port(self.operation, path, error));
        Ok(none_if_missing(entries)?.is_none_or(|entries| entries.is_empty()))
    }
}
