//! The port to Windows itself: what WMI does not do.
//!
//! Every path operation takes an [`At`]: the path, and a root that the opened object must
//! lie in. Links on the way to the last component are followed, as Windows does; whether
//! the last one is followed is said at each method.

mod types;

use crate::clock::Clock;
use crate::ids::{DevicePath, VolumeId};
use crate::port::port;

pub use types::{
    At, AttachVirtualDisk, Bytes, CreateLink, CreateVirtualDisk, DeviceNumber, DirEntry,
    ExpandVirtualDisk, LockName, LockToken, Reach, ReadFile, ReadRange, RemoveTree, Rename,
    Reparse, SetMountPoint, Space, Stat, VirtualDiskInfo, VolumeInformation, WriteFile,
};

/// All of it.
pub trait Os: Files + MountPoints + Devices + VirtualDisks + Locks + Clock {}

port! {
    /// Directories, files and links.
    pub trait Files, FilesCall, FilesAnswer {
        /// What stands at the path; a link itself, not its target.
        ///
        /// Source: `CreateFileW` with `FILE_FLAG_OPEN_REPARSE_POINT`,
        /// `GetFileInformationByHandle`, `FSCTL_GET_REPARSE_POINT`.
        Stat: fn stat(At) -> Stat;

        /// The entries of a directory in the order of the file system; a link at the path
        /// is followed.
        ///
        /// Source: `FindFirstFileW`.
        List: fn list(At) -> Vec<DirEntry>;

        /// Makes a directory and its missing parents. Answers false when a directory (or a
        /// link to one) was there; anything else in the way is
        /// `ERROR_ALREADY_EXISTS` (183).
        ///
        /// Source: `CreateDirectoryW`.
        CreateDirectories: fn create_directories(At) -> bool;

        /// Removes an empty directory, or a directory link, junction or volume mount point
        /// itself. Missing: `ERROR_FILE_NOT_FOUND` (2) or `ERROR_PATH_NOT_FOUND` (3).
        /// Not empty: `ERROR_DIR_NOT_EMPTY` (145).
        ///
        /// Source: `RemoveDirectoryW`.
        RemoveDirectory: fn remove_directory(At) -> ();

        /// Removes a tree without ever following a link or mount point, also when one is
        /// put there during the walk. A link or a plain file at the path is removed itself.
        RemoveTree: fn remove_tree(RemoveTree) -> ();

        /// Removes a file, or a file link itself.
        ///
        /// Source: `DeleteFileW`.
        RemoveFile: fn remove_file(At) -> ();

        /// Renames a file or directory; what is at the new path is an error.
        ///
        /// Source: `MoveFileExW` with `MOVEFILE_WRITE_THROUGH`.
        Rename: fn rename(Rename) -> ();

        /// The contents of a file, of at most the number of bytes named; a longer file is
        /// `ERROR_FILE_TOO_LARGE` (223).
        ReadFile: fn read_file(ReadFile) -> Bytes;

        /// Writes a whole file so that after a crash either the old or the new contents
        /// are there, and the new ones once the call has answered.
        WriteFile: fn write_file(WriteFile) -> ();

        /// Makes a symbolic link to a directory.
        ///
        /// Source: `CreateSymbolicLinkW` with `SYMBOLIC_LINK_FLAG_DIRECTORY`.
        CreateLink: fn create_link(CreateLink) -> ();

        /// Opens what the text names, through all links, and closes it again: a path, or a
        /// share. What Windows answers tells whether it can be reached.
        ///
        /// Source: `CreateFileW` with `FILE_FLAG_BACKUP_SEMANTICS`.
        Reach: fn reach(Reach) -> ();
    }
}

