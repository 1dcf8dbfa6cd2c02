//! Directories, files and links.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};

use windows::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_DIRECTORY, ERROR_FILE_NOT_FOUND,
    ERROR_FILE_TOO_LARGE, ERROR_INVALID_NAME, ERROR_NOT_SUPPORTED, ERROR_PATH_NOT_FOUND,
};
use windows::Win32::Storage::FileSystem::{
    CreateSymbolicLinkW, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, FILE_GENERIC_READ,
    FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES, MOVE_FILE_FLAGS, MOVEFILE_REPLACE_EXISTING,
    MOVEFILE_WRITE_THROUGH, MoveFileExW, SYMBOLIC_LINK_FLAG_DIRECTORY,
};
use windows::core::HSTRING;

use super::directory::{self, Entry};
use super::object::{self, Last};
use super::{Os, win32};
use crate::clock::Deadline;
use crate::os::{
    At, Bytes, CreateLink, DirEntry, Files, Reach, ReadFile, RemoveTree, Rename, Reparse, Stat,
    WriteFile,
};
use crate::path::HostPath;
use crate::port::PortResult;

const MISSING: [windows::Win32::Foundation::WIN32_ERROR; 2] =
    [ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND];

impl Files for Os {
    fn stat(&self, request: &At, deadline: Deadline) -> PortResult<Stat> {
        self.in_time(deadline)?;
        object::stat(&object::open(
            request,
            FILE_READ_ATTRIBUTES.0,
            Last::Itself,
        )?)
    }

    fn list(&self, request: &At, deadline: Deadline) -> PortResult<Vec<DirEntry>> {
        self.in_time(deadline)?;
        let access = FILE_LIST_DIRECTORY.0 | FILE_READ_ATTRIBUTES.0;
        let opened = object::open(request, access, Last::Follow)?;
        if !object::stat(&opened)?.directory {
            return Err(win32::error("FindFirstFileW", ERROR_DIRECTORY));
        }
        directory::entries(&opened)?
            .into_iter()
            .filter_map(|entry| list_entry(&opened, entry).transpose())
            .collect()
    }

