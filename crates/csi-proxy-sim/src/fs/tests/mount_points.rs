//! Mount points, and what a volume is like.

use super::*;

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
