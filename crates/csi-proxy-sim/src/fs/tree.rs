//! The files and directories of one file system.

use std::collections::BTreeMap;

use csi_proxy::os::{Bytes, DirEntry, Reparse, Stat};
use serde::{Deserialize, Serialize};

use super::name::{short_name, upcase};
use crate::storage::MediumId;

/// `FILE_ATTRIBUTE_READONLY`.
pub const READONLY: u32 = 0x1;
/// `FILE_ATTRIBUTE_HIDDEN`.
pub const HIDDEN: u32 = 0x2;
/// `FILE_ATTRIBUTE_SYSTEM`.
pub const SYSTEM: u32 = 0x4;
const DIRECTORY: u32 = 0x10;
const ARCHIVE: u32 = 0x20;
const REPARSE_POINT: u32 = 0x400;

/// A file or directory of a [`Tree`]; the root is 0.
pub(crate) type FileId = u64;

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Content {
    /// Plain bytes.
    Bytes(Bytes),
    /// A virtual disk.
    VirtualDisk(MediumId),
}

/// A file or directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// Attributes beside those that follow from the rest.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) attributes: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) reparse: Option<Reparse>,
    /// Alternate data streams by name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) streams: BTreeMap<String, Bytes>,
    /// Its access control list lets nobody in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) denied: bool,
    /// Some program has it open and shares it with nobody.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) open: bool,
}

/// Whether it is a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A directory: its entries by their name in upper case, the order of NTFS.
    Directory(BTreeMap<String, Entry>),
    /// A file.
    File(Content),
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The name as it was written.
    pub(crate) name: String,
    /// The 8.3 name beside it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) short: Option<String>,
    pub(crate) id: FileId,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Node {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            attributes: 0,
            reparse: None,
            streams: BTreeMap::new(),
            denied: false,
            open: false,
        }
    }

    /// An empty directory.
    pub(crate) fn directory() -> Self {
        Self::new(Kind::Directory(BTreeMap::new()))
    }

    /// A file.
    pub(crate) fn file(content: Content) -> Self {
        Self::new(Kind::File(content))
    }

    /// A directory that is a reparse point.
    pub(crate) fn directory_link(reparse: Reparse) -> Self {
        Self {
            reparse: Some(reparse),
            ..Self::directory()
        }
    }

    /// A file that is a reparse point.
    pub(crate) fn file_link(reparse: Reparse) -> Self {
        Self {
            reparse: Some(reparse),
            ..Self::file(Content::Bytes(Bytes(Vec::new())))
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory(_))
    }

    pub(crate) fn entries(&self) -> Option<&BTreeMap<String, Entry>> {
        match &self.kind {
            Kind::Directory(entries) => Some(entries),
            Kind::File(_) => None,
        }
    }

    pub(crate) fn is_empty_directory(&self) -> bool {
        self.entries().is_some_and(BTreeMap::is_empty)
    }

    /// What its entries lead to, in the order of the names.
    pub(crate) fn children(&self) -> Vec<FileId> {
        let entries = self.entries().into_iter().flatten();
        entries.map(|(_, entry)| entry.id).collect()
    }

    /// The size of a file; a virtual disk's file has the size that `medium_size` tells.
    pub(crate) fn size(&self, medium_size: impl Fn(MediumId) -> u64) -> u64 {
        match &self.kind {
            Kind::Directory(_) => 0,
            Kind::File(Content::Bytes(bytes)) => bytes.0.len() as u64,
            Kind::File(Content::VirtualDisk(medium)) => medium_size(*medium),
        }
    }

    pub(crate) fn medium(&self) -> Option<MediumId> {
        match self.kind {
            Kind::File(Content::VirtualDisk(medium)) => Some(medium),
            _ => None,
        }
    }

    fn all_attributes(&self) -> u32 {
        let kind = match self.kind {
            Kind::Directory(_) => DIRECTORY,
            Kind::File(_) => ARCHIVE,
        };
        let reparse = self.reparse.as_ref().map_or(0, |_| REPARSE_POINT);
        self.attributes | kind | reparse
    }
}

/// The files and directories of one file system. A directory knows its entries; nothing
/// else refers to a file, so removing an entry removes what is below it and no more.
#[derive(Clone, Debug, Eq, Serialize, Deserialize)]
#[serde(try_from = "Plain")]
pub(crate) struct Tree {
    nodes: BTreeMap<FileId, Node>,
    next: FileId,
    /// Whether new entries get an 8.3 name.
    short_names: bool,
}

