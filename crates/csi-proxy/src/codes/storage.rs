//! Return values of the storage management classes (`MSFT_Disk`, `MSFT_Partition`,
//! `MSFT_Volume`, `MSFT_StorageSetting`).
//!
//! The pages of the methods lie below
//! <https://learn.microsoft.com/windows-hardware/drivers/storage/>, each named at its list.
//! One code means the same in all of them, so the meanings stand once.

use super::{Method, Row, row};
use crate::error::ErrorKind::{
    Aborted, AlreadyExists, DeadlineExceeded, FailedPrecondition, Internal, InvalidArgument,
    OutOfRange, PermissionDenied, ResourceExhausted, Unavailable, Unsupported,
};

pub(super) const ROWS: &[Row] = &[
    row(1, "not supported", Unsupported),
    row(2, "an error that Windows does not specify", Internal),
    row(3, "the operation timed out in Windows", DeadlineExceeded),
    row(4, "the operation failed", Internal),
    row(5, "a parameter is not valid", Internal),
    row(6, "the disk or partition is in use", FailedPrecondition),
    row(
        7,
        "not supported for a 32-bit program on 64-bit Windows",
        Unsupported,
    ),
    row(4097, "the size is not supported", OutOfRange),
    row(40000, "there is not enough free space", ResourceExhausted),
    row(40001, "access is denied", PermissionDenied),
    row(
        40002,
        "Windows lacks the resources to complete the operation",
        ResourceExhausted,
    ),
    row(40003, "Windows' storage cache is out of date", Aborted),
    row(40004, "an unexpected I/O error", Internal),
    row(
        40005,
        "either a size or the maximum size must be asked for, not both",
        InvalidArgument,
    ),
    row(
        40018,
        "the disk is managed by a failover cluster",
        FailedPrecondition,
    ),
    row(41000, "the disk is not initialized", FailedPrecondition),
    row(41001, "the disk is already initialized", FailedPrecondition),
    row(41002, "the disk is read-only", FailedPrecondition),
    row(41003, "the disk is offline", FailedPrecondition),
    row(
        41004,
        "the disk has as many partitions as it can have",
        ResourceExhausted,
    ),
    row(
        41005,
        "the alignment is not a multiple of the sector size",
        InvalidArgument,
    ),
    row(
        41006,
        "a parameter is not valid for this type of partition",
        InvalidArgument,
    ),
    row(41007, "the disk has OEM partitions", FailedPrecondition),
    row(41008, "the disk has data partitions", FailedPrecondition),
    row(
        41009,
        "not possible on a boot or system disk",
        FailedPrecondition,
    ),
    row(41010, "the partition type is not valid", InvalidArgument),
    row(
        41011,
        "only the first 2 TB of an MBR disk can be used",
        OutOfRange,
    ),
    row(41012, "the offset is not valid", InvalidArgument),
    row(
        41013,
        "the disk has partitions, so its style cannot change",
        FailedPrecondition,
    ),
    row(41014, "the disk is too small for GPT", FailedPrecondition),
    row(
        41015,
        "there is no medium in the device",
        FailedPrecondition,
    ),
    row(
        41016,
        "the offset is not valid on this disk",
        InvalidArgument,
    ),
    row(
        41017,
        "the partition layout is not valid",
        FailedPrecondition,
    ),
    row(
        41018,
        "the disk is managed by a failover cluster and not in maintenance",
        FailedPrecondition,
    ),
    row(
        41019,
        "the disk must leave its failover cluster first",
        FailedPrecondition,
    ),
    row(
        42000,
        "the partition was deleted, its access paths were not",
        Internal,
    ),
    row(
        42001,
        "the extended partition still holds partitions",
        FailedPrecondition,
    ),
    row(42002, "the access path is already in use", AlreadyExists),
    row(
        42004,
        "a hidden partition takes no access path",
        FailedPrecondition,
    ),
    row(
        42005,
        "the path of the volume's GUID cannot be removed",
        InvalidArgument,
    ),
    row(
        42006,
        "a boot or paging partition keeps its drive letter",
        FailedPrecondition,
    ),
    row(42007, "the access path is not valid", InvalidArgument),
    row(
        42008,
        "a volume with errors cannot shrink",
        FailedPrecondition,
    ),
    row(
        42009,
        "a partition with an unknown file system cannot be resized",
        FailedPrecondition,
    ),
    row(
        42010,
        "not allowed on a system or critical partition",
        FailedPrecondition,
    ),
    row(
        42011,
        "only possible on data partitions",
        FailedPrecondition,
    ),
    row(
        43000,
        "the allocation unit size is not valid",
        InvalidArgument,
    ),
    row(43001, "the file system is not supported", InvalidArgument),
    row(
        43002,
        "the volume cannot be formatted quickly",
        FailedPrecondition,
    ),
    row(
        43003,
        "more allocation units than 32 bits can count",
        InvalidArgument,
    ),
    row(43004, "the UDF version is not supported", InvalidArgument),
    row(
        43005,
        "the allocation unit is not a multiple of the physical sector",
        InvalidArgument,
    ),
    row(43006, "the drive is read-only", FailedPrecondition),
    // The page says "Missing documentation".
    row(
        43034,
        "a code that Microsoft lists without a meaning",
        Internal,
    ),
    row(46000, "the storage provider cannot be reached", Unavailable),
    row(
        46001,
        "the storage provider cannot reach its subsystem",
        Unavailable,
    ),
    row(48007, "the storage pool is read-only", FailedPrecondition),
];

