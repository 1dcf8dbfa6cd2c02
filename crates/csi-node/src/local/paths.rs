//! Which paths of a request the driver touches, and which never.

use csi_proxy::os::{At, Reach};
use csi_proxy::port::PortError;
use csi_proxy::{ErrorKind, HostPath, Result, VolumeId};

use super::attached::says_not_there;
use super::pool::{Pool, says_unreadable};
use crate::driver::none_if_missing;
use crate::validate::Fields;

impl Pool<'_> {
    /// Refuses a path in the pool or in the directory of the library's records: what is
    /// there is the driver's own. The path may name them by any spelling.
    pub(super) fn check_path(&self, field: &str, path: &HostPath) -> Result<()> {
        for own in self.own_directories() {
            if path.is_within(own) || self.leads_into(path, own)? {
                let detail = format!("{path} is in {own}, where the driver keeps its files");
                return Err(Fields(self.operation).wrong(field, detail));
            }
        }
        Ok(())
    }

    /// Refuses a path at which nothing is to be made: one of the driver's own, and one in a
    /// volume, which could not be taken away while what is in it is in use.
    pub(super) fn check_new_path(&self, field: &str, path: &HostPath) -> Result<()> {
        self.check_path(field, path)?;
        match self.volume_around(path)? {
            None => Ok(()),
            Some(volume_id) => {
                let detail = format!(
                    "{path} is in volume {volume_id}, which is mounted there; expected a path in \
                     no volume of the pool"
                );
                Err(Fields(self.operation).wrong(field, detail))
            }
        }
    }

    /// The pool, and the directory of records unless it is in the pool.
    fn own_directories(&self) -> impl Iterator<Item = &HostPath> {
        let records = self.host.state_dir();
        let apart = records.filter(|records| !records.is_within(self.directory));
        [Some(self.directory), apart].into_iter().flatten()
    }

    /// Whether what a path names, or would name if it were made, lies in a directory. Windows
    /// compares the real paths.
    fn leads_into(&self, path: &HostPath, directory: &HostPath) -> Result<bool> {
        let stat = self
            .host
            .os()
            .stat(&At::within(path, directory), self.deadline);
        match stat {
            Ok(_) => Ok(true),
            Err(PortError::Outside { .. }) => Ok(false),
            // Something is missing: the path in the directory, or one of the two to compare.
            Err(error) => match none_if_missing(Err::<(), _>(self.failed(path, error)))? {
                Some(()) => Ok(true),
                None => Ok(self.can_reach(&path.root())? && self.can_reach(directory)?),
            },
        }
    }

    fn can_reach(&self, path: &HostPath) -> Result<bool> {
        let target = path.to_string();
        let reached = self.host.os().reach(&Reach { target }, self.deadline);
        let reached = none_if_missing(reached.map_err(|error| self.failed(path, error)))?;
        Ok(reached.is_some())
    }

    /// Whether the link at a path may be removed for this volume: it leads to the volume, to
    /// one that is gone, or to no volume at all. What the link of a volume leads to after its
    /// mount was lost is a plain directory, and the kubelet must get rid of it. A link in a
    /// volume is a pod's and stays.
    ///
    /// # Errors
    /// `FailedPrecondition` for another volume.
    pub(super) fn may_unpublish(&self, volume_id: &str, path: &HostPath) -> Result<bool> {
        if self.volume_around(path)?.is_some() {
            return Ok(false);
        }
        match self.mounted(path)? {
            Some(volume) if self.is_anothers(volume_id, &volume)? => {
                let detail = format!("is not published at {path}, which leads to {volume}");
                Err(self.error(ErrorKind::FailedPrecondition, volume_id, detail))
            }
            _ => Ok(true),
        }
    }

    /// The volume of the pool in which a path lies, or would lie if it were made. A mount
    /// point itself does not lie in its volume.
    pub(super) fn volume_around(&self, path: &HostPath) -> Result<Option<String>> {
        let Some(closest) = self.closest_volume_above(path)? else {
            return Ok(None);
        };
        let root = path.root();
        let drive = self
            .host
            .os()
            .mounted_volume(&At::path(&root), self.deadline);
        // A drive is no volume that a stage has mounted.
        if closest == drive.map_err(|error| self.failed(&root, error))? {
            return Ok(None);
        }
        let Some(disk) = self.disk_of(&closest)? else {
            return Ok(None);
        };
        for volume_id in self.contents()?.files.into_keys() {
            match self.attached_disk(&volume_id) {
                Ok(attached) if attached == Some(disk) => return Ok(Some(volume_id)),
                Err(error) if !says_unreadable(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The Windows volume that holds the closest directory above a path that exists; nothing
    /// for a path on no volume, as a share.
    fn closest_volume_above(&self, path: &HostPath) -> Result<Option<VolumeId>> {
        let volumes = self.host.volume();
        let mut above = path.parent();
        while let Some(directory) = above {
            match volumes.closest_id_from_target_path(&directory, self.deadline) {
                Ok(volume) => return Ok(Some(volume)),
                Err(error) if error.kind() == ErrorKind::NotFound => above = directory.parent(),
                Err(error) if says_not_there(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}
