//! From a path to the object that Windows opens.

use csi_proxy::os::{At, Reparse};
use csi_proxy::{HostPath, VolumeId};

use super::name::{is_legal, same_name};
use super::target::{Anchor, Target};
use super::tree::{FileId, Node, Tree};
use super::{FileSystems, FsResult, Refusal, share_key};
use crate::smb::ShareAccess;
use crate::state::State;
use crate::storage::FileSystemKind;
use crate::win32::{
    ERROR_ACCESS_DENIED, ERROR_BAD_NET_NAME, ERROR_BAD_NETPATH, ERROR_CANT_ACCESS_FILE,
    ERROR_CANT_RESOLVE_FILENAME, ERROR_DIRECTORY, ERROR_FILE_NOT_FOUND, ERROR_INVALID_NAME,
    ERROR_INVALID_REPARSE_DATA, ERROR_PATH_NOT_FOUND, ERROR_SYMLINK_CLASS_DISABLED,
    ERROR_UNRECOGNIZED_VOLUME, ERROR_WRITE_PROTECT,
};

/// "There is a limit of 63 reparse points on any given path."
///
/// Source: <https://learn.microsoft.com/windows/win32/fileio/reparse-points>
const MAX_REPARSE_POINTS: usize = 63;

/// What a tree belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Volume(VolumeId),
    /// A share, as a key of [`FileSystems::shares`].
    Share(String),
}

/// An object that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) root: Root,
    /// From the root directory down to the object, both included.
    chain: Vec<FileId>,
}

impl Located {
    fn root_of(root: Root) -> Self {
        Self {
            root,
            chain: vec![Tree::ROOT],
        }
    }

    pub(crate) fn id(&self) -> FileId {
        self.chain.last().copied().unwrap_or(Tree::ROOT)
    }

    /// The directory it is in; nothing for a root directory.
    pub(crate) fn directory(&self) -> Option<FileId> {
        self.chain.iter().rev().nth(1).copied()
    }

    pub(crate) fn child(&self, id: FileId) -> Self {
        let mut child = self.clone();
        child.chain.push(id);
        child
    }

    fn up(&mut self, levels: usize) -> Result<(), u32> {
        // A relative link that leads above its volume: assumed.
        let left = self
            .chain
            .len()
            .checked_sub(levels)
            .filter(|left| *left > 0);
        self.chain.truncate(left.ok_or(ERROR_INVALID_NAME)?);
        Ok(())
    }

    pub(crate) fn is_or_is_below(&self, other: &Self) -> bool {
        self.root == other.root && self.chain.starts_with(&other.chain)
    }
}

impl FileSystems {
    fn tree(&self, root: &Root) -> Option<&Tree> {
        match root {
            Root::Volume(volume) => self.volumes.get(volume),
            Root::Share(share) => self.shares.get(share).map(|share| &share.tree),
        }
    }

    /// The tree below a root, to change it. Whoever calls has asked
    /// [`View::check_writable`].
    pub(super) fn tree_mut(&mut self, root: &Root) -> Result<&mut Tree, u32> {
        let found = match root {
            Root::Volume(volume) => self.volumes.get_mut(volume),
            Root::Share(share) => self.shares.get_mut(share).map(|share| &mut share.tree),
        };
        found.ok_or(ERROR_UNRECOGNIZED_VOLUME)
    }
}

/// The node's files, as they are read.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    state: &'a State,
    /// Whatever has files can be reached and changed, attached or not.
    by_hand: bool,
}

impl<'a> View<'a> {
    pub(crate) fn of(state: &'a State) -> Self {
        Self {
            state,
            by_hand: false,
        }
    }

    pub(super) fn by_hand(state: &'a State) -> Self {
        Self {
            state,
            by_hand: true,
        }
    }

