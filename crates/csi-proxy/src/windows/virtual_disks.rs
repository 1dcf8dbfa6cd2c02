//! VHDX files.

use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows::Win32::Foundation::{ERROR_INSUFFICIENT_BUFFER, HANDLE};
use windows::Win32::Storage::FileSystem::FILE_READ_ATTRIBUTES;
use windows::Win32::Storage::Vhd::{
    ATTACH_VIRTUAL_DISK_FLAG_NO_DRIVE_LETTER, ATTACH_VIRTUAL_DISK_FLAG_PERMANENT_LIFETIME,
    ATTACH_VIRTUAL_DISK_FLAG_READ_ONLY, AttachVirtualDisk as attach_virtual_disk,
    CREATE_VIRTUAL_DISK_FLAG_NONE, CREATE_VIRTUAL_DISK_PARAMETERS,
    CREATE_VIRTUAL_DISK_PARAMETERS_0, CREATE_VIRTUAL_DISK_PARAMETERS_0_1,
    CREATE_VIRTUAL_DISK_VERSION_2, CreateVirtualDisk as create_virtual_disk,
    DETACH_VIRTUAL_DISK_FLAG_NONE, DetachVirtualDisk as detach_virtual_disk,
    EXPAND_VIRTUAL_DISK_FLAG_NONE, EXPAND_VIRTUAL_DISK_PARAMETERS,
    EXPAND_VIRTUAL_DISK_PARAMETERS_0, EXPAND_VIRTUAL_DISK_PARAMETERS_0_0,
    EXPAND_VIRTUAL_DISK_VERSION_1, ExpandVirtualDisk as expand_virtual_disk, GET_VIRTUAL_DISK_INFO,
    GET_VIRTUAL_DISK_INFO_IS_LOADED, GET_VIRTUAL_DISK_INFO_SIZE, GET_VIRTUAL_DISK_INFO_VERSION,
    GetVirtualDiskInformation, GetVirtualDiskPhysicalPath, OPEN_VIRTUAL_DISK_FLAG_NONE,
    OPEN_VIRTUAL_DISK_PARAMETERS, OPEN_VIRTUAL_DISK_PARAMETERS_0, OPEN_VIRTUAL_DISK_PARAMETERS_0_1,
    OPEN_VIRTUAL_DISK_VERSION_2, OpenVirtualDisk, VIRTUAL_DISK_ACCESS_NONE, VIRTUAL_STORAGE_TYPE,
    VIRTUAL_STORAGE_TYPE_DEVICE_VHDX, VIRTUAL_STORAGE_TYPE_VENDOR_MICROSOFT,
};
use windows::core::{HSTRING, PWSTR};

use super::object::{self, Last};
use super::{Os, win32};
use crate::clock::Deadline;
use crate::ids::DevicePath;
use crate::os::{
    At, AttachVirtualDisk, CreateVirtualDisk, ExpandVirtualDisk, VirtualDiskInfo, VirtualDisks,
};
use crate::port::PortResult;

static VHDX: VIRTUAL_STORAGE_TYPE = VIRTUAL_STORAGE_TYPE {
    DeviceId: VIRTUAL_STORAGE_TYPE_DEVICE_VHDX,
    VendorId: VIRTUAL_STORAGE_TYPE_VENDOR_MICROSOFT,
};

