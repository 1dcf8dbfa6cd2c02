//! The operations of the groups disk and volume, on a virtual disk of the self-test.

use std::time::Duration;

use csi_proxy::disk::{DiskInfo, DiskState, PartitionStyle};
use csi_proxy::os::{At, AttachVirtualDisk, CreateVirtualDisk, ExpandVirtualDisk};
use csi_proxy::volume::{FormatOptions, NewSize};
use csi_proxy::{DevicePath, DiskNumber, ErrorKind, Host, HostPath, Locator, VolumeId};

use super::area::{Area, told};
use super::checks::{Check, refused, refused_with, shown, soon};
use crate::failure::{Failure, Result};
use crate::life::{contents, expect, join};
use crate::onlooker::Onlooker;
use crate::size;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 256 * MIB;
const LARGER: u64 = 384 * MIB;
/// GPT's tables with their alignment, and the reserved partition of 16 MiB.
const OF_GPT: u64 = 18 * MIB;
const LABEL: &str = "selftest";
/// How long a disk that does not exist is waited for.
const WAIT: Duration = Duration::from_secs(1);

const ERROR_NOT_READY: u32 = 21;
const ERROR_WRITE_PROTECT: u32 = 19;
const ERROR_SHARING_VIOLATION: u32 = 32;
const ERROR_FILE_EXISTS: u32 = 80;
const ERROR_INVALID_PARAMETER: u32 = 87;

/// The checks in their order. Each goes on where the one before has stopped.
pub(super) const CHECKS: [Check<Disks>; 26] = [
    Check("vhdx create", Disks::create),
    Check("vhdx attach", Disks::attach),
    Check("disk rescan", Disks::rescan),
    Check("disk stats", Disks::stats),
    Check("disk list-ids", Disks::list_ids),
    Check("disk list-locations", Disks::list_locations),
    Check("disk find", Disks::find),
    Check("disk offline", Disks::offline),
    Check("disk online", Disks::online),
    Check("disk clear-read-only", Disks::clear_read_only),
    Check("disk partition", Disks::partition),
    Check("volume list-on-disk", Disks::list_on_disk),
    Check("volume format", Disks::format),
    Check("volume format-again", Disks::format_again),
    Check("volume mount", Disks::mount),
    Check("volume id-from-path", Disks::id_from_path),
    Check("volume write-cache", Disks::write_cache),
    Check("volume stats", Disks::volume_stats),
    Check("volume health", Disks::health),
    Check("volume unmount", Disks::unmount),
    Check("vhdx detach", Disks::detach),
    Check("vhdx expand", Disks::expand),
    Check("vhdx attach-again", Disks::attach_again),
    Check("volume resize", Disks::resize),
    Check("volume read", Disks::read),
    Check("vhdx read-only", Disks::read_only),
];

/// The virtual disk and what has become of it.
pub(super) struct Disks {
    host: Host,
    file: HostPath,
    mount: HostPath,
    disk: Option<DiskInfo>,
    volume: Option<VolumeId>,
    contents: Vec<u8>,
}

impl Disks {
    pub(super) fn new(area: &Area) -> Result<Self> {
        let directory = join(&area.folder, &["disk"])?;
        Ok(Self {
            host: area
                .host
                .clone()
                .with_state_dir(join(&directory, &["state"])?),
            file: join(&directory, &["disk.vhdx"])?,
            mount: join(&directory, &["mount"])?,
            disk: None,
            volume: None,
            contents: contents(),
        })
    }

    fn create(&mut self) -> Result<String> {
        let directory = join(&self.mount, &[])?;
        self.host.filesystem().mkdir(&directory, soon(&self.host))?;
        if let Some(state) = self.host.state_dir() {
            self.host.filesystem().mkdir(state, soon(&self.host))?;
        }
        let request = CreateVirtualDisk {
            at: At::path(&self.file),
            size: SIZE,
        };
        let os = self.host.os();
        told(
            "create the VHDX",
            os.create_virtual_disk(&request, soon(&self.host)),
        )?;
        let again = os.create_virtual_disk(&request, soon(&self.host));
        refused_with("a second VHDX in its place", again, ERROR_FILE_EXISTS)?;
        self.must_be(SIZE, false)?;
        Ok(format!("{} of {}", self.file, size::show(SIZE)))
    }

