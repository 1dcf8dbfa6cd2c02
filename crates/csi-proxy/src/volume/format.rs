//! Formatting a volume, if it is empty.

use std::time::Duration;

use super::info::{Placed, VolumeInfo};
use crate::cim::{Invoke, Namespace};
use crate::content::{self, Owner};
use crate::disk::layout::GPT_OVERHEAD;
use crate::disk::steps::POLL;
use crate::error::{Code, Error, ErrorKind, Result};
use crate::format_record::{self, FormatRecord};
use crate::operation::Operation;

/// How long a format may take. It does not end with the caller's deadline: one that is cut
/// off leaves the volume unusable until it is repeated from its start.
pub const FORMAT_LIMIT: Duration = Duration::from_secs(3600);

/// The longest label of NTFS and ReFS, in UTF-16 units.
///
/// Source: <https://learn.microsoft.com/windows-server/administration/windows-commands/label>.
const LABEL_LIMIT: usize = 32;

/// Characters that are refused in labels: those that names of files cannot have.
const NOT_IN_LABELS: &[char] = &['"', '*', '/', ':', '<', '>', '?', '\\', '|'];

/// The most allocation units of a volume (32 bits).
///
/// Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/format-msft-volume>,
/// return value 43003.
const MOST_UNITS: u64 = u32::MAX as u64;

/// The smallest volume that is formatted as ReFS, in bytes.
///
/// Assumed: Microsoft names no limit. Windows refuses small ones with "invalid parameter"
/// (<https://github.com/dsccommunity/StorageDsc/issues/227>), which says neither what is wrong
/// nor how much is needed.
pub const SMALLEST_REFS_VOLUME: u64 = 2 << 30;

/// The smallest empty disk that is partitioned for ReFS, in bytes: room for the partition
/// table and the reserved partition too.
pub const SMALLEST_REFS_DISK: u64 = SMALLEST_REFS_VOLUME + GPT_OVERHEAD;

/// How a volume is formatted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatOptions {
    /// The file system.
    pub file_system: FileSystem,
    /// The allocation unit in bytes; Windows' default for the volume's size if not given.
    pub allocation_unit: Option<u32>,
    /// The label.
    pub label: Option<String>,
}

/// A file system that volumes are formatted with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSystem {
    /// NTFS.
    #[default]
    Ntfs,
    /// ReFS.
    Refs,
}

impl FileSystem {
    /// Its name as WMI spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ntfs => "NTFS",
            Self::Refs => "ReFS",
        }
    }

    /// The file system of that name, whatever its case.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Ntfs, Self::Refs]
            .into_iter()
            .find(|one| one.as_str().eq_ignore_ascii_case(name))
    }

    /// The allocation units that Windows takes, in bytes.
    ///
    /// Source: <https://learn.microsoft.com/windows-server/storage/file-server/ntfs-overview>,
    /// <https://learn.microsoft.com/windows-server/storage/refs/refs-overview>.
    pub fn allocation_units(self) -> Vec<u32> {
        match self {
            Self::Ntfs => (9..=21).map(|power| 1 << power).collect(),
            Self::Refs => vec![4 << 10, 64 << 10],
        }
    }
}

impl FormatOptions {
    /// Checks what can be checked without a volume.
    ///
    /// # Errors
    /// `InvalidArgument` that names the option, the value and what was expected.
    pub fn check(&self, operation: &'static str) -> Result<()> {
        let fail = |object: String, detail: String| {
            Err(Error::new(
                ErrorKind::InvalidArgument,
                operation,
                object,
                detail,
            ))
        };
        if let Some(unit) = self.allocation_unit {
            let units = self.file_system.allocation_units();
            if !units.contains(&unit) {
                let units: Vec<_> = units.iter().map(u32::to_string).collect();
                let name = self.file_system.as_str();
                return fail(
                    format!("allocation unit size {unit}"),
                    format!("expected one of {} for {name}", units.join(", ")),
                );
            }
        }
        let label = self.label.as_deref().unwrap_or_default();
        let units = label.encode_utf16().count();
        if units > LABEL_LIMIT {
            return fail(
                format!("label {label:?}"),
                format!("it has {units} UTF-16 units; expected at most {LABEL_LIMIT}"),
            );
        }
        let wrong = |char: &char| char.is_control() || NOT_IN_LABELS.contains(char);
        match label.chars().find(wrong) {
            Some(char) => fail(
                format!("label {label:?}"),
                format!("the character {char:?} is not allowed in it"),
            ),
            None => Ok(()),
        }
    }

    /// Checks the size of a volume, or of the space for it, against the options.
    pub(crate) fn check_size(
        &self,
        operation: &Operation<'_>,
        object: &str,
        size: u64,
    ) -> Result<()> {
        match self.allocation_unit {
            _ if self.file_system == FileSystem::Refs && size < SMALLEST_REFS_VOLUME => {
                Err(operation.error(
                    ErrorKind::FailedPrecondition,
                    object,
                    format_args!(
                        "it has {size} bytes for a volume, expected at least \
                         {SMALLEST_REFS_VOLUME} for ReFS"
                    ),
                ))
            }
            Some(unit) if size / u64::from(unit) > MOST_UNITS => Err(operation.error(
                ErrorKind::InvalidArgument,
                format_args!("allocation unit size {unit}"),
                format_args!("a volume of {size} bytes needs a larger one"),
            )),
            _ => Ok(()),
        }
    }
}

