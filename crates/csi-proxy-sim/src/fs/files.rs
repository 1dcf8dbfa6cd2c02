//! The calls on files, directories and links.

use csi_proxy::HostPath;
use csi_proxy::os::{
    At, Bytes, CreateLink, DirEntry, Reach, ReadFile, RemoveTree, Rename, Reparse, Stat, WriteFile,
};

use super::resolve::{Located, Root, View};
use super::target::Target;
use super::tree::{Content, FileId, Kind, Node, READONLY, clusters};
use super::{FsResult, Refusal, medium_size, mounts};
use crate::state::State;
use crate::storage::FileSystemKind;
use crate::win32::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_DIR_NOT_EMPTY, ERROR_DIRECTORY,
    ERROR_DISK_FULL, ERROR_FILE_NOT_FOUND, ERROR_FILE_TOO_LARGE, ERROR_INVALID_FUNCTION,
    ERROR_INVALID_NAME, ERROR_NOT_SAME_DEVICE, ERROR_PATH_NOT_FOUND, ERROR_SHARING_VIOLATION,
};

impl View<'_> {
    pub(super) fn stat(self, at: &At) -> FsResult<Stat> {
        let object = self.open_at(at, false)?;
        let size = |medium| medium_size(self.state(), medium);
        Ok(self.tree(&object.root)?.stat(object.id(), size))
    }

    pub(super) fn list(self, at: &At) -> FsResult<Vec<DirEntry>> {
        // `FindFirstFileW` opens `path\*`, so the path is one that is passed through.
        let object = self.open_at(at, true).map_err(|refusal| match refusal {
            Refusal::Code(ERROR_FILE_NOT_FOUND) => Refusal::Code(ERROR_PATH_NOT_FOUND),
            other => other,
        })?;
        if !self.node(&object)?.is_directory() {
            return Err(ERROR_DIRECTORY.into());
        }
        let size = |medium| medium_size(self.state(), medium);
        Ok(self.tree(&object.root)?.list(object.id(), size))
    }

    pub(super) fn read_file(self, request: &ReadFile) -> FsResult<Bytes> {
        let object = self.open_at(&request.at, true)?;
        let node = self.node(&object)?;
        let bytes = match &node.kind {
            Kind::Directory(_) => return Err(ERROR_ACCESS_DENIED.into()),
            _ if self.in_use(node) => return Err(ERROR_SHARING_VIOLATION.into()),
            Kind::File(Content::Bytes(bytes)) => bytes,
            // Nobody reads a virtual disk's file; the smallest has 4 MiB.
            Kind::File(Content::VirtualDisk(_)) => return Err(ERROR_FILE_TOO_LARGE.into()),
        };
        match bytes.0.len() as u64 > request.limit.into() {
            true => Err(ERROR_FILE_TOO_LARGE.into()),
            false => Ok(bytes.clone()),
        }
    }

    pub(super) fn reach(self, request: &Reach) -> FsResult<()> {
        self.open_target(Target::parse(&request.target), true)?;
        Ok(())
    }

    /// The deepest directory on the way that exists, and the names that do not.
    fn deepest_directory(self, path: &HostPath) -> FsResult<(Located, Vec<String>)> {
        let names: Vec<&str> = path.names().collect();
        let mut prefix = drive_of(path)?;
        let mut here = self.open(&prefix, true)?;
        for (index, name) in names.iter().enumerate() {
            prefix = prefix.join(name).map_err(|_| ERROR_INVALID_NAME)?;
            match self.open(&prefix, true) {
                Ok(object) if self.node(&object)?.is_directory() => here = object,
                // A file.
                Ok(_) => return Err(ERROR_ALREADY_EXISTS.into()),
                // Nothing, or a link to nothing.
                Err(ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND) => {
                    if self.tree(&here.root)?.lookup(here.id(), name).is_some() {
                        return Err(ERROR_ALREADY_EXISTS.into());
                    }
                    let missing = names[index..].iter().map(|name| (*name).to_owned());
                    return Ok((here, missing.collect()));
                }
                Err(code) => return Err(code.into()),
            }
        }
        Ok((here, Vec::new()))
    }

    /// A file that is open, or a VHDX file that is attached.
    fn in_use(self, node: &Node) -> bool {
        let storage = &self.state().storage;
        let attached = node
            .medium()
            .is_some_and(|medium| storage.is_attached(medium));
        node.open || attached
    }

    /// Refuses to rename what is in use, or a directory with something in use in it.
    fn check_closed(self, object: &Located) -> FsResult<()> {
        if self.in_use(self.node(object)?) {
            return Err(ERROR_SHARING_VIOLATION.into());
        }
        let tree = self.tree(&object.root)?;
        let below = tree.below(object.id());
        match below.iter().any(|id| self.in_use(tree.node(*id))) {
            true => Err(ERROR_ACCESS_DENIED.into()),
            false => Ok(()),
        }
    }

    /// Refuses a file for which there is no space, when `freed` bytes of another go.
    fn check_space(self, root: &Root, file: &Node, freed: u64) -> FsResult<()> {
        let size = |medium| medium_size(self.state(), medium);
        let wanted = match &file.kind {
            Kind::File(Content::Bytes(bytes)) => clusters(bytes.0.len() as u64),
            Kind::File(Content::VirtualDisk(medium)) => clusters(size(*medium)),
            Kind::Directory(_) => 0,
        };
        if wanted <= freed {
            return Ok(());
        }
        let used = self.tree(root)?.used(size).saturating_sub(freed);
        match wanted > self.size(root).saturating_sub(used) {
            true => Err(ERROR_DISK_FULL.into()),
            false => Ok(()),
        }
    }
}

