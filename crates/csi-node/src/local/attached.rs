//! A volume's file as a disk: attaching, recognising and detaching it.

use std::time::Duration;

use csi_proxy::disk::DiskInfo;
use csi_proxy::os::{At, AttachVirtualDisk, Reparse, VolumeInformation};
use csi_proxy::{DevicePath, DiskNumber, Error, ErrorKind, HostPath, Result, VolumeId};

use super::pool::Pool;
use crate::driver::{Access, AtPath, none_if_missing};

/// `FILE_DEVICE_DISK`, the type of disks and of the volumes on them.
const FILE_DEVICE_DISK: u32 = 7;
/// `MSFT_Disk.BusType` of a disk that is a file.
const FILE_BACKED_VIRTUAL: u32 = 15;
/// How long a disk that was just attached may take to appear in WMI.
const APPEARS_WITHIN: Duration = Duration::from_secs(60);
/// The first wait between two looks for it; it doubles up to [`LONGEST_WAIT`], since a look
/// has Windows search for all disks.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(4);

/// What an unstage finds at the staging path.
pub(super) enum Found {
    /// This volume, or one that is gone; over a link too.
    Volume(VolumeId),
    /// Nothing, a link to nothing, a directory or a file.
    NoVolume,
    /// Another volume, or a link to something that is no volume. No stage of this volume has
    /// made it, so it stays.
    SomethingElse,
}

