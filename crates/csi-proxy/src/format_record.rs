//! The record of a format that has begun and not ended.
//!
//! A format that is cut off leaves content on the volume, which nobody formats over. A
//! record, written durably before the format and removed after it, tells that the content
//! is its own. It lies in the directory that the library's user names
//! ([`crate::Host::with_state_dir`]).

use std::fmt::Display;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, Result};
use crate::ids::VolumeId;
use crate::operation::Operation;
use crate::os::{At, Bytes, ReadFile, WriteFile};
use crate::path::HostPath;
use crate::volume::FORMAT_LIMIT;

/// A record's file name has the GUID of its volume between these.
const NAME_START: &str = "format-";
const NAME_END: &str = ".json";

/// No record is longer.
const LIMIT: u32 = 64 << 10;

/// What was being formatted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormatRecord {
    /// `MSFT_Disk.UniqueId`.
    pub(crate) disk: String,
    /// `MSFT_Partition.Guid`; nothing on an MBR disk.
    pub(crate) partition: Option<String>,
    /// `MSFT_Partition.Offset`.
    pub(crate) offset: u64,
    /// When it began, in seconds since 1970 by the clock of the machine.
    pub(crate) began: u64,
    /// Windows has answered that it failed. What it wrote stays.
    #[serde(default)]
    pub(crate) ended: bool,
}

impl FormatRecord {
    /// The record of a format that begins now.
    pub(crate) fn new(disk: &str, partition: Option<&str>, offset: u64) -> Self {
        Self {
            disk: disk.to_owned(),
            partition: partition.map(str::to_owned),
            offset,
            began: seconds_since_1970(),
            ended: false,
        }
    }

    /// Whether it began so recently that it may run, as far as its time tells. A clock that
    /// was set to another time since makes it old.
    pub(crate) fn is_recent(&self) -> bool {
        seconds_since_1970().abs_diff(self.began) < FORMAT_LIMIT.as_secs()
    }

    /// Whether both are of the same place.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        (&self.disk, &self.partition, self.offset) == (&other.disk, &other.partition, other.offset)
    }
}

/// Whether a file of that name with these contents is a record as [`write`] makes it, and
/// holds nothing else.
pub(crate) fn is_record(file_name: &str, contents: &[u8]) -> bool {
    let is_named = file_name.starts_with(NAME_START) && file_name.ends_with(NAME_END);
    is_named
        && serde_json::from_slice::<FormatRecord>(contents)
            .and_then(|record| serde_json::to_vec(&record))
            .is_ok_and(|written| written == contents)
}

fn seconds_since_1970() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.as_ref().map_or(0, Duration::as_secs)
}

/// The records of formats on a disk, with their volumes.
pub(crate) fn of_disk(
    operation: &Operation<'_>,
    disk: &str,
) -> Result<Vec<(VolumeId, FormatRecord)>> {
    let Some(directory) = operation.host().state_dir() else {
        return Ok(Vec::new());
    };
    let answer = operation
        .os()
        .list(&At::path(directory), operation.deadline());
    let mut records = Vec::new();
    for entry in operation.optional(directory, answer)?.unwrap_or_default() {
        let Some(volume) = volume_in(&entry.name) else {
            continue;
        };
        if let Some(record) = read(operation, &volume)?.filter(|record| record.disk == disk) {
            records.push((volume, record));
        }
    }
    Ok(records)
}

/// The record of a volume, if there is one. A file that is no record counts as none.
pub(crate) fn read(operation: &Operation<'_>, volume: &VolumeId) -> Result<Option<FormatRecord>> {
    let Some(path) = path(operation, volume)? else {
        return Ok(None);
    };
    let request = ReadFile {
        at: At::path(&path),
        limit: LIMIT,
    };
    let answer = operation.os().read_file(&request, operation.deadline());
    let bytes = operation.optional(&path, answer)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes.0).ok()))
}

/// Where the records lie.
///
/// # Errors
/// `FailedPrecondition` about `object`, which cannot be formatted without a record.
pub(crate) fn directory<'a>(
    operation: &Operation<'a>,
    object: impl Display,
) -> Result<&'a HostPath> {
    operation.host().state_dir().ok_or_else(|| {
        let detail = "no state directory is set, and a format that cannot be recorded could not \
                      be repeated after a crash";
        operation.error(ErrorKind::FailedPrecondition, object, detail)
    })
}

/// Writes the record of a volume. Once this has answered it outlives a crash.
pub(crate) fn write(
    operation: &Operation<'_>,
    volume: &VolumeId,
    record: &FormatRecord,
) -> Result<()> {
    let directory = directory(operation, volume)?;
    let path = path_in(operation, directory, volume)?;
    let contents = serde_json::to_vec(record).map_err(|error| {
        operation.error(
            ErrorKind::Internal,
            &path,
            format_args!("not written: {error}"),
        )
    })?;
    let (os, deadline) = (operation.os(), operation.deadline());
    os.create_directories(&At::path(directory), deadline)
        .map_err(|error| operation.port_error(directory, error))?;
    let request = WriteFile {
        at: At::path(&path),
        contents: Bytes(contents),
    };
    os.write_file(&request, deadline)
        .map_err(|error| operation.port_error(&path, error))
}

/// Removes the record of a volume; none is success.
pub(crate) fn remove(operation: &Operation<'_>, volume: &VolumeId) -> Result<()> {
    let Some(path) = path(operation, volume)? else {
        return Ok(());
    };
    let answer = operation
        .os()
        .remove_file(&At::path(&path), operation.deadline());
    operation.optional(&path, answer).map(drop)
}

fn path(operation: &Operation<'_>, volume: &VolumeId) -> Result<Option<HostPath>> {
    let directory = operation.host().state_dir();
    directory
        .map(|directory| path_in(operation, directory, volume))
        .transpose()
}

fn path_in(operation: &Operation<'_>, directory: &HostPath, volume: &VolumeId) -> Result<HostPath> {
    let name = format!("{NAME_START}{}{NAME_END}", volume.guid());
    directory
        .join(&name)
        .map_err(|error| error.in_field(operation.name(), "state directory"))
}

/// The volume of whose record this is the file name.
fn volume_in(name: &str) -> Option<VolumeId> {
    let guid = name.strip_prefix(NAME_START)?.strip_suffix(NAME_END)?;
    VolumeId::new(&format!(r"\\?\Volume{{{guid}}}\")).ok()
}
