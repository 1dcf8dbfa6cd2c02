//! The directory of VHDX files: the only memory that the driver has.

use std::collections::BTreeMap;

use csi_proxy::clock::Deadline;
use csi_proxy::error::Code;
use csi_proxy::os::{At, LockName, RemoveTree, VirtualDiskInfo};
use csi_proxy::port::{PortError, SystemCode};
use csi_proxy::{Error, ErrorKind, Host, HostPath, Result};

use super::id;
use crate::driver::none_if_missing;

/// The end of a volume's file: `<volume id>.vhdx`.
const FILE: &str = ".vhdx";
/// The end of a file that is being made. An id has no dot, so no volume is called so.
const UNFINISHED: &str = ".unfinished.vhdx";
/// The end of the file with a volume's context.
const CONTEXT: &str = ".context.json";
/// `ERROR_INVALID_PARAMETER`: what a file is opened with that is no VHDX. No parameter of
/// ours is wrong then.
const NO_VHDX: SystemCode = SystemCode::Win32(87);
/// What else says that a file is no virtual disk, or a damaged one, and stays so: footer,
/// header and block table (`ERROR_VHD_…`), `ERROR_VIRTDISK_NOT_VIRTUAL_DISK`,
/// `ERROR_FILE_CORRUPT`.
///
/// Source: <https://learn.microsoft.com/windows/win32/com/com-error-codes-10>, and
/// <https://learn.microsoft.com/windows/win32/debug/system-error-codes--1300-1699->
const DAMAGED: [u32; 14] = [
    0xC03A_0001,
    0xC03A_0002,
    0xC03A_0003,
    0xC03A_0004,
    0xC03A_0005,
    0xC03A_0006,
    0xC03A_0007,
    0xC03A_0008,
    0xC03A_000A,
    0xC03A_000B,
    0xC03A_000C,
    0xC03A_0013,
    0xC03A_0015,
    1392,
];

/// The directory, for one operation.
pub(super) struct Pool<'a> {
    pub(super) host: &'a Host,
    pub(super) directory: &'a HostPath,
    pub(super) operation: &'static str,
    pub(super) deadline: Deadline,
}

/// What the directory holds.
pub(super) struct Contents {
    /// The ids of the volumes with the sizes of their files in bytes.
    pub(super) files: BTreeMap<String, u64>,
    /// The files of volumes whose making was cut off, or still goes on.
    pub(super) unfinished: Vec<HostPath>,
}

