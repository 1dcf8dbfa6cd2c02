//! Staging and publishing the VHDX files.

use csi_proxy::clock::Deadline;
use csi_proxy::os::At;
use csi_proxy::staging::StageRequest;
use csi_proxy::volume::{FileSystem, NewSize};
use csi_proxy::{Error, ErrorKind, Host, HostPath, Result};

use super::LocalDriver;
use super::attached::Found;
use super::parameters::Parameters;
use super::pool::Pool;
use crate::driver::{
    Access, AtPath, Condition, ControllerDriver, Driver, NodeExpand, PluginInfo, Publish, Stage,
    Stats, Unpublish, Unstage, none_if_missing,
};
use crate::publish;

impl Driver for LocalDriver {
    fn host(&self) -> &Host {
        &self.host
    }

    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn controller(&self) -> Option<&dyn ControllerDriver> {
        Some(self)
    }

    /// The pool is made when it is needed; its drive must be there.
    fn probe(&self, deadline: Deadline) -> Result<()> {
        let pool = self.pool("local probe", deadline);
        let drive = self.directory.root();
        let found = self.host.os().stat(&At::path(&drive), deadline);
        match none_if_missing(found.map_err(|error| pool.failed(&drive, error)))? {
            Some(_) => Ok(()),
            None => {
                let detail = format!("there is no drive {drive} on this node");
                let object = format!("pool {}", self.directory);
                let kind = ErrorKind::FailedPrecondition;
                Err(Error::new(kind, pool.operation, object, detail))
            }
        }
    }

    /// Attaches the file, read-only for a reader, and mounts the volume on it. By CSI's table
    /// a volume that is staged for another use is AlreadyExists, and one that cannot have the
    /// use, because it was made or formatted with another file system, is FailedPrecondition.
    fn stage(&self, request: &Stage, deadline: Deadline) -> Result<()> {
        let pool = self.pool("local stage", deadline);
        let volume_id = &request.volume_id;
        let given = Parameters::read_context(pool.operation, &request.volume_context)?;
        given.format(pool.operation, &request.capability)?;
        pool.check_new_path("staging_target_path", &request.staging_path)?;
        pool.locked(volume_id, || {
            self.make_directories(&pool)?;
            let attached_before = pool.info(volume_id)?.attached;
            let parameters = pool.parameters(volume_id, given, &request.capability)?;
            let format = parameters.format(pool.operation, &request.capability)?;
            let file_system = parameters.named_file_system(&request.capability);
            match attached_before {
                true => prepare_attached(&pool, request, file_system)?,
                false => pool.attach(volume_id, request.capability.access)?,
            }
            let disk = pool.disk_info(volume_id)?;
            let host = pool.recording(volume_id)?;
            let staged = host.staging().stage(
                &StageRequest {
                    disk: disk.unique_id,
                    path: request.staging_path.clone(),
                    format,
                    file_system,
                    read_only: request.capability.access == Access::ReadOnly,
                },
                deadline,
            );
            if let Err(error) = staged {
                // Nobody unstages what was refused.
                let detached = match !attached_before && error.kind().is_refusal() {
                    true => pool.detach(volume_id),
                    false => Ok(()),
                };
                return Err(match detached {
                    Ok(()) => error,
                    Err(left) => error.with_detail(format_args!("the file stays attached: {left}")),
                });
            }
            // The format has ended, if there was one.
            pool.forget_records(volume_id)
        })
    }

    /// Unmounts the volume and detaches its file, unless it is staged somewhere else. An
    /// empty directory or a link to nothing at the path goes only while the file is attached,
    /// by a stage or an unstage that was cut off; otherwise nothing says that it was made for
    /// this volume. Another volume, a link to something else, and whatever holds files, stays:
    /// CSI has an unstage answer OK for a volume that is not staged at the path. While an
    /// earlier process's format may still run, it is Aborted.
    fn unstage(&self, request: &Unstage, deadline: Deadline) -> Result<()> {
        let pool = self.pool("local unstage", deadline);
        let (volume_id, staging_path) = (&request.volume_id, &request.staging_path);
        pool.check_path("staging_target_path", staging_path)?;
        if none_if_missing(pool.file(volume_id))?.is_none() {
            return Ok(());
        }
        pool.locked(volume_id, || {
            let found = pool.found_at(volume_id, staging_path)?;
            let disk = pool.attached_disk(volume_id)?;
            let is_unmounted = || match disk {
                Some(disk) => Ok(pool.mount_point(disk)?.is_none()),
                None => Ok(false),
            };
            let unmounted = match &found {
                // Mounted here; whether elsewhere too is asked when it is taken away.
                Found::Volume(volume) if pool.disk_of(volume)?.is_some() => false,
                _ => is_unmounted()?,
            };
            // What is mounted is not being formatted.
            if unmounted {
                pool.check_not_formatting(volume_id)?;
            }
            let (ours, volume) = match &found {
                Found::Volume(volume) => (true, Some(volume)),
                Found::NoVolume => (unmounted, None),
                Found::SomethingElse => (false, None),
            };
            if ours && pool.volume_around(staging_path)?.is_none() {
                self.host
                    .staging()
                    .unstage(staging_path, volume, deadline)?;
            }
            match unmounted || is_unmounted()? {
                true => pool.detach(volume_id),
                false => Ok(()),
            }
        })
    }

