//! Disks: finding, partitioning, their state.

mod find;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod info;
pub(crate) mod layout;
mod partition;
pub(crate) mod steps;

use std::collections::BTreeMap;

use crate::cim::{Namespace, Query};
use crate::clock::Deadline;
use crate::error::{ErrorKind, Result};
use crate::host::Host;
use crate::ids::DiskNumber;
use crate::locator::{DiskLocation, Locator};
use crate::lock::Lock;
use crate::operation::Operation;
use crate::row::Row;

pub use info::{DiskInfo, PartitionStyle};

/// The operations on disks, [`Host::disk`].
///
/// Besides the errors that each method names, all of them answer `DeadlineExceeded` when the
/// deadline passes, and what Windows refuses with its code and meaning. Those that change a
/// disk take its lock: `Aborted` means that another operation works on it. They never change
/// a boot or system disk.
#[derive(Clone, Copy)]
pub struct Disk<'a> {
    host: &'a Host,
}

/// What names a disk to people and to other systems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskIds {
    /// Its page 83 identifier; nothing when the device has none or cannot be opened.
    pub page83: Option<String>,
    /// `MSFT_Disk.SerialNumber`, as the device gives it.
    pub serial_number: Option<String>,
}

/// Whether a disk is online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskState {
    /// Its volumes can be used.
    Online,
    /// Windows leaves it alone.
    Offline,
}

/// The size of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskStats {
    /// Bytes.
    pub total_bytes: u64,
}

impl Host {
    /// The operations on disks.
    pub fn disk(&self) -> Disk<'_> {
        Disk { host: self }
    }
}