/// The number of the next file says nothing about the tree.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        (&self.nodes, self.short_names) == (&other.nodes, other.short_names)
    }
}

impl Tree {
    pub(crate) const ROOT: FileId = 0;

    /// A tree with an empty root.
    pub(crate) fn new(short_names: bool) -> Self {
        Self {
            nodes: BTreeMap::from([(Self::ROOT, Node::directory())]),
            next: 1,
            short_names,
        }
    }

    pub(crate) fn node(&self, id: FileId) -> &Node {
        &self.nodes[&id]
    }

    /// Changes a file or directory, if it is there.
    pub(crate) fn change(&mut self, id: FileId, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(&id) {
            change(node);
        }
    }

    fn change_entries(
        &mut self,
        directory: FileId,
        change: impl FnOnce(&mut BTreeMap<String, Entry>),
    ) {
        self.change(directory, |node| {
            if let Kind::Directory(entries) = &mut node.kind {
                change(entries);
            }
        });
    }

    /// Makes the directories below the root that are missing; answers the last one.
    pub(crate) fn make_directories(&mut self, path: &[&str]) -> FileId {
        path.iter()
            .fold(Self::ROOT, |here, name| match self.lookup(here, name) {
                Some(entry) => entry.id,
                None => self.insert(here, name, Node::directory()),
            })
    }

    /// The entry of a directory under its long or its short name.
    pub(crate) fn lookup(&self, directory: FileId, name: &str) -> Option<&Entry> {
        let entries = self.node(directory).entries()?;
        let key = upcase(name);
        entries.get(&key).or_else(|| by_short_name(entries, &key))
    }

    /// Adds an entry. The caller has seen that the name is free.
    pub(crate) fn insert(&mut self, directory: FileId, name: &str, node: Node) -> FileId {
        let id = self.next;
        self.next += 1;
        self.nodes.insert(id, node);
        self.link(directory, name, id);
        id
    }

    fn link(&mut self, directory: FileId, name: &str, id: FileId) {
        let short = match self.short_names {
            true => short_name(name, |short| self.lookup(directory, short).is_some()),
            false => None,
        };
        let entry = Entry {
            name: name.to_owned(),
            short,
            id,
        };
        self.change_entries(directory, |entries| {
            entries.insert(upcase(name), entry);
        });
    }

    fn unlink(&mut self, directory: FileId, id: FileId) {
        self.change_entries(directory, |entries| {
            entries.retain(|_, entry| entry.id != id);
        });
    }

    /// Gives an entry another name or directory.
    pub(crate) fn rename(&mut self, id: FileId, from: FileId, to: FileId, name: &str) {
        self.unlink(from, id);
        self.link(to, name, id);
    }

    /// Removes an entry and all that is below it. Answers the media of the VHDX files that
    /// went with it.
    pub(crate) fn remove(&mut self, directory: FileId, id: FileId) -> Vec<MediumId> {
        self.unlink(directory, id);
        let below = self.below(id);
        below
            .into_iter()
            .filter_map(|id| self.nodes.remove(&id)?.medium())
            .collect()
    }

    /// An object and all objects below it.
    pub(crate) fn below(&self, id: FileId) -> Vec<FileId> {
        let mut all = vec![id];
        let mut next = 0;
        while let Some(id) = all.get(next) {
            all.extend(self.node(*id).children());
            next += 1;
        }
        all
    }

    /// All nodes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// What [`csi_proxy::os::Files::stat`] says of an object; a virtual disk's file has the
    /// size that `medium_size` tells.
    pub(crate) fn stat(&self, id: FileId, medium_size: impl Fn(MediumId) -> u64) -> Stat {
        let node = self.node(id);
        Stat {
            directory: node.is_directory(),
            attributes: node.all_attributes(),
            size: node.size(medium_size),
            reparse: node.reparse.clone(),
        }
    }

    /// The entries of a directory.
    pub(crate) fn list(
        &self,
        directory: FileId,
        medium_size: impl Fn(MediumId) -> u64,
    ) -> Vec<DirEntry> {
        let entries = self.node(directory).entries().into_iter().flatten();
        entries
            .map(|(_, entry)| DirEntry {
                name: entry.name.clone(),
                stat: self.stat(entry.id, &medium_size),
            })
            .collect()
    }