pub(super) const METHODS: &[Method] = &[
    // initialize-msft-disk
    (
        "MSFT_Disk.Initialize",
        &[
            1, 2, 3, 4, 5, 6, 40001, 40002, 40003, 41001, 41010, 41014, 41018,
        ],
    ),
    // createpartition-msft-disk
    (
        "MSFT_Disk.CreatePartition",
        &[
            1, 2, 3, 4, 5, 6, 4097, 40000, 40001, 40002, 40003, 40005, 41000, 41002, 41003, 41004,
            41005, 41006, 41010, 41011, 41012, 41015, 41016, 41017, 41018, 42002, 42004, 42007,
        ],
    ),
    // msft-disk-online
    (
        "MSFT_Disk.Online",
        &[1, 2, 3, 4, 5, 6, 40001, 40002, 40003, 41018],
    ),
    // msft-disk-offline
    (
        "MSFT_Disk.Offline",
        &[1, 2, 3, 4, 5, 6, 40001, 40002, 40003, 41009, 41018],
    ),
    // msft-disk-setattributes
    (
        "MSFT_Disk.SetAttributes",
        &[
            1, 2, 3, 4, 5, 6, 40001, 40002, 40003, 41000, 41003, 41006, 41009, 41018,
        ],
    ),
    // msft-disk-refresh
    (
        "MSFT_Disk.Refresh",
        &[1, 2, 3, 4, 5, 6, 40001, 40002, 40003, 41000, 41003],
    ),
    // clear-msft-disk
    (
        "MSFT_Disk.Clear",
        &[
            1, 2, 3, 4, 5, 6, 40001, 40002, 40003, 41000, 41002, 41003, 41007, 41008, 41009, 41015,
            41019,
        ],
    ),
    // addaccesspath-msft-partition
    (
        "MSFT_Partition.AddAccessPath",
        &[1, 2, 3, 4, 5, 40001, 40002, 42002, 42004, 42007],
    ),
    // removeaccesspath-msft-partition
    (
        "MSFT_Partition.RemoveAccessPath",
        &[1, 2, 3, 4, 5, 40001, 40002, 42005, 42006, 42007],
    ),
    // getaccesspaths-msft-partition
    ("MSFT_Partition.GetAccessPaths", &[1, 2, 3, 4, 5]),
    // msft-partition-getsupportedsizes
    (
        "MSFT_Partition.GetSupportedSize",
        &[1, 2, 3, 4, 5, 4097, 40001, 40002, 42008, 42009],
    ),
    // msft-partition-resize
    (
        "MSFT_Partition.Resize",
        &[1, 2, 3, 4, 5, 4097, 40001, 40002, 42008, 42009],
    ),
    // msft-partition-online
    (
        "MSFT_Partition.Online",
        &[1, 2, 3, 4, 5, 6, 40001, 40002, 42011],
    ),
    // msft-partition-offline
    (
        "MSFT_Partition.Offline",
        &[1, 2, 3, 4, 5, 6, 40001, 40002, 42011],
    ),
    // msft-partition-setattributes
    (
        "MSFT_Partition.SetAttributes",
        &[
            1, 2, 3, 4, 5, 6, 40001, 40002, 40003, 41000, 41003, 41006, 42010,
        ],
    ),
    // msft-partition-deleteobject
    (
        "MSFT_Partition.DeleteObject",
        &[1, 2, 3, 4, 5, 6, 40001, 40002, 42000, 42001],
    ),
    // format-msft-volume
    (
        "MSFT_Volume.Format",
        &[
            1, 2, 3, 4, 5, 7, 40001, 40004, 40018, 42010, 43000, 43001, 43002, 43003, 43004, 43005,
            43006, 43034,
        ],
    ),
    // msft-volume-flush
    ("MSFT_Volume.Flush", &[1, 2, 3, 4, 5]),
    // msft-volume-getsupportedclustersizes
    ("MSFT_Volume.GetSupportedClusterSizes", &[1, 2, 3, 4, 5]),
    // msft-volume-getsupportedfilesystems
    ("MSFT_Volume.GetSupportedFileSystems", &[1, 2, 3, 4, 5]),
    // msft-volume-resize
    (
        "MSFT_Volume.Resize",
        &[1, 2, 3, 4, 5, 40000, 40001, 40002, 46000, 46001, 48007],
    ),
    // msft-storagesetting-updatehoststoragecache names no return values: 4 is assumed.
    ("MSFT_StorageSetting.UpdateHostStorageCache", &[4]),
];