impl<'a> Disk<'a> {
    fn operation(&self, name: &'static str, deadline: Deadline) -> Operation<'a> {
        Operation::new(self.host, name, deadline)
    }

    /// Where each disk is attached. Disks whose location says nothing of it are left out.
    ///
    /// Source: `MSFT_Disk.Location`.
    pub fn list_locations(&self, deadline: Deadline) -> Result<BTreeMap<DiskNumber, DiskLocation>> {
        let operation = self.operation("disk list locations", deadline);
        let query = Query::new(Namespace::Storage, DiskInfo::CLASS, &["Number", "Location"]);
        let rows = operation.query(&query)?;
        let mut locations = BTreeMap::new();
        for row in &rows {
            if let Some(location) = row.optional_text("Location")?.and_then(DiskLocation::read) {
                locations.insert(DiskNumber(row.u32("Number")?), location);
            }
        }
        Ok(locations)
    }

    /// The page 83 identifier and the serial number of each disk. A disk that cannot be
    /// opened is there without an identifier.
    ///
    /// Source: `IOCTL_STORAGE_QUERY_PROPERTY` with `StorageDeviceIdProperty`,
    /// `MSFT_Disk.SerialNumber`.
    pub fn list_ids(&self, deadline: Deadline) -> Result<BTreeMap<DiskNumber, DiskIds>> {
        let operation = self.operation("disk list ids", deadline);
        let properties = &["Number", "Path", "SerialNumber"];
        let query = Query::new(Namespace::Storage, DiskInfo::CLASS, properties);
        let rows = operation.query(&query)?;
        let ids = |row: &Row| {
            let ids = DiskIds {
                page83: find::page83_of(&operation, row).ok().flatten(),
                serial_number: row.optional_text("SerialNumber")?.map(str::to_owned),
            };
            Ok((DiskNumber(row.u32("Number")?), ids))
        };
        rows.iter().map(ids).collect()
    }

    /// Makes a disk GPT with one data partition over all of it, without a drive letter, and
    /// brings the partition online. Already so is success; so is a GPT disk with data
    /// partitions, and an MBR disk with exactly one.
    ///
    /// # Errors
    /// `NotFound`; `FailedPrecondition` for an offline or read-only disk, one with bytes in
    /// it that Windows does not know, a dynamic disk, and other partitions.
    ///
    /// Source: `MSFT_Disk.Initialize`, `MSFT_Disk.CreatePartition`, `MSFT_Partition.Online`.
    pub fn partition(&self, disk: DiskNumber, deadline: Deadline) -> Result<()> {
        partition::partition(&self.operation("disk partition", deadline), disk)
    }

    /// Has Windows look for disks that came, went or changed their size.
    ///
    /// Source: `MSFT_StorageSetting.UpdateHostStorageCache`.
    pub fn rescan(&self, deadline: Deadline) -> Result<()> {
        steps::rescan(&self.operation("disk rescan", deadline))
    }

    /// A disk's size.
    ///
    /// # Errors
    /// `NotFound`.
    ///
    /// Source: `MSFT_Disk.Size`.
    pub fn stats(&self, disk: DiskNumber, deadline: Deadline) -> Result<DiskStats> {
        let disk = DiskInfo::by_number(&self.operation("disk stats", deadline), disk)?;
        Ok(DiskStats {
            total_bytes: disk.size,
        })
    }

    /// All that the library knows of a disk.
    ///
    /// # Errors
    /// `NotFound`.
    ///
    /// Source: `MSFT_Disk`.
    pub fn info(&self, disk: DiskNumber, deadline: Deadline) -> Result<DiskInfo> {
        DiskInfo::by_number(&self.operation("disk info", deadline), disk)
    }

    /// Whether a disk is online.
    ///
    /// # Errors
    /// `NotFound`.
    ///
    /// Source: `MSFT_Disk.IsOffline`.
    pub fn state(&self, disk: DiskNumber, deadline: Deadline) -> Result<DiskState> {
        let disk = DiskInfo::by_number(&self.operation("disk get state", deadline), disk)?;
        Ok(state_of(&disk))
    }

    /// Brings a disk online or takes it offline, and waits until it is. Already so is
    /// success.
    ///
    /// # Errors
    /// `NotFound`; `FailedPrecondition` for the node's own disks.
    ///
    /// Source: `MSFT_Disk.Online`, `MSFT_Disk.Offline`.
    pub fn set_state(&self, disk: DiskNumber, state: DiskState, deadline: Deadline) -> Result<()> {
        let operation = self.operation("disk set state", deadline);
        let first = DiskInfo::by_number(&operation, disk)?;
        if state_of(&first) == state {
            return Ok(());
        }
        first.check_not_the_nodes_own(&operation)?;
        let lock = Lock::of_disk(&operation, &first.unique_id)?;
        let operation = operation.under(&lock);
        let mut asked = false;
        loop {
            let now = first.again(&operation)?;
            match (state_of(&now) == state, asked, state) {
                (true, ..) => return Ok(()),
                (_, true, _) => steps::wait(&operation, &now, "the new state")?,
                (_, false, DiskState::Online) => steps::online(&operation, &now)?,
                (_, false, DiskState::Offline) => steps::offline(&operation, &now)?,
            }
            asked = true;
        }
    }

    /// Clears a disk's read-only flag. Already clear is success.
    ///
    /// # Errors
    /// `NotFound`; `FailedPrecondition` when the flag comes back, and for the node's own
    /// disks.
    ///
    /// Source: `MSFT_Disk.SetAttributes`.
    pub fn clear_read_only(&self, disk: DiskNumber, deadline: Deadline) -> Result<()> {
        let operation = self.operation("disk clear read-only", deadline);
        let first = DiskInfo::by_number(&operation, disk)?;
        if !first.read_only {
            return Ok(());
        }
        first.check_not_the_nodes_own(&operation)?;
        let lock = Lock::of_disk(&operation, &first.unique_id)?;
        let operation = operation.under(&lock);
        steps::set_read_only(&operation, &first.again(&operation)?, false)?;
        steps::refresh(&operation, &first)?;
        match first.again(&operation)?.read_only {
            false => Ok(()),
            true => Err(operation.error(
                ErrorKind::FailedPrecondition,
                first.name(),
                "its read-only flag came back after it was cleared",
            )),
        }
    }

    /// The number of the disk with that page 83 identifier, as it is now.
    ///
    /// # Errors
    /// `InvalidArgument` for a blank name, `NotFound`, `FailedPrecondition` when there are
    /// several.
    pub fn number_by_name(&self, page83: &str, deadline: Deadline) -> Result<DiskNumber> {
        let operation = self.operation("disk number by name", deadline);
        let name = page83.trim_matches([' ', '\0']);
        if name.is_empty() {
            let detail = "it is blank; expected a page 83 identifier";
            return Err(operation.error(ErrorKind::InvalidArgument, "disk name", detail));
        }
        let locator = Locator::Page83(name.to_owned());
        find::find_now(&operation, &locator).map(|disk| disk.number)
    }

    /// The disk that a locator names. A disk that is not there yet is waited for until the
    /// deadline, with rescans; boot and system disks are never found.
    ///
    /// # Errors
    /// `NotFound` at the deadline; `FailedPrecondition` that lists the candidates when they
    /// are several.
    pub fn find(&self, locator: &Locator, deadline: Deadline) -> Result<DiskInfo> {
        find::find(&self.operation("disk find", deadline), locator)
    }
}

fn state_of(disk: &DiskInfo) -> DiskState {
    match disk.offline {
        true => DiskState::Offline,
        false => DiskState::Online,
    }
}
