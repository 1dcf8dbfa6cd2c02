//! The calls on mount points.

use csi_proxy::VolumeId;
use csi_proxy::os::{At, Reparse, SetMountPoint, Space, VolumeInformation};

use super::name::same_name;
use super::resolve::{Located, Root, View};
use super::{FsResult, access_paths, medium_size};
use crate::state::State;
use crate::storage::FileSystemKind;
use crate::win32::{
    ERROR_DIR_NOT_EMPTY, ERROR_DIRECTORY, ERROR_FILE_NOT_FOUND, ERROR_INVALID_PARAMETER,
    ERROR_NOT_A_REPARSE_POINT, ERROR_NOT_SUPPORTED, ERROR_REPARSE_TAG_MISMATCH,
};

impl View<'_> {
    pub(super) fn mounted_volume(self, at: &At) -> FsResult<VolumeId> {
        let object = self.open_at(at, false)?;
        if object.directory().is_none()
            && let Root::Volume(volume) = object.root
        {
            return Ok(volume);
        }
        self.mount_point(&object)
    }

    /// The volume of a mount point. The codes for what is none are assumed.
    fn mount_point(self, object: &Located) -> FsResult<VolumeId> {
        match &self.node(object)?.reparse {
            Some(Reparse::MountPoint { volume }) => Ok(volume.clone()),
            None => Err(ERROR_NOT_A_REPARSE_POINT.into()),
            Some(_) => Err(ERROR_INVALID_PARAMETER.into()),
        }
    }

    pub(super) fn mount_points_of(self, id: &VolumeId) -> FsResult<Vec<String>> {
        let volume = self.state().storage.volume(id);
        let volume = volume.ok_or(ERROR_FILE_NOT_FOUND)?;
        let drive = volume.partition.drive_letter;
        let mut paths: Vec<String> = drive.iter().map(|drive| format!(r"{drive}:\")).collect();
        paths.extend(access_paths(self.state(), id));
        Ok(paths)
    }

    pub(super) fn space(self, at: &At) -> FsResult<Space> {
        let object = self.open_at(at, true)?;
        if !self.node(&object)?.is_directory() {
            return Err(ERROR_DIRECTORY.into());
        }
        let total = self.size(&object.root);
        let tree = self.tree(&object.root)?;
        let used = tree.used(|medium| medium_size(self.state(), medium));
        Ok(Space {
            total,
            available: total.saturating_sub(used),
        })
    }

    pub(super) fn volume_information(self, at: &At) -> FsResult<VolumeInformation> {
        let object = self.open_at(at, true)?;
        let file_system = match self.kind(&object.root) {
            Some(FileSystemKind::Fat32) => "FAT32",
            Some(FileSystemKind::Refs) => "ReFS",
            _ => "NTFS",
        };
        Ok(VolumeInformation {
            file_system: file_system.to_owned(),
            read_only: self.check_writable(&object.root).is_err(),
        })
    }

    /// Source: <https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumemountpointw>
    fn check_mountable(self, object: &Located, volume: &VolumeId) -> FsResult<()> {
        let node = self.node(object)?;
        if !node.is_directory() {
            return Err(ERROR_DIRECTORY.into());
        }
        match &node.reparse {
            // "If the lpszVolumeMountPoint parameter contains a path to a mounted folder,
            // GetLastError returns ERROR_DIR_NOT_EMPTY, even if the directory is empty." A
            // junction has the same tag.
            Some(Reparse::MountPoint { .. } | Reparse::Junction { .. }) => {
                return Err(ERROR_DIR_NOT_EMPTY.into());
            }
            // Assumed: a directory has one tag.
            Some(_) => return Err(ERROR_REPARSE_TAG_MISMATCH.into()),
            None => {}
        }
        // A drive's root: assumed.
        if !node.is_empty_directory() || object.directory().is_none() {
            return Err(ERROR_DIR_NOT_EMPTY.into());
        }
        // The page says that SMB and ReFS have no mounted folders; the code is assumed.
        let share = matches!(object.root, Root::Share(_));
        if share || self.kind(&object.root) != Some(FileSystemKind::Ntfs) {
            return Err(ERROR_NOT_SUPPORTED.into());
        }
        // A volume without a file system can be mounted; opening it fails. The code for one
        // that is not there is assumed.
        let volume = self.state().storage.volume(volume);
        volume.ok_or(ERROR_FILE_NOT_FOUND)?;
        Ok(self.check_writable(&object.root)?)
    }
}

pub(super) fn set_mount_point(state: &mut State, request: &SetMountPoint) -> FsResult<()> {
    let view = View::of(state);
    let object = view.open_at(&request.at, false)?;
    view.check_mountable(&object, &request.volume)?;
    let path = view.final_path(&object);
    let volume = request.volume.clone();
    let tree = state.fs.tree_mut(&object.root)?;
    tree.change(object.id(), |node| {
        node.reparse = Some(Reparse::MountPoint { volume });
    });
    remember(state, &request.volume, &path);
    Ok(())
}

/// Source: <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-deletevolumemountpointw>
pub(super) fn delete_mount_point(state: &mut State, at: &At) -> FsResult<()> {
    let view = View::of(state);
    let object = view.open_at(at, false)?;
    if object.directory().is_none() {
        // Nobody takes a drive's letter away on this way: assumed.
        return Err(ERROR_INVALID_PARAMETER.into());
    }
    view.mount_point(&object)?;
    view.check_writable(&object.root)?;
    let path = view.final_path(&object);
    let tree = state.fs.tree_mut(&object.root)?;
    tree.change(object.id(), |node| node.reparse = None);
    forget(state, &path);
    Ok(())
}

/// Enters a mount point among those of a volume; no other volume is mounted there.
fn remember(state: &mut State, volume: &VolumeId, path: &[String]) {
    forget(state, path);
    let paths = state.fs.mounted.entry(volume.clone()).or_default();
    paths.push(mount_path(path));
}

/// Strikes a mount point out.
pub(super) fn forget(state: &mut State, path: &[String]) {
    let path = mount_path(path);
    for paths in state.fs.mounted.values_mut() {
        paths.retain(|remembered| !same_name(remembered, &path));
    }
    state.fs.mounted.retain(|_, paths| !paths.is_empty());
}

fn mount_path(path: &[String]) -> String {
    format!(r"{}\", path.join(r"\"))
}
