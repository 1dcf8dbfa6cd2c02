//! Which paths of a request the driver touches, and which never.

use csi_proxy::os::At;
use csi_proxy::{ErrorKind, HostPath, Result};

use super::attached::says_not_there;
use super::pool::{Pool, says_unreadable};
use crate::validate::Fields;

impl Pool<'_> {
    /// Refuses a path in the pool or in the directory of the library's records: what is
    /// there is the driver's own.
    pub(super) fn check_path(&self, field: &str, path: &HostPath) -> Result<()> {
        let own = [Some(self.directory), self.host.state_dir()];
        match own.into_iter().flatten().find(|own| path.is_within(own)) {
            Some(own) => {
                let detail = format!("{path} is in {own}, where the driver keeps its files");
                Err(Fields(self.operation).wrong(field, detail))
            }
            None => Ok(()),
        }
    }

    /// Whether the link at a path may be removed for this volume: it leads to the volume, to
    /// one that is gone, or to no volume at all. A link in a volume is a pod's and stays.
    ///
    /// # Errors
    /// `FailedPrecondition` for another volume.
    pub(super) fn may_unpublish(&self, volume_id: &str, path: &HostPath) -> Result<bool> {
        if self.is_in_a_volume(path)? {
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

    /// Whether a path lies in a volume of the pool that is mounted somewhere. The mount
    /// point itself does not.
    pub(super) fn is_in_a_volume(&self, path: &HostPath) -> Result<bool> {
        let Some(parent) = path.parent() else {
            return Ok(false);
        };
        let volumes = self.host.volume();
        let closest = match volumes.closest_id_from_target_path(&parent, self.deadline) {
            Err(error) if says_not_there(&error) => return Ok(false),
            closest => closest?,
        };
        let root = path.root();
        let drive = self
            .host
            .os()
            .mounted_volume(&At::path(&root), self.deadline);
        // The drive that the path begins with is no volume of the pool.
        if closest == drive.map_err(|error| self.failed(&root, error))? {
            return Ok(false);
        }
        let Some(disk) = self.disk_of(&closest)? else {
            return Ok(false);
        };
        for volume_id in self.contents()?.files.keys() {
            match self.attached_disk(volume_id) {
                Ok(attached) if attached == Some(disk) => return Ok(true),
                Err(error) if !says_unreadable(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(false)
    }
}