impl VirtualDisks for Os {
    fn create_virtual_disk(
        &self,
        request: &CreateVirtualDisk,
        deadline: Deadline,
    ) -> PortResult<()> {
        self.in_time(deadline)?;
        let place = object::place(&request.at)?;
        let path = HSTRING::from(place.path.as_str());
        let parameters = CREATE_VIRTUAL_DISK_PARAMETERS {
            Version: CREATE_VIRTUAL_DISK_VERSION_2,
            Anonymous: CREATE_VIRTUAL_DISK_PARAMETERS_0 {
                // What is zero is the default: a new identity, blocks and sectors.
                Version2: CREATE_VIRTUAL_DISK_PARAMETERS_0_1 {
                    MaximumSize: request.size,
                    ..Default::default()
                },
            },
        };
        let mut handle = HANDLE::default();
        // SAFETY: the parameters are of the version that they name; all pointers are to
        // locals that live longer than the call, which is not overlapped.
        let answer = unsafe {
            create_virtual_disk(
                &raw const VHDX,
                &path,
                VIRTUAL_DISK_ACCESS_NONE,
                None,
                CREATE_VIRTUAL_DISK_FLAG_NONE,
                0,
                &raw const parameters,
                None,
                &raw mut handle,
            )
        };
        win32::check("CreateVirtualDisk", answer)?;
        drop(owned(handle));
        Ok(())
    }

    fn virtual_disk_info(&self, request: &At, deadline: Deadline) -> PortResult<VirtualDiskInfo> {
        self.in_time(deadline)?;
        let disk = open(request, Purpose::Look)?;
        let size = information(&disk, GET_VIRTUAL_DISK_INFO_SIZE)?;
        let loaded = information(&disk, GET_VIRTUAL_DISK_INFO_IS_LOADED)?;
        // SAFETY: the member that was asked for; any bytes are valid numbers.
        let size = unsafe { size.Anonymous.Size };
        // SAFETY: as above.
        let loaded = unsafe { loaded.Anonymous.IsLoaded };
        Ok(VirtualDiskInfo {
            virtual_size: size.VirtualSize,
            physical_size: size.PhysicalSize,
            attached: loaded.as_bool(),
        })
    }

    fn attach_virtual_disk(
        &self,
        request: &AttachVirtualDisk,
        deadline: Deadline,
    ) -> PortResult<()> {
        self.in_time(deadline)?;
        let (purpose, access) = match request.read_only {
            true => (Purpose::Read, ATTACH_VIRTUAL_DISK_FLAG_READ_ONLY),
            false => (Purpose::Change, Default::default()),
        };
        let disk = open(&request.at, purpose)?;
        let flags = ATTACH_VIRTUAL_DISK_FLAG_PERMANENT_LIFETIME
            | ATTACH_VIRTUAL_DISK_FLAG_NO_DRIVE_LETTER
            | access;
        let handle = HANDLE(disk.as_raw_handle());
        // SAFETY: the handle is open as long as `disk`; no parameters and no security
        // descriptor ask for the defaults; the call is not overlapped.
        let answer = unsafe { attach_virtual_disk(handle, None, flags, 0, None, None) };
        win32::check("AttachVirtualDisk", answer)
    }

    fn detach_virtual_disk(&self, request: &At, deadline: Deadline) -> PortResult<()> {
        self.in_time(deadline)?;
        let disk = open(request, Purpose::Change)?;
        let handle = HANDLE(disk.as_raw_handle());
        // SAFETY: the handle is open as long as `disk`.
        let answer = unsafe { detach_virtual_disk(handle, DETACH_VIRTUAL_DISK_FLAG_NONE, 0) };
        win32::check("DetachVirtualDisk", answer)
    }

    fn expand_virtual_disk(
        &self,
        request: &ExpandVirtualDisk,
        deadline: Deadline,
    ) -> PortResult<()> {
        self.in_time(deadline)?;
        let disk = open(&request.at, Purpose::Change)?;
        let parameters = EXPAND_VIRTUAL_DISK_PARAMETERS {
            Version: EXPAND_VIRTUAL_DISK_VERSION_1,
            Anonymous: EXPAND_VIRTUAL_DISK_PARAMETERS_0 {
                Version1: EXPAND_VIRTUAL_DISK_PARAMETERS_0_0 {
                    NewSize: request.size,
                },
            },
        };
        // SAFETY: the handle is open as long as `disk`; the parameters are of the version
        // that they name and live longer than the call, which is not overlapped.
        let answer = unsafe {
            expand_virtual_disk(
                HANDLE(disk.as_raw_handle()),
                EXPAND_VIRTUAL_DISK_FLAG_NONE,
                &raw const parameters,
                None,
            )
        };
        win32::check("ExpandVirtualDisk", answer)
    }