port! {
    /// Where volumes are mounted.
    pub trait MountPoints, MountPointsCall, MountPointsAnswer {
        /// Mounts a volume at an empty directory on NTFS.
        ///
        /// Source: `SetVolumeMountPointW`.
        SetMountPoint: fn set_mount_point(SetMountPoint) -> ();

        /// Takes a mount point away; its directory stays.
        ///
        /// Source: `DeleteVolumeMountPointW`.
        DeleteMountPoint: fn delete_mount_point(At) -> ();

        /// The volume that is mounted at the path (a mount point or a drive's root).
        ///
        /// Source: `GetVolumeNameForVolumeMountPointW`.
        MountedVolume: fn mounted_volume(At) -> VolumeId;

        /// All paths a volume is mounted at, each with a `\` at its end.
        ///
        /// Source: `GetVolumePathNamesForVolumeNameW`.
        MountPointsOf: fn mount_points_of(VolumeId) -> Vec<String>;

        /// The space of the volume behind the path, links followed.
        ///
        /// Source: `GetDiskFreeSpaceExW`.
        Space: fn space(At) -> Space;

        /// What the volume behind the path is like, links followed. It tells whether a
        /// staged volume can be written without asking WMI.
        ///
        /// Source: `GetVolumePathNameW`, `GetVolumeInformationW`.
        VolumeInformation: fn volume_information(At) -> VolumeInformation;
    }
}

port! {
    /// Disks and volumes as devices.
    pub trait Devices, DevicesCall, DevicesAnswer {
        /// The device type and number behind a disk or a volume.
        ///
        /// Source: `IOCTL_STORAGE_GET_DEVICE_NUMBER`.
        DeviceNumber: fn device_number(DevicePath) -> DeviceNumber;

        /// The raw `STORAGE_DEVICE_ID_DESCRIPTOR` (page 83) of a disk; read it with
        /// [`crate::page83`].
        ///
        /// Source: `IOCTL_STORAGE_QUERY_PROPERTY` with `StorageDeviceIdProperty`.
        DeviceIds: fn device_ids(DevicePath) -> Bytes;

        /// The bytes of a range of a disk or volume. It may be shorter where the device
        /// ends.
        ReadRange: fn read_range(ReadRange) -> Bytes;
    }
}

port! {
    /// VHDX files.
    pub trait VirtualDisks, VirtualDisksCall, VirtualDisksAnswer {
        /// Makes a dynamic VHDX file; an existing file is `ERROR_FILE_EXISTS` (80).
        ///
        /// Source: `CreateVirtualDisk`.
        CreateVirtualDisk: fn create_virtual_disk(CreateVirtualDisk) -> ();

        /// What a VHDX file holds and whether it is attached.
        ///
        /// Source: `GetVirtualDiskInformation`.
        VirtualDiskInfo: fn virtual_disk_info(At) -> VirtualDiskInfo;

        /// Attaches a VHDX file without a drive letter, until it is detached or the node
        /// reboots. Already attached: `ERROR_SHARING_VIOLATION` (32).
        ///
        /// Source: `AttachVirtualDisk` with `ATTACH_VIRTUAL_DISK_FLAG_PERMANENT_LIFETIME`
        /// and `ATTACH_VIRTUAL_DISK_FLAG_NO_DRIVE_LETTER`.
        AttachVirtualDisk: fn attach_virtual_disk(AttachVirtualDisk) -> ();

        /// Detaches a VHDX file. Not attached: `ERROR_NOT_READY` (21).
        ///
        /// Source: `DetachVirtualDisk`.
        DetachVirtualDisk: fn detach_virtual_disk(At) -> ();

        /// Makes a detached VHDX larger.
        ///
        /// Source: `ExpandVirtualDisk`.
        ExpandVirtualDisk: fn expand_virtual_disk(ExpandVirtualDisk) -> ();

        /// The disk (`\\.\PhysicalDriveN`) of an attached VHDX file.
        ///
        /// Source: `GetVirtualDiskPhysicalPath`.
        VirtualDiskPath: fn virtual_disk_path(At) -> DevicePath;
    }
}

port! {
    /// Locks among the processes of the node, released by Windows when a process ends.
    pub trait Locks, LocksCall, LocksAnswer {
        /// Takes a lock, or answers null at once when someone else holds it, this process
        /// included.
        TryLock: fn try_lock(LockName) -> Option<LockToken>;

        /// Gives a lock back.
        Unlock: fn unlock(LockToken) -> ();
    }
}