    fn attach(&mut self) -> Result<String> {
        let disk = self.attached(false)?;
        let request = self.attach_request(false);
        let again = self
            .host
            .os()
            .attach_virtual_disk(&request, soon(&self.host));
        refused_with("a second attachment", again, ERROR_SHARING_VIOLATION)?;
        self.must_be(SIZE, true)?;
        expect(
            "the disk",
            disk.style == PartitionStyle::Raw,
            "has a partition table",
        )?;
        let line = format!("disk {} with the unique id {}", disk.number, disk.unique_id);
        self.disk = Some(disk);
        Ok(line)
    }

    fn rescan(&mut self) -> Result<String> {
        self.host.disk().rescan(soon(&self.host))?;
        Ok("Windows has looked for disks".to_owned())
    }

    fn stats(&mut self) -> Result<String> {
        let found = self.host.disk().stats(self.number()?, soon(&self.host))?;
        let wrong = format!(
            "is said to have {} bytes instead of {SIZE}",
            found.total_bytes
        );
        expect("the disk", found.total_bytes == SIZE, &wrong)?;
        let missing = self
            .host
            .disk()
            .stats(DiskNumber(u32::MAX), soon(&self.host));
        refused("a disk that is not there", missing, ErrorKind::NotFound)?;
        Ok(size::show(found.total_bytes))
    }

    fn list_ids(&mut self) -> Result<String> {
        let (number, page83) = (self.number()?, self.page83()?);
        let found = self.host.disk().number_by_name(&page83, soon(&self.host))?;
        expect(
            "the disk",
            found == number,
            &format!("was found by its id as disk {found}"),
        )?;
        Ok(format!("page 83 id {page83}, and the disk is found by it"))
    }

    /// A file is attached nowhere.
    fn list_locations(&mut self) -> Result<String> {
        let number = self.number()?;
        let locations = self.host.disk().list_locations(soon(&self.host))?;
        let location = locations.get(&number);
        expect(
            "the disk",
            location.is_none(),
            "has a place though it is a file",
        )?;
        Ok(format!(
            "{} disks have one, the file has none",
            locations.len()
        ))
    }

    fn find(&mut self) -> Result<String> {
        let (number, page83) = (self.number()?, self.page83()?);
        let unique_id = self.disk()?.unique_id.clone();
        for locator in [Locator::UniqueId(unique_id), Locator::Page83(page83)] {
            let found = self.host.disk().find(&locator, soon(&self.host))?.number;
            let wrong = format!("was found by {locator} as disk {found}");
            expect("the disk", found == number, &wrong)?;
        }
        let locator = Locator::UniqueId("csi-proxy selftest: no such disk".to_owned());
        let missing = self
            .host
            .disk()
            .find(&locator, self.host.os().deadline_in(WAIT));
        refused("a disk that is not there", missing, ErrorKind::NotFound)?;
        Ok("by unique id and by page 83 id; one that is not there is not found".to_owned())
    }

    fn offline(&mut self) -> Result<String> {
        self.set_state(DiskState::Offline)?;
        let answer = self.host.disk().partition(self.number()?, soon(&self.host));
        refused(
            "partitioning it offline",
            answer,
            ErrorKind::FailedPrecondition,
        )?;
        Ok("offline; again is success, partitioning is refused".to_owned())
    }

    fn online(&mut self) -> Result<String> {
        self.set_state(DiskState::Online)?;
        Ok("online; again is success".to_owned())
    }

    fn set_state(&self, state: DiskState) -> Result<()> {
        let number = self.number()?;
        for _ in 0..2 {
            self.host
                .disk()
                .set_state(number, state, soon(&self.host))?;
            let found = self.host.disk().state(number, soon(&self.host))?;
            let wrong = format!("is {found:?} instead of {state:?}");
            expect("the disk", found == state, &wrong)?;
        }
        Ok(())
    }

    fn clear_read_only(&mut self) -> Result<String> {
        let number = self.number()?;
        self.host.disk().clear_read_only(number, soon(&self.host))?;
        let disk = self.host.disk().info(number, soon(&self.host))?;
        expect("the disk", !disk.read_only, "is read-only")?;
        Ok("the disk can be written".to_owned())
    }

