//! Directories by handle: their entries, and removing trees without following a link.

use std::fs::File;
use std::os::windows::io::{AsRawHandle, FromRawHandle};

use windows::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows::Wdk::Storage::FileSystem::{
    FILE_OPEN_FOR_BACKUP_INTENT, FILE_OPEN_REPARSE_POINT, FILE_SYNCHRONOUS_IO_NONALERT, NtOpenFile,
};
use windows::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_DIRECTORY, ERROR_FILE_NOT_FOUND, ERROR_FILENAME_EXCED_RANGE,
    ERROR_INVALID_DATA, ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER, ERROR_NO_MORE_FILES,
    ERROR_NOT_SUPPORTED, HANDLE, OBJ_CASE_INSENSITIVE, UNICODE_STRING, WIN32_ERROR,
};
use windows::Win32::Storage::FileSystem::{
    DELETE, DeleteVolumeMountPointW, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY,
    FILE_BASIC_INFO, FILE_DISPOSITION_FLAG_DELETE, FILE_DISPOSITION_FLAG_IGNORE_READONLY_ATTRIBUTE,
    FILE_DISPOSITION_FLAG_POSIX_SEMANTICS, FILE_DISPOSITION_INFO, FILE_DISPOSITION_INFO_EX,
    FILE_DISPOSITION_INFO_EX_FLAGS, FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES, FILE_SHARE_DELETE,
    FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_WRITE_ATTRIBUTES, FileBasicInfo, FileDispositionInfo,
    FileDispositionInfoEx, FileIdBothDirectoryInfo, GetFileInformationByHandleEx, SYNCHRONIZE,
    SetFileInformationByHandle,
};
use windows::Win32::System::IO::IO_STATUS_BLOCK;
use windows::core::{HSTRING, PWSTR};

use super::object::{self, Last};
use super::win32;
use crate::os::{RemoveTree, Reparse, Stat};
use crate::port::PortResult;

/// What is needed to look into an object and to remove it.
const REMOVE: u32 = DELETE.0
    | FILE_LIST_DIRECTORY.0
    | FILE_READ_ATTRIBUTES.0
    | FILE_WRITE_ATTRIBUTES.0
    | SYNCHRONIZE.0;

/// What file systems answer that do not know the newer way to remove, or not all of its
/// flags.
const UNKNOWN: [WIN32_ERROR; 4] = [
    ERROR_ACCESS_DENIED,
    ERROR_INVALID_PARAMETER,
    ERROR_INVALID_FUNCTION,
    ERROR_NOT_SUPPORTED,
];

/// An entry of a directory, as its listing shows it.
pub(super) struct Entry {
    /// Its name, which need not be Unicode.
    pub(super) name: Vec<u16>,
    pub(super) attributes: u32,
    pub(super) size: u64,
}

/// The entries of an open directory, without `.` and `..`.
pub(super) fn entries(directory: &File) -> PortResult<Vec<Entry>> {
    const API: &str = "GetFileInformationByHandleEx";
    let mut entries = Vec::new();
    // Numbers of 64 bits, since the records in it are aligned so.
    let mut buffer = vec![0_u64; 8 * 1024];
    let size = u32::try_from(size_of_val(buffer.as_slice())).unwrap_or(u32::MAX);
    loop {
        // SAFETY: the handle is open as long as `directory`; the buffer is writable for the
        // size that goes with it.
        let read = unsafe {
            GetFileInformationByHandleEx(
                HANDLE(directory.as_raw_handle()),
                FileIdBothDirectoryInfo,
                buffer.as_mut_ptr().cast(),
                size,
            )
        };
        match read.map_err(|error| win32::from_windows(API, &error)) {
            Ok(()) => {}
            Err(error) if win32::is(&error, &[ERROR_NO_MORE_FILES]) => return Ok(entries),
            Err(error) => return Err(error),
        }
        let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let records = records(&bytes).ok_or_else(|| win32::error(API, ERROR_INVALID_DATA))?;
        entries.extend(records);
    }
}

