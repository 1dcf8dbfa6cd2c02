//! The ports [`Files`] and [`MountPoints`] on the node's file systems.

use csi_proxy::VolumeId;
use csi_proxy::clock::Deadline;
use csi_proxy::os::{
    At, Bytes, CreateLink, DirEntry, Files, MountPoints, Reach, ReadFile, RemoveTree, Rename,
    SetMountPoint, Space, Stat, VolumeInformation, WriteFile,
};
use csi_proxy::port::PortResult;

use super::resolve::View;
use super::{FsResult, answer, files, mounts};
use crate::ports::Ports;
use crate::state::State;

impl Ports<'_> {
    fn read<T>(
        &self,
        api: &str,
        at: Option<&At>,
        work: impl FnOnce(View<'_>) -> FsResult<T>,
    ) -> PortResult<T> {
        answer(api, at, work(View::of(&self.model().state)))
    }

    fn change<T>(
        &self,
        api: &str,
        at: &At,
        work: impl FnOnce(&mut State) -> FsResult<T>,
    ) -> PortResult<T> {
        answer(api, Some(at), work(&mut self.model().state))
    }
}

impl Files for Ports<'_> {
    fn stat(&self, at: &At, _: Deadline) -> PortResult<Stat> {
        self.read("CreateFileW", Some(at), |files| files.stat(at))
    }

    fn list(&self, at: &At, _: Deadline) -> PortResult<Vec<DirEntry>> {
        self.read("FindFirstFileW", Some(at), |files| files.list(at))
    }

    fn create_directories(&self, at: &At, _: Deadline) -> PortResult<bool> {
        self.change("CreateDirectoryW", at, |state| {
            files::create_directories(state, at)
        })
    }

    fn remove_directory(&self, at: &At, _: Deadline) -> PortResult<()> {
        self.change("RemoveDirectoryW", at, |state| {
            files::remove_directory(state, at)
        })
    }

    fn remove_tree(&self, request: &RemoveTree, _: Deadline) -> PortResult<()> {
        self.change("SetFileInformationByHandle", &request.at, |state| {
            files::remove_tree(state, request)
        })
    }

    fn remove_file(&self, at: &At, _: Deadline) -> PortResult<()> {
        self.change("DeleteFileW", at, |state| files::remove_file(state, at))
    }

    fn rename(&self, request: &Rename, _: Deadline) -> PortResult<()> {
        self.change("MoveFileExW", &request.at, |state| {
            files::rename(state, request)
        })
    }

    fn read_file(&self, request: &ReadFile, _: Deadline) -> PortResult<Bytes> {
        self.read("ReadFile", Some(&request.at), |files| {
            files.read_file(request)
        })
    }

    fn write_file(&self, request: &WriteFile, _: Deadline) -> PortResult<()> {
        self.change("WriteFile", &request.at, |state| {
            files::write_file(state, request)
        })
    }

    fn create_link(&self, request: &CreateLink, _: Deadline) -> PortResult<()> {
        self.change("CreateSymbolicLinkW", &request.at, |state| {
            files::create_link(state, request)
        })
    }

    fn reach(&self, request: &Reach, _: Deadline) -> PortResult<()> {
        self.read("CreateFileW", None, |files| files.reach(request))
    }
}

impl MountPoints for Ports<'_> {
    fn set_mount_point(&self, request: &SetMountPoint, _: Deadline) -> PortResult<()> {
        self.change("SetVolumeMountPointW", &request.at, |state| {
            mounts::set_mount_point(state, request)
        })
    }

    fn delete_mount_point(&self, at: &At, _: Deadline) -> PortResult<()> {
        self.change("DeleteVolumeMountPointW", at, |state| {
            mounts::delete_mount_point(state, at)
        })
    }

    fn mounted_volume(&self, at: &At, _: Deadline) -> PortResult<VolumeId> {
        let api = "GetVolumeNameForVolumeMountPointW";
        self.read(api, Some(at), |files| files.mounted_volume(at))
    }

    fn mount_points_of(&self, volume: &VolumeId, _: Deadline) -> PortResult<Vec<String>> {
        let api = "GetVolumePathNamesForVolumeNameW";
        self.read(api, None, |files| files.mount_points_of(volume))
    }

    fn space(&self, at: &At, _: Deadline) -> PortResult<Space> {
        self.read("GetDiskFreeSpaceExW", Some(at), |files| files.space(at))
    }

    fn volume_information(&self, at: &At, _: Deadline) -> PortResult<VolumeInformation> {
        self.read("GetVolumeInformationW", Some(at), |files| {
            files.volume_information(at)
        })
    }
}
