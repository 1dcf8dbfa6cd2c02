//! Disks and partitions for tests of plans.

use super::info::{DiskInfo, PartitionInfo, PartitionKind, PartitionStyle};
use crate::cim::ObjectPath;
use crate::ids::{DevicePath, DiskNumber};

/// A raw disk that is online and can be written.
pub(crate) fn disk() -> DiskInfo {
    DiskInfo {
        number: DiskNumber(3),
        unique_id: "6002248000000000".to_owned(),
        path: DevicePath(r"\\?\scsi#disk#3".to_owned()),
        location: None,
        serial_number: None,
        size: 10 << 30,
        sector_size: 512,
        style: PartitionStyle::Raw,
        offline: false,
        offline_reason: None,
        read_only: false,
        boot: false,
        system: false,
        bus_type: Some(10),
        object: ObjectPath("disk".to_owned()),
    }
}

/// A data partition.
pub(crate) fn data(number: u32) -> PartitionInfo {
    PartitionInfo {
        disk: DiskNumber(3),
        number,
        offset: u64::from(number) << 20,
        size: 1 << 30,
        guid: Some("6e6fb07c-1a2b-4c3d-8e9f-0123456789ab".to_owned()),
        kind: PartitionKind::Data,
        offline: false,
        read_only: false,
        access_paths: Vec::new(),
        object: ObjectPath(format!("partition {number}")),
    }
}

/// Microsoft's reserved partition.
pub(crate) fn reserved(number: u32) -> PartitionInfo {
    PartitionInfo {
        kind: PartitionKind::Reserved,
        ..data(number)
    }
}

/// A Linux partition of an MBR disk.
pub(crate) fn linux(number: u32) -> PartitionInfo {
    PartitionInfo {
        kind: PartitionKind::Other("type 0x83 (Linux)".to_owned()),
        ..data(number)
    }
}

/// An EFI system partition.
pub(crate) fn other(number: u32) -> PartitionInfo {
    PartitionInfo {
        kind: PartitionKind::Other("EFI system".to_owned()),
        ..data(number)
    }
}
