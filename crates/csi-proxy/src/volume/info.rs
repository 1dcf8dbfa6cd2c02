//! Volumes as WMI shows them, and what they lie on.

use crate::cim::{Associators, Namespace, ObjectPath, Query};
use crate::disk::DiskInfo;
use crate::disk::info::PartitionInfo;
use crate::error::{ErrorKind, Result};
use crate::ids::VolumeId;
use crate::operation::Operation;
use crate::row::Row;

/// `MSFT_Volume.FileSystemType`: Windows knows no file system on it.
const UNKNOWN: u32 = 0;
/// `MSFT_Volume.FileSystemType` of NTFS.
const NTFS: u32 = 14;

/// A volume as `MSFT_Volume` shows it.
///
/// Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume>.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VolumeInfo {
    pub(crate) id: VolumeId,
    pub(crate) file_system_type: u32,
    /// `NTFS`; blank for an unknown one.
    pub(crate) file_system: String,
    pub(crate) object: ObjectPath,
}

/// A volume with the partition and the disk that it is on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    pub(crate) disk: DiskInfo,
    pub(crate) partition: PartitionInfo,
    pub(crate) volume: VolumeInfo,
}

impl VolumeInfo {
    pub(crate) const CLASS: &'static str = "MSFT_Volume";

    const PROPERTIES: &'static [&'static str] = &["Path", "FileSystem", "FileSystemType"];

    /// The volume of that name.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn by_id(operation: &Operation<'_>, id: &VolumeId) -> Result<Self> {
        row_of(operation, id, Self::PROPERTIES).and_then(|row| Self::read(&row))
    }

    /// The volume of that name, if it is there.
    pub(crate) fn find(operation: &Operation<'_>, id: &VolumeId) -> Result<Option<Self>> {
        let rows = operation.query(&query(id, Self::PROPERTIES))?;
        rows.first().map(Self::read).transpose()
    }

    /// The volume on a partition; nothing when there is none, or none yet.
    pub(crate) fn of_partition(
        operation: &Operation<'_>,
        partition: &PartitionInfo,
    ) -> Result<Option<Self>> {
        let request = Associators::new(
            Namespace::Storage,
            &partition.object,
            "MSFT_PartitionToVolume",
            Self::CLASS,
            Self::PROPERTIES,
        );
        let rows = operation.associators(&request)?;
        match rows.first() {
            // A volume that is just coming or going has no name.
            Some(row)
                if row
                    .optional_text("Path")?
                    .is_some_and(|path| !path.is_empty()) =>
            {
                Self::read(row).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            id: VolumeId::new(row.text("Path")?).map_err(|error| row.error("Path", error))?,
            file_system_type: row.u32("FileSystemType")?,
            file_system: row
                .optional_text("FileSystem")?
                .unwrap_or_default()
                .to_owned(),
            object: row.path().clone(),
        })
    }

    /// Whether Windows knows a file system on it.
    pub(crate) fn is_formatted(&self) -> bool {
        self.file_system_type != UNKNOWN
    }

    /// Whether its growth is documented: NTFS, or no file system that Windows knows.
    pub(crate) fn is_documented_to_grow(&self) -> bool {
        matches!(self.file_system_type, UNKNOWN | NTFS)
    }

    /// The volume in messages.
    pub(crate) fn name(&self) -> String {
        format!("volume {}", self.id)
    }
}

/// The row of a volume.
///
/// # Errors
/// `NotFound`.
pub(super) fn row_of(operation: &Operation<'_>, id: &VolumeId, properties: &[&str]) -> Result<Row> {
    let rows = operation.query(&query(id, properties))?;
    rows.into_iter().next().ok_or_else(|| {
        let object = format!("volume {id}");
        operation.error(ErrorKind::NotFound, object, "there is no such volume")
    })
}

fn query(id: &VolumeId, properties: &[&str]) -> Query {
    Query::new(Namespace::Storage, VolumeInfo::CLASS, properties).with("Path", id.as_str())
}

impl Placed {
    /// A volume with what it lies on.
    ///
    /// # Errors
    /// `NotFound` when it is gone; `FailedPrecondition` for a volume that is not one
    /// partition of a basic disk.
    pub(crate) fn of(operation: &Operation<'_>, id: &VolumeId) -> Result<Self> {
        let volume = VolumeInfo::by_id(operation, id)?;
        let partition = PartitionInfo::of_volume(operation, &volume.object)?.ok_or_else(|| {
            let detail = "it lies on no partition; only basic disks are supported";
            operation.error(ErrorKind::FailedPrecondition, volume.name(), detail)
        })?;
        let disk = partition.disk(operation)?.ok_or_else(|| {
            operation.error(ErrorKind::NotFound, partition.name(), "its disk is gone")
        })?;
        Ok(Self {
            disk,
            partition,
            volume,
        })
    }
}
