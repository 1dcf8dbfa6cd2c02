//! Disks and partitions as WMI shows them.

use crate::cim::{Associators, Namespace, ObjectPath, Query};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{DevicePath, DiskNumber};
use crate::operation::Operation;
use crate::row::Row;

/// A disk as `MSFT_Disk` shows it.
///
/// Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-disk>.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskInfo {
    /// `Number`. Windows gives it to another disk once this one is gone.
    pub number: DiskNumber,
    /// `UniqueId`: the disk's identity. Never empty.
    pub unique_id: String,
    /// `Path`: the disk as a device.
    pub path: DevicePath,
    /// `Location`: where it is attached, or the file behind a virtual disk.
    pub location: Option<String>,
    /// `SerialNumber`, as the device gives it.
    pub serial_number: Option<String>,
    /// `Size` in bytes.
    pub size: u64,
    /// `LogicalSectorSize` in bytes.
    pub sector_size: u32,
    /// `PartitionStyle`.
    pub style: PartitionStyle,
    /// `IsOffline`.
    pub offline: bool,
    /// `OfflineReason`: 1 by policy, 2 redundant path, 3 snapshot, 4 collision, 5 resource
    /// exhaustion, 6 critical write failures, 7 data integrity scan required.
    pub offline_reason: Option<u32>,
    /// `IsReadOnly`.
    pub read_only: bool,
    /// `IsBoot`.
    pub boot: bool,
    /// `IsSystem`.
    pub system: bool,
    /// `BusType`: 9 iSCSI, 15 file-backed virtual, and others.
    pub bus_type: Option<u32>,
    pub(crate) object: ObjectPath,
}

/// `MSFT_Disk.PartitionStyle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionStyle {
    /// 0: not initialised, as far as Windows can see.
    Raw,
    /// 1.
    Mbr,
    /// 2.
    Gpt,
}

impl DiskInfo {
    pub(crate) const CLASS: &'static str = "MSFT_Disk";

    pub(crate) const PROPERTIES: &'static [&'static str] = &[
        "Number",
        "UniqueId",
        "Path",
        "Location",
        "SerialNumber",
        "Size",
        "LogicalSectorSize",
        "PartitionStyle",
        "IsOffline",
        "OfflineReason",
        "IsReadOnly",
        "IsBoot",
        "IsSystem",
        "BusType",
    ];

    /// All disks, still as rows.
    pub(crate) fn query() -> Query {
        Query::new(Namespace::Storage, Self::CLASS, Self::PROPERTIES)
    }

    pub(crate) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            number: DiskNumber(row.u32("Number")?),
            unique_id: row.filled_text("UniqueId")?.to_owned(),
            path: DevicePath(row.filled_text("Path")?.to_owned()),
            location: row.optional_text("Location")?.map(str::to_owned),
            serial_number: row.optional_text("SerialNumber")?.map(str::to_owned),
            size: row.u64("Size")?,
            sector_size: row.optional_u32("LogicalSectorSize")?.unwrap_or(512),
            style: match row.u32("PartitionStyle")? {
                0 => PartitionStyle::Raw,
                1 => PartitionStyle::Mbr,
                2 => PartitionStyle::Gpt,
                other => {
                    return Err(row.error(
                        "PartitionStyle",
                        format_args!("expected 0 (RAW), 1 (MBR) or 2 (GPT), got {other}"),
                    ));
                }
            },
            offline: row.boolean("IsOffline")?,
            offline_reason: row.optional_u32("OfflineReason")?,
            read_only: row.boolean("IsReadOnly")?,
            boot: row.boolean("IsBoot")?,
            system: row.boolean("IsSystem")?,
            bus_type: row.optional_u32("BusType")?,
            object: row.path().clone(),
        })
    }

    /// The disk with that number.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub(crate) fn by_number(operation: &Operation<'_>, number: DiskNumber) -> Result<Self> {
        let query = Self::query().with("Number", number.0);
        Self::only(operation, &query, &format!("disk {number}"))
    }

    /// The disk with that unique id.
    ///
    /// # Errors
    /// `NotFound` when there is none, `FailedPrecondition` when there are two.
    pub(crate) fn by_unique_id(operation: &Operation<'_>, unique_id: &str) -> Result<Self> {
        let query = Self::query().with("UniqueId", unique_id);
        let object = format!("disk with unique id {unique_id:?}");
        let disk = Self::only(operation, &query, &object)?;
        match disk.unique_id == unique_id {
            true => Ok(disk),
            // WMI compares without case; the disk's lock does not.
            false => Err(operation.error(
                ErrorKind::NotFound,
                object,
                format_args!("the nearest is {:?}", disk.unique_id),
            )),
        }
    }

    /// The same disk anew: what it is now.
    ///
    /// # Errors
    /// `Aborted` when another disk is in its place or it is gone.
    pub(crate) fn again(&self, operation: &Operation<'_>) -> Result<Self> {
        let now = Self::by_unique_id(operation, &self.unique_id)?;
        match now.object == self.object {
            true => Ok(now),
            false => Err(operation.error(
                ErrorKind::Aborted,
                self.name(),
                format_args!(
                    "the disk was replaced during the operation by {}",
                    now.name()
                ),
            )),
        }
    }

    fn only(operation: &Operation<'_>, query: &Query, object: &str) -> Result<Self> {
        let rows = operation.query(query)?;
        let disks = rows.iter().map(Self::read).collect::<Result<Vec<_>>>()?;
        match <[Self; 1]>::try_from(disks) {
            Ok([disk]) => Ok(disk),
            Err(none) if none.is_empty() => {
                Err(operation.error(ErrorKind::NotFound, object, "there is no such disk"))
            }
            Err(several) => Err(ambiguous(operation, object, &several)),
        }
    }

    /// The disk in messages.
    pub(crate) fn name(&self) -> String {
        format!("disk {} ({})", self.number, self.unique_id)
    }

    /// Refuses what would change the node's own disks.
    pub(crate) fn check_not_the_nodes_own(&self, operation: &Operation<'_>) -> Result<()> {
        let role = match (self.boot, self.system) {
            (false, false) => return Ok(()),
            (true, _) => "boot",
            _ => "system",
        };
        Err(operation.error(
            ErrorKind::FailedPrecondition,
            self.name(),
            format_args!("it is a {role} disk of the node, which is never changed"),
        ))
    }
}