    /// Makes a link to the staging path. WMI is not asked.
    fn publish(&self, request: &Publish, deadline: Deadline) -> Result<()> {
        let pool = self.pool("local publish", deadline);
        let (volume_id, staging_path) = (&request.volume_id, &request.staging_path);
        pool.check_new_path("target_path", &request.target_path)?;
        pool.locked(volume_id, || {
            pool.info(volume_id)?;
            if !pool.is_mounted_at(volume_id, staging_path)? {
                let detail = format!("is not staged at {staging_path}");
                return Err(pool.error(ErrorKind::FailedPrecondition, volume_id, detail));
            }
            let named = request.capability.file_system;
            if let Some(staged) = pool.other_file_system_at(staging_path, named)? {
                return Err(pool.error(ErrorKind::FailedPrecondition, volume_id, staged));
            }
            let staged = pool.access_at(staging_path)?;
            let wanted = match request.read_only {
                true => Access::ReadOnly,
                false => request.capability.access,
            };
            if staged != wanted {
                let detail = format!(
                    "is staged {staged} at {staging_path}, and a link to it cannot be one {wanted}"
                );
                return Err(pool.error(ErrorKind::FailedPrecondition, volume_id, detail));
            }
            let target_path = &request.target_path;
            publish::link(
                &self.host,
                pool.operation,
                target_path,
                staging_path,
                deadline,
            )
        })
    }

    /// Removes the link, whatever became of the volume, but not that of another one.
    fn unpublish(&self, request: &Unpublish, deadline: Deadline) -> Result<()> {
        let pool = self.pool("local unpublish", deadline);
        let (volume_id, target_path) = (&request.volume_id, &request.target_path);
        pool.check_path("target_path", target_path)?;
        let unlink = || {
            publish::unlink(
                &self.host,
                pool.operation,
                target_path,
                || pool.may_unpublish(volume_id, target_path),
                deadline,
            )
        };
        // A text that is no id names no volume to keep others away from.
        match none_if_missing(pool.file(volume_id))? {
            Some(_) => pool.locked(volume_id, unlink),
            None => unlink(),
        }
    }

    fn stats(&self, request: &AtPath, deadline: Deadline) -> Result<Stats> {
        let pool = self.pool("local stats", deadline);
        let volume = pool.volume_at(request)?;
        let space = self.host.os().space(&At::path(&request.path), deadline);
        let space = space.map_err(|error| pool.failed(&request.path, error))?;
        let health = self.host.volume().health(&volume, deadline)?;
        Ok(Stats {
            total: space.total,
            available: space.available,
            condition: match health.is_healthy() {
                true => Condition::healthy(),
                false => Condition::abnormal(format!("{volume}: {health}")),
            },
        })
    }

    fn expand(&self, request: &NodeExpand, deadline: Deadline) -> Result<u64> {
        let pool = self.pool("local node expand", deadline);
        let volume_id = &request.at.volume_id;
        pool.locked(volume_id, || {
            let volume = pool.volume_at(&request.at)?;
            let size = pool.info(volume_id)?.virtual_size;
            if !super::size::fits(request.range, size) {
                let detail = format!("has {size} bytes, which is not {}", request.range);
                return Err(pool.error(ErrorKind::OutOfRange, volume_id, detail));
            }
            if pool.access_at(&request.at.path)? == Access::ReadOnly {
                let detail = "is staged for reading only, so it cannot grow";
                return Err(pool.error(ErrorKind::FailedPrecondition, volume_id, detail));
            }
            self.host
                .volume()
                .resize(&volume, NewSize::Largest, deadline)?;
            Ok(size)
        })
    }
}

/// Looks at a volume that is attached already, by an earlier stage that may have been cut
/// off: it must not be staged for another use or at another path, and a disk of the wrong
/// kind on which nothing is mounted is attached anew.
fn prepare_attached(
    pool: &Pool<'_>,
    request: &Stage,
    file_system: Option<FileSystem>,
) -> Result<()> {
    let (volume_id, staging_path) = (&request.volume_id, &request.staging_path);
    let wanted = request.capability.access;
    if pool.is_mounted_at(volume_id, staging_path)? {
        let staged = match (pool.access_at(staging_path)?, wanted) {
            (Access::ReadOnly, Access::ReadWrite) => {
                pool.clear_read_only(volume_id)?;
                pool.access_at(staging_path)?
            }
            (staged, _) => staged,
        };
        if staged != wanted {
            let detail = format!("is staged {staged} at {staging_path} already, not {wanted}");
            return Err(pool.error(ErrorKind::AlreadyExists, volume_id, detail));
        }
        return match pool.other_file_system_at(staging_path, file_system)? {
            Some(staged) => Err(pool.error(ErrorKind::AlreadyExists, volume_id, staged)),
            None => Ok(()),
        };
    }
    if let Some(disk) = pool.attached_disk(volume_id)?
        && let Some(other) = pool.mount_point(disk)?
    {
        let detail = format!("is staged at {other}; unstage it there first");
        return Err(pool.error(ErrorKind::FailedPrecondition, volume_id, detail));
    }
    let read_only = pool.disk_info(volume_id)?.read_only;
    if read_only != (wanted == Access::ReadOnly) {
        pool.check_not_formatting(volume_id)?;
        pool.detach(volume_id)?;
        pool.attach(volume_id, wanted)?;
    }
    Ok(())
}

impl Pool<'_> {
    /// Tells that the volume at a path has another file system than the one that is named.
    fn other_file_system_at(
        &self,
        path: &HostPath,
        named: Option<FileSystem>,
    ) -> Result<Option<String>> {
        let Some(named) = named.map(FileSystem::as_str) else {
            return Ok(None);
        };
        let staged = self.information_at(path)?.file_system;
        Ok((!staged.eq_ignore_ascii_case(named))
            .then(|| format!("is staged with {staged} at {path} already, not with {named}")))
    }
}
