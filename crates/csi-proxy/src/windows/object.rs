//! Opening what a path names, and keeping it inside its root.
//!
//! Two ways, for two kinds of calls. What reads or removes opens the object, compares the
//! opened object's real path with the real path of the root and works on the handle
//! ([`open`]). What has to name the object to Windows (making, renaming, links, mount
//! points), and has to stay inside a root, holds the directory open and names it by its real
//! path ([`place`]): while a directory is open without sharing its deletion, neither it nor a
//! directory above it can be renamed or removed, and a real path holds no links.

use std::fs::{File, OpenOptions};
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;

use windows::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_FILE_NOT_FOUND, ERROR_INVALID_REPARSE_DATA, ERROR_PATH_NOT_FOUND,
    HANDLE,
};
use windows::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES, FILE_SHARE_DELETE,
    FILE_SHARE_READ, FILE_SHARE_WRITE, GETFINALPATHNAMEBYHANDLE_FLAGS, GetFinalPathNameByHandleW,
    VOLUME_NAME_DOS, VOLUME_NAME_GUID,
};
use windows::Win32::System::IO::DeviceIoControl;
use windows::Win32::System::Ioctl::FSCTL_GET_REPARSE_POINT;

use super::win32;
use crate::os::{At, Reparse, Stat};
use crate::path::HostPath;
use crate::port::{PortError, PortResult};
use crate::reparse;

/// What becomes of a link at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// It is followed.
    Follow,
    /// It is opened itself.
    Itself,
}

