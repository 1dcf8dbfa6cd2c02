//! Where volumes are mounted.

use windows::Win32::Foundation::{ERROR_INVALID_DATA, ERROR_MORE_DATA};
use windows::Win32::Storage::FileSystem::{
    DeleteVolumeMountPointW, FILE_READ_ATTRIBUTES, GetDiskFreeSpaceExW,
    GetVolumeInformationByHandleW, GetVolumeNameForVolumeMountPointW,
    GetVolumePathNamesForVolumeNameW, SetVolumeMountPointW,
};
use windows::core::HSTRING;

use std::os::windows::io::AsRawHandle;

use windows::Win32::Foundation::HANDLE;

use super::object::{self, Last, Place};
use super::{Os, win32};
use crate::clock::Deadline;
use crate::ids::VolumeId;
use crate::os::{At, MountPoints, SetMountPoint, Space, VolumeInformation};
use crate::port::PortResult;

/// `FILE_READ_ONLY_VOLUME`
const READ_ONLY_VOLUME: u32 = 0x0008_0000;

impl MountPoints for Os {
    fn set_mount_point(&self, request: &SetMountPoint, deadline: Deadline) -> PortResult<()> {
        self.in_time(deadline)?;
        let (_place, path) = mount_point(&request.at)?;
        let volume = HSTRING::from(request.volume.as_str());
        // SAFETY: both strings end in NUL and live longer than the call.
        unsafe { SetVolumeMountPointW(&path, &volume) }
            .map_err(|error| win32::from_windows("SetVolumeMountPointW", &error))
    }

    fn delete_mount_point(&self, request: &At, deadline: Deadline) -> PortResult<()> {
        self.in_time(deadline)?;
        let (_place, path) = mount_point(request)?;
        // SAFETY: the string ends in NUL and lives longer than the call.
        unsafe { DeleteVolumeMountPointW(&path) }
            .map_err(|error| win32::from_windows("DeleteVolumeMountPointW", &error))
    }

    fn mounted_volume(&self, request: &At, deadline: Deadline) -> PortResult<VolumeId> {
        const API: &str = "GetVolumeNameForVolumeMountPointW";
        self.in_time(deadline)?;
        let (_place, path) = mount_point(request)?;
        // The name of a volume has 49 characters and a NUL.
        let mut name = [0; 64];
        // SAFETY: the string ends in NUL; the buffer's length goes with it.
        unsafe { GetVolumeNameForVolumeMountPointW(&path, &mut name) }
            .map_err(|error| win32::from_windows(API, &error))?;
        VolumeId::new(&win32::text(&name)).map_err(|_| win32::error(API, ERROR_INVALID_DATA))
    }

    fn mount_points_of(&self, request: &VolumeId, deadline: Deadline) -> PortResult<Vec<String>> {
        self.in_time(deadline)?;
        let volume = HSTRING::from(request.as_str());
        let mut buffer = vec![0; 512];
        loop {
            let mut length = 0;
            // SAFETY: the string ends in NUL; the buffer's length goes with it, and the
            // length that is needed is written to a local.
            let answer = unsafe {
                GetVolumePathNamesForVolumeNameW(&volume, Some(&mut buffer), &raw mut length)
            };
            let error = match answer {
                Ok(()) => return Ok(strings(&buffer)),
                Err(error) => win32::from_windows("GetVolumePathNamesForVolumeNameW", &error),
            };
            if !win32::is(&error, &[ERROR_MORE_DATA]) {
                return Err(error);
            }
            buffer.resize(buffer.len().saturating_mul(2).max(length as usize), 0);
        }
    }

    fn space(&self, request: &At, deadline: Deadline) -> PortResult<Space> {
        self.in_time(deadline)?;
        let object = object::open(request, FILE_READ_ATTRIBUTES.0, Last::Follow)?;
        let real = object::real_path(&object)?;
        let directory = match object::stat(&object)?.directory {
            true => real.as_str(),
            false => real
                .rsplit_once('\\')
                .map_or(real.as_str(), |parts| parts.0),
        };
        let directory = HSTRING::from(format!(r"{}\", directory.trim_end_matches('\\')));
        let mut space = Space {
            total: 0,
            available: 0,
        };
        // SAFETY: the string ends in NUL; the numbers are written to locals.
        unsafe {
            GetDiskFreeSpaceExW(
                &directory,
                Some(&raw mut space.available),
                Some(&raw mut space.total),
                None,
            )
        }
        .map_err(|error| win32::from_windows("GetDiskFreeSpaceExW", &error))?;
        Ok(space)
    }

    fn volume_information(
        &self,
        request: &At,
        deadline: Deadline,
    ) -> PortResult<VolumeInformation> {
        self.in_time(deadline)?;
        let object = object::open(request, FILE_READ_ATTRIBUTES.0, Last::Follow)?;
        let mut flags = 0;
        let mut name = [0; 64];
        // SAFETY: the handle is open as long as `object`; the buffer's length goes with it,
        // and the flags are written to a local.
        unsafe {
            GetVolumeInformationByHandleW(
                HANDLE(object.as_raw_handle()),
                None,
                None,
                None,
                Some(&raw mut flags),
                Some(&mut name),
            )
        }
        .map_err(|error| win32::from_windows("GetVolumeInformationByHandleW", &error))?;
        Ok(VolumeInformation {
            file_system: win32::text(&name),
            read_only: flags & READ_ONLY_VOLUME != 0,
        })
    }
}

/// A path as the functions for mount points take it, with a `\` at its end, and what keeps it
/// in its place.
fn mount_point(at: &At) -> PortResult<(Option<Place>, HSTRING)> {
    if at.path.file_name().is_none() {
        // A drive is its own place.
        object::open(at, FILE_READ_ATTRIBUTES.0, Last::Follow)?;
        return Ok((None, HSTRING::from(at.path.as_str())));
    }
    let place = object::place(at)?;
    let path = HSTRING::from(format!(r"{}\", place.path));
    Ok((Some(place), path))
}

/// Strings that end in NUL, one after the other, with an empty one at the end.
fn strings(buffer: &[u16]) -> Vec<String> {
    buffer
        .split(|unit| *unit == 0)
        .take_while(|units| !units.is_empty())
        .map(String::from_utf16_lossy)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::strings;

    #[test]
    fn a_list_of_strings_ends_at_the_empty_one() {
        let wide = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        assert_eq!(
            strings(&wide("E:\\\0C:\\mnt\\\0\0rest\0")),
            [r"E:\", r"C:\mnt\"]
        );
        assert_eq!(strings(&wide("\0\0")), Vec::<String>::new());
    }
}