    fn create_directories(&self, request: &At, deadline: Deadline) -> PortResult<bool> {
        self.in_time(deadline)?;
        if is_directory(request)? {
            return Ok(false);
        }
        if let Some(parent) = request.path.parent() {
            let parent = At {
                path: parent,
                within: request.within.clone(),
            };
            self.create_directories(&parent, deadline)?;
        }
        let place = object::place(request)?;
        match fs::create_dir(&place.path)
            .map_err(|error| win32::from_io("CreateDirectoryW", &error))
        {
            Ok(()) => Ok(true),
            // Somebody else has made it meanwhile, or a link that leads nowhere is in the way.
            Err(error) if win32::is(&error, &[ERROR_ALREADY_EXISTS]) => match is_directory(request)
            {
                Ok(true) => Ok(false),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    fn remove_directory(&self, request: &At, deadline: Deadline) -> PortResult<()> {
        self.in_time(deadline)?;
        let object = object::open(request, FILE_READ_ATTRIBUTES.0, Last::Itself)?;
        if !object::stat(&object)?.directory {
            return Err(win32::error("RemoveDirectoryW", ERROR_DIRECTORY));
        }
        drop(object);
        let place = object::place(request)?;
        fs::remove_dir(&place.path).map_err(|error| win32::from_io("RemoveDirectoryW", &error))
    }

    fn remove_tree(&self, request: &RemoveTree, deadline: Deadline) -> PortResult<()> {
        self.in_time(deadline)?;
        directory::remove_tree(request)
    }

    fn remove_file(&self, request: &At, deadline: Deadline) -> PortResult<()> {
        self.in_time(deadline)?;
        let object = object::open(request, FILE_READ_ATTRIBUTES.0, Last::Itself)?;
        if object::stat(&object)?.directory {
            return Err(win32::error("DeleteFileW", ERROR_ACCESS_DENIED));
        }
        drop(object);
        let place = object::place(request)?;
        fs::remove_file(&place.path).map_err(|error| win32::from_io("DeleteFileW", &error))
    }

    fn rename(&self, request: &Rename, deadline: Deadline) -> PortResult<()> {
        self.in_time(deadline)?;
        let to = At {
            path: request.to.clone(),
            within: request.at.within.clone(),
        };
        object::open(&request.at, FILE_READ_ATTRIBUTES.0, Last::Itself)?;
        let from = object::place(&request.at)?;
        let to = object::place(&to)?;
        move_file(&from.path, &to.path, MOVEFILE_WRITE_THROUGH)
    }

    fn read_file(&self, request: &ReadFile, deadline: Deadline) -> PortResult<Bytes> {
        self.in_time(deadline)?;
        let file = object::open(&request.at, FILE_GENERIC_READ.0, Last::Follow)?;
        if object::stat(&file)?.directory {
            return Err(win32::error("CreateFileW", ERROR_ACCESS_DENIED));
        }
        let limit = u64::from(request.limit);
        let mut contents = Vec::new();
        // One more than allowed, since the file may grow meanwhile.
        file.take(limit + 1)
            .read_to_end(&mut contents)
            .map_err(|error| win32::from_io("ReadFile", &error))?;
        match u64::try_from(contents.len()) {
            Ok(length) if length <= limit => Ok(Bytes(contents)),
            _ => Err(win32::error("ReadFile", ERROR_FILE_TOO_LARGE)),
        }
    }

    fn write_file(&self, request: &WriteFile, deadline: Deadline) -> PortResult<()> {
        self.in_time(deadline)?;
        let place = object::place(&request.at)?;
        let new = format!("{}.new", place.path);
        // What a write that was cut off left, whatever it is by now.
        let _ = fs::remove_file(&new);
        write_new(&new, &request.contents.0)
            .map_err(|error| win32::from_io("WriteFile", &error))?;
        let flags = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
        move_file(&new, &place.path, flags).inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })
    }

    fn create_link(&self, request: &CreateLink, deadline: Deadline) -> PortResult<()> {
        const API: &str = "CreateSymbolicLinkW";
        self.in_time(deadline)?;
        let place = object::place(&request.at)?;
        let link = HSTRING::from(place.path.as_str());
        let target = HSTRING::from(request.target.as_str());
        // SAFETY: both strings end in NUL and live longer than the call.
        let made = unsafe { CreateSymbolicLinkW(&link, &target, SYMBOLIC_LINK_FLAG_DIRECTORY) };
        if !made {
            return Err(win32::from_windows(
                API,
                &windows::core::Error::from_thread(),
            ));
        }
        // Not everything that says so has made a link.
        let object = object::open_path(&place.path, FILE_READ_ATTRIBUTES.0, Last::Itself);
        match object.and_then(|object| object::stat(&object))?.reparse {
            Some(Reparse::SymbolicLink { .. }) => Ok(()),
            _ => Err(win32::error(API, ERROR_NOT_SUPPORTED)),
        }
    }

    fn reach(&self, request: &Reach, deadline: Deadline) -> PortResult<()> {
        self.in_time(deadline)?;
        let path = verbatim(&request.target)
            .ok_or_else(|| win32::error("CreateFileW", ERROR_INVALID_NAME))?;
        object::open_path(&path, FILE_READ_ATTRIBUTES.0, Last::Follow).map(drop)
    }
}

/// Whether a directory, or a link to one, stands at the path. Anything else in the way is an
/// error, nothing there is not.
fn is_directory(at: &At) -> PortResult<bool> {
    match object::open(at, FILE_READ_ATTRIBUTES.0, Last::Follow) {
        Ok(object) if object::stat(&object)?.directory => Ok(true),
        Ok(_) => Err(win32::error("CreateDirectoryW", ERROR_ALREADY_EXISTS)),
        Err(error) if win32::is(&error, &MISSING) => Ok(false),
        Err(error) => Err(error),
    }
}

/// An entry with what it is; nothing when it has gone meanwhile.
fn list_entry(directory: &File, entry: Entry) -> PortResult<Option<DirEntry>> {
    let stat = if entry.attributes & FILE_ATTRIBUTE_REPARSE_POINT.0 == 0 {
        Stat {
            directory: entry.attributes & FILE_ATTRIBUTE_DIRECTORY.0 != 0,
            attributes: entry.attributes,
            size: entry.size,
            reparse: None,
        }
    } else {
        let opened = directory::open_entry(directory, &entry.name, FILE_READ_ATTRIBUTES.0);
        match opened.and_then(|object| object::stat(&object)) {
            Ok(stat) => stat,
            Err(error) if win32::is(&error, &MISSING) => return Ok(None),
            Err(error) => return Err(error),
        }
    };
    Ok(Some(DirEntry {
        name: String::from_utf16_lossy(&entry.name),
        stat,
    }))
}

fn write_new(path: &str, contents: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(contents)?;
    file.sync_all()
}

fn move_file(from: &str, to: &str, flags: MOVE_FILE_FLAGS) -> PortResult<()> {
    let (from, to) = (HSTRING::from(from), HSTRING::from(to));
    // SAFETY: both strings end in NUL and live longer than the call.
    unsafe { MoveFileExW(&from, &to, flags) }
        .map_err(|error| win32::from_windows("MoveFileExW", &error))
}

/// A path of the host or a share in the form that Win32 does not change.
fn verbatim(target: &str) -> Option<String> {
    let Some(share) = target
        .strip_prefix(r"\\")
        .filter(|_| !target.starts_with(r"\\?\"))
    else {
        return HostPath::from_kubelet(target)
            .ok()
            .map(|path| path.verbatim());
    };
    let names: Vec<&str> = share.split('\\').filter(|name| !name.is_empty()).collect();
    match *names {
        [] | [_] | ["." | "?", ..] => None,
        // The root of a share.
        [server, share] => Some(format!(r"\\?\UNC\{server}\{share}\")),
        _ => Some(format!(r"\\?\UNC\{}", names.join(r"\"))),
    }
}

#[cfg(test)]
mod tests {
    use super::verbatim;

    #[test]
    fn a_share_and_a_path_are_reached_by_names_that_win32_does_not_change() {
        for (target, expected) in [
            (r"C:\x", Some(r"\\?\C:\x")),
            (r"\\s\share", Some(r"\\?\UNC\s\share\")),
            (r"\\s\share\dir\", Some(r"\\?\UNC\s\share\dir")),
            (r"\\s", None),
            (r"\\.\PhysicalDrive0", None),
            ("relative", None),
        ] {
            assert_eq!(verbatim(target).as_deref(), expected, "{target}");
        }
    }
}