    pub(super) fn state(self) -> &'a State {
        self.state
    }

    /// Opens a path. The last name's link is followed or opened itself; all others are
    /// followed.
    pub(crate) fn open(self, path: &HostPath, follow: bool) -> Result<Located, u32> {
        self.open_target(Target::of_path(path), follow)
    }

    /// Opens what an absolute text names.
    pub(crate) fn open_target(self, target: Target, follow: bool) -> Result<Located, u32> {
        let Target::Absolute(anchor, names) = target else {
            return Err(ERROR_INVALID_NAME);
        };
        let walk = Walk {
            view: self,
            at: self.enter(&anchor)?,
            rest: names.into_iter().rev().collect(),
            reparse_points: 0,
            wanted: None,
        };
        walk.run(follow)
    }

    /// Opens the object of a call, and keeps it in the call's root.
    pub(crate) fn open_at(self, at: &At, follow: bool) -> FsResult<Located> {
        let object = match self.open(&at.path, follow) {
            Err(code @ (ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND)) => {
                self.keep_missing_within(at)?;
                return Err(code.into());
            }
            object => object?,
        };
        self.keep_within(&object, at.within.as_ref())?;
        Ok(object)
    }

    /// Refuses a path at which nothing is, if the last directory on it that exists does not
    /// lie in the root.
    fn keep_missing_within(self, at: &At) -> FsResult<()> {
        let mut above = at.path.parent();
        while let Some(path) = above {
            if let Ok(directory) = self.open(&path, true) {
                return self.keep_within(&directory, at.within.as_ref());
            }
            above = path.parent();
        }
        Ok(())
    }

    /// Opens the directory that a path's last name stands in, and gives that name. A
    /// drive's root has none: nothing.
    pub(crate) fn open_parent(self, path: &HostPath) -> Result<Option<(Located, &str)>, u32> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let parent = self.open(&parent, true).map_err(|code| {
            if code == ERROR_FILE_NOT_FOUND {
                ERROR_PATH_NOT_FOUND
            } else {
                code
            }
        })?;
        if self.node(&parent)?.entries().is_none() {
            return Err(ERROR_PATH_NOT_FOUND);
        }
        match is_legal(name) {
            true => Ok(Some((parent, name))),
            false => Err(ERROR_INVALID_NAME),
        }
    }

    /// Refuses an object whose real path does not lie in the root's real path.
    pub(crate) fn keep_within(self, object: &Located, root: Option<&HostPath>) -> FsResult<()> {
        let Some(root) = root else { return Ok(()) };
        let root = self.final_path(&self.open(root, true)?);
        let object = self.final_path(object);
        let below = root.len() <= object.len();
        let inside = below
            && root
                .iter()
                .zip(&object)
                .all(|(one, other)| same_name(one, other));
        inside.then_some(()).ok_or(Refusal::Outside)
    }

    /// The names of an object's real path, as `GetFinalPathNameByHandleW` makes it with
    /// `VOLUME_NAME_DOS`: below the drive's letter, else below the first directory that the
    /// volume is mounted at, else below the volume's name.
    pub(crate) fn final_path(self, object: &Located) -> Vec<String> {
        let mut path = match &object.root {
            Root::Share(share) => vec![share.clone()],
            Root::Volume(volume) => match self.letter_of(volume) {
                Some(letter) => vec![format!("{letter}:")],
                None => self
                    .first_mount_point(volume)
                    .unwrap_or_else(|| vec![volume.device().0]),
            },
        };
        for step in object.chain.windows(2) {
            path.extend(self.name_of(&object.root, step[0], step[1]));
        }
        path
    }

    pub(crate) fn letter_of(self, id: &VolumeId) -> Option<char> {
        self.state.storage.volume(id)?.partition.drive_letter
    }

    fn first_mount_point(self, volume: &VolumeId) -> Option<Vec<String>> {
        let mounted = self.state.fs.mounted.get(volume)?;
        mounted
            .iter()
            .find(|path| self.is_mounted_at(volume, path))
            .map(|path| {
                path.trim_end_matches('\\')
                    .split('\\')
                    .map(ToOwned::to_owned)
                    .collect()
            })
    }

    fn is_mounted_at(self, volume: &VolumeId, path: &str) -> bool {
        let reparse = self
            .open_target(Target::parse(path), false)
            .and_then(|object| Ok(self.node(&object)?.reparse.clone()));
        matches!(reparse, Ok(Some(Reparse::MountPoint { volume: found })) if found == *volume)
    }

    fn name_of(self, root: &Root, directory: FileId, id: FileId) -> Option<String> {
        let tree = self.state.fs.tree(root)?;
        let mut entries = tree.node(directory).entries()?.values();
        entries
            .find(|entry| entry.id == id)
            .map(|entry| entry.name.clone())
    }

    /// The tree below a root.
    pub(crate) fn tree(self, root: &Root) -> Result<&'a Tree, u32> {
        let tree = self.state.fs.tree(root);
        tree.ok_or(ERROR_UNRECOGNIZED_VOLUME)
    }

    pub(crate) fn check_writable(self, root: &Root) -> Result<(), u32> {
        match root {
            _ if self.by_hand => Ok(()),
            Root::Volume(id) => match self.state.storage.volume(id) {
                Some(volume) if volume.is_writable() => Ok(()),
                _ => Err(ERROR_WRITE_PROTECT),
            },
            Root::Share(key) => match self.share_access(key)? {
                ShareAccess::ReadOnly => Err(ERROR_ACCESS_DENIED),
                ShareAccess::ReadWrite => Ok(()),
            },
        }
    }

    /// The size in bytes of what is below a root.
    pub(crate) fn size(self, root: &Root) -> u64 {
        let size = match root {
            Root::Volume(id) => {
                let volume = self.state.storage.volume(id);
                volume.map(|volume| volume.partition.size)
            }
            Root::Share(key) => self.state.fs.shares.get(key).map(|share| share.size),
        };
        size.unwrap_or(0)
    }

    /// The file system below a root; a share's is NTFS.
    pub(crate) fn kind(self, root: &Root) -> Option<FileSystemKind> {
        let Root::Volume(id) = root else {
            return Some(FileSystemKind::Ntfs);
        };
        let volume = self.state.storage.volume(id)?;
        volume
            .partition
            .file_system
            .as_ref()
            .map(|found| found.kind)
    }

    fn share_access(self, key: &str) -> Result<ShareAccess, u32> {
        let names = key.trim_start_matches('\\').split_once('\\');
        let (server, share) = names.ok_or(ERROR_BAD_NET_NAME)?;
        self.state.smb.access(server, share)
    }

    pub(crate) fn node(self, object: &Located) -> Result<&'a Node, u32> {
        Ok(self.tree(&object.root)?.node(object.id()))
    }

    fn enter(self, anchor: &Anchor) -> Result<Located, u32> {
        match anchor {
            Anchor::Drive(letter) => match self.drive(*letter) {
                Some(volume) => self.enter_volume(volume),
                None => {
                    let share = self.state.smb.share_of_drive(*letter);
                    let (server, share) = share.ok_or(ERROR_PATH_NOT_FOUND)?;
                    self.enter_share(server, share)
                }
            },
            Anchor::Volume(volume) => self.enter_volume(volume),
            Anchor::Share(server, share) => self.enter_share(server, share),
            // Assumed.
            Anchor::Server => Err(ERROR_BAD_NETPATH),
        }
    }

    fn enter_share(self, server: &str, share: &str) -> Result<Located, u32> {
        if !self.by_hand {
            self.state.smb.access(server, share)?;
        }
        let key = share_key(server, share);
        match self.state.fs.shares.contains_key(&key) {
            true => Ok(Located::root_of(Root::Share(key))),
            false => Err(ERROR_BAD_NET_NAME),
        }
    }

    fn drive(self, letter: char) -> Option<&'a VolumeId> {
        if !self.by_hand {
            return self.state.storage.drive(letter).map(|volume| volume.id);
        }
        let media = self.state.storage.media.values();
        media
            .flat_map(|medium| &medium.partitions)
            .find(|partition| partition.drive_letter == Some(letter))?
            .volume
            .as_ref()
    }

    fn enter_volume(self, id: &VolumeId) -> Result<Located, u32> {
        let there = self.by_hand || self.state.storage.volume(id).is_some();
        let root = Root::Volume(id.clone());
        let formatted = self.by_hand || self.kind(&root).is_some();
        match () {
            // The name of the volume is not among the devices: assumed to be the same code
            // as for a drive letter that is not.
            () if !there => Err(ERROR_PATH_NOT_FOUND),
            () if !formatted || self.state.fs.tree(&root).is_none() => {
                Err(ERROR_UNRECOGNIZED_VOLUME)
            }
            () => Ok(Located::root_of(root)),
        }
    }
}

