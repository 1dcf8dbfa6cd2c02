//! A disk: what Windows knows of it besides what it holds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::MediumId;

/// A place at which a disk is attached. It is never used again, unlike the disk's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiskId(pub u64);

/// A disk that is attached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// `MSFT_Disk.Number`.
    pub number: u32,
    /// What it holds.
    pub medium: MediumId,
    /// `MSFT_Disk.UniqueId`.
    pub unique_id: String,
    /// `MSFT_Disk.SerialNumber`, as the device gives it.
    pub serial: Option<String>,
    /// `MSFT_Disk.Location`.
    pub location: Option<String>,
    /// `MSFT_Disk.FriendlyName`.
    pub friendly_name: String,
    /// `MSFT_Disk.BusType`.
    pub bus_type: BusType,
    /// Set when it is offline: `MSFT_Disk.OfflineReason`.
    pub offline: Option<u16>,
    /// `MSFT_Disk.IsReadOnly`.
    pub read_only: bool,
    /// `MSFT_Disk.IsBoot`.
    pub boot: bool,
    /// `MSFT_Disk.IsSystem`.
    pub system: bool,
    /// Set as long as Windows has not found it.
    pub hidden: Option<Hidden>,
    /// How it misbehaves.
    pub quirks: Quirks,
    /// The page 83 identifiers; nothing for a device that answers none.
    pub page83: Option<Vec<crate::storage::Identifier>>,
}

/// When a disk that is not there yet appears. Whatever comes first counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hidden {
    /// After so many rescans (`UpdateHostStorageCache`).
    pub rescans: Option<u32>,
    /// At this time of the node's clock.
    pub until: Option<Duration>,
}

/// How a disk misbehaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// `Online` answers 0 and the disk stays offline for so many queries of `MSFT_Disk`.
    pub slow_online: u32,
    /// The queries that are left of it; set by `Online`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online_in: Option<u32>,
    /// The read-only flag is set again by the next `Refresh` or rescan.
    pub read_only_returns: bool,
}

/// `MSFT_Disk.BusType`.
///
/// Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-disk>
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusType {
    /// SCSI, 1.
    Scsi,
    /// ATA, 3.
    Ata,
    /// iSCSI, 9.
    Iscsi,
    /// SAS, 10.
    Sas,
    /// SATA, 11.
    Sata,
    /// File-backed virtual, 15.
    FileBackedVirtual,
    /// NVMe, 17.
    Nvme,
}

impl BusType {
    /// The number.
    pub fn number(self) -> u16 {
        match self {
            Self::Scsi => 1,
            Self::Ata => 3,
            Self::Iscsi => 9,
            Self::Sas => 10,
            Self::Sata => 11,
            Self::FileBackedVirtual => 15,
            Self::Nvme => 17,
        }
    }
}
