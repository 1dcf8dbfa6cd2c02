use windows::Win32::Foundation::{ERROR_DIRECTORY, ERROR_FILE_NOT_FOUND};

use super::{Place, code};
use crate::clock::Deadline;
use crate::os::{At, Files as _, RemoveTree};
use crate::port::{PortError, PortResult};

fn remove(place: &Place, at: At, keep_root: bool) -> PortResult<()> {
    let request = RemoveTree { at, keep_root };
    place.os.remove_tree(&request, Deadline::Never)
}

fn tree(place: &Place) {
    place.make(r"tree\a\b\c");
    place.make(r"tree\empty");
    for file in [r"tree\1", r"tree\a\2", r"tree\a\b\c\3"] {
        place.write(file, "x");
    }
    place.write("beside", "x");
}

#[test]
fn a_tree_is_removed_and_nothing_beside_it() {
    let place = Place::new("a_tree_is_removed");
    tree(&place);
    remove(&place, place.at("tree"), false).unwrap();
    assert_eq!(place.names(""), ["beside"]);
    let again = remove(&place, place.at("tree"), false);
    assert_eq!(code(again), ERROR_FILE_NOT_FOUND);
}

#[test]
fn the_contents_go_and_the_directory_stays() {
    let place = Place::new("the_contents_go");
    tree(&place);
    remove(&place, place.at("tree"), true).unwrap();
    assert_eq!(place.names(""), ["beside", "tree"]);
    assert_eq!(place.names("tree"), Vec::<String>::new());
}

#[test]
fn a_file_is_removed_itself_and_has_no_contents() {
    let place = Place::new("a_file_is_removed");
    tree(&place);
    let contents = remove(&place, place.at("beside"), true);
    assert_eq!(code(contents), ERROR_DIRECTORY);
    remove(&place, place.at("beside"), false).unwrap();
    assert_eq!(place.names(""), ["tree"]);
}

#[test]
fn a_tree_outside_the_root_stays_whole() {
    let place = Place::new("a_tree_outside");
    tree(&place);
    place.make("root");
    let at = At::within(&place.path("tree"), &place.path("root"));
    let removed = remove(&place, at, false);
    assert!(
        matches!(removed, Err(PortError::Outside { .. })),
        "{removed:?}"
    );
    assert_eq!(place.names("tree"), ["1", "a", "empty"]);
}

#[test]
fn a_deep_tree_is_removed() {
    let place = Place::new("a_deep_tree");
    place.make(&["deep"; 300].join(r"\"));
    remove(&place, place.at("deep"), false).unwrap();
    assert_eq!(place.names(""), Vec::<String>::new());
}

#[test]
fn a_file_that_is_read_only_is_removed_with_its_tree() {
    let place = Place::new("a_file_that_is_read_only");
    place.write(r"file", "x");
    let path = place.path("file").verbatim();
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    remove(&place, place.at(""), true).unwrap();
    assert_eq!(place.names(""), Vec::<String>::new());
}