/// The way from a root to an object.
struct Walk<'v> {
    view: View<'v>,
    at: Located,
    /// The names still to go, the next one last.
    rest: Vec<String>,
    reparse_points: usize,
    /// Whether the link that stood last is one to a directory or one to a file.
    wanted: Option<bool>,
}

impl Walk<'_> {
    fn run(mut self, follow: bool) -> Result<Located, u32> {
        while let Some(name) = self.rest.pop() {
            self.step(&name, follow)?;
        }
        let node = self.view.node(&self.at)?;
        if node.denied {
            return Err(ERROR_ACCESS_DENIED);
        }
        // STATUS_NOT_A_DIRECTORY and STATUS_FILE_IS_A_DIRECTORY.
        match self.wanted {
            Some(true) if !node.is_directory() => Err(ERROR_DIRECTORY),
            Some(false) if node.is_directory() => Err(ERROR_ACCESS_DENIED),
            _ => Ok(self.at),
        }
    }

    fn step(&mut self, name: &str, follow: bool) -> Result<(), u32> {
        let last = self.rest.is_empty();
        if !is_legal(name) {
            return Err(ERROR_INVALID_NAME);
        }
        let view = self.view;
        let tree = view.tree(&self.at.root)?;
        let here = tree.node(self.at.id());
        if here.denied {
            return Err(ERROR_ACCESS_DENIED);
        }
        if !here.is_directory() {
            return Err(ERROR_PATH_NOT_FOUND);
        }
        let missing = if last {
            ERROR_FILE_NOT_FOUND
        } else {
            ERROR_PATH_NOT_FOUND
        };
        let id = tree.lookup(self.at.id(), name).ok_or(missing)?.id;
        let node = tree.node(id);
        match &node.reparse {
            Some(reparse) if follow || !last => {
                if node.denied {
                    return Err(ERROR_ACCESS_DENIED);
                }
                if last {
                    self.wanted = Some(node.is_directory());
                }
                self.follow(reparse)
            }
            _ => {
                self.at = self.at.child(id);
                Ok(())
            }
        }
    }

    /// Goes on where a reparse point in the present directory leads.
    fn follow(&mut self, reparse: &Reparse) -> Result<(), u32> {
        self.reparse_points += 1;
        if self.reparse_points > MAX_REPARSE_POINTS {
            return Err(ERROR_CANT_RESOLVE_FILENAME);
        }
        match reparse {
            Reparse::SymbolicLink { target } => self.follow_link(Target::parse(target)),
            Reparse::Junction { target } => match Target::parse(target) {
                // A junction leads to a place of this machine.
                Target::Absolute(Anchor::Share(..) | Anchor::Server, _) => {
                    Err(ERROR_INVALID_REPARSE_DATA)
                }
                target @ Target::Absolute(..) => self.follow_link(target),
                _ => Err(ERROR_INVALID_REPARSE_DATA),
            },
            Reparse::MountPoint { volume } => {
                self.at = self.view.enter_volume(volume)?;
                Ok(())
            }
            Reparse::Other { .. } => Err(ERROR_CANT_ACCESS_FILE),
        }
    }

    fn follow_link(&mut self, target: Target) -> Result<(), u32> {
        let names = match target {
            Target::Absolute(anchor, names) => {
                // Links from a share to this machine or another share are off unless an
                // administrator turns them on (`fsutil behavior set SymlinkEvaluation`).
                if matches!(self.at.root, Root::Share(_)) {
                    return Err(ERROR_SYMLINK_CLASS_DISABLED);
                }
                self.at = self.view.enter(&anchor)?;
                names
            }
            Target::Rooted(names) => {
                self.at = Located::root_of(self.at.root.clone());
                names
            }
            Target::Relative(up, names) => {
                self.at.up(up)?;
                names
            }
            Target::Nonsense => return Err(ERROR_INVALID_NAME),
        };
        self.rest.extend(names.into_iter().rev());
        Ok(())
    }
}
