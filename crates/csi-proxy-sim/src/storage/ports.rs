//! Disks and volumes as devices, on the port to the operating system.

use csi_proxy::clock::Deadline;
use csi_proxy::os::{Bytes, DeviceNumber, Devices, ReadRange};
use csi_proxy::port::PortResult;
use csi_proxy::{DevicePath, VolumeId};

use super::medium::SECTOR;
use super::{Found, Partition, Storage, page83};
use crate::ports::Ports;
use crate::win32::{
    ERROR_FILE_NOT_FOUND, ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER, FVE_E_LOCKED_VOLUME,
    win32,
};

/// `FILE_DEVICE_DISK`.
const FILE_DEVICE_DISK: u32 = 7;
const LARGEST_READ: u32 = 1 << 20;

/// What stands at byte 3 of a volume that BitLocker has locked.
const BITLOCKER: &[u8] = b"-FVE-FS-";

/// What a device path opens.
enum Device<'a> {
    Disk(Found<'a>),
    Volume(Found<'a>, &'a Partition),
}

impl Storage {
    /// `CreateFileW` with a disk's or a volume's path.
    fn open(&self, path: &DevicePath) -> PortResult<Device<'_>> {
        let device = match VolumeId::new(&path.0) {
            Ok(id) => self.volume(&id).and_then(|volume| {
                let disk = self.found(volume.disk_id)?;
                Some(Device::Volume(disk, volume.partition))
            }),
            Err(_) => self.disk_at(&path.0).map(Device::Disk),
        };
        device.ok_or_else(|| win32("CreateFileW", ERROR_FILE_NOT_FOUND))
    }

    /// Puts bytes on a device by hand, as far as they lie on it. Nothing if there is no such
    /// device.
    pub(crate) fn put_bytes(&mut self, device: &DevicePath, offset: u64, bytes: &[u8]) {
        let (disk, start, size) = match self.open(device) {
            Ok(Device::Disk(disk)) => (disk.id, 0, disk.medium.size),
            Ok(Device::Volume(disk, partition)) => (disk.id, partition.offset, partition.size),
            Err(_) => return,
        };
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        if let Some((_, medium)) = self.found_mut(disk) {
            let bytes = &bytes[..bytes.len().min(left)];
            medium.bytes.write(start.saturating_add(offset), bytes);
        }
    }

    fn disk_at(&self, path: &str) -> Option<Found<'_>> {
        let prefix = r"\\.\PhysicalDrive";
        let is_number =
            (path.get(..prefix.len())).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        if is_number {
            let number = path[prefix.len()..].parse().ok()?;
            let (id, _) = self.disk_by_number(number)?;
            return self.found(id);
        }
        self.all_found()
            .find(|found| found.disk.path(found.id).eq_ignore_ascii_case(path))
    }
}

impl Devices for Ports<'_> {
    fn device_number(&self, path: &DevicePath, _: Deadline) -> PortResult<DeviceNumber> {
        let model = self.model();
        let (disk, partition) = match model.state.storage.open(path)? {
            Device::Disk(disk) => (disk, None),
            Device::Volume(disk, partition) => (disk, Some(partition.number)),
        };
        Ok(DeviceNumber {
            device_type: FILE_DEVICE_DISK,
            number: disk.disk.number,
            partition,
        })
    }

    fn device_ids(&self, path: &DevicePath, _: Deadline) -> PortResult<Bytes> {
        let model = self.model();
        let (Device::Disk(disk) | Device::Volume(disk, _)) = model.state.storage.open(path)?;
        match &disk.disk.page83 {
            Some(identifiers) => Ok(Bytes(page83::descriptor(identifiers))),
            None => Err(win32("DeviceIoControl", ERROR_INVALID_FUNCTION)),
        }
    }

    fn read_range(&self, request: &ReadRange, _: Deadline) -> PortResult<Bytes> {
        let aligned = request.offset.is_multiple_of(SECTOR)
            && u64::from(request.length).is_multiple_of(SECTOR);
        if !aligned || request.length > LARGEST_READ {
            return Err(win32("ReadFile", ERROR_INVALID_PARAMETER));
        }
        let model = self.model();
        let (medium, start, size) = match model.state.storage.open(&request.device)? {
            Device::Disk(disk) => (disk.medium, 0, disk.medium.size),
            // No page says how such a read fails; this code is assumed.
            Device::Volume(disk, partition) if is_locked(&disk, partition) => {
                return Err(win32("ReadFile", FVE_E_LOCKED_VOLUME));
            }
            Device::Volume(disk, partition) => (disk.medium, partition.offset, partition.size),
        };
        // A read from the end on answers nothing.
        let from = request.offset.min(size);
        let length = usize::try_from((size - from).min(request.length.into())).unwrap_or(0);
        Ok(Bytes(medium.bytes.read(start + from, length)))
    }
}

fn is_locked(disk: &Found<'_>, partition: &Partition) -> bool {
    let start = partition.offset + 3;
    disk.medium.bytes.read(start, BITLOCKER.len()) == BITLOCKER
}
