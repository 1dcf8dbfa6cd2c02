//! Disks, volumes and VHDX files on the port to the operating system.

use csi_proxy::DevicePath;
use csi_proxy::clock::Deadline;
use csi_proxy::os::{
    At, AttachVirtualDisk, Bytes, CreateVirtualDisk, DeviceNumber, Devices, ExpandVirtualDisk,
    ReadRange, VirtualDiskInfo, VirtualDisks,
};
use csi_proxy::port::PortResult;

use crate::ports::Ports;
use crate::win32::{ERROR_NOT_SUPPORTED, win32};

fn unsupported<T>(api: &str) -> PortResult<T> {
    Err(win32(api, ERROR_NOT_SUPPORTED))
}

impl Devices for Ports<'_> {
    fn device_number(&self, _: &DevicePath, _: Deadline) -> PortResult<DeviceNumber> {
        unsupported("DeviceIoControl")
    }

    fn device_ids(&self, _: &DevicePath, _: Deadline) -> PortResult<Bytes> {
        unsupported("DeviceIoControl")
    }

    fn read_range(&self, _: &ReadRange, _: Deadline) -> PortResult<Bytes> {
        unsupported("ReadFile")
    }
}

impl VirtualDisks for Ports<'_> {
    fn create_virtual_disk(&self, _: &CreateVirtualDisk, _: Deadline) -> PortResult<()> {
        unsupported("CreateVirtualDisk")
    }

    fn virtual_disk_info(&self, _: &At, _: Deadline) -> PortResult<VirtualDiskInfo> {
        unsupported("GetVirtualDiskInformation")
    }

    fn attach_virtual_disk(&self, _: &AttachVirtualDisk, _: Deadline) -> PortResult<()> {
        unsupported("AttachVirtualDisk")
    }

    fn detach_virtual_disk(&self, _: &At, _: Deadline) -> PortResult<()> {
        unsupported("DetachVirtualDisk")
    }

    fn expand_virtual_disk(&self, _: &ExpandVirtualDisk, _: Deadline) -> PortResult<()> {
        unsupported("ExpandVirtualDisk")
    }

    fn virtual_disk_path(&self, _: &At, _: Deadline) -> PortResult<DevicePath> {
        unsupported("GetVirtualDiskPhysicalPath")
    }
}
