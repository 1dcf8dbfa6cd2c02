use std::time::Duration;

use windows::Win32::Foundation::{
    ERROR_ALREADY_EXISTS, ERROR_DIR_NOT_EMPTY, ERROR_DIRECTORY, ERROR_FILE_NOT_FOUND,
    ERROR_FILE_TOO_LARGE, ERROR_NOT_SUPPORTED, ERROR_PATH_NOT_FOUND,
};
use windows::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_HIDDEN, FILE_ATTRIBUTE_NORMAL,
    FILE_ATTRIBUTE_READONLY, FILE_FLAGS_AND_ATTRIBUTES, SetFileAttributesW,
};
use windows::core::HSTRING;

use super::{Place, code};
use crate::clock::{Clock as _, Deadline};
use crate::os::{At, CreateLink, Files as _, Reach, ReadFile, Rename, Reparse};
use crate::path::HostPath;
use crate::port::PortError;

#[test]
fn directories_are_made_with_their_parents_once() {
    let place = Place::new("directories_are_made");
    assert!(place.make(r"a\b\c"));
    assert!(!place.make(r"a\b\c"));
    assert!(place.make(r"a\b\D"));
    assert_eq!(place.names(r"a\B"), ["D", "c"]);
}

#[test]
fn a_file_in_the_way_of_a_directory_is_an_error() {
    let place = Place::new("a_file_in_the_way");
    place.write("file", "x");
    for path in ["file", r"file\below"] {
        let made = place
            .os
            .create_directories(&place.at(path), Deadline::Never);
        assert_eq!(code(made), ERROR_ALREADY_EXISTS, "{path}");
    }
}

#[test]
fn what_is_missing_is_told_from_a_way_that_is_missing() {
    let place = Place::new("what_is_missing");
    let missing = place.os.stat(&place.at("x"), Deadline::Never);
    assert_eq!(code(missing), ERROR_FILE_NOT_FOUND);
    let missing = place.os.stat(&place.at(r"x\y"), Deadline::Never);
    assert_eq!(code(missing), ERROR_PATH_NOT_FOUND);
}

#[test]
fn a_listing_tells_directories_files_and_sizes() {
    let place = Place::new("a_listing");
    place.make("directory");
    place.write("file", "12345");
    let entries = place.os.list(&place.at(""), Deadline::Never).unwrap();
    assert_eq!(entries.len(), 2);
    for entry in entries {
        assert_eq!(entry.stat.directory, entry.name == "directory");
        assert_eq!(entry.stat.reparse, None);
        if entry.name == "file" {
            assert_eq!(entry.stat.size, 5);
        }
        let alone = place.os.stat(&place.at(&entry.name), Deadline::Never);
        assert_eq!(alone.unwrap().directory, entry.stat.directory);
    }
    let listed = place.os.list(&place.at("file"), Deadline::Never);
    assert_eq!(code(listed), ERROR_DIRECTORY);
}

#[test]
fn attributes_are_told_as_they_are() {
    let place = Place::new("attributes_are_told");
    place.make("directory");
    place.write("file", "x");
    let attributes = |name: &str| {
        let stat = place.os.stat(&place.at(name), Deadline::Never).unwrap();
        let listed = place.os.list(&place.at(""), Deadline::Never).unwrap();
        let entry = listed.into_iter().find(|entry| entry.name == name).unwrap();
        assert_eq!(entry.stat.attributes, stat.attributes, "{name}");
        FILE_FLAGS_AND_ATTRIBUTES(stat.attributes)
    };
    assert!(attributes("directory").contains(FILE_ATTRIBUTE_DIRECTORY));
    let both = FILE_ATTRIBUTE_READONLY | FILE_ATTRIBUTE_HIDDEN;
    assert!((attributes("file") & both).0 == 0);
    set_attributes(&place.path("file"), both);
    assert!(attributes("file").contains(both));
    set_attributes(&place.path("file"), FILE_ATTRIBUTE_NORMAL);
    assert!((attributes("file") & both).0 == 0);
}

fn set_attributes(path: &HostPath, attributes: FILE_FLAGS_AND_ATTRIBUTES) {
    let path = HSTRING::from(path.verbatim());
    // SAFETY: the text ends in NUL and lives longer than the call.
    unsafe { SetFileAttributesW(&path, attributes) }.unwrap();
}

#[test]
fn a_large_directory_is_listed_whole() {
    let place = Place::new("a_large_directory");
    let mut expected = Vec::new();
    for number in 0..400 {
        let name = format!("{number:03}-{}", "n".repeat(60));
        place.write(&name, "");
        expected.push(name);
    }
    assert_eq!(place.names(""), expected);
}

