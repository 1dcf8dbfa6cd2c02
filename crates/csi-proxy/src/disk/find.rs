//! Finding the disk that a locator names.

use std::time::Duration;

use super::info::{DiskInfo, ambiguous};
use super::steps;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::DevicePath;
use crate::locator::{DiskLocation, Locator, SerialNumber};
use crate::operation::Operation;
use crate::page83;
use crate::row::Row;

/// The first wait for a disk that has not appeared; it doubles up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(4);

/// One look at the node's disks.
struct Look {
    found: Vec<DiskInfo>,
    /// How many disks there were besides the node's own.
    others: usize,
    /// The disks whose page 83 could not be read, with the reason.
    unreadable: Vec<String>,
}

/// The disk that the locator names, waiting for it until the deadline.
pub(super) fn find(operation: &Operation<'_>, locator: &Locator) -> Result<DiskInfo> {
    let mut wait = FIRST_WAIT;
    loop {
        let look = look(operation, locator)?;
        if !look.found.is_empty() || !operation.os().pause(wait, operation.deadline()) {
            return look.only(operation, locator);
        }
        steps::rescan(operation)?;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// The disk that the locator names, if it is there.
pub(super) fn find_now(operation: &Operation<'_>, locator: &Locator) -> Result<DiskInfo> {
    look(operation, locator)?.only(operation, locator)
}

impl Look {
    fn only(self, operation: &Operation<'_>, locator: &Locator) -> Result<DiskInfo> {
        let (others, unreadable) = (self.others, self.unreadable);
        match <[DiskInfo; 1]>::try_from(self.found) {
            Ok([disk]) => Ok(disk),
            Err(none) if none.is_empty() => Err(not_found(operation, locator, others, &unreadable)),
            Err(several) => Err(ambiguous(operation, &locator.to_string(), &several)),
        }
    }
}

fn not_found(
    operation: &Operation<'_>,
    locator: &Locator,
    others: usize,
    unreadable: &[String],
) -> Error {
    let detail = format!("none of {others} disks matches");
    let error = operation.error(ErrorKind::NotFound, locator, detail);
    match unreadable.is_empty() {
        true => error,
        false => error.with_detail(format_args!(
            "the identifiers of these could not be read: {}",
            unreadable.join("; ")
        )),
    }
}

fn look(operation: &Operation<'_>, locator: &Locator) -> Result<Look> {
    let query = match locator {
        Locator::UniqueId(id) => DiskInfo::query().with("UniqueId", id.as_str()),
        _ => DiskInfo::query(),
    };
    let rows = operation.query(&query)?;
    let own = |row: &Row| {
        let is = |property| row.optional_boolean(property).ok().flatten() == Some(true);
        is("IsBoot") || is("IsSystem")
    };
    let candidates: Vec<_> = rows.iter().filter(|row| !own(row)).collect();
    let mut look = Look {
        found: Vec::new(),
        others: candidates.len(),
        unreadable: Vec::new(),
    };
    for row in candidates {
        // A row that is no use for this locator is another disk, whatever is wrong with it.
        if is_meant(operation, locator, row, &mut look.unreadable) {
            look.found.push(DiskInfo::read(row)?);
        }
    }
    Ok(look)
}

fn is_meant(
    operation: &Operation<'_>,
    locator: &Locator,
    row: &Row,
    unreadable: &mut Vec<String>,
) -> bool {
    let text = |property| row.optional_text(property).ok().flatten();
    match locator {
        Locator::Lun {
            lun,
            adapter,
            bus,
            target,
        } => text("Location")
            .and_then(DiskLocation::read)
            .is_some_and(|location| location.is_at(*lun, *adapter, *bus, *target)),
        Locator::Serial(serial) => text("SerialNumber")
            .and_then(SerialNumber::new)
            .is_some_and(|own| serial.matches(&own)),
        Locator::UniqueId(id) => text("UniqueId").is_some_and(|own| own.eq_ignore_ascii_case(id)),
        Locator::Page83(id) => match page83_of(operation, row) {
            Ok(own) => own.is_some_and(|own| own.eq_ignore_ascii_case(id)),
            Err(reason) => {
                unreadable.push(reason);
                false
            }
        },
    }
}

/// A disk's page 83 id; or, in words, why it cannot be read.
pub(super) fn page83_of(operation: &Operation<'_>, row: &Row) -> Result<Option<String>, String> {
    let path = row.filled_text("Path").map_err(|error| error.to_string())?;
    let path = DevicePath(path.to_owned());
    let bytes = operation
        .os()
        .device_ids(&path, operation.deadline())
        .map_err(|error| format!("{path}: {error}"))?;
    page83::device_id(&bytes.0).map_err(|error| format!("{path}: {error}"))
}