/// The refusal to choose among several disks.
pub(crate) fn ambiguous(operation: &Operation<'_>, object: &str, disks: &[DiskInfo]) -> Error {
    let list: Vec<_> = disks.iter().map(describe).collect();
    operation.error(
        ErrorKind::FailedPrecondition,
        object,
        format_args!("{} disks match: {}", disks.len(), list.join("; ")),
    )
}

fn describe(disk: &DiskInfo) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    format!(
        "{} at {:?}, serial number {:?}",
        disk.name(),
        shown(&disk.location),
        shown(&disk.serial_number).trim()
    )
}

/// A partition as `MSFT_Partition` shows it.
///
/// Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-partition>.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PartitionInfo {
    pub(crate) disk: DiskNumber,
    pub(crate) number: u32,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// Lower case without braces; nothing on MBR disks.
    pub(crate) guid: Option<String>,
    pub(crate) kind: PartitionKind,
    pub(crate) offline: bool,
    pub(crate) read_only: bool,
    pub(crate) access_paths: Vec<String>,
    pub(crate) object: ObjectPath,
}

/// What a partition is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartitionKind {
    /// Basic data: what the library uses.
    Data,
    /// Microsoft's reserved partition.
    Reserved,
    /// A part of a dynamic disk (Logical Disk Manager).
    Dynamic,
    /// Anything else, with its type in words.
    Other(String),
}

/// `PARTITION_BASIC_DATA_GUID`.
pub(crate) const BASIC_DATA: &str = "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}";
const RESERVED: &str = "{e3c9e316-0b5c-4db8-817d-f92df00215ae}";
const LDM_METADATA: &str = "{5808c8aa-7e8f-42e0-85d2-e1e90434cfb3}";
const LDM_DATA: &str = "{af9b60a0-1431-4f62-bc68-3311714a69ad}";

/// Types that are named in messages.
///
/// Source: <https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-partition_information_gpt>.
const GPT_NAMES: &[(&str, &str)] = &[
    ("{c12a7328-f81f-11d2-ba4b-00a0c93ec93b}", "EFI system"),
    ("{de94bba4-06d1-4d40-a16a-bfd50179d6ac}", "recovery"),
    ("{e75caf8f-f680-4cee-afa3-b001e56efc2d}", "Storage Spaces"),
    ("{0fc63daf-8483-4772-8e79-3d69d8477de4}", "Linux"),
    ("{e6d6d379-f507-44c2-a23c-238f2a3df928}", "Linux LVM"),
    ("{a19d880f-05fc-4d3b-a006-743f0f84911e}", "Linux RAID"),
];

/// MBR types of data partitions: FAT12, FAT16, NTFS and exFAT, FAT32.
///
/// Source: <https://learn.microsoft.com/windows/win32/fileio/disk-partition-types>.
const MBR_DATA: &[u32] = &[0x01, 0x04, 0x06, 0x07, 0x0b, 0x0c, 0x0e];
const MBR_LDM: u32 = 0x42;
const MBR_NAMES: &[(u32, &str)] = &[
    (0x05, "extended"),
    (0x0f, "extended"),
    (0x27, "recovery"),
    (0x82, "Linux swap"),
    (0x83, "Linux"),
    (0x8e, "Linux LVM"),
    (0xee, "protective MBR of GPT"),
    (0xef, "EFI system"),
    (0xfd, "Linux RAID"),
];