    /// The bytes that all contents take, in whole clusters.
    pub(crate) fn used(&self, medium_size: impl Fn(MediumId) -> u64) -> u64 {
        self.nodes()
            .map(|node| {
                let streams = node.streams.values().map(|bytes| bytes.0.len() as u64);
                clusters(node.size(&medium_size)) + streams.map(clusters).sum::<u64>()
            })
            .sum()
    }
}

/// The size in whole clusters of 4 KiB.
pub(crate) fn clusters(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

fn by_short_name<'a>(entries: &'a BTreeMap<String, Entry>, key: &str) -> Option<&'a Entry> {
    if !key.contains('~') {
        return None;
    }
    entries
        .values()
        .find(|entry| entry.short.as_deref() == Some(key))
}

/// A tree as it is stored; it may have been written by hand.
#[derive(Deserialize)]
struct Plain {
    nodes: BTreeMap<FileId, Node>,
    next: FileId,
    short_names: bool,
}

impl TryFrom<Plain> for Tree {
    type Error = String;

    fn try_from(plain: Plain) -> Result<Self, String> {
        let mut once: Vec<FileId> = plain
            .nodes
            .values()
            .filter_map(Node::entries)
            .flatten()
            .map(|(_, entry)| entry.id)
            .chain([Self::ROOT])
            .collect();
        once.sort_unstable();
        if !once.iter().eq(plain.nodes.keys()) {
            return Err("a file tree in which a file has no directory or several".to_owned());
        }
        if once.last().is_some_and(|last| *last >= plain.next) {
            return Err("a file tree whose next number is in use".to_owned());
        }
        Ok(Self {
            nodes: plain.nodes,
            next: plain.next,
            short_names: plain.short_names,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_media(_: MediumId) -> u64 {
        0
    }

    #[test]
    fn an_entry_is_found_whatever_the_case_and_under_its_short_name() {
        let mut tree = Tree::new(true);
        let id = tree.insert(Tree::ROOT, "Program Files", Node::directory());
        for name in ["Program Files", "PROGRAM FILES", "progra~1"] {
            assert_eq!(tree.lookup(Tree::ROOT, name).unwrap().id, id, "{name}");
        }
        assert_eq!(tree.list(Tree::ROOT, no_media)[0].name, "Program Files");
    }

    #[test]
    fn a_volume_without_short_names_makes_none() {
        let mut tree = Tree::new(false);
        tree.insert(Tree::ROOT, "Program Files", Node::directory());
        assert!(tree.lookup(Tree::ROOT, "PROGRA~1").is_none());
    }

    #[test]
    fn removing_a_directory_leaves_nothing_of_it_and_names_its_media() {
        let mut tree = Tree::new(true);
        let before = tree.nodes().count();
        let directory = tree.insert(Tree::ROOT, "d", Node::directory());
        tree.insert(
            directory,
            "v.vhdx",
            Node::file(Content::VirtualDisk(MediumId(7))),
        );
        assert_eq!(tree.remove(Tree::ROOT, directory), [MediumId(7)]);
        assert_eq!(tree.nodes().count(), before);
    }

    #[test]
    fn a_tree_survives_being_stored() {
        let mut tree = Tree::new(true);
        let directory = tree.insert(Tree::ROOT, "d", Node::directory());
        let content = Content::Bytes(Bytes(b"x".to_vec()));
        let file = tree.insert(directory, "f", Node::file(content));
        let stream = (String::from("s"), Bytes(vec![1]));
        tree.change(file, |node| node.streams.extend([stream]));
        let text = serde_json::to_string(&tree).unwrap();
        assert_eq!(serde_json::from_str::<Tree>(&text).unwrap(), tree);
        assert_eq!(tree.used(no_media), 8192);
    }

    #[test]
    fn a_stored_tree_that_does_not_hang_together_is_refused() {
        let mut tree = Tree::new(true);
        tree.insert(Tree::ROOT, "d", Node::directory());
        let text = serde_json::to_string(&tree).unwrap();
        let broken = text.replace(r#""id":1"#, r#""id":5"#);
        assert_ne!(broken, text);
        assert!(serde_json::from_str::<Tree>(&broken).is_err());
    }
}