/// Formats a volume that has no file system, under its disk's lock.
///
/// # Errors
/// `FailedPrecondition` when it is not empty and no record tells that its content is left
/// from a format that was cut off; `Aborted` when that format still runs.
pub(crate) fn format(
    operation: &Operation<'_>,
    placed: &Placed,
    options: &FormatOptions,
) -> Result<()> {
    check_writable(operation, placed)?;
    options.check_size(operation, &placed.volume.name(), placed.partition.size)?;
    let fresh = record_of(placed);
    let earlier = earlier_format(operation, placed)?;
    check_content(operation, placed, earlier.as_ref())?;
    // From here on the work is not cut by the caller's deadline.
    let operation = &operation.until(operation.os().deadline_in(FORMAT_LIMIT));
    let running = earlier.as_ref().filter(|earlier| !earlier.ended);
    if running.is_none() {
        format_record::write(operation, &placed.volume.id, &fresh)?;
    }
    if let Err(error) = check_again(operation, placed) {
        if earlier.is_none() {
            // The refusal is what the caller must know; nothing was begun.
            let _ = format_record::remove(operation, &placed.volume.id);
        }
        return Err(error);
    }
    match invoke(operation, placed, options) {
        Ok(()) => format_record::remove(operation, &placed.volume.id),
        Err(error) => Err(refused(operation, placed, earlier, error)),
    }
}

/// Refuses when a format of a volume on the disk is recorded and may still run: nothing has
/// told its end, Windows knows no file system on the volume, and either it began less than
/// [`FORMAT_LIMIT`] ago or Windows says that the volume is in use.
///
/// # Errors
/// `Aborted`.
pub(crate) fn check_not_running(operation: &Operation<'_>, disk: &str) -> Result<()> {
    for (id, record) in format_record::of_disk(operation, disk)? {
        let Some(volume) = VolumeInfo::find(operation, &id)? else {
            continue;
        };
        if record.ended || volume.is_formatted() {
            continue;
        }
        let in_use = match content::check_readable(operation, &id.device(), &volume.name()) {
            Err(error) if error.is_in_use() => Some(error),
            // Whatever else is wrong with it does not say that it runs.
            _ => None,
        };
        let error = match (in_use, record.is_recent()) {
            (Some(error), _) => error,
            (None, true) => operation.error(ErrorKind::Aborted, volume.name(), ""),
            (None, false) => continue,
        };
        return Err(still_running(error, &record));
    }
    Ok(())
}

/// Refuses content that [`format`] would refuse, and changes nothing.
///
/// # Errors
/// As [`format`] for the content.
pub(crate) fn check_formattable(operation: &Operation<'_>, placed: &Placed) -> Result<()> {
    let earlier = earlier_format(operation, placed)?;
    check_content(operation, placed, earlier.as_ref())
}

fn record_of(placed: &Placed) -> FormatRecord {
    let (disk, partition) = (&placed.disk, &placed.partition);
    FormatRecord::new(&disk.unique_id, partition.guid.as_deref(), partition.offset)
}

/// The record of a format of this volume that has not ended as far as is known.
fn earlier_format(operation: &Operation<'_>, placed: &Placed) -> Result<Option<FormatRecord>> {
    let record = format_record::read(operation, &placed.volume.id)?;
    Ok(record.filter(|record| record.is_of(&record_of(placed))))
}

fn check_writable(operation: &Operation<'_>, placed: &Placed) -> Result<()> {
    placed.disk.check_not_the_nodes_own(operation)?;
    let read_only = match (placed.disk.read_only, placed.partition.read_only) {
        (false, false) => return Ok(()),
        (true, _) => placed.disk.name(),
        _ => placed.partition.name(),
    };
    Err(operation.error(
        ErrorKind::FailedPrecondition,
        placed.volume.name(),
        format_args!("{read_only} is read-only"),
    ))
}

/// Refuses content that no earlier format has left.
fn check_content(
    operation: &Operation<'_>,
    placed: &Placed,
    earlier: Option<&FormatRecord>,
) -> Result<()> {
    let (device, name) = (placed.volume.id.device(), placed.volume.name());
    let probed = content::probe(operation, &device, 0..placed.partition.size, &name);
    match (probed, earlier) {
        (Ok(None), _) => Ok(()),
        (Ok(Some(found)), Some(_)) if found.owner != Owner::Other => Ok(()),
        (Ok(Some(_)), _) if operation.host().allows_foreign_content() => Ok(()),
        (Ok(Some(found)), _) => Err(operation.error(
            ErrorKind::FailedPrecondition,
            name,
            format_args!(
                "Windows knows no file system on it, but it is not empty: {} at byte {}; \
                 nothing was written",
                found.what, found.offset
            ),
        )),
        // A format locks the volume.
        (Err(error), Some(record)) if error.is_in_use() && !record.ended => {
            Err(still_running(error, record))
        }
        (Err(error), _) => Err(error),
    }
}