/// Opens what a path names, inside its root.
pub(super) fn open(at: &At, access: u32, last: Last) -> PortResult<File> {
    let opened = open_path(&at.path.verbatim(), access, last);
    let Some(root) = &at.within else {
        return opened;
    };
    match opened {
        Ok(file) => {
            check_within(at, root, &real_path(&file)?)?;
            Ok(file)
        }
        Err(error) if win32::is(&error, &[ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND]) => {
            check_missing(at, root)?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}

/// Refuses a path at which nothing is, if the last directory on it that exists does not lie
/// in the root: what is missing outside is nobody's business either.
fn check_missing(at: &At, root: &HostPath) -> PortResult<()> {
    let mut above = at.path.parent();
    while let Some(path) = above {
        if let Ok(directory) = open_path(&path.verbatim(), FILE_READ_ATTRIBUTES.0, Last::Follow) {
            return check_within(at, root, &real_path(&directory)?);
        }
        above = path.parent();
    }
    Ok(())
}

/// Opens a file or directory by a path for Win32.
pub(super) fn open_path(path: &str, access: u32, last: Last) -> PortResult<File> {
    let share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    open_shared(path, access, share.0, last)
}

fn open_shared(path: &str, access: u32, share: u32, last: Last) -> PortResult<File> {
    let flags = match last {
        Last::Follow => FILE_FLAG_BACKUP_SEMANTICS,
        Last::Itself => FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT,
    };
    OpenOptions::new()
        .access_mode(access)
        .share_mode(share)
        .custom_flags(flags.0)
        .open(path)
        .map_err(|error| win32::from_io("CreateFileW", &error))
}

/// Where something is made, moved or removed by name.
pub(super) struct Place {
    /// The directory, open so that it cannot be moved away, where there is a root to stay in.
    _pinned: Option<File>,
    /// The place, by a path for Win32.
    pub(super) path: String,
}

/// The place that a path names, pinned inside its root. The object itself need not exist.
pub(super) fn place(at: &At) -> PortResult<Place> {
    let (Some(parent), Some(name)) = (at.path.parent(), at.path.file_name()) else {
        return Err(win32::error("CreateFileW", ERROR_ACCESS_DENIED));
    };
    let Some(root) = &at.within else {
        return Ok(Place {
            _pinned: None,
            path: at.path.verbatim(),
        });
    };
    // Rights that only read attributes would not count for sharing.
    let access = FILE_LIST_DIRECTORY.0 | FILE_READ_ATTRIBUTES.0;
    let share = FILE_SHARE_READ | FILE_SHARE_WRITE;
    let directory = open_shared(&parent.verbatim(), access, share.0, Last::Follow)?;
    let real = real_path(&directory)?;
    let path = format!(r"{}\{name}", real.trim_end_matches('\\'));
    check_within(at, root, &path)?;
    Ok(Place {
        _pinned: Some(directory),
        path,
    })
}

fn check_within(at: &At, root: &HostPath, real: &str) -> PortResult<()> {
    let opened = open_path(&root.verbatim(), FILE_READ_ATTRIBUTES.0, Last::Follow)?;
    if is_within(real, &real_path(&opened)?) {
        return Ok(());
    }
    Err(PortError::Outside {
        path: at.path.to_string(),
        root: root.to_string(),
    })
}

/// Whether a real path is the root's, or lies below it.
fn is_within(path: &str, root: &str) -> bool {
    let root = root.trim_end_matches('\\').to_uppercase();
    path.to_uppercase()
        .strip_prefix(&root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('\\'))
}

/// The path of an open object without any links, with `\\?\` before it: by a drive or mount
/// point, or by its volume's name where that is mounted nowhere.
pub(super) fn real_path(file: &File) -> PortResult<String> {
    match final_path(file, VOLUME_NAME_DOS) {
        Err(error) if win32::is(&error, &[ERROR_PATH_NOT_FOUND]) => {
            final_path(file, VOLUME_NAME_GUID)
        }
        answer => answer,
    }
}

fn final_path(file: &File, form: GETFINALPATHNAMEBYHANDLE_FLAGS) -> PortResult<String> {
    let mut buffer = vec![0; 512];
    loop {
        // SAFETY: the handle is open as long as `file`; the buffer's length goes with it.
        let length =
            unsafe { GetFinalPathNameByHandleW(HANDLE(file.as_raw_handle()), &mut buffer, form) };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match length {
            0 => {
                let error = windows::core::Error::from_thread();
                return Err(win32::from_windows("GetFinalPathNameByHandleW", &error));
            }
            // Without the NUL when it fits, with it when it does not.
            length if length < buffer.len() => return Ok(win32::text(&buffer[..length])),
            length => buffer.resize(length, 0),
        }
    }
}

/// What an open object is.
pub(super) fn stat(file: &File) -> PortResult<Stat> {
    let metadata = file
        .metadata()
        .map_err(|error| win32::from_io("GetFileInformationByHandle", &error))?;
    let attributes = metadata.file_attributes();
    let is_reparse_point = attributes & FILE_ATTRIBUTE_REPARSE_POINT.0 != 0;
    Ok(Stat {
        directory: attributes & FILE_ATTRIBUTE_DIRECTORY.0 != 0,
        attributes,
        size: metadata.file_size(),
        reparse: is_reparse_point.then(|| reparse_data(file)).transpose()?,
    })
}

/// `MAXIMUM_REPARSE_DATA_BUFFER_SIZE`
const REPARSE_DATA: u32 = 16 * 1024;

fn reparse_data(file: &File) -> PortResult<Reparse> {
    const API: &str = "FSCTL_GET_REPARSE_POINT";
    let mut buffer = vec![0_u8; REPARSE_DATA as usize];
    let mut length = 0;
    // SAFETY: the handle is open as long as `file`; the buffer is writable for the length
    // that goes with it, and both live longer than the call, which is not overlapped.
    unsafe {
        DeviceIoControl(
            HANDLE(file.as_raw_handle()),
            FSCTL_GET_REPARSE_POINT,
            None,
            0,
            Some(buffer.as_mut_ptr().cast()),
            REPARSE_DATA,
            Some(&raw mut length),
            None,
        )
    }
    .map_err(|error| win32::from_windows(API, &error))?;
    buffer.truncate(length as usize);
    reparse::parse(&buffer).map_err(|_| win32::error(API, ERROR_INVALID_REPARSE_DATA))
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn within_compares_whole_names_without_case() {
        let root = r"\\?\C:\var\lib\kubelet";
        assert!(is_within(root, root));
        assert!(is_within(r"\\?\c:\VAR\lib\kubelet\pods", root));
        assert!(!is_within(r"\\?\C:\var\lib\kubelet-x", root));
        assert!(!is_within(r"\\?\C:\var\lib", root));
        assert!(is_within(r"\\?\C:\var", r"\\?\C:\"));
    }
}
