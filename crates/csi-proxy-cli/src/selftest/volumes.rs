//! The operations of the group volume, on the virtual disk of the self-test.

use csi_proxy::volume::{FormatOptions, NewSize};
use csi_proxy::{ErrorKind, HostPath, VolumeId};

use super::checks::{refused, shown, soon};
use super::disks::{Disks, LARGER, OF_GPT, SIZE};
use crate::failure::{Failure, Result};
use crate::life::{expect, join};
use crate::onlooker::Onlooker;
use crate::size;

const LABEL: &str = "selftest";

impl Disks {
    pub(super) fn list_on_disk(&mut self) -> Result<String> {
        let volume = self.only_volume()?;
        let number = self.number()?;
        // The reserved partition comes first, where Windows makes one, and has no volume.
        let mut on = Vec::new();
        for partition in 1..=2 {
            let listed = self.host.volume();
            match listed.list_on_disk(number, Some(partition), soon(&self.host)) {
                Ok(volumes) if volumes == [volume.clone()] => on.push(partition),
                Ok(volumes) => expect("another partition", volumes.is_empty(), "has a volume")?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        let [partition] = on.as_slice() else {
            let wrong = format!("the volume is on the partitions {on:?}");
            return Err(Failure::new(wrong));
        };
        let missing = self.host.volume();
        let missing = missing.list_on_disk(number, Some(99), soon(&self.host));
        refused(
            "a partition that is not there",
            missing,
            ErrorKind::NotFound,
        )?;
        let line = format!("{volume} on partition {partition}");
        self.volume = Some(volume);
        Ok(line)
    }

    pub(super) fn format(&mut self) -> Result<String> {
        let (volumes, volume) = (self.host.volume(), self.volume()?);
        let before = volumes.is_formatted(volume, soon(&self.host))?;
        expect("the new volume", !before, "is said to be formatted")?;
        volumes.format(volume, &options(), soon(&self.host))?;
        let after = volumes.is_formatted(volume, soon(&self.host))?;
        expect("the volume", after, "is said not to be formatted")?;
        Ok("NTFS with units of 4 KiB and a label".to_owned())
    }

    pub(super) fn format_again(&mut self) -> Result<String> {
        let again = self
            .host
            .volume()
            .format(self.volume()?, &options(), soon(&self.host));
        refused("a second format", again, ErrorKind::FailedPrecondition)?;
        Ok("refused, as what is formatted must be".to_owned())
    }

    pub(super) fn mount(&mut self) -> Result<String> {
        let (volumes, volume) = (self.host.volume(), self.volume()?);
        let directory = self.mount.parent().unwrap_or_else(|| self.mount.root());
        let full = volumes.mount(volume, &directory, soon(&self.host));
        refused(
            "mounting at a directory with files",
            full,
            ErrorKind::FailedPrecondition,
        )?;
        self.mounted()?;
        Ok(format!(
            "at {}; again is success, a full directory is refused",
            self.mount
        ))
    }

    pub(super) fn id_from_path(&mut self) -> Result<String> {
        let (volumes, volume) = (self.host.volume(), self.volume()?);
        let at_mount = volumes.id_from_target_path(&self.mount, soon(&self.host))?;
        let closest = volumes.closest_id_from_target_path(&self.mount, soon(&self.host))?;
        for found in [&at_mount, &closest] {
            expect(
                "the mount point",
                found == volume,
                &format!("leads to {found}"),
            )?;
        }
        let own = self.mount.parent().unwrap_or_else(|| self.mount.root());
        let drive = volumes.closest_id_from_target_path(&own, soon(&self.host))?;
        expect(
            "its directory",
            drive != *volume,
            "is said to lie in the volume",
        )?;
        let plain = volumes.id_from_target_path(&own, soon(&self.host));
        refused("a plain directory", plain, ErrorKind::FailedPrecondition)?;
        let (number, found) = (
            self.number()?,
            volumes.disk_number(volume, soon(&self.host))?,
        );
        expect(
            "the volume",
            found == number,
            &format!("is said to be on disk {found}"),
        )?;
        Ok(format!("{volume} on disk {number}"))
    }

    pub(super) fn write_cache(&mut self) -> Result<String> {
        Onlooker::new(self.host.clone()).write(&self.data()?, &self.contents)?;
        self.host
            .volume()
            .write_cache(self.volume()?, soon(&self.host))?;
        let volumes = self.host.volume();
        let closest = volumes.closest_id_from_target_path(&self.data()?, soon(&self.host))?;
        let wrong = format!("is said to lie in {closest}");
        expect("the file", closest == *self.volume()?, &wrong)?;
        let length = u64::try_from(self.contents.len()).unwrap_or(u64::MAX);
        Ok(format!("{} written and flushed", size::show(length)))
    }

    pub(super) fn volume_stats(&mut self) -> Result<String> {
        let found = self.host.volume().stats(self.volume()?, soon(&self.host))?;
        let (total, used) = (found.total_bytes, found.used_bytes);
        let right = total < SIZE && total > SIZE - SIZE / 20 - OF_GPT;
        expect(
            "the volume",
            right,
            &format!("is said to have {total} bytes"),
        )?;
        let written = u64::try_from(self.contents.len()).unwrap_or(u64::MAX);
        let right = used >= written && used < total;
        expect(
            "the volume",
            right,
            &format!("is said to have {used} bytes in use"),
        )?;
        Ok(format!(
            "{} of {} used",
            size::show(used),
            size::show(total)
        ))
    }

    pub(super) fn health(&mut self) -> Result<String> {
        let health = self
            .host
            .volume()
            .health(self.volume()?, soon(&self.host))?;
        let wrong = format!("is {:?} {:?}", health.status, health.operational);
        expect("the volume", health.is_healthy(), &wrong)?;
        Ok("healthy".to_owned())
    }

    pub(super) fn unmount(&mut self) -> Result<String> {
        self.unmounted()?;
        Ok("the directory stays; again is success".to_owned())
    }

    pub(super) fn resize(&mut self) -> Result<String> {
        let (volumes, volume) = (self.host.volume(), self.volume()?);
        let too_much = volumes.resize(volume, NewSize::Bytes(LARGER * 2), soon(&self.host));
        refused("more than the disk has", too_much, ErrorKind::OutOfRange)?;
        let step = volumes.resize(volume, NewSize::Bytes(SIZE), soon(&self.host))?;
        expect(
            "the partition",
            step.resized && step.size >= SIZE,
            "has not grown",
        )?;
        let largest = volumes.resize(volume, NewSize::Largest, soon(&self.host))?;
        let right = largest.resized && largest.size > LARGER - OF_GPT && largest.size < LARGER;
        let wrong = format!("has {} bytes of {LARGER}", largest.size);
        expect("the partition", right, &wrong)?;
        let again = volumes.resize(volume, NewSize::Largest, soon(&self.host))?;
        expect("the partition", !again.resized, "has grown twice")?;
        let total = volumes.stats(volume, soon(&self.host))?.total_bytes;
        let right = total > LARGER - LARGER / 20 - OF_GPT;
        expect(
            "the file system",
            right,
            &format!("has {total} bytes after it has grown"),
        )?;
        Ok(format!(
            "in two steps to {}; more than there is is refused",
            size::show(total)
        ))
    }

    pub(super) fn read(&mut self) -> Result<String> {
        let read = Onlooker::new(self.host.clone()).read(&self.data()?)?;
        expect(
            "the file",
            read == self.contents,
            "differs from what was written",
        )?;
        self.unmounted()?;
        self.detached()?;
        Ok("the file is as it was written".to_owned())
    }

    /// Mounts the volume, twice.
    pub(super) fn mounted(&self) -> Result<()> {
        let volume = self.volume()?;
        for _ in 0..2 {
            self.host
                .volume()
                .mount(volume, &self.mount, soon(&self.host))?;
        }
        let mounted = Onlooker::new(self.host.clone()).mounted_volume(&self.mount)?;
        let right = mounted.as_deref() == Some(volume.as_str());
        expect(
            self.mount.as_str(),
            right,
            "is not the mount point of the volume",
        )
    }

    /// Unmounts the volume, twice; the directory must stay.
    pub(super) fn unmounted(&self) -> Result<()> {
        let volume = self.volume()?;
        for _ in 0..2 {
            self.host
                .volume()
                .unmount(volume, &self.mount, soon(&self.host))?;
        }
        let onlooker = Onlooker::new(self.host.clone());
        let mounted = onlooker.mounted_volume(&self.mount)?.is_some();
        expect(self.mount.as_str(), !mounted, "is still a mount point")?;
        expect(
            self.mount.as_str(),
            onlooker.exists(&self.mount)?,
            "is gone",
        )
    }

    /// The one volume on the disk, once Windows shows it.
    pub(super) fn only_volume(&self) -> Result<VolumeId> {
        let number = self.number()?;
        let volumes = shown(&self.host, "the volume", || {
            let volumes = self.host.volume();
            let volumes = volumes.list_on_disk(number, None, soon(&self.host))?;
            Ok((!volumes.is_empty()).then_some(volumes))
        })?;
        match <[VolumeId; 1]>::try_from(volumes) {
            Ok([volume]) => Ok(volume),
            Err(volumes) => Err(Failure::new(format!(
                "the disk has the volumes {volumes:?}"
            ))),
        }
    }

    pub(super) fn data(&self) -> Result<HostPath> {
        join(&self.mount, &["data.bin"])
    }

    pub(super) fn volume(&self) -> Result<&VolumeId> {
        let volume = self.volume.as_ref();
        volume.ok_or_else(|| Failure::new("there is no volume"))
    }
}

fn options() -> FormatOptions {
    FormatOptions {
        allocation_unit: Some(4096),
        label: Some(LABEL.to_owned()),
        ..FormatOptions::default()
    }
}
