//! Whether a described machine can be.

use std::collections::{BTreeMap, BTreeSet};

use super::{Machine, MachineError};
use crate::builder::system_disk;
use crate::fs::upcase;
use crate::storage::SimDisk;

/// A field that has a value which cannot be.
fn wrong(field: impl Into<String>, reason: impl Into<String>) -> MachineError {
    MachineError::Value {
        field: field.into(),
        reason: reason.into(),
    }
}

impl Machine {
    /// Checks what the types of the fields let pass.
    pub(super) fn check(&self) -> Result<(), MachineError> {
        if self.clock_scale == 0 {
            let reason = "0: the clock would stand still, expected 1 or more";
            return Err(wrong("clock_scale", reason));
        }
        self.check_disks()?;
        check_names("smb", &self.smb)?;
        for (server, described) in &self.smb {
            let field = format!("smb.{server:?}");
            check_names(&format!("{field}.shares"), &described.shares)?;
            check_names(&format!("{field}.accounts"), &described.accounts)?;
        }
        check_names("iscsi", &self.iscsi)
    }

    fn check_disks(&self) -> Result<(), MachineError> {
        let system = system_disk(self.system_disk_size);
        system
            .check()
            .map_err(|error| wrong("system_disk_size", error.to_string()))?;
        let mut letters: BTreeSet<char> = system.drive_letters().collect();
        let attached = self.disks.iter().enumerate();
        let attached = attached.map(|(index, disk)| (format!("disks[{index}]"), disk));
        let luns = self.iscsi.iter().flat_map(|(name, target)| {
            let luns = target.luns.iter().enumerate();
            luns.map(move |(index, disk)| (format!("iscsi.{name:?}.luns[{index}]"), disk))
        });
        for (field, disk) in attached.chain(luns) {
            check_disk(&field, disk, &mut letters)?;
        }
        Ok(())
    }
}

fn check_disk(field: &str, disk: &SimDisk, taken: &mut BTreeSet<char>) -> Result<(), MachineError> {
    disk.check().map_err(|error| {
        let (part, reason) = error.parts();
        wrong(format!("{field}.{part}"), reason)
    })?;
    for (index, partition) in disk.partitions.iter().enumerate() {
        if let Some(letter) = partition.drive_letter
            && !taken.insert(letter)
        {
            let field = format!("{field}.partitions[{index}].drive_letter");
            let reason = format!("{letter:?}: another volume is drive {letter}: already");
            return Err(wrong(field, reason));
        }
    }
    Ok(())
}

/// Names in one table: Windows knows no case in them, and each names something.
fn check_names<T>(field: &str, table: &BTreeMap<String, T>) -> Result<(), MachineError> {
    let mut taken = BTreeSet::new();
    for name in table.keys() {
        if name.trim().is_empty() {
            return Err(wrong(format!("{field}.{name:?}"), "expected a name"));
        }
        if !taken.insert(upcase(name)) {
            let reason = "is there already; upper and lower case are the same";
            return Err(wrong(format!("{field}.{name:?}"), reason));
        }
    }
    Ok(())
}
