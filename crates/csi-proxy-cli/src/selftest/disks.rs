//! The operations of the groups disk and volume, on a virtual disk of the self-test.

use std::time::Duration;

use csi_proxy::disk::{DiskInfo, DiskState, PartitionStyle};
use csi_proxy::os::{At, AttachVirtualDisk, CreateVirtualDisk, ExpandVirtualDisk};
use csi_proxy::{DevicePath, DiskNumber, ErrorKind, Host, HostPath, Locator, VolumeId};

use super::area::{Area, told};
use super::checks::{Check, refused, refused_with, shown, soon};
use crate::failure::{Failure, Result};
use crate::life::{contents, expect, join};
use crate::onlooker::Onlooker;
use crate::size;

const MIB: u64 = 1 << 20;
pub(super) const SIZE: u64 = 256 * MIB;
pub(super) const LARGER: u64 = 384 * MIB;
/// GPT's tables with their alignment, and the reserved partition of 16 MiB.
pub(super) const OF_GPT: u64 = 18 * MIB;
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
    pub(super) host: Host,
    file: HostPath,
    pub(super) mount: HostPath,
    disk: Option<DiskInfo>,
    pub(super) volume: Option<VolumeId>,
    pub(super) contents: Vec<u8>,
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
        let files = self.host.filesystem();
        files.mkdir(&self.mount, soon(&self.host))?;
        if let Some(state) = self.host.state_dir() {
            files.mkdir(state, soon(&self.host))?;
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
    pub(super) fn attached(&self, read_only: bool) -> Result<DiskInfo> {
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
    pub(super) fn detached(&self) -> Result<()> {
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

    fn must_be(&self, size: u64, attached: bool) -> Result<()> {
        let info = self.host.os();
        let info = info.virtual_disk_info(&At::path(&self.file), soon(&self.host));
        let info = told("look at the VHDX", info)?;
        let right = info.virtual_size == size && info.attached == attached;
        let wrong = format!("is {info:?} instead of {size} bytes, attached: {attached}");
        expect("the VHDX", right, &wrong)
    }

    fn page83(&self) -> Result<String> {
        let number = self.number()?;
        let ids = self.host.disk().list_ids(soon(&self.host))?;
        let page83 = ids.get(&number).and_then(|ids| ids.page83.clone());
        page83.ok_or_else(|| Failure::new(format!("disk {number} has no page 83 id")))
    }

    fn disk(&self) -> Result<&DiskInfo> {
        let disk = self.disk.as_ref();
        disk.ok_or_else(|| Failure::new("there is no disk"))
    }

    pub(super) fn number(&self) -> Result<DiskNumber> {
        self.disk().map(|disk| disk.number)
    }
}