pub(super) fn create_directories(state: &mut State, at: &At) -> FsResult<bool> {
    let view = View::of(state);
    match view.open(&at.path, true) {
        Ok(object) => {
            view.keep_within(&object, at.within.as_ref())?;
            return match view.node(&object)?.is_directory() {
                true => Ok(false),
                false => Err(ERROR_ALREADY_EXISTS.into()),
            };
        }
        Err(ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND) => {}
        Err(code) => return Err(code.into()),
    }
    let (mut here, missing) = view.deepest_directory(&at.path)?;
    view.keep_within(&here, at.within.as_ref())?;
    for name in missing {
        let id = insert(state, &here, &name, Node::directory())?;
        here = here.child(id);
    }
    Ok(true)
}

pub(super) fn remove_directory(state: &mut State, at: &At) -> FsResult<()> {
    let view = View::of(state);
    let object = view.open_at(at, false)?;
    let node = view.node(&object)?;
    if !node.is_directory() {
        return Err(ERROR_DIRECTORY.into());
    }
    if node.attributes & READONLY != 0 {
        return Err(ERROR_ACCESS_DENIED.into());
    }
    if !node.is_empty_directory() {
        return Err(ERROR_DIR_NOT_EMPTY.into());
    }
    let mount_point = matches!(node.reparse, Some(Reparse::MountPoint { .. }));
    let path = view.final_path(&object);
    remove(state, &object)?;
    if mount_point {
        // The function tells the mount manager of a mounted folder that it removes.
        mounts::forget(state, &path);
    }
    Ok(())
}

/// The walk opens every object without following it and deletes it by its handle, read-only
/// or not. The mount manager is not told of mounted folders that go.
pub(super) fn remove_tree(state: &mut State, request: &RemoveTree) -> FsResult<()> {
    let view = View::of(state);
    let object = view.open_at(&request.at, false)?;
    let node = view.node(&object)?;
    if !request.keep_root {
        return remove_below(state, &object);
    }
    if node.reparse.is_some() || !node.is_directory() {
        return Err(ERROR_DIRECTORY.into());
    }
    for child in node.children() {
        remove_below(state, &object.child(child))?;
    }
    Ok(())
}

/// Removes what is below an object and then itself, the contents first, as a walk does: what
/// went before something that cannot be removed is gone.
fn remove_below(state: &mut State, object: &Located) -> FsResult<()> {
    let mut walk = vec![(object.clone(), false)];
    while let Some((object, emptied)) = walk.pop() {
        let node = View::of(state).node(&object)?;
        if node.denied {
            return Err(ERROR_ACCESS_DENIED.into());
        }
        if emptied || node.is_empty_directory() || !node.is_directory() {
            remove(state, &object)?;
            continue;
        }
        let children = node.children();
        walk.push((object.clone(), true));
        walk.extend(children.iter().rev().map(|id| (object.child(*id), false)));
    }
    Ok(())
}

pub(super) fn remove_file(state: &mut State, at: &At) -> FsResult<()> {
    let view = View::of(state);
    let object = view.open_at(at, false)?;
    let node = view.node(&object)?;
    if node.is_directory() || node.attributes & READONLY != 0 {
        return Err(ERROR_ACCESS_DENIED.into());
    }
    remove(state, &object)
}