/// Reads records of the type `FILE_ID_BOTH_DIR_INFO`; nothing when they are malformed.
fn records(mut bytes: &[u8]) -> Option<Vec<Entry>> {
    const DOT: u16 = b'.' as u16;
    let mut entries = Vec::new();
    loop {
        let next = number(bytes, 0)?;
        let name_length = usize::try_from(number(bytes, 60)?).ok()?;
        let (units, _) = bytes.get(104..)?.get(..name_length)?.as_chunks();
        let name: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
        if !matches!(*name, [DOT] | [DOT, DOT]) {
            entries.push(Entry {
                name,
                attributes: number(bytes, 56)?,
                size: u64::from_le_bytes(*bytes.get(40..)?.first_chunk()?),
            });
        }
        if next == 0 {
            return Some(entries);
        }
        bytes = bytes.get(usize::try_from(next).ok()?..)?;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Opens an entry of an open directory itself, whatever stands there by now: nothing on the
/// way to it can be swapped.
pub(super) fn open_entry(directory: &File, name: &[u16], access: u32) -> PortResult<File> {
    const API: &str = "NtOpenFile";
    let length = u16::try_from(size_of_val(name))
        .map_err(|_| win32::error(API, ERROR_FILENAME_EXCED_RANGE))?;
    let name = UNICODE_STRING {
        Length: length,
        MaximumLength: length,
        Buffer: PWSTR(name.as_ptr().cast_mut()),
    };
    let attributes = OBJECT_ATTRIBUTES {
        Length: u32::try_from(size_of::<OBJECT_ATTRIBUTES>()).unwrap_or_default(),
        RootDirectory: HANDLE(directory.as_raw_handle()),
        ObjectName: &raw const name,
        Attributes: OBJ_CASE_INSENSITIVE,
        ..Default::default()
    };
    let share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    let options =
        FILE_OPEN_REPARSE_POINT | FILE_OPEN_FOR_BACKUP_INTENT | FILE_SYNCHRONOUS_IO_NONALERT;
    let mut handle = HANDLE::default();
    let mut status = IO_STATUS_BLOCK::default();
    // SAFETY: all pointers are to locals that live longer than the call; Windows does not
    // write to the name although its type would allow it; the directory is open.
    let answer = unsafe {
        NtOpenFile(
            &raw mut handle,
            access | SYNCHRONIZE.0,
            &raw const attributes,
            &raw mut status,
            share.0,
            options.0,
        )
    };
    win32::check_nt(API, answer)?;
    // SAFETY: the call succeeded, so the handle is open and this one's alone.
    Ok(unsafe { File::from_raw_handle(handle.0) })
}

/// Removes a tree, or its contents.
pub(super) fn remove_tree(request: &RemoveTree) -> PortResult<()> {
    let root = object::open(&request.at, REMOVE, Last::Itself)?;
    let stat = object::stat(&root)?;
    let plain = is_plain_directory(&stat);
    if request.keep_root && !plain {
        return Err(win32::error("RemoveDirectoryW", ERROR_DIRECTORY));
    }
    if plain {
        remove_contents(&root)?;
    }
    match request.keep_root {
        true => Ok(()),
        false => remove(&root, &stat),
    }
}

fn is_plain_directory(stat: &Stat) -> bool {
    stat.directory && stat.reparse.is_none()
}

/// Removes what is in a directory. The directories on the way down are held open, each
/// opened in the one above: that is what makes it safe against a link put there meanwhile.
fn remove_contents(root: &File) -> PortResult<()> {
    let root = root
        .try_clone()
        .map_err(|error| win32::from_io("DuplicateHandle", &error))?;
    let entries_of_root = entries(&root)?;
    let mut way = vec![(root, entries_of_root)];
    while let Some((directory, rest)) = way.last_mut() {
        let Some(entry) = rest.pop() else {
            let emptied = way.pop();
            if let (Some((directory, _)), false) = (emptied, way.is_empty()) {
                remove(&directory, &object::stat(&directory)?)?;
            }
            continue;
        };
        let object = match open_entry(directory, &entry.name, REMOVE) {
            Err(error) if win32::is(&error, &[ERROR_FILE_NOT_FOUND]) => continue,
            opened => opened?,
        };
        let stat = object::stat(&object)?;
        if is_plain_directory(&stat) {
            let inside = entries(&object)?;
            way.push((object, inside));
        } else {
            remove(&object, &stat)?;
        }
    }
    Ok(())
}

/// Removes an open object. It is gone when this returns, or when the last handle to it is
/// closed on file systems that do not know better.
fn remove(object: &File, stat: &Stat) -> PortResult<()> {
    if matches!(stat.reparse, Some(Reparse::MountPoint { .. })) {
        forget_mount_point(object)?;
    }
    let all = FILE_DISPOSITION_INFO_EX {
        Flags: FILE_DISPOSITION_INFO_EX_FLAGS(
            FILE_DISPOSITION_FLAG_DELETE.0
                | FILE_DISPOSITION_FLAG_POSIX_SEMANTICS.0
                | FILE_DISPOSITION_FLAG_IGNORE_READONLY_ATTRIBUTE.0,
        ),
    };
    match set_information(object, FileDispositionInfoEx, &all) {
        Err(error) if win32::is(&error, &UNKNOWN) => {}
        answer => return answer,
    }
    if stat.attributes & FILE_ATTRIBUTE_READONLY.0 != 0 {
        // What is zero stays as it is.
        let writable = FILE_BASIC_INFO {
            FileAttributes: FILE_ATTRIBUTE_NORMAL.0,
            ..Default::default()
        };
        set_information(object, FileBasicInfo, &writable)?;
    }
    let plain = FILE_DISPOSITION_INFO { DeleteFile: true };
    set_information(object, FileDispositionInfo, &plain)
}

/// Lets Windows' mount manager know that a mount point goes. Removing it goes on without:
/// what stays then is an entry that leads nowhere.
fn forget_mount_point(object: &File) -> PortResult<()> {
    let path = HSTRING::from(format!(r"{}\", object::real_path(object)?));
    // SAFETY: the string ends in NUL and lives longer than the call.
    let _ = unsafe { DeleteVolumeMountPointW(&path) };
    Ok(())
}

fn set_information<T>(
    object: &File,
    class: windows::Win32::Storage::FileSystem::FILE_INFO_BY_HANDLE_CLASS,
    information: &T,
) -> PortResult<()> {
    // SAFETY: the handle is open as long as `object`; each caller passes the structure that
    // belongs to the class.
    unsafe {
        SetFileInformationByHandle(
            HANDLE(object.as_raw_handle()),
            class,
            std::ptr::from_ref(information).cast(),
            u32::try_from(size_of::<T>()).unwrap_or_default(),
        )
    }
    .map_err(|error| win32::from_windows("SetFileInformationByHandle", &error))
}
