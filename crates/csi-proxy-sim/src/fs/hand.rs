//! Changes made by hand, past Windows' rules: what a test arranges, or what someone else on
//! the node does just before a call.
//!
//! Paths are texts: `C:\dir`, `\\?\Volume{guid}\dir` or `\\server\share\dir`, whether the
//! disk is attached and the server can be reached or not.

use csi_proxy::VolumeId;
use csi_proxy::os::{Bytes, Reparse};
use csi_proxy::port::PortResult;
use serde::{Deserialize, Serialize};

use super::resolve::{Located, View};
use super::target::Target;
use super::tree::{Content, Kind, Node, Tree};
use super::{FsResult, answer};
use crate::state::State;
use crate::win32::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_FILE_NOT_FOUND, ERROR_INVALID_NAME,
    ERROR_PATH_NOT_FOUND,
};

/// How a file or directory is changed by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    /// Its access control list lets nobody in, or everybody again.
    Denied(bool),
    /// A program has it open without sharing it, or has closed it.
    Open(bool),
    /// It gets these attributes ([`super::READONLY`], [`super::HIDDEN`],
    /// [`super::SYSTEM`]).
    Attributes(u32),
}

impl State {
    /// Makes a directory and its missing parents; links on the way are followed.
    pub fn put_directory(&mut self, path: &str) -> PortResult<()> {
        answer("put_directory", None, put_directory(self, path))
    }

    /// Writes a file in the place of what is there; its directory must exist.
    pub fn put_file(&mut self, path: &str, contents: &[u8]) -> PortResult<()> {
        let content = Content::Bytes(Bytes(contents.to_vec()));
        answer("put_file", None, put(self, path, Node::file(content)))
    }

    /// Makes a reparse point of the directory kind in the place of what is there.
    pub fn put_link(&mut self, path: &str, reparse: Reparse) -> PortResult<()> {
        let link = Node::directory_link(reparse);
        answer("put_link", None, put(self, path, link))
    }

    /// Makes a reparse point of the file kind in the place of what is there.
    pub fn put_file_link(&mut self, path: &str, reparse: Reparse) -> PortResult<()> {
        let link = Node::file_link(reparse);
        answer("put_file_link", None, put(self, path, link))
    }

    /// Gives a file or directory, a link itself, an alternate data stream.
    pub fn put_stream(&mut self, path: &str, name: &str, contents: &[u8]) -> PortResult<()> {
        let stream = (name.to_owned(), Bytes(contents.to_vec()));
        let result = change(self, path, |node| node.streams.extend([stream]));
        answer("put_stream", None, result)
    }

    /// Removes whatever stands at the path with all below it, a link itself; the mount
    /// manager is not told.
    pub fn erase(&mut self, path: &str) -> PortResult<()> {
        answer("erase", None, erase(self, path))
    }

    /// Changes the file or directory at the path, a link itself.
    pub fn change_file(&mut self, path: &str, how: FileChange) -> PortResult<()> {
        let result = change(self, path, |node| match how {
            FileChange::Denied(denied) => node.denied = denied,
            FileChange::Open(open) => node.open = open,
            FileChange::Attributes(attributes) => node.attributes = attributes,
        });
        answer("change_file", None, result)
    }

    /// The contents of a file, links followed.
    pub fn file(&self, path: &str) -> PortResult<Vec<u8>> {
        let view = View::by_hand(self);
        let contents = view
            .open_target(Target::parse(path), true)
            .and_then(|object| match &view.node(&object)?.kind {
                Kind::File(Content::Bytes(bytes)) => Ok(bytes.0.clone()),
                _ => Err(ERROR_ACCESS_DENIED),
            });
        answer("file", None, contents.map_err(Into::into))
    }

    /// Every path of a volume (`\dir\file`), with the reparse point that stands there.
    pub fn paths_of(&self, volume: &VolumeId) -> Vec<(String, Option<Reparse>)> {
        let Some(tree) = self.fs.volumes.get(volume) else {
            return Vec::new();
        };
        let mut paths = Vec::new();
        let mut walk = vec![(String::new(), Tree::ROOT)];
        while let Some((path, id)) = walk.pop() {
            let node = tree.node(id);
            let entries = node.entries().into_iter().flatten().rev();
            walk.extend(entries.map(|(_, entry)| (format!(r"{path}\{}", entry.name), entry.id)));
            paths.push((path, node.reparse.clone()));
        }
        paths
    }
}

/// The directory of a path's last name, and that name.
fn parent(state: &State, path: &str) -> FsResult<(Located, String)> {
    let Target::Absolute(anchor, mut names) = Target::parse(path) else {
        return Err(ERROR_INVALID_NAME.into());
    };
    let name = names.pop().ok_or(ERROR_ALREADY_EXISTS)?;
    let view = View::by_hand(state);
    let parent = view.open_target(Target::Absolute(anchor, names), true)?;
    match view.node(&parent)?.is_directory() {
        true => Ok((parent, name)),
        false => Err(ERROR_PATH_NOT_FOUND.into()),
    }
}

/// The object at a path, even if its own list denies access.
fn find(state: &State, path: &str) -> FsResult<Located> {
    let (parent, name) = parent(state, path)?;
    let tree = View::by_hand(state).tree(&parent.root)?;
    let entry = tree.lookup(parent.id(), &name);
    Ok(parent.child(entry.ok_or(ERROR_FILE_NOT_FOUND)?.id))
}

fn change(state: &mut State, path: &str, change: impl FnOnce(&mut Node)) -> FsResult<()> {
    let object = find(state, path)?;
    let tree = state.fs.tree_mut(&object.root)?;
    tree.change(object.id(), change);
    Ok(())
}

fn put_directory(state: &mut State, path: &str) -> FsResult<()> {
    let Target::Absolute(anchor, names) = Target::parse(path) else {
        return Err(ERROR_INVALID_NAME.into());
    };
    let root = Target::Absolute(anchor.clone(), Vec::new());
    let mut here = View::by_hand(state).open_target(root, true)?;
    for end in 1..=names.len() {
        let target = Target::Absolute(anchor.clone(), names[..end].to_vec());
        here = match View::by_hand(state).open_target(target, true) {
            Err(ERROR_FILE_NOT_FOUND) => {
                let tree = state.fs.tree_mut(&here.root)?;
                here.child(tree.insert(here.id(), &names[end - 1], Node::directory()))
            }
            found => found?,
        };
    }
    match View::by_hand(state).node(&here)?.is_directory() {
        true => Ok(()),
        false => Err(ERROR_ALREADY_EXISTS.into()),
    }
}

fn put(state: &mut State, path: &str, node: Node) -> FsResult<()> {
    if find(state, path).is_ok() {
        erase(state, path)?;
    }
    let (parent, name) = parent(state, path)?;
    let tree = state.fs.tree_mut(&parent.root)?;
    tree.insert(parent.id(), &name, node);
    Ok(())
}

fn erase(state: &mut State, path: &str) -> FsResult<()> {
    let object = find(state, path)?;
    let directory = object.directory().ok_or(ERROR_ACCESS_DENIED)?;
    let tree = state.fs.tree_mut(&object.root)?;
    for medium in tree.remove(directory, object.id()) {
        crate::storage::forget_medium(state, medium);
    }
    Ok(())
}
