//! The rules of Windows that the file systems keep, each with its code.

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

#[test]
fn drive_c_has_what_windows_and_the_kubelet_put_there() {
    let mut node = Node::new();
    assert!(node.exists(r"C:\var\lib\kubelet"));
    assert!(node.exists(r"C:\windows\SYSTEM32"));
    assert!(node.exists(r"C:\PROGRA~1"));
    assert!(node.exists(r"C:\progra~2"));
}

#[test]
fn a_missing_last_name_and_a_missing_directory_differ() {
    let node = Node::new();
    let view = node.view();
    assert_eq!(code(view.stat(&at(r"C:\x"))), 2);
    assert_eq!(code(view.stat(&at(r"C:\x\y"))), 3);
    assert_eq!(code(view.stat(&at(r"Z:\"))), 3);
    assert_eq!(code(view.list(&at(r"C:\x"))), 3);
}

#[test]
fn a_file_on_the_way_is_no_directory() {
    let mut node = Node::new();
    node.write(r"C:\f", b"x").unwrap();
    assert_eq!(code(node.view().stat(&at(r"C:\f\y"))), 3);
    assert_eq!(code(node.view().list(&at(r"C:\f"))), 267);
    assert_eq!(code(node.create_directories(r"C:\f")), 183);
    assert_eq!(code(node.create_directories(r"C:\f\y")), 183);
}

#[test]
fn making_directories_tells_whether_it_made_one() {
    let mut node = Node::new();
    assert_eq!(node.create_directories(r"C:\a\b\c"), Ok(true));
    assert_eq!(node.create_directories(r"C:\A\B\C"), Ok(false));
    node.link(r"C:\l", r"C:\a").unwrap();
    assert_eq!(node.create_directories(r"C:\l"), Ok(false));
    assert_eq!(node.create_directories(r"C:\l\b\d"), Ok(true));
    assert_eq!(node.names(r"C:\a\b"), ["c", "d"]);
}

#[test]
fn a_dead_link_is_in_the_way_of_a_directory() {
    let mut node = Node::new();
    node.link(r"C:\dead", r"C:\nothing").unwrap();
    assert_eq!(code(node.create_directories(r"C:\dead")), 183);
    assert_eq!(code(node.create_directories(r"C:\dead\x")), 183);
    assert!(!node.exists(r"C:\nothing"));
}

#[test]
fn names_keep_their_case() {
    let mut node = Node::new();
    node.write(r"C:\MixedCase.txt", b"1").unwrap();
    node.write(r"C:\MIXEDCASE.TXT", b"2").unwrap();
    assert!(node.names(r"C:\").contains(&"MixedCase.txt".to_owned()));
    assert_eq!(node.read(r"C:\mixedcase.txt").unwrap(), b"2");
}

#[test]
fn c12_odd_but_legal_names_are_names() {
    let mut node = Node::new();
    for name in [
        "a b",
        "[vsanDatastore] x",
        "(1)",
        "#",
        ";",
        "$(x)",
        "`",
        "%VAR%",
        "'",
        "’",
        "\u{1f600}",
    ] {
        let text = format!(r"C:\odd\{name}");
        node.mkdir(&text);
        assert!(node.exists(&text), "{name}");
    }
    assert_eq!(node.names(r"C:\odd").len(), 11);
}

#[test]
fn a_file_is_read_up_to_the_limit() {
    let mut node = Node::new();
    node.write(r"C:\f", &[7; 100]).unwrap();
    assert_eq!(node.read(r"C:\f").unwrap(), [7; 100]);
    node.write(r"C:\f", &[7; 101]).unwrap();
    assert_eq!(code(node.read(r"C:\f")), 223);
    assert_eq!(code(node.read(r"C:\Windows")), 5);
}

#[test]
fn writing_over_what_is_not_a_writable_file_is_denied() {
    let mut node = Node::new();
    assert_eq!(code(node.write(r"C:\Windows", b"")), 5);
    assert_eq!(code(node.write(r"C:\x\y", b"")), 3);
    node.write(r"C:\f", b"old").unwrap();
    let readonly = Change::Attributes(READONLY);
    node.state.change(r"C:\f", readonly).unwrap();
    assert_eq!(code(node.write(r"C:\f", b"new")), 5);
    assert_eq!(code(node.remove_file(r"C:\f")), 5);
    assert_eq!(node.read(r"C:\f").unwrap(), b"old");
}

#[test]
fn writing_replaces_a_file_link_and_not_its_target() {
    let mut node = Node::new();
    node.write(r"C:\target", b"kept").unwrap();
    let target = r"C:\target".to_owned();
    let link = Reparse::SymbolicLink { target };
    node.state.put_file_link(r"C:\l", link).unwrap();
    node.write(r"C:\l", b"new").unwrap();
    assert_eq!(node.read(r"C:\target").unwrap(), b"kept");
    assert_eq!(node.view().stat(&at(r"C:\l")).unwrap().reparse, None);
}

#[test]
fn removing_a_directory_needs_it_empty_and_a_directory() {
    let mut node = Node::new();
    node.mkdir(r"C:\d\e");
    node.write(r"C:\f", b"").unwrap();
    assert_eq!(code(node.remove_directory(r"C:\d")), 145);
    assert_eq!(code(node.remove_directory(r"C:\f")), 267);
    assert_eq!(code(node.remove_directory(r"C:\gone")), 2);
    assert_eq!(code(node.remove_directory(r"C:\")), 145);
    node.remove_directory(r"C:\d\e").unwrap();
    assert!(!node.exists(r"C:\d\e"));
}

#[test]
fn removing_a_link_never_removes_its_target() {
    let mut node = Node::new();
    node.mkdir(r"C:\d");
    node.write(r"C:\d\f", b"1").unwrap();
    node.link(r"C:\l", r"C:\d").unwrap();
    assert_eq!(code(node.remove_file(r"C:\l")), 5);
    node.remove_directory(r"C:\l").unwrap();
    node.link(r"C:\l", r"C:\d").unwrap();
    node.remove_tree(r"C:\l").unwrap();
    assert_eq!(node.read(r"C:\d\f").unwrap(), b"1");
}

#[test]
fn removing_a_tree_follows_neither_links_nor_mount_points() {
    let mut node = Node::new();
    node.mkdir(r"C:\keep");
    node.write(r"C:\keep\f", b"1").unwrap();
    node.mkdir(r"C:\tree\sub\m");
    node.mount(r"C:\tree\sub\m", 1).unwrap();
    node.write(r"C:\tree\sub\m\data", b"2").unwrap();
    node.link(r"C:\tree\l", r"C:\keep").unwrap();
    let target = r"C:\keep".to_owned();
    let junction = Reparse::Junction { target };
    node.state.put_link(r"C:\tree\sub\j", junction).unwrap();
    let keep_root = RemoveTree {
        at: at(r"C:\tree"),
        keep_root: true,
    };
    files::remove_tree(&mut node.state, &keep_root).unwrap();
    assert_eq!(node.names(r"C:\tree"), [""; 0]);
    assert_eq!(node.read(r"C:\keep\f").unwrap(), b"1");
    assert!(node.reach(&format!("{}data", volume(1))).is_ok());
    node.remove_tree(r"C:\tree").unwrap();
    assert!(!node.exists(r"C:\tree"));
}

#[test]
fn the_contents_of_a_link_are_not_removed() {
    let mut node = Node::new();
    node.mkdir(r"C:\d\e");
    node.link(r"C:\l", r"C:\d").unwrap();
    let contents = RemoveTree {
        at: at(r"C:\l"),
        keep_root: true,
    };
    assert_eq!(code(files::remove_tree(&mut node.state, &contents)), 267);
    assert!(node.exists(r"C:\d\e"));
}

#[test]
fn what_is_open_or_attached_cannot_be_removed() {
    let mut node = Node::new();
    node.mkdir(r"C:\d");
    node.write(r"C:\d\a", b"").unwrap();
    node.add(7);
    node.state.storage.disks.remove(&DiskId(7));
    let attach = |node: &mut Node, attached: Option<DiskId>| {
        let identity = String::new();
        let disk = VirtualDisk { identity, attached };
        node.state.storage.virtual_disks.insert(MediumId(7), disk);
    };
    create_virtual_disk_file(&mut node.state, &at(r"C:\d\v.vhdx"), MediumId(7)).unwrap();
    attach(&mut node, Some(DiskId(7)));
    assert_eq!(code(node.remove_file(r"C:\d\v.vhdx")), 32);
    assert_eq!(code(node.write(r"C:\d\v.vhdx", b"x")), 32);
    assert_eq!(code(node.rename(r"C:\d\v.vhdx", r"C:\d\w")), 32);
    assert_eq!(code(node.remove_tree(r"C:\d")), 32);
    // What the walk met before is gone.
    assert_eq!(node.names(r"C:\d"), ["v.vhdx"]);
    attach(&mut node, None);
    let open = |open| Change::Open(open);
    node.state.change(r"C:\d\v.vhdx", open(true)).unwrap();
    assert_eq!(code(node.remove_file(r"C:\d\v.vhdx")), 32);
    node.state.change(r"C:\d\v.vhdx", open(false)).unwrap();
    node.remove_tree(r"C:\d").unwrap();
    assert!(!node.state.storage.media.contains_key(&MediumId(7)));
}

#[test]
fn a_virtual_disk_is_found_through_links_by_its_real_path() {
    let mut node = Node::new();
    node.mkdir(r"C:\pool");
    node.add(7);
    let file = at(r"C:\pool\V.vhdx");
    create_virtual_disk_file(&mut node.state, &file, MediumId(7)).unwrap();
    let again = create_virtual_disk_file(&mut node.state, &file, MediumId(7));
    assert_eq!(again, Err(win32("CreateVirtualDisk", 80)));
    node.link(r"C:\l", r"C:\pool").unwrap();
    let found = virtual_disk_at(&node.state, &at(r"C:\L\v.VHDX"), "x").unwrap();
    assert_eq!(found, (MediumId(7), path(r"C:\pool\V.vhdx")));
    node.write(r"C:\f", b"").unwrap();
    let other = virtual_disk_at(&node.state, &at(r"C:\f"), "x");
    assert_eq!(other, Err(win32("x", 87)));
}

#[test]
fn renaming_never_replaces_and_stays_on_the_volume() {
    let mut node = Node::new();
    node.write(r"C:\a", b"a").unwrap();
    node.write(r"C:\b", b"b").unwrap();
    node.mkdir(r"C:\d\e");
    node.mkdir(r"C:\m");
    node.mount(r"C:\m", 1).unwrap();
    assert_eq!(code(node.rename(r"C:\a", r"C:\b")), 183);
    assert_eq!(code(node.rename(r"C:\x", r"C:\y")), 2);
    assert_eq!(code(node.rename(r"C:\a", r"C:\x\y")), 3);
    assert_eq!(code(node.rename(r"C:\a", r"C:\m\a")), 17);
    assert_eq!(code(node.rename(r"C:\d", r"C:\d\e\f")), 32);
    node.rename(r"C:\a", r"C:\A").unwrap();
    node.rename(r"C:\d", r"C:\d2").unwrap();
    assert!(node.names(r"C:\").contains(&"A".to_owned()));
    assert!(node.exists(r"C:\d2\e"));
    node.state.change(r"C:\d2\e", Change::Open(true)).unwrap();
    assert_eq!(code(node.rename(r"C:\d2", r"C:\d")), 5);
    assert_eq!(code(node.rename(r"C:\d2\e", r"C:\e")), 32);
}

#[test]
fn a_link_is_made_only_where_nothing_is_and_may_be_dead() {
    let mut node = Node::new();
    node.mkdir(r"C:\d");
    assert_eq!(code(node.link(r"C:\d", r"C:\Windows")), 183);
    assert_eq!(code(node.link(r"C:\x\l", r"C:\Windows")), 3);
    node.link(r"C:\l", r"C:\later").unwrap();
    let stat = node.view().stat(&at(r"C:\l")).unwrap();
    assert!(stat.directory);
    assert_eq!(stat.attributes, 0x410);
    let target = r"C:\later".to_owned();
    assert_eq!(stat.reparse, Some(Reparse::SymbolicLink { target }));
    assert_eq!(code(node.reach(r"C:\l")), 2);
    assert_eq!(code(node.reach(r"C:\l\x")), 3);
    node.mkdir(r"C:\later\x");
    assert!(node.reach(r"C:\l\x").is_ok());
}

#[test]
fn a_directory_link_to_a_file_leads_nowhere() {
    let mut node = Node::new();
    node.write(r"C:\f", b"").unwrap();
    node.link(r"C:\l", r"C:\f").unwrap();
    assert_eq!(code(node.reach(r"C:\l")), 267);
    let target = r"C:\Windows".to_owned();
    let link = Reparse::SymbolicLink { target };
    node.state.put_file_link(r"C:\fl", link).unwrap();
    assert_eq!(code(node.reach(r"C:\fl")), 5);
}

#[test]
fn c10_link_loops_and_long_chains_end() {
    let mut node = Node::new();
    node.link(r"C:\A", r"C:\B").unwrap();
    node.link(r"C:\B", r"C:\A").unwrap();
    assert_eq!(code(node.reach(r"C:\A")), 1921);
    node.mkdir(r"C:\chain");
    node.mkdir(r"C:\chain\0");
    for number in 1..=300 {
        let target = (number - 1).to_string();
        node.link(&format!(r"C:\chain\{number}"), &target).unwrap();
    }
    assert!(node.reach(r"C:\chain\63").is_ok());
    assert_eq!(code(node.reach(r"C:\chain\64")), 1921);
    assert_eq!(code(node.reach(r"C:\chain\300")), 1921);
}

#[test]
fn c10_a_relative_link_starts_at_its_own_directory() {
    let mut node = Node::new();
    node.mkdir(r"C:\a\b");
    node.mkdir(r"C:\a\x");
    node.link(r"C:\a\b\l", r"..\x").unwrap();
    node.link(r"C:\elsewhere", r"C:\a\b").unwrap();
    node.write(r"C:\elsewhere\l\f", b"1").unwrap();
    assert_eq!(node.read(r"C:\a\x\f").unwrap(), b"1");
    node.link(r"C:\a\rooted", r"\a\x").unwrap();
    assert_eq!(node.read(r"C:\a\rooted\f").unwrap(), b"1");
    node.link(r"C:\a\above", r"..\..\a").unwrap();
    assert_eq!(code(node.reach(r"C:\a\above")), 123);
}

#[test]
fn a_relative_link_on_a_mounted_volume_stays_on_it() {
    let mut node = Node::new();
    node.mkdir(r"C:\m");
    node.mount(r"C:\m", 1).unwrap();
    node.mkdir(r"C:\m\d");
    node.link(r"C:\m\l", "d").unwrap();
    node.link(r"C:\m\rooted", r"\d").unwrap();
    node.link(r"C:\m\out", r"..\var").unwrap();
    assert!(node.reach(r"C:\m\l").is_ok());
    assert!(node.reach(r"C:\m\rooted").is_ok());
    assert_eq!(code(node.reach(r"C:\m\out")), 123);
}

#[test]
fn a_reparse_point_that_is_no_link_cannot_be_opened_but_removed() {
    let mut node = Node::new();
    node.state
        .put_file_link(r"C:\csi.sock", file(0x8000_0023))
        .unwrap();
    assert_eq!(code(node.reach(r"C:\csi.sock")), 1920);
    let stat = node.view().stat(&at(r"C:\csi.sock")).unwrap();
    assert_eq!(stat.reparse, Some(file(0x8000_0023)));
    node.remove_file(r"C:\csi.sock").unwrap();
}

#[test]
fn a_link_on_a_share_does_not_lead_back_to_the_node() {
    let mut node = Node::new();
    node.share();
    node.state.put_directory(r"\\s\d\dir").unwrap();
    let link = |target: &str| Reparse::SymbolicLink {
        target: target.to_owned(),
    };
    node.state
        .put_link(r"\\s\d\l", link(r"C:\Windows"))
        .unwrap();
    node.state.put_link(r"\\s\d\r", link("dir")).unwrap();
    assert_eq!(code(node.reach(r"\\s\d\l")), 1463);
    assert!(node.reach(r"\\s\d\r").is_ok());
}

#[test]
fn a_link_to_a_share_answers_what_the_share_answers() {
    let mut node = Node::new();
    node.link(r"C:\l", r"\\S\d\dir").unwrap();
    assert_eq!(code(node.reach(r"C:\l")), 53);
    assert_eq!(code(node.reach(r"\\s")), 53);
    let put = |node: &mut Node, share| {
        let server = Server::new().share("d", share);
        node.state.put_smb_server("s", server);
    };
    put(&mut node, Share::new(SIZE));
    assert_eq!(code(node.reach(r"\\s\other")), 67);
    assert_eq!(code(node.reach(r"C:\l")), 1326);
    assert_eq!(code(node.create_directories(r"C:\l\x")), 1326);
    put(&mut node, Share::open(SIZE));
    assert_eq!(code(node.reach(r"C:\l")), 2);
    node.state.put_directory(r"\\s\d\dir").unwrap();
    node.write(r"C:\l\f", b"1").unwrap();
    assert_eq!(node.state.file(r"\\s\d\dir\f").unwrap(), b"1");
    assert_eq!(node.view().space(&at(r"C:\l")).unwrap().total, SIZE);
}

#[test]
fn a_denied_directory_and_all_below_it_is_denied() {
    let mut node = Node::new();
    node.mkdir(r"C:\d\e");
    let denied = |denied| Change::Denied(denied);
    node.state.change(r"C:\d", denied(true)).unwrap();
    node.link(r"C:\l", r"C:\d").unwrap();
    for text in [r"C:\d", r"C:\d\e"] {
        assert_eq!(code(node.view().stat(&at(text))), 5);
        assert_eq!(code(node.create_directories(text)), 5);
        assert_eq!(code(node.remove_tree(text)), 5);
    }
    assert_eq!(code(node.reach(r"C:\l")), 5);
    assert_eq!(code(node.create_directories(r"C:\d\new")), 5);
    node.state.change(r"C:\d", denied(false)).unwrap();
    assert!(node.exists(r"C:\d\e"));
}

#[test]
fn a_call_within_a_root_stays_there_whatever_links_do() {
    let mut node = Node::new();
    node.mkdir(r"C:\Root Directory\in");
    node.mkdir(r"C:\Root Directory-x");
    node.mkdir(r"C:\out");
    node.link(r"C:\Root Directory\l", r"C:\out").unwrap();
    node.link(r"C:\back", r"C:\Root Directory").unwrap();
    let root = r"C:\Root Directory";
    let view = node.view();
    assert!(view.stat(&within(r"C:\Root Directory\l", root)).is_ok());
    for text in [
        r"C:\Root Directory\l",
        r"C:\Root Directory-x",
        r"C:\out",
        r"C:\",
    ] {
        assert_eq!(
            view.list(&within(text, root)),
            Err(Refusal::Outside),
            "{text}"
        );
    }
    for text in [r"C:\back\in", r"C:\ROOTDI~1\IN", r"c:\root directory\IN"] {
        assert!(view.list(&within(text, root)).is_ok(), "{text}");
        assert!(view.list(&within(text, r"C:\back")).is_ok(), "{text}");
    }
    let state = &mut node.state;
    let new = within(r"C:\Root Directory\l\new", root);
    assert_eq!(
        files::create_directories(state, &new),
        Err(Refusal::Outside)
    );
    let write = WriteFile {
        at: new.clone(),
        contents: Bytes(Vec::new()),
    };
    assert_eq!(files::write_file(state, &write), Err(Refusal::Outside));
    let link = CreateLink {
        at: new.clone(),
        target: "x".to_owned(),
    };
    assert_eq!(files::create_link(state, &link), Err(Refusal::Outside));
    let rename = Rename {
        at: within(r"C:\Root Directory\in", root),
        to: path(r"C:\Root Directory\l\in"),
    };
    assert_eq!(files::rename(state, &rename), Err(Refusal::Outside));
    assert_eq!(
        files::remove_directory(state, &within(r"C:\back", root)),
        Err(Refusal::Outside)
    );
    assert_eq!(node.names(r"C:\out"), [""; 0]);
}

#[test]
fn a_volume_mounted_below_the_root_lies_within_it() {
    let mut node = Node::new();
    node.mkdir(r"C:\root\m");
    node.mkdir(r"C:\out");
    node.mount(r"C:\root\m", 1).unwrap();
    node.mkdir(r"C:\root\m\d");
    assert!(
        node.view()
            .list(&within(r"C:\root\m\d", r"C:\root"))
            .is_ok()
    );
    // A volume with a letter has its real path there.
    node.letter(1, 'E');
    let list = node.view().list(&within(r"C:\root\m\d", r"C:\root"));
    assert_eq!(list, Err(Refusal::Outside));
}

#[test]
fn a_volume_is_mounted_at_an_empty_directory_on_ntfs_only() {
    let mut node = Node::new();
    node.mkdir(r"C:\d\e");
    node.write(r"C:\f", b"").unwrap();
    assert_eq!(code(node.mount(r"C:\d", 1)), 145);
    assert_eq!(code(node.mount(r"C:\f", 1)), 267);
    assert_eq!(code(node.mount(r"C:\gone", 1)), 2);
    assert_eq!(code(node.mount(r"C:\d\e", 9)), 2);
    node.link(r"C:\l", r"C:\d\e").unwrap();
    assert_eq!(code(node.mount(r"C:\l", 1)), 4394);
    node.mount(r"C:\d\e", 1).unwrap();
    assert_eq!(code(node.mount(r"C:\d\e", 1)), 145);
    node.add(2);
    node.format(2, FileSystemKind::Refs);
    node.letter(2, 'R');
    node.mkdir(r"R:\d");
    assert_eq!(code(node.mount(r"R:\d", 1)), 50);
}

#[test]
fn a_mount_point_shows_the_volume_and_its_removal_leaves_the_directory() {
    let mut node = Node::new();
    node.mkdir(r"C:\m");
    node.mount(r"C:\m", 1).unwrap();
    node.write(r"C:\m\f", b"1").unwrap();
    assert_eq!(node.view().mounted_volume(&at(r"C:\M")), Ok(volume(1)));
    assert_eq!(node.view().mounted_volume(&at(r"C:\")), Ok(volume(0)));
    assert_eq!(node.view().mount_points_of(&volume(1)).unwrap(), [r"C:\m\"]);
    assert_eq!(node.view().mount_points_of(&volume(0)).unwrap(), [r"C:\"]);
    let paths = [r"C:\m\"];
    assert_eq!(access_paths(&node.state, &volume(1)), paths);
    node.unmount(r"C:\m").unwrap();
    assert_eq!(node.names(r"C:\m"), [""; 0]);
    assert_eq!(node.view().mount_points_of(&volume(1)).unwrap(), [""; 0]);
    assert!(node.reach(&format!("{}f", volume(1))).is_ok());
}

#[test]
fn removing_the_directory_of_a_mount_point_removes_the_mount_too() {
    let mut node = Node::new();
    node.mkdir(r"C:\m");
    node.mount(r"C:\m", 1).unwrap();
    node.remove_directory(r"C:\m").unwrap();
    assert_eq!(node.view().mount_points_of(&volume(1)).unwrap(), [""; 0]);
}

#[test]
fn c09_a_mount_point_whose_directory_is_gone_is_left_over() {
    let mut node = Node::new();
    node.mkdir(r"C:\staging\a");
    node.mount(r"C:\staging\a", 1).unwrap();
    node.state.erase(r"C:\staging").unwrap();
    let left_over = [r"C:\staging\a\"];
    assert_eq!(node.view().mount_points_of(&volume(1)).unwrap(), left_over);
    node.mkdir(r"C:\staging\b");
    node.mount(r"C:\staging\b", 1).unwrap();
    let paths = node.view().mount_points_of(&volume(1)).unwrap();
    assert_eq!(paths, [r"C:\staging\a\", r"C:\staging\b\"]);
}

#[test]
fn what_is_no_mount_point_has_no_volume() {
    let mut node = Node::new();
    node.mkdir(r"C:\d");
    node.link(r"C:\l", r"C:\d").unwrap();
    assert_eq!(code(node.view().mounted_volume(&at(r"C:\d"))), 4390);
    assert_eq!(code(node.view().mounted_volume(&at(r"C:\l"))), 87);
    assert_eq!(code(node.view().mounted_volume(&at(r"C:\gone"))), 2);
    assert_eq!(code(node.unmount(r"C:\d")), 4390);
    assert_eq!(code(node.unmount(r"C:\l")), 87);
    assert_eq!(code(node.unmount(r"C:\")), 87);
    assert_eq!(code(node.view().mount_points_of(&volume(9))), 2);
}

#[test]
fn a_mount_point_is_dead_while_its_volume_is_away() {
    let mut node = Node::new();
    node.mkdir(r"C:\m");
    node.mount(r"C:\m", 1).unwrap();
    node.write(r"C:\m\f", b"1").unwrap();
    node.take_away(1, true);
    assert_eq!(code(node.read(r"C:\m\f")), 3);
    assert_eq!(code(node.reach(r"C:\m")), 3);
    assert!(node.exists(r"C:\m"));
    assert_eq!(node.view().mounted_volume(&at(r"C:\m")), Ok(volume(1)));
    node.take_away(1, false);
    assert_eq!(node.read(r"C:\m\f").unwrap(), b"1");
}

#[test]
fn a_volume_without_a_file_system_is_mounted_but_not_opened() {
    let mut node = Node::new();
    node.add(2);
    node.mkdir(r"C:\m");
    node.mount(r"C:\m", 2).unwrap();
    assert_eq!(code(node.reach(r"C:\m")), 1005);
}

#[test]
fn nothing_is_changed_on_a_read_only_volume() {
    let mut node = Node::new();
    node.mkdir(r"C:\m");
    node.mkdir(r"C:\m2");
    node.mount(r"C:\m", 1).unwrap();
    node.write(r"C:\m\f", b"1").unwrap();
    node.mkdir(r"C:\m\d");
    node.disk(1).read_only = true;
    let before = node.state.clone();
    assert_eq!(node.read(r"C:\m\f").unwrap(), b"1");
    assert_eq!(code(node.write(r"C:\m\f", b"2")), 19);
    assert_eq!(code(node.write(r"C:\m\new", b"2")), 19);
    assert_eq!(code(node.create_directories(r"C:\m\x")), 19);
    assert_eq!(code(node.remove_file(r"C:\m\f")), 19);
    assert_eq!(code(node.remove_directory(r"C:\m\d")), 19);
    assert_eq!(code(node.remove_tree(r"C:\m\d")), 19);
    assert_eq!(code(node.link(r"C:\m\l", "x")), 19);
    assert_eq!(code(node.mount(r"C:\m\d", 1)), 19);
    let information = node.view().volume_information(&at(r"C:\m")).unwrap();
    assert!(information.read_only);
    assert_eq!(information.file_system, "NTFS");
    assert_eq!(node.state, before);
}

#[test]
fn space_is_what_the_contents_leave() {
    let mut node = Node::new();
    node.mkdir(r"C:\m");
    node.partition(1).size = 10 * 4096;
    node.mount(r"C:\m", 1).unwrap();
    node.write(r"C:\m\f", &[0; 5000]).unwrap();
    let space = node.view().space(&at(r"C:\m")).unwrap();
    assert_eq!((space.total, space.available), (10 * 4096, 8 * 4096));
    assert_eq!(code(node.write(r"C:\m\g", &[0; 9 * 4096])), 112);
    assert!(!node.exists(r"C:\m\g"));
    node.write(r"C:\m\f", &[0; 9 * 4096]).unwrap();
    node.partition(1).size = 20 * 4096;
    assert_eq!(node.view().space(&at(r"C:\m\")).unwrap().total, 20 * 4096);
    assert_eq!(code(node.view().space(&at(r"C:\m\f"))), 267);
}

#[test]
fn a_format_leaves_no_file() {
    let mut node = Node::new();
    node.letter(1, 'E');
    node.write(r"E:\f", b"1").unwrap();
    node.format(1, FileSystemKind::Ntfs);
    assert_eq!(node.names(r"E:\"), ["System Volume Information"]);
    drop_tree(&mut node.state, &volume(1));
    assert_eq!(code(node.reach(r"E:\")), 1005);
}

#[test]
fn fat_has_no_links() {
    let mut node = Node::new();
    node.format(1, FileSystemKind::Fat32);
    node.letter(1, 'F');
    assert_eq!(code(node.link(r"F:\l", r"C:\Windows")), 1);
}

#[test]
fn a_node_survives_being_stored() {
    let mut node = Node::new();
    node.mkdir(r"C:\m");
    node.mount(r"C:\m", 1).unwrap();
    node.write(r"C:\m\f", b"1").unwrap();
    node.link(r"C:\m\l", "f").unwrap();
    node.state.put_stream(r"C:\m\f", "s", b"2").unwrap();
    node.share();
    let text = serde_json::to_string(&node.state).unwrap();
    assert_eq!(serde_json::from_str::<State>(&text).unwrap(), node.state);
}