impl Pool<'_> {
    /// The file of a volume. A text that is no id names no volume: NotFound.
    pub(super) fn file(&self, volume_id: &str) -> Result<HostPath> {
        if !id::is_id(volume_id) {
            return Err(self.no_volume(volume_id));
        }
        self.path(&format!("{volume_id}{FILE}"))
    }

    /// The file of a volume while it is made.
    pub(super) fn unfinished(&self, volume_id: &str) -> Result<HostPath> {
        self.path(&format!("{volume_id}{UNFINISHED}"))
    }

    /// The file with the context of a volume.
    pub(super) fn context_file(&self, volume_id: &str) -> Result<HostPath> {
        self.path(&format!("{volume_id}{CONTEXT}"))
    }

    /// What a volume's file holds, or NotFound.
    pub(super) fn info(&self, volume_id: &str) -> Result<VirtualDiskInfo> {
        let file = self.file(volume_id)?;
        self.find(&file)?.ok_or_else(|| self.no_volume(volume_id))
    }

    /// What a VHDX file holds; nothing when it is missing, and `FailedPrecondition` when
    /// Windows cannot read it: no field of the request is to blame.
    pub(super) fn find(&self, file: &HostPath) -> Result<Option<VirtualDiskInfo>> {
        let info = self
            .host
            .os()
            .virtual_disk_info(&At::path(file), self.deadline);
        none_if_missing(info.map_err(|error| {
            let no_vhdx = matches!(&error, PortError::System { code, .. } if *code == NO_VHDX);
            let error = self.failed(file, error);
            match no_vhdx {
                true => error
                    .with_kind(ErrorKind::FailedPrecondition)
                    .with_detail("the file cannot be read as a VHDX"),
                false => error,
            }
        }))
    }

    /// What is in the directory; nothing when it does not exist yet.
    pub(super) fn contents(&self) -> Result<Contents> {
        let at = At::path(self.directory);
        let entries = self.host.os().list(&at, self.deadline);
        let entries = none_if_missing(entries.map_err(|e| self.failed(self.directory, e)))?;
        let mut contents = Contents {
            files: BTreeMap::new(),
            unfinished: Vec::new(),
        };
        let mut contexts = Vec::new();
        for entry in entries.into_iter().flatten() {
            let name = entry.name.to_ascii_lowercase();
            if entry.stat.directory {
                continue;
            }
            let id_before = |end| name.strip_suffix(end).filter(|name| id::is_id(name));
            if let Some(volume_id) = id_before(UNFINISHED) {
                contents.unfinished.push(self.unfinished(volume_id)?);
            } else if let Some(volume_id) = id_before(CONTEXT) {
                contexts.push(volume_id.to_owned());
            } else if let Some(volume_id) = id_before(FILE) {
                contents.files.insert(volume_id.to_owned(), entry.stat.size);
            }
        }
        contexts.retain(|volume_id| !contents.files.contains_key(volume_id));
        for volume_id in contexts {
            contents.unfinished.push(self.context_file(&volume_id)?);
        }
        Ok(contents)
    }

    /// Removes a file; one that is missing is removed.
    pub(super) fn remove(&self, file: &HostPath) -> Result<()> {
        let removed = self.host.os().remove_file(&At::path(file), self.deadline);
        none_if_missing(removed.map_err(|error| self.failed(file, error))).map(|_| ())
    }

    /// The host, with the library's records about a volume in a directory of their own below
    /// the host's: so they are found again when the volume's disk is not attached.
    pub(super) fn recording(&self, volume_id: &str) -> Result<Host> {
        let records = self.records(volume_id)?;
        Ok(self.host.clone().with_state_dir(records))
    }

    /// Whether there are records about a volume: of a format that was begun and, as far as
    /// the driver knows, not ended.
    pub(super) fn has_records(&self, volume_id: &str) -> Result<bool> {
        let records = self.records(volume_id)?;
        let entries = self.host.os().list(&At::path(&records), self.deadline);
        let entries = none_if_missing(entries.map_err(|error| self.failed(&records, error)))?;
        Ok(entries.is_some_and(|entries| !entries.is_empty()))
    }

    fn records(&self, volume_id: &str) -> Result<HostPath> {
        let all = self.host.state_dir().unwrap_or(self.directory);
        all.join(volume_id)
            .map_err(|error| Error::new(ErrorKind::InvalidArgument, self.operation, all, error))
    }

    /// Removes the records about a volume.
    pub(super) fn forget_records(&self, volume_id: &str) -> Result<()> {
        let records = self.records(volume_id)?;
        let request = RemoveTree {
            at: At::path(&records),
            keep_root: false,
        };
        let removed = self.host.os().remove_tree(&request, self.deadline);
        none_if_missing(removed.map_err(|error| self.failed(&records, error))).map(|_| ())
    }

    /// Does work while all other operations on a volume are kept away, in all processes of
    /// the node. A call of it that is given up at the deadline keeps them away until it ends.
    pub(super) fn locked<T>(&self, volume_id: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let file = self.file(volume_id)?;
        let name = format!("volume:{file}");
        self.under(name, format!("volume {volume_id}"), work)
    }

    /// Does work while no other process makes or grows volumes of this pool.
    pub(super) fn locked_whole<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let directory = self.directory;
        let name = format!("pool:{directory}");
        self.under(name, format!("pool {directory}"), work)
    }

    fn under<T>(
        &self,
        name: String,
        object: String,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        // The same file must have one name in all processes, however each spells its pool.
        let name = LockName(name.to_lowercase());
        let lock = self
            .host
            .lock(self.operation, &name, object, self.deadline)?;
        let answer = work();
        if let Err(error) = &answer {
            lock.note_error(error);
        }
        answer
    }

    /// The error for a volume that does not exist.
    pub(super) fn no_volume(&self, volume_id: &str) -> Error {
        let detail = format!("does not exist in {}", self.directory);
        self.error(ErrorKind::NotFound, volume_id, detail)
    }

    /// An error about a volume.
    pub(super) fn error(
        &self,
        kind: ErrorKind,
        volume_id: &str,
        detail: impl std::fmt::Display,
    ) -> Error {
        Error::new(kind, self.operation, format!("volume {volume_id}"), detail)
    }

    /// The error of a port call on a path.
    pub(super) fn failed(&self, path: &HostPath, error: PortError) -> Error {
        Error::from_port(self.operation, path, error)
    }

    fn path(&self, name: &str) -> Result<HostPath> {
        self.directory.join(name).map_err(|error| {
            let object = self.directory;
            Error::new(ErrorKind::InvalidArgument, self.operation, object, error)
        })
    }
}

/// Whether a volume's file is there and cannot be read now. Otherwise the outcome is open.
pub(super) fn says_unreadable(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::Aborted
            | ErrorKind::DeadlineExceeded
            | ErrorKind::OutcomeUnknown
            | ErrorKind::Unavailable
    )
}

/// Whether a volume's file is there and holds no virtual disk. Whatever passes says nothing
/// about it: another program has it open, the device does not answer.
pub(super) fn says_no_vhdx(error: &Error) -> bool {
    match error.code() {
        Some(Code::System(code)) if *code == NO_VHDX => true,
        Some(Code::System(SystemCode::Win32(code) | SystemCode::HResult(code))) => {
            DAMAGED.contains(code)
        }
        _ => false,
    }
}
