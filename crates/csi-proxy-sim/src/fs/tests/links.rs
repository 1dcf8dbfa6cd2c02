//! Links and other reparse points, shares behind them, and the root of a call.

use super::*;

#[test]
fn a_dead_link_is_in_the_way_of_a_directory() {
    let mut node = Node::new();
    node.link(r"C:\dead", r"C:\nothing").unwrap();
    assert_eq!(code(node.create_directories(r"C:\dead")), 183);
    assert_eq!(code(node.create_directories(r"C:\dead\x")), 183);
    assert!(!node.exists(r"C:\nothing"));
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
fn fat_has_no_links() {
    let mut node = Node::new();
    node.format(1, FileSystemKind::Fat32);
    node.letter(1, 'F');
    assert_eq!(code(node.link(r"F:\l", r"C:\Windows")), 1);
}