impl PartitionInfo {
    pub(crate) const CLASS: &'static str = "MSFT_Partition";

    const PROPERTIES: &'static [&'static str] = &[
        "DiskNumber",
        "PartitionNumber",
        "Offset",
        "Size",
        "Guid",
        "GptType",
        "MbrType",
        "IsOffline",
        "IsReadOnly",
        "AccessPaths",
    ];

    /// The partitions of a disk, by their offset.
    pub(crate) fn of_disk(operation: &Operation<'_>, disk: &DiskInfo) -> Result<Vec<Self>> {
        let request = Associators::new(
            Namespace::Storage,
            &disk.object,
            "MSFT_DiskToPartition",
            Self::CLASS,
            Self::PROPERTIES,
        );
        let rows = operation.associators(&request)?;
        let mut partitions = rows.iter().map(Self::read).collect::<Result<Vec<_>>>()?;
        partitions.sort_by_key(|partition| partition.offset);
        Ok(partitions)
    }

    /// The partition that a volume is on; nothing for a volume that is on none, such as one
    /// of a dynamic disk.
    pub(crate) fn of_volume(
        operation: &Operation<'_>,
        volume: &ObjectPath,
    ) -> Result<Option<Self>> {
        let request = Associators::new(
            Namespace::Storage,
            volume,
            "MSFT_PartitionToVolume",
            Self::CLASS,
            Self::PROPERTIES,
        );
        let rows = operation.associators(&request)?;
        rows.first().map(Self::read).transpose()
    }

    /// The disk that it is on; nothing when the disk is gone.
    pub(crate) fn disk(&self, operation: &Operation<'_>) -> Result<Option<DiskInfo>> {
        let request = Associators::new(
            Namespace::Storage,
            &self.object,
            "MSFT_DiskToPartition",
            DiskInfo::CLASS,
            DiskInfo::PROPERTIES,
        );
        let rows = operation.associators(&request)?;
        rows.first().map(DiskInfo::read).transpose()
    }

    fn read(row: &Row) -> Result<Self> {
        let guid = row.optional_text("Guid")?.filter(|guid| !guid.is_empty());
        let without_braces = |guid: &str| guid.trim_matches(['{', '}']).to_ascii_lowercase();
        Ok(Self {
            disk: DiskNumber(row.u32("DiskNumber")?),
            number: row.u32("PartitionNumber")?,
            offset: row.u64("Offset")?,
            size: row.u64("Size")?,
            guid: guid.map(without_braces),
            kind: kind(row.optional_text("GptType")?, row.optional_u32("MbrType")?),
            offline: row.optional_boolean("IsOffline")?.unwrap_or(false),
            read_only: row.optional_boolean("IsReadOnly")?.unwrap_or(false),
            access_paths: row.texts("AccessPaths")?,
            object: row.path().clone(),
        })
    }

    /// The partition in messages.
    pub(crate) fn name(&self) -> String {
        format!("partition {} of disk {}", self.number, self.disk)
    }
}

fn kind(gpt: Option<&str>, mbr: Option<u32>) -> PartitionKind {
    let gpt = gpt.map(str::to_ascii_lowercase);
    match (gpt.as_deref(), mbr) {
        (Some(BASIC_DATA), _) => PartitionKind::Data,
        (Some(RESERVED), _) => PartitionKind::Reserved,
        (Some(LDM_METADATA | LDM_DATA), _) => PartitionKind::Dynamic,
        (Some(gpt), _) if !gpt.is_empty() => other(gpt, name_of(GPT_NAMES, gpt)),
        (_, Some(mbr)) if MBR_DATA.contains(&mbr) => PartitionKind::Data,
        (_, Some(MBR_LDM)) => PartitionKind::Dynamic,
        (_, Some(mbr)) => other(&format!("{mbr:#04x}"), name_of(MBR_NAMES, mbr)),
        _ => PartitionKind::Other("no type".to_owned()),
    }
}

fn other(number: &str, name: Option<&str>) -> PartitionKind {
    PartitionKind::Other(match name {
        Some(name) => format!("type {number} ({name})"),
        None => format!("type {number}"),
    })
}

fn name_of<K: PartialEq>(names: &[(K, &'static str)], kind: K) -> Option<&'static str> {
    names
        .iter()
        .find(|(one, _)| *one == kind)
        .map(|(_, name)| *name)
}