    fn partition(&mut self) -> Result<String> {
        let number = self.number()?;
        for _ in 0..2 {
            self.host.disk().partition(number, soon(&self.host))?;
        }
        let disk = self.host.disk().info(number, soon(&self.host))?;
        expect("the disk", disk.style == PartitionStyle::Gpt, "is not GPT")?;
        Ok("GPT with a data partition; again is success".to_owned())
    }

    fn list_on_disk(&mut self) -> Result<String> {
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

    fn format(&mut self) -> Result<String> {
        let (volumes, volume) = (self.host.volume(), self.volume()?);
        let before = volumes.is_formatted(volume, soon(&self.host))?;
        expect("the new volume", !before, "is said to be formatted")?;
        volumes.format(volume, &options(), soon(&self.host))?;
        let after = volumes.is_formatted(volume, soon(&self.host))?;
        expect("the volume", after, "is said not to be formatted")?;
        Ok("NTFS with units of 4 KiB and a label".to_owned())
    }

    fn format_again(&mut self) -> Result<String> {
        let again = self
            .host
            .volume()
            .format(self.volume()?, &options(), soon(&self.host));
        refused("a second format", again, ErrorKind::FailedPrecondition)?;
        Ok("refused, as what is formatted must be".to_owned())
    }

    fn mount(&mut self) -> Result<String> {
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

    fn id_from_path(&mut self) -> Result<String> {
        let (volumes, volume) = (self.host.volume(), self.volume()?);
        let at_mount = volumes.id_from_target_path(&self.mount, soon(&self.host))?;
        let inside = join(&self.mount, &["missing"])?;
        volumes
            .closest_id_from_target_path(&inside, soon(&self.host))
            .map(|_| ())
            .or_else(|error| match error.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
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

    fn write_cache(&mut self) -> Result<String> {
        Onlooker::new(self.host.clone()).write(&self.data()?, &self.contents)?;
        self.host
            .volume()
            .write_cache(self.volume()?, soon(&self.host))?;
        let length = u64::try_from(self.contents.len()).unwrap_or(u64::MAX);
        Ok(format!("{} written and flushed", size::show(length)))
    }

    fn volume_stats(&mut self) -> Result<String> {
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

    fn health(&mut self) -> Result<String> {
        let health = self
            .host
            .volume()
            .health(self.volume()?, soon(&self.host))?;
        let wrong = format!("is {:?} {:?}", health.status, health.operational);
        expect("the volume", health.is_healthy(), &wrong)?;
        Ok("healthy".to_owned())
    }

    fn unmount(&mut self) -> Result<String> {
        self.unmounted()?;
        Ok("the directory stays; again is success".to_owned())
    }

    fn detach(&mut self) -> Result<String> {
        self.detached()?;
        let again = self.host.os();
        let again = again.detach_virtual_disk(&At::path(&self.file), soon(&self.host));
        refused_with("a second detachment", again, ERROR_NOT_READY)?;
        self.must_be(SIZE, false)?;
        Ok("the disk is gone".to_owned())
    }

    fn expand(&mut self) -> Result<String> {
        let request = |size| ExpandVirtualDisk {
            at: At::path(&self.file),
            size,
        };
        let os = self.host.os();
        let smaller = os.expand_virtual_disk(&request(SIZE / 2), soon(&self.host));
        refused_with("a smaller size", smaller, ERROR_INVALID_PARAMETER)?;
        told(
            "expand it",
            os.expand_virtual_disk(&request(LARGER), soon(&self.host)),
        )?;
        self.must_be(LARGER, false)?;
        Ok(format!("to {}", size::show(LARGER)))
    }

    fn attach_again(&mut self) -> Result<String> {
        let disk = self.attached(false)?;
        let known = &self.disk()?.unique_id;
        let wrong = format!(
            "has the unique id {}, before it was {known}",
            disk.unique_id
        );
        expect("the disk", disk.unique_id == *known, &wrong)?;
        expect(
            "the disk",
            disk.size == LARGER,
            &format!("has {} bytes", disk.size),
        )?;
        self.disk = Some(disk);
        self.volume = Some(self.only_volume()?);
        self.mounted()?;
        Ok("the same disk, larger".to_owned())
    }

    fn resize(&mut self) -> Result<String> {
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

    fn read(&mut self) -> Result<String> {
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

    fn read_only(&mut self) -> Result<String> {
        let disk = self.attached(true)?;
        expect("the disk", disk.read_only, "is not read-only")?;
        self.disk = Some(disk);
        self.volume = Some(self.only_volume()?);
        self.mounted()?;
        let data = self.data()?;
        let onlooker = Onlooker::new(self.host.clone());
        let read = onlooker.read(&data)?;
        expect(
            "the file",
            read == self.contents,
            "differs from what was written",
        )?;
        let written = self
            .host
            .os()
            .create_directories(&At::path(&join(&self.mount, &["new"])?), soon(&self.host));
        refused_with("writing to it", written, ERROR_WRITE_PROTECT)?;
        self.unmounted()?;
        self.detached()?;
        Ok("the file can be read, and nothing be written".to_owned())
    }

    /// Attaches the file and waits for its disk.
    fn attached(&self, read_only: bool) -> Result<DiskInfo> {
        let os = self.host.os();
        let request = self.attach_request(read_only);
        told(
            "attach the VHDX",
            os.attach_virtual_disk(&request, soon(&self.host)),
        )?;
        let path = os.virtual_disk_path(&request.at, soon(&self.host));
        let path = told("find the disk of the VHDX", path)?;
        let number = path.0.strip_prefix(r"\\.\PhysicalDrive");
        let number: DiskNumber = number
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| Failure::new(format!("the VHDX is attached as {path}")))?;
        let disk = shown(&self.host, &format!("disk {number}"), || {
            match self.host.disk().info(number, soon(&self.host)) {
                Ok(disk) => Ok(Some(disk)),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.host.disk().rescan(soon(&self.host))?;
                    Ok(None)
                }
                Err(error) => Err(error.into()),
            }
        })?;
        let location = disk.location.clone().unwrap_or_default();
        let ours = HostPath::from_kubelet(&location).is_ok_and(|at| at.same_as(&self.file));
        let wrong = format!("has the location {location:?} instead of {}", self.file);
        expect("the disk", ours && !disk.boot && !disk.system, &wrong)?;
        let device = DevicePath::disk(number);
        let device = told("open the disk", os.device_number(&device, soon(&self.host)))?;
        expect("the disk", device.number == number.0, "has two numbers")?;
        Ok(disk)
    }

    fn attach_request(&self, read_only: bool) -> AttachVirtualDisk {
        AttachVirtualDisk {
            at: At::path(&self.file),
            read_only,
        }
    }

    /// Detaches the file and waits until its disk is gone.
    fn detached(&self) -> Result<()> {
        let unique_id = &self.disk()?.unique_id;
        let number = self.number()?;
        let os = self.host.os();
        let detached = os.detach_virtual_disk(&At::path(&self.file), soon(&self.host));
        told("detach the VHDX", detached)?;
        shown(&self.host, "the end of the disk", || {
            match self.host.disk().info(number, soon(&self.host)) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some(())),
                Err(error) => Err(error.into()),
                // Windows may have given the number to another disk.
                Ok(disk) => Ok((disk.unique_id != *unique_id).then_some(())),
            }
        })
    }

    /// Mounts the volume, twice.
    fn mounted(&self) -> Result<()> {
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
    fn unmounted(&self) -> Result<()> {
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

    fn must_be(&self, size: u64, attached: bool) -> Result<()> {
        let info = self.host.os();
        let info = info.virtual_disk_info(&At::path(&self.file), soon(&self.host));
        let info = told("look at the VHDX", info)?;
        let right = info.virtual_size == size && info.attached == attached;
        let wrong = format!("is {info:?} instead of {size} bytes, attached: {attached}");
        expect("the VHDX", right, &wrong)
    }

    /// The one volume on the disk, once Windows shows it.
    fn only_volume(&self) -> Result<VolumeId> {
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

    fn page83(&self) -> Result<String> {
        let number = self.number()?;
        let ids = self.host.disk().list_ids(soon(&self.host))?;
        let page83 = ids.get(&number).and_then(|ids| ids.page83.clone());
        page83.ok_or_else(|| Failure::new(format!("disk {number} has no page 83 id")))
    }

    fn data(&self) -> Result<HostPath> {
        join(&self.mount, &["data.bin"])
    }

    fn disk(&self) -> Result<&DiskInfo> {
        let disk = self.disk.as_ref();
        disk.ok_or_else(|| Failure::new("there is no disk"))
    }

    fn number(&self) -> Result<DiskNumber> {
        self.disk().map(|disk| disk.number)
    }

    fn volume(&self) -> Result<&VolumeId> {
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
