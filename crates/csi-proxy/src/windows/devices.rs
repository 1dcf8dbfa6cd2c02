//! Disks and volumes as devices.

use std::fs::{File, OpenOptions};
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;

use windows::Win32::Foundation::{
    ERROR_HANDLE_EOF, ERROR_INVALID_DATA, ERROR_SECTOR_NOT_FOUND, GENERIC_READ, HANDLE,
};
use windows::Win32::System::IO::DeviceIoControl;
use windows::Win32::System::Ioctl::{
    FSCTL_ALLOW_EXTENDED_DASD_IO, IOCTL_STORAGE_GET_DEVICE_NUMBER, IOCTL_STORAGE_QUERY_PROPERTY,
    PropertyStandardQuery, STORAGE_DEVICE_NUMBER, STORAGE_PROPERTY_QUERY, StorageDeviceIdProperty,
};

use super::{Os, win32};
use crate::clock::Deadline;
use crate::ids::DevicePath;
use crate::os::{Bytes, DeviceNumber, Devices, ReadRange};
use crate::port::{PortError, PortResult};

/// What a descriptor of page 83 may take.
const DESCRIPTOR: usize = 64 * 1024;

impl Devices for Os {
    fn device_number(&self, request: &DevicePath, deadline: Deadline) -> PortResult<DeviceNumber> {
        self.in_time(deadline)?;
        let device = open(request, 0)?;
        let answer = control(
            &device,
            (
                "IOCTL_STORAGE_GET_DEVICE_NUMBER",
                IOCTL_STORAGE_GET_DEVICE_NUMBER,
            ),
            &[],
            size_of::<STORAGE_DEVICE_NUMBER>(),
        )?;
        let number = |at: usize| {
            let bytes = answer.get(at..).and_then(|bytes| bytes.first_chunk());
            bytes.copied().map(u32::from_le_bytes)
        };
        match (number(0), number(4), number(8)) {
            (Some(device_type), Some(number), Some(partition)) => Ok(DeviceNumber {
                device_type,
                number,
                // 0 is the whole disk, -1 a device without partitions.
                partition: Some(partition).filter(|number| ![0, u32::MAX].contains(number)),
            }),
            _ => Err(win32::error(
                "IOCTL_STORAGE_GET_DEVICE_NUMBER",
                ERROR_INVALID_DATA,
            )),
        }
    }

    fn device_ids(&self, request: &DevicePath, deadline: Deadline) -> PortResult<Bytes> {
        self.in_time(deadline)?;
        let device = open(request, 0)?;
        // STORAGE_PROPERTY_QUERY: two numbers of 32 bits and a byte that is not used.
        let mut query = [0; size_of::<STORAGE_PROPERTY_QUERY>()];
        query[..4].copy_from_slice(&StorageDeviceIdProperty.0.to_le_bytes());
        query[4..8].copy_from_slice(&PropertyStandardQuery.0.to_le_bytes());
        control(
            &device,
            ("IOCTL_STORAGE_QUERY_PROPERTY", IOCTL_STORAGE_QUERY_PROPERTY),
            &query,
            DESCRIPTOR,
        )
        .map(Bytes)
    }

    fn read_range(&self, request: &ReadRange, deadline: Deadline) -> PortResult<Bytes> {
        self.in_time(deadline)?;
        let device = open(&request.device, GENERIC_READ.0)?;
        // A volume ends where its file system does, unless this is asked for. A disk does not
        // know the request.
        let whole = ("FSCTL_ALLOW_EXTENDED_DASD_IO", FSCTL_ALLOW_EXTENDED_DASD_IO);
        let _ = control(&device, whole, &[], 0);
        let mut bytes = vec![0; request.length as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            let offset = request.offset.saturating_add(filled as u64);
            match device.seek_read(&mut bytes[filled..], offset) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) => match win32::from_io("ReadFile", &error) {
                    end if is_end(&end) => break,
                    error => return Err(error),
                },
            }
        }
        bytes.truncate(filled);
        Ok(Bytes(bytes))
    }
}

fn is_end(error: &PortError) -> bool {
    win32::is(error, &[ERROR_HANDLE_EOF, ERROR_SECTOR_NOT_FOUND])
}

fn open(device: &DevicePath, access: u32) -> PortResult<File> {
    OpenOptions::new()
        .access_mode(access)
        .open(&device.0)
        .map_err(|error| win32::from_io("CreateFileW", &error))
}

/// Sends a request, with its name, to a device; answers what it wrote, at most `size` bytes.
fn control(
    device: &File,
    (name, code): (&str, u32),
    input: &[u8],
    size: usize,
) -> PortResult<Vec<u8>> {
    // Numbers of 64 bits, since drivers want their structures aligned.
    let mut output = vec![0_u64; size.div_ceil(8)];
    let aligned: Vec<u64> = input
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect();
    let mut length = 0;
    // SAFETY: the handle is open as long as `device`; both buffers have at least the lengths
    // that go with them and live longer than the call, which is not overlapped.
    unsafe {
        DeviceIoControl(
            HANDLE(device.as_raw_handle()),
            code,
            (!input.is_empty()).then(|| aligned.as_ptr().cast()),
            u32::try_from(input.len()).unwrap_or_default(),
            (size > 0).then(|| output.as_mut_ptr().cast()),
            u32::try_from(size).unwrap_or_default(),
            Some(&raw mut length),
            None,
        )
    }
    .map_err(|error| win32::from_windows(name, &error))?;
    let bytes = output.iter().flat_map(|word| word.to_ne_bytes());
    Ok(bytes.take(length as usize).collect())
}
