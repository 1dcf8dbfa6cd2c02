//! The rules of Windows that the file systems keep, each with its code.

mod attached;
mod directories;
mod links;
mod mount_points;
mod properties;

use csi_proxy::os::{
    At, Bytes, CreateLink, Reach, ReadFile, RemoveTree, Rename, Reparse, SetMountPoint, WriteFile,
};
use csi_proxy::{HostPath, VolumeId};

use super::*;
use crate::smb::{Server, Share};
use crate::storage::{
    BusType, Disk, DiskId, FileSystem, FileSystemKind, Medium, Partition, PartitionKind,
    SparseBytes, Style, VirtualDisk,
};

/// A node with `C:` (volume 0) and an empty NTFS volume that is mounted nowhere (volume 1).
pub(super) struct Node {
    pub(super) state: State,
}

pub(super) fn volume(number: u8) -> VolumeId {
    let text = format!(r"\\?\Volume{{00000000-0000-0000-0000-0000000000{number:02x}}}\");
    VolumeId::new(&text).unwrap()
}

pub(super) fn path(text: &str) -> HostPath {
    HostPath::from_kubelet(text).unwrap()
}

pub(super) fn at(text: &str) -> At {
    At::path(&path(text))
}

fn within(text: &str, root: &str) -> At {
    At::within(&path(text), &path(root))
}

const SIZE: u64 = 1 << 30;

fn disk(number: u8) -> Disk {
    Disk {
        number: number.into(),
        medium: MediumId(number.into()),
        unique_id: number.to_string(),
        serial: None,
        location: None,
        friendly_name: String::new(),
        bus_type: BusType::Sas,
        offline: None,
        read_only: false,
        boot: false,
        system: false,
        write_protected: false,
        slow_online: 0,
        page83: None,
    }
}

fn medium(number: u8) -> Medium {
    Medium {
        size: SIZE,
        grown_to: None,
        style: Style::Gpt {
            guid: String::new(),
        },
        partitions: vec![Partition {
            number: 2,
            offset: 1 << 20,
            size: SIZE,
            kind: PartitionKind::Gpt("{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}".to_owned()),
            volume: Some(volume(number)),
            guid: Some(volume(number).guid().to_owned()),
            file_system: None,
            drive_letter: None,
            read_only: false,
            hidden: false,
            active: false,
            offline: false,
            no_default_drive_letter: true,
            format_seconds: None,
        }],
        bytes: SparseBytes::default(),
    }
}

fn ntfs() -> FileSystem {
    FileSystem {
        kind: FileSystemKind::Ntfs,
        label: String::new(),
        allocation_unit: 4096,
        health: 0,
    }
}

impl Node {
    pub(super) fn new() -> Self {
        let mut node = Self {
            state: State::default(),
        };
        node.add(0);
        node.partition(0).file_system = Some(ntfs());
        node.letter(0, 'C');
        make_system_tree(&mut node.state, &volume(0));
        node.add(1);
        node.format(1, FileSystemKind::Ntfs);
        node
    }

    /// Attaches a disk with a RAW volume.
    pub(super) fn add(&mut self, number: u8) {
        let storage = &mut self.state.storage;
        storage.disks.insert(DiskId(number.into()), disk(number));
        storage
            .media
            .insert(MediumId(number.into()), medium(number));
    }

    pub(super) fn disk(&mut self, number: u8) -> &mut Disk {
        let disks = &mut self.state.storage.disks;
        disks.get_mut(&DiskId(number.into())).unwrap()
    }

    fn partition(&mut self, number: u8) -> &mut Partition {
        let media = &mut self.state.storage.media;
        &mut media.get_mut(&MediumId(number.into())).unwrap().partitions[0]
    }

    fn format(&mut self, number: u8, kind: FileSystemKind) {
        self.partition(number).file_system = Some(FileSystem { kind, ..ntfs() });
        make_tree(&mut self.state, &volume(number));
    }

    fn letter(&mut self, number: u8, letter: char) {
        self.partition(number).drive_letter = Some(letter);
    }

    fn take_away(&mut self, number: u8, away: bool) {
        self.disk(number).offline = away.then_some(1);
    }

    pub(super) fn view(&self) -> View<'_> {
        View::of(&self.state)
    }

    fn create_directories(&mut self, text: &str) -> FsResult<bool> {
        files::create_directories(&mut self.state, &at(text))
    }

    fn remove_directory(&mut self, text: &str) -> FsResult<()> {
        files::remove_directory(&mut self.state, &at(text))
    }

    fn remove_file(&mut self, text: &str) -> FsResult<()> {
        files::remove_file(&mut self.state, &at(text))
    }

    fn rename(&mut self, from: &str, to: &str) -> FsResult<()> {
        let request = Rename {
            at: at(from),
            to: path(to),
        };
        files::rename(&mut self.state, &request)
    }

    fn unmount(&mut self, text: &str) -> FsResult<()> {
        mounts::delete_mount_point(&mut self.state, &at(text))
    }

    /// Makes the share `\\s\d`, which lets everybody in.
    fn share(&mut self) {
        let server = Server::new().share("d", Share::open(SIZE));
        crate::smb::put_server(&mut self.state, "s", server);
    }

    fn mkdir(&mut self, text: &str) {
        self.create_directories(text).unwrap();
    }

    fn write(&mut self, text: &str, contents: &[u8]) -> FsResult<()> {
        let request = WriteFile {
            at: at(text),
            contents: Bytes(contents.to_vec()),
        };
        files::write_file(&mut self.state, &request)
    }

    fn read(&mut self, text: &str) -> FsResult<Vec<u8>> {
        let request = ReadFile {
            at: at(text),
            limit: 100,
        };
        self.view().read_file(&request).map(|bytes| bytes.0)
    }

    fn link(&mut self, text: &str, target: &str) -> FsResult<()> {
        let request = CreateLink {
            at: at(text),
            target: target.to_owned(),
        };
        files::create_link(&mut self.state, &request)
    }

    fn mount(&mut self, text: &str, number: u8) -> FsResult<()> {
        let request = SetMountPoint {
            at: at(text),
            volume: volume(number),
        };
        mounts::set_mount_point(&mut self.state, &request)
    }

    fn reach(&mut self, target: &str) -> FsResult<()> {
        let target = target.to_owned();
        self.view().reach(&Reach { target })
    }

    fn exists(&mut self, text: &str) -> bool {
        self.view().stat(&at(text)).is_ok()
    }

    fn names(&mut self, text: &str) -> Vec<String> {
        let entries = self.view().list(&at(text)).unwrap();
        entries.into_iter().map(|entry| entry.name).collect()
    }

    fn remove_tree(&mut self, text: &str) -> FsResult<()> {
        let request = RemoveTree {
            at: at(text),
            keep_root: false,
        };
        files::remove_tree(&mut self.state, &request)
    }
}

fn code<T: std::fmt::Debug>(result: FsResult<T>) -> u32 {
    match result.unwrap_err() {
        Refusal::Code(code) => code,
        Refusal::Outside => panic!("outside"),
    }
}

fn file(number: u32) -> Reparse {
    Reparse::Other { tag: number }
}