/// Right before the format: the same volume, still without a file system.
fn check_again(operation: &Operation<'_>, placed: &Placed) -> Result<()> {
    placed.disk.again(operation)?;
    let now = VolumeInfo::by_id(operation, &placed.volume.id)?;
    match now == placed.volume {
        true => Ok(()),
        false => Err(operation.error(
            ErrorKind::Aborted,
            now.name(),
            "another program has changed the volume during the operation",
        )),
    }
}

fn invoke(operation: &Operation<'_>, placed: &Placed, options: &FormatOptions) -> Result<()> {
    let volume = &placed.volume;
    let mut invoke = Invoke::on(
        Namespace::Storage,
        VolumeInfo::CLASS,
        &volume.object,
        "Format",
    )
    .with("FileSystem", options.file_system.as_str())
    .with("Full", false)
    .with("Force", false);
    if let Some(label) = &options.label {
        invoke = invoke.with("FileSystemLabel", label.as_str());
    }
    if let Some(unit) = options.allocation_unit {
        invoke = invoke.with("AllocationUnitSize", unit);
    }
    let answer = operation.invoke(volume.name(), &invoke)?;
    while answer.job_started && !VolumeInfo::by_id(operation, &volume.id)?.is_formatted() {
        operation.pause(POLL, volume.name(), "the end of the format")?;
    }
    Ok(())
}

/// Return values of a format that name a cause other than another format: Windows has not
/// begun, and the volume is as it was. What is answered while one runs is not documented.
const NOT_BEGUN: &[u32] = &[
    1, 7, 40018, 42010, 43000, 43001, 43002, 43003, 43004, 43005, 43006,
];

/// What the refusal of a format means, and what becomes of the record.
fn refused(
    operation: &Operation<'_>,
    placed: &Placed,
    earlier: Option<FormatRecord>,
    error: Error,
) -> Error {
    let id = &placed.volume.id;
    let not_begun = NOT_BEGUN.iter().any(|value| error.is_return_value(*value));
    let answered = matches!(error.code(), Some(Code::Method { .. }));
    // The refusal is what the caller must know, also where the record cannot be changed. One
    // that stays lets a later call format what that call finds empty, or left by a format.
    match earlier {
        Some(record) if !record.ended => match error.code() {
            Some(_) if !not_begun => still_running(error, &record),
            _ => error,
        },
        None if not_begun => {
            let _ = format_record::remove(operation, id);
            error
        }
        _ if answered => {
            let ended = FormatRecord {
                ended: true,
                ..record_of(placed)
            };
            let _ = format_record::write(operation, id, &ended);
            error
        }
        _ => error,
    }
}

fn still_running(error: Error, record: &FormatRecord) -> Error {
    error
        .with_kind(ErrorKind::Aborted)
        .with_detail(format_args!(
            "an earlier format of it, begun {} seconds after 1970, may still run",
            record.began
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(options: &FormatOptions) -> Result<()> {
        options.check("volume format")
    }

    #[test]
    fn an_allocation_unit_that_windows_does_not_take_is_refused() {
        for (file_system, unit, right) in [
            (FileSystem::Ntfs, 512, true),
            (FileSystem::Ntfs, 4096, true),
            (FileSystem::Ntfs, 2 << 20, true),
            (FileSystem::Ntfs, 4 << 20, false),
            (FileSystem::Ntfs, 256, false),
            (FileSystem::Ntfs, 0, false),
            (FileSystem::Ntfs, 5000, false),
            (FileSystem::Refs, 4096, true),
            (FileSystem::Refs, 65536, true),
            (FileSystem::Refs, 8192, false),
        ] {
            let options = FormatOptions {
                file_system,
                allocation_unit: Some(unit),
                label: None,
            };
            let result = check(&options);
            assert_eq!(result.is_ok(), right, "{file_system:?} {unit}");
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                assert!(error.to_string().contains(&unit.to_string()), "{error}");
                assert!(error.to_string().contains("65536"), "{error}");
            }
        }
    }

    #[test]
    fn a_label_is_counted_in_utf_16_and_has_no_forbidden_characters() {
        for (label, right) in [
            ("", true),
            ("data (1) é", true),
            ("a".repeat(32).as_str(), true),
            ("a".repeat(33).as_str(), false),
            ("😀".repeat(16).as_str(), true),
            ("😀".repeat(17).as_str(), false),
            ("a:b", false),
            ("a\\b", false),
            ("a\nb", false),
            ("a\0b", false),
        ] {
            let options = FormatOptions {
                label: Some(label.to_owned()),
                ..FormatOptions::default()
            };
            let result = check(&options);
            assert_eq!(result.is_ok(), right, "{label:?}");
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            }
        }
    }

    #[test]
    fn a_file_system_is_found_by_name_in_any_case() {
        assert_eq!(FileSystem::named("ntfs"), Some(FileSystem::Ntfs));
        assert_eq!(FileSystem::named("REFS"), Some(FileSystem::Refs));
        assert_eq!(FileSystem::named("ext4"), None);
    }
}