impl Pool<'_> {
    /// Attaches the volume's file if it is not attached.
    pub(super) fn attach(&self, volume_id: &str, access: Access) -> Result<()> {
        let file = self.file(volume_id)?;
        let request = AttachVirtualDisk {
            at: At::path(&file),
            read_only: access == Access::ReadOnly,
        };
        let attached = self.host.os().attach_virtual_disk(&request, self.deadline);
        attached.map_err(|error| self.failed(&file, error))
    }

    /// Detaches the volume's file.
    pub(super) fn detach(&self, volume_id: &str) -> Result<()> {
        let file = self.file(volume_id)?;
        let detached = self
            .host
            .os()
            .detach_virtual_disk(&At::path(&file), self.deadline);
        detached.map_err(|error| self.failed(&file, error))
    }

    /// Whether the volume's file, on which nothing is mounted, may be detached: not while it
    /// is formatted, for a process that has ended too, since that would cut the format off.
    ///
    /// # Errors
    /// `Aborted` while a format may run.
    pub(super) fn check_not_formatting(&self, volume_id: &str) -> Result<()> {
        if !self.has_records(volume_id)? {
            return Ok(());
        }
        let Some(number) = self.attached_disk(volume_id)? else {
            return Ok(());
        };
        // On a disk that WMI does not show nothing is formatted.
        let disk = none_if_missing(self.host.disk().info(number, self.deadline))?;
        disk.map_or(Ok(()), |disk| {
            let host = self.recording(volume_id)?;
            host.staging()
                .check_not_formatting(&disk.unique_id, self.deadline)
        })
    }

    /// The disk of an attached volume as WMI shows it, its identity checked: it is a
    /// file-backed disk and the file is this volume's.
    pub(super) fn disk_info(&self, volume_id: &str) -> Result<DiskInfo> {
        let number = self.attached_disk(volume_id)?;
        let number = number
            .ok_or_else(|| self.error(ErrorKind::Aborted, volume_id, "was detached meanwhile"))?;
        let disk = self.appeared(number)?;
        let file = self.file(volume_id)?;
        let location = disk.location.as_deref().map(HostPath::from_kubelet);
        let ours = matches!(&location, Some(Ok(location)) if location.same_as(&file));
        if ours && disk.bus_type == Some(FILE_BACKED_VIRTUAL) {
            return Ok(disk);
        }
        let detail = format!(
            "is attached as disk {number}, whose location is {:?} and whose bus type is {:?}; \
             expected {file} and {FILE_BACKED_VIRTUAL}",
            disk.location, disk.bus_type
        );
        Err(self.error(ErrorKind::FailedPrecondition, volume_id, detail))
    }

    /// A disk as WMI shows it; one that it does not show yet is waited for.
    fn appeared(&self, number: DiskNumber) -> Result<DiskInfo> {
        let clock = self.host.os();
        let until = clock.deadline_in(APPEARS_WITHIN);
        let mut wait = FIRST_WAIT;
        loop {
            match self.host.disk().info(number, self.deadline) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if !clock.pause(wait, until) {
                        return Err(error.with_kind(ErrorKind::DeadlineExceeded));
                    }
                    self.host.disk().rescan(self.deadline)?;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                answer => return answer,
            }
        }
    }

    /// The number of the disk of a volume's file; nothing when it is not attached, or
    /// missing.
    pub(super) fn attached_disk(&self, volume_id: &str) -> Result<Option<DiskNumber>> {
        let file = self.file(volume_id)?;
        if !self.find(&file)?.is_some_and(|info| info.attached) {
            return Ok(None);
        }
        let device = self
            .host
            .os()
            .virtual_disk_path(&At::path(&file), self.deadline);
        let device = device.map_err(|error| self.failed(&file, error))?;
        self.number_of(volume_id, &device).map(Some)
    }

    /// Whether this volume is mounted at a path.
    pub(super) fn is_mounted_at(&self, volume_id: &str, path: &HostPath) -> Result<bool> {
        match self.mounted(path)? {
            Some(volume) => self.is_on(volume_id, &volume),
            None => Ok(false),
        }
    }

    /// What stands at a staging path from which this volume is to go.
    pub(super) fn found_at(&self, volume_id: &str, path: &HostPath) -> Result<Found> {
        let volume = match self.host.volume().id_from_target_path(path, self.deadline) {
            Ok(volume) => volume,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::NoVolume),
            Err(error) if says_not_there(&error) => return self.found_without_volume(path),
            Err(error) => return Err(error),
        };
        match self.is_anothers(volume_id, &volume)? {
            false => Ok(Found::Volume(volume)),
            true => Ok(Found::SomethingElse),
        }
    }

    fn found_without_volume(&self, path: &HostPath) -> Result<Found> {
        let stat = self.host.os().stat(&At::path(path), self.deadline);
        let stat = none_if_missing(stat.map_err(|error| self.failed(path, error)))?;
        match stat.is_some_and(|stat| stat.reparse.is_some()) {
            true => Ok(Found::SomethingElse),
            false => Ok(Found::NoVolume),
        }
    }

    /// Whether a Windows volume is there and does not lie on the disk of this volume's file.
    pub(super) fn is_anothers(&self, volume_id: &str, volume: &VolumeId) -> Result<bool> {
        match self.disk_of(volume)? {
            None => Ok(false),
            Some(disk) => {
                let own = none_if_missing(self.attached_disk(volume_id))?.flatten();
                Ok(own != Some(disk))
            }
        }
    }

    /// The Windows volume that is mounted at a path, if one is.
    pub(super) fn mounted(&self, path: &HostPath) -> Result<Option<VolumeId>> {
        match self.host.volume().id_from_target_path(path, self.deadline) {
            Ok(volume) => Ok(Some(volume)),
            Err(error) if says_not_there(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The Windows volume at a path where this volume is staged or published.
    ///
    /// # Errors
    /// `NotFound` when it is not there.
    pub(super) fn volume_at(&self, at: &AtPath) -> Result<VolumeId> {
        let not_there = |detail: String| self.error(ErrorKind::NotFound, &at.volume_id, detail);
        self.info(&at.volume_id)?;
        let volume = self
            .host
            .volume()
            .id_from_target_path(&at.path, self.deadline);
        let volume = volume.map_err(|error| match says_not_there(&error) {
            true => not_there(format!("is not at {}: {error}", at.path)),
            false => error,
        })?;
        match self.is_on(&at.volume_id, &volume)? {
            true => Ok(volume),
            false => Err(not_there(format!(
                "is not at {}, where {volume} is",
                at.path
            ))),
        }
    }

    /// Clears the read-only flag that somebody has set on the volume's disk since it was
    /// attached. The flag of a file that was attached for reading stays, which is no error.
    pub(super) fn clear_read_only(&self, volume_id: &str) -> Result<()> {
        let disk = self.disk_info(volume_id)?.number;
        match self.host.disk().clear_read_only(disk, self.deadline) {
            Err(error) if error.kind().is_refusal() => Ok(()),
            cleared => cleared,
        }
    }

    /// Whether what is mounted at a path can be written.
    pub(super) fn access_at(&self, path: &HostPath) -> Result<Access> {
        match self.information_at(path)?.read_only {
            true => Ok(Access::ReadOnly),
            false => Ok(Access::ReadWrite),
        }
    }

    /// What Windows says about the file system that is mounted at a path.
    pub(super) fn information_at(&self, path: &HostPath) -> Result<VolumeInformation> {
        let information = self
            .host
            .os()
            .volume_information(&At::path(path), self.deadline);
        information.map_err(|error| self.failed(path, error))
    }

    /// A directory at which a Windows volume on a disk is mounted, if there is one.
    ///
    /// Windows' list of them is no proof: a path stays on it when its directory goes in
    /// another way than by the functions for mount points. So only an entry counts at which
    /// the mount point stands. And no entry is compared with the path of a request: each may
    /// spell the same directory in its own way, over a link or with 8.3 names.
    pub(super) fn mount_point(&self, disk: DiskNumber) -> Result<Option<HostPath>> {
        for volume in self.host.volume().list_on_disk(disk, None, self.deadline)? {
            let paths = self.host.os().mount_points_of(&volume, self.deadline);
            let paths = paths.map_err(|e| Error::from_port(self.operation, &volume, e))?;
            let paths = paths
                .iter()
                .filter_map(|text| HostPath::from_kubelet(text).ok());
            // A drive's letter is not what a stage gives.
            for path in paths.filter(|path| path.file_name().is_some()) {
                if self.is_mount_point_of(&volume, &path)? {
                    return Ok(Some(path));
                }
            }
        }
        Ok(None)
    }

    /// Whether the reparse point of this Windows volume stands at a path.
    fn is_mount_point_of(&self, volume: &VolumeId, path: &HostPath) -> Result<bool> {
        let stat = self.host.os().stat(&At::path(path), self.deadline);
        let stat = none_if_missing(stat.map_err(|error| self.failed(path, error)))?;
        let reparse = stat.and_then(|stat| stat.reparse);
        Ok(matches!(reparse, Some(Reparse::MountPoint { volume: found }) if found == *volume))
    }

    /// Whether a Windows volume lies on the disk of this volume's file.
    fn is_on(&self, volume_id: &str, volume: &VolumeId) -> Result<bool> {
        match self.attached_disk(volume_id)? {
            Some(disk) => Ok(self.disk_of(volume)? == Some(disk)),
            None => Ok(false),
        }
    }

    /// The disk that a Windows volume lies on; nothing when the volume is gone.
    pub(super) fn disk_of(&self, volume: &VolumeId) -> Result<Option<DiskNumber>> {
        let device = volume.device();
        let number = self.host.os().device_number(&device, self.deadline);
        let number = number.map_err(|error| Error::from_port(self.operation, &device, error));
        Ok(none_if_missing(number)?
            .filter(|number| number.device_type == FILE_DEVICE_DISK)
            .map(|number| DiskNumber(number.number)))
    }

    fn number_of(&self, volume_id: &str, device: &DevicePath) -> Result<DiskNumber> {
        let digits = device.0.strip_prefix(r"\\.\PhysicalDrive");
        digits
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| {
                let detail = format!(r"is attached as {device}, expected \\.\PhysicalDriveN");
                self.error(ErrorKind::Internal, volume_id, detail)
            })
    }
}

/// Whether looking for a mounted volume has shown that there is none, and has not failed.
pub(super) fn says_not_there(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::NotFound => true,
        ErrorKind::FailedPrecondition => error.code().is_none(),
        _ => false,
    }
}