pub(super) fn rename(state: &mut State, request: &Rename) -> FsResult<()> {
    let view = View::of(state);
    let object = view.open_at(&request.at, false)?;
    let Some((parent, name)) = view.open_parent(&request.to)? else {
        return Err(ERROR_ALREADY_EXISTS.into());
    };
    view.keep_within(&parent, request.at.within.as_ref())?;
    // A drive's root: assumed.
    let from = object.directory().ok_or(ERROR_ACCESS_DENIED)?;
    if object.root != parent.root {
        return Err(ERROR_NOT_SAME_DEVICE.into());
    }
    let present = view.tree(&object.root)?.lookup(parent.id(), name);
    // The same object is there under another spelling of its name.
    if present.is_some_and(|entry| entry.id != object.id()) {
        return Err(ERROR_ALREADY_EXISTS.into());
    }
    if parent.is_or_is_below(&object) {
        // A directory into itself: assumed.
        return Err(ERROR_SHARING_VIOLATION.into());
    }
    view.check_closed(&object)?;
    view.check_writable(&object.root)?;
    let tree = state.fs.tree_mut(&object.root)?;
    tree.rename(object.id(), from, parent.id(), name);
    Ok(())
}

/// The contents go to a new file that then takes the place of the old one, so a link to a
/// file is replaced and not followed.
pub(super) fn write_file(state: &mut State, request: &WriteFile) -> FsResult<()> {
    let view = View::of(state);
    let Some((parent, name)) = view.open_parent(&request.at.path)? else {
        return Err(ERROR_ACCESS_DENIED.into());
    };
    view.keep_within(&parent, request.at.within.as_ref())?;
    view.check_writable(&parent.root)?;
    let file = Node::file(Content::Bytes(request.contents.clone()));
    let Some(entry) = view.tree(&parent.root)?.lookup(parent.id(), name) else {
        view.check_space(&parent.root, &file, 0)?;
        insert(state, &parent, name, file)?;
        return Ok(());
    };
    let old = view.tree(&parent.root)?.node(entry.id);
    if old.is_directory() || old.denied || old.attributes & READONLY != 0 {
        return Err(ERROR_ACCESS_DENIED.into());
    }
    let freed = clusters(old.size(|medium| medium_size(state, medium)));
    view.check_space(&parent.root, &file, freed)?;
    let name = entry.name.clone();
    remove(state, &parent.child(entry.id))?;
    insert(state, &parent, &name, file)?;
    Ok(())
}

pub(super) fn create_link(state: &mut State, request: &CreateLink) -> FsResult<()> {
    let target = request.target.clone();
    let link = Node::directory_link(Reparse::SymbolicLink { target });
    add(state, &request.at, link, ERROR_ALREADY_EXISTS)
}

/// Puts something where nothing is; else it is refused with the code `exists`.
pub(super) fn add(state: &mut State, at: &At, node: Node, exists: u32) -> FsResult<()> {
    let view = View::of(state);
    let Some((parent, name)) = view.open_parent(&at.path)? else {
        return Err(exists.into());
    };
    view.keep_within(&parent, at.within.as_ref())?;
    if view.tree(&parent.root)?.lookup(parent.id(), name).is_some() {
        return Err(exists.into());
    }
    // FAT has no reparse points.
    if node.reparse.is_some() && view.kind(&parent.root) == Some(FileSystemKind::Fat32) {
        return Err(ERROR_INVALID_FUNCTION.into());
    }
    view.check_writable(&parent.root)?;
    view.check_space(&parent.root, &node, 0)?;
    insert(state, &parent, name, node)?;
    Ok(())
}

fn insert(state: &mut State, parent: &Located, name: &str, node: Node) -> FsResult<FileId> {
    View::of(state).check_writable(&parent.root)?;
    let tree = state.fs.tree_mut(&parent.root)?;
    Ok(tree.insert(parent.id(), name, node))
}

/// Removes one object that nothing is below.
fn remove(state: &mut State, object: &Located) -> FsResult<()> {
    let view = View::of(state);
    // A drive's root: assumed.
    let directory = object.directory().ok_or(ERROR_ACCESS_DENIED)?;
    view.check_writable(&object.root)?;
    if view.in_use(view.node(object)?) {
        return Err(ERROR_SHARING_VIOLATION.into());
    }
    let tree = state.fs.tree_mut(&object.root)?;
    for medium in tree.remove(directory, object.id()) {
        crate::storage::forget_medium(state, medium);
    }
    Ok(())
}

fn drive_of(path: &HostPath) -> Result<HostPath, u32> {
    HostPath::from_kubelet(&format!(r"{}:\", path.drive())).map_err(|_| ERROR_INVALID_NAME)
}