    fn virtual_disk_path(&self, request: &At, deadline: Deadline) -> PortResult<DevicePath> {
        self.in_time(deadline)?;
        let disk = open(request, Purpose::Look)?;
        let mut buffer = vec![0_u16; 64];
        loop {
            let mut size = u32::try_from(size_of_val(buffer.as_slice())).unwrap_or(u32::MAX);
            // SAFETY: the handle is open as long as `disk`; the buffer is writable for the
            // size in bytes that goes with it.
            let answer = unsafe {
                GetVirtualDiskPhysicalPath(
                    HANDLE(disk.as_raw_handle()),
                    &raw mut size,
                    PWSTR(buffer.as_mut_ptr()),
                )
            };
            if answer != ERROR_INSUFFICIENT_BUFFER {
                win32::check("GetVirtualDiskPhysicalPath", answer)?;
                return Ok(DevicePath(win32::text(&buffer)));
            }
            buffer.resize(buffer.len().saturating_mul(2).max(size as usize / 2), 0);
        }
    }
}

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To ask about it, also while it is in use.
    Look,
    Read,
    Change,
}

/// Opens a VHDX file by its real path, inside its root.
fn open(at: &At, purpose: Purpose) -> PortResult<OwnedHandle> {
    let file = object::open(at, FILE_READ_ATTRIBUTES.0, Last::Follow)?;
    let path = HSTRING::from(object::real_path(&file)?);
    // Its sharing would stand in the way.
    drop(file);
    let parameters = OPEN_VIRTUAL_DISK_PARAMETERS {
        Version: OPEN_VIRTUAL_DISK_VERSION_2,
        Anonymous: OPEN_VIRTUAL_DISK_PARAMETERS_0 {
            Version2: OPEN_VIRTUAL_DISK_PARAMETERS_0_1 {
                GetInfoOnly: (purpose == Purpose::Look).into(),
                ReadOnly: (purpose == Purpose::Read).into(),
                ..Default::default()
            },
        },
    };
    let mut handle = HANDLE::default();
    // SAFETY: the parameters are of the version that they name, which wants no access mask;
    // all pointers are to locals that live longer than the call.
    let answer = unsafe {
        OpenVirtualDisk(
            &raw const VHDX,
            &path,
            VIRTUAL_DISK_ACCESS_NONE,
            OPEN_VIRTUAL_DISK_FLAG_NONE,
            Some(&raw const parameters),
            &raw mut handle,
        )
    };
    win32::check("OpenVirtualDisk", answer)?;
    Ok(owned(handle))
}

fn information(
    disk: &OwnedHandle,
    version: GET_VIRTUAL_DISK_INFO_VERSION,
) -> PortResult<GET_VIRTUAL_DISK_INFO> {
    let mut information = GET_VIRTUAL_DISK_INFO {
        Version: version,
        ..Default::default()
    };
    let mut size = u32::try_from(size_of_val(&information)).unwrap_or_default();
    // SAFETY: the handle is open as long as `disk`; the structure is writable for the size
    // that goes with it.
    let answer = unsafe {
        GetVirtualDiskInformation(
            HANDLE(disk.as_raw_handle()),
            &raw mut size,
            &raw mut information,
            None,
        )
    };
    win32::check("GetVirtualDiskInformation", answer)?;
    Ok(information)
}

fn owned(handle: HANDLE) -> OwnedHandle {
    // SAFETY: called right after a function of the virtual disks' API has succeeded, so the
    // handle is open and nobody else's.
    unsafe { OwnedHandle::from_raw_handle(handle.0) }
}