#[test]
fn a_path_of_400_characters_works_like_a_short_one() {
    let place = Place::new("a_path_of_400");
    let long = [&*"n".repeat(200); 2].join(r"\");
    place.make(&long);
    place.write(&format!(r"{long}\file"), "x");
    assert_eq!(place.names(&long), ["file"]);
}

#[test]
fn odd_names_are_names() {
    let place = Place::new("odd_names");
    for name in [
        "with blank",
        "[vsanDatastore] x",
        "(1)",
        "#",
        ";",
        "$(x)",
        "`",
        "%VAR%",
        "'",
        "’",
        "\u{1F980}",
    ] {
        place.make(name);
        assert_eq!(place.names(""), [name]);
        let at = place.at(name);
        place.os.remove_directory(&at, Deadline::Never).unwrap();
    }
}

#[test]
fn only_an_empty_directory_is_removed() {
    let place = Place::new("only_an_empty_directory");
    place.make(r"a\b");
    let remove = |path: &str| place.os.remove_directory(&place.at(path), Deadline::Never);
    assert_eq!(code(remove("a")), ERROR_DIR_NOT_EMPTY);
    remove(r"a\b").unwrap();
    remove("a").unwrap();
    assert_eq!(code(remove("a")), ERROR_FILE_NOT_FOUND);
    place.write("file", "x");
    assert_eq!(code(remove("file")), ERROR_DIRECTORY);
}

#[test]
fn a_file_is_read_up_to_the_limit() {
    let place = Place::new("a_file_is_read");
    place.write("file", "12345");
    let read = |limit| {
        let at = place.at("file");
        place.os.read_file(&ReadFile { at, limit }, Deadline::Never)
    };
    assert_eq!(read(5).unwrap().0, b"12345");
    assert_eq!(code(read(4)), ERROR_FILE_TOO_LARGE);
}

#[test]
fn writing_replaces_the_whole_file_and_leaves_nothing_beside_it() {
    let place = Place::new("writing_replaces");
    place.write("file", "a long first text");
    // What a write that was cut off has left.
    place.write("file.new", "half");
    place.write("file", "second");
    let at = place.at("file");
    let read = ReadFile { at, limit: 100 };
    let contents = place.os.read_file(&read, Deadline::Never).unwrap();
    assert_eq!(contents.0, b"second");
    assert_eq!(place.names(""), ["file"]);
}

#[test]
fn renaming_never_replaces() {
    let place = Place::new("renaming_never_replaces");
    place.write("a", "a");
    place.write("b", "b");
    let rename = |to: &str| {
        let (at, to) = (place.at("a"), place.path(to));
        place.os.rename(&Rename { at, to }, Deadline::Never)
    };
    assert_eq!(code(rename("b")), ERROR_ALREADY_EXISTS);
    rename("c").unwrap();
    assert_eq!(place.names(""), ["b", "c"]);
}

#[test]
fn what_lies_outside_the_root_is_refused_and_not_changed() {
    let place = Place::new("outside_the_root");
    place.make("root");
    place.make("root-x");
    place.write("file", "x");
    let root = place.path("root");
    let within = |path: &str| At::within(&place.path(path), &root);
    let outside = |answer: Result<(), PortError>| {
        assert!(
            matches!(&answer, Err(PortError::Outside { .. })),
            "{answer:?}"
        );
    };
    let never = Deadline::Never;
    outside(place.os.stat(&within("file"), never).map(drop));
    outside(place.os.list(&within("root-x"), never).map(drop));
    outside(place.os.create_directories(&within("new"), never).map(drop));
    outside(place.os.remove_directory(&within("root-x"), never));
    outside(place.os.remove_file(&within("file"), never));
    outside(place.try_write(within("file"), "y"));
    place.write(r"root\inside", "x");
    let (at, to) = (within(r"root\inside"), place.path("outside"));
    outside(place.os.rename(&Rename { at, to }, never));
    assert_eq!(place.names(""), ["file", "root", "root-x"]);
    assert_eq!(place.names("root"), ["inside"]);
    place.os.stat(&within(r"root\inside"), never).unwrap();
    place.os.stat(&within("root"), never).unwrap();
}

#[test]
fn a_link_is_there_when_making_it_succeeded() {
    let place = Place::new("a_link_is_there");
    place.make("target");
    let at = place.at("link");
    let target = place.path("target").to_string();
    let request = CreateLink { at, target };
    let made = place.os.create_link(&request, Deadline::Never);
    let found = place.os.stat(&request.at, Deadline::Never);
    match made {
        Ok(()) => {
            let target = request.target;
            let expected = Some(Reparse::SymbolicLink { target });
            assert_eq!(found.unwrap().reparse, expected);
        }
        // Wine makes none, and must not be believed when it says that it did.
        Err(PortError::System { .. }) => {
            let codes = [ERROR_FILE_NOT_FOUND, ERROR_NOT_SUPPORTED];
            assert!(codes.contains(&code(made)));
            assert_eq!(code(found), ERROR_FILE_NOT_FOUND);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_path_is_reached_or_it_is_not() {
    let place = Place::new("a_path_is_reached");
    let reach = |path: &HostPath| {
        let target = path.to_string();
        place.os.reach(&Reach { target }, Deadline::Never)
    };
    reach(&place.path("")).unwrap();
    assert_eq!(code(reach(&place.path("x"))), ERROR_FILE_NOT_FOUND);
}

#[test]
fn no_call_begins_after_its_deadline() {
    let place = Place::new("no_call_begins");
    let passed = place.os.deadline_in(Duration::ZERO);
    let made = place.os.create_directories(&place.at("x"), passed);
    let expected = PortError::DeadlineExceeded { running: None };
    assert_eq!(made, Err(expected));
    assert_eq!(place.names(""), Vec::<String>::new());
}
