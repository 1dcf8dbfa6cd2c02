//! A disk: what Windows knows of it besides what it holds.

use serde::{Deserialize, Serialize};

use super::{Identifier, MediumId};

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
    /// The medium refuses writes whatever the flag says; the flag comes back with the next
    /// refresh or rescan.
    pub write_protected: bool,
    /// `MSFT_Disk.IsBoot`.
    pub boot: bool,
    /// `MSFT_Disk.IsSystem`.
    pub system: bool,
    /// `Online` answers 0, and the disk stays offline for so many queries of `MSFT_Disk`.
    pub slow_online: u32,
    /// The page 83 identifiers; nothing for a device that answers none.
    pub page83: Option<Vec<Identifier>>,
}

/// When a disk that is attached is found. Whatever comes first counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hidden {
    /// After so many rescans (`UpdateHostStorageCache`).
    pub rescans: Option<u32>,
    /// So many seconds after the node's clock began.
    pub seconds: Option<u64>,
}

/// `MSFT_Disk.BusType`.
///
/// Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-disk>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusType {
    /// SCSI, 1.
    Scsi,
    /// ATA, 3.
    Ata,
    /// iSCSI, 9.
    Iscsi,
    /// SAS, 10: what virtual machines mostly have.
    #[default]
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

impl Disk {
    /// The path of its device, `MSFT_Disk.Path`.
    pub(crate) fn path(&self, id: DiskId) -> String {
        let DiskId(place) = id;
        format!(
            r"\\?\scsi#disk&ven_msft&prod_virtual_disk#{place:06x}#{{53f56307-b6bf-11d0-94f2-00a0c91efb8b}}"
        )
    }
}
