//! Files and directories.

use super::*;

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
    let readonly = FileChange::Attributes(READONLY);
    node.state.change_file(r"C:\f", readonly).unwrap();
    assert_eq!(code(node.write(r"C:\f", b"new")), 5);
    assert_eq!(code(node.remove_file(r"C:\f")), 5);
    assert_eq!(node.read(r"C:\f").unwrap(), b"old");
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
    let open = |open| FileChange::Open(open);
    node.state.change_file(r"C:\d\v.vhdx", open(true)).unwrap();
    assert_eq!(code(node.remove_file(r"C:\d\v.vhdx")), 32);
    node.state.change_file(r"C:\d\v.vhdx", open(false)).unwrap();
    node.remove_tree(r"C:\d").unwrap();
    assert!(!node.state.storage.media.contains_key(&MediumId(7)));
}

#[test]
fn a_denied_directory_and_all_below_it_is_denied() {
    let mut node = Node::new();
    node.mkdir(r"C:\d\e");
    let denied = |denied| FileChange::Denied(denied);
    node.state.change_file(r"C:\d", denied(true)).unwrap();
    node.link(r"C:\l", r"C:\d").unwrap();
    for text in [r"C:\d", r"C:\d\e"] {
        assert_eq!(code(node.view().stat(&at(text))), 5);
        assert_eq!(code(node.create_directories(text)), 5);
        assert_eq!(code(node.remove_tree(text)), 5);
    }
    assert_eq!(code(node.reach(r"C:\l")), 5);
    assert_eq!(code(node.create_directories(r"C:\d\new")), 5);
    node.state.change_file(r"C:\d", denied(false)).unwrap();
    assert!(node.exists(r"C:\d\e"));
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
    node.state
        .change_file(r"C:\d2\e", FileChange::Open(true))
        .unwrap();
    assert_eq!(code(node.rename(r"C:\d2", r"C:\d")), 5);
    assert_eq!(code(node.rename(r"C:\d2\e", r"C:\e")), 32);
}
