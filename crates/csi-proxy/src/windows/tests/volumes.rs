use super::{Place, code};
use crate::clock::Deadline;
use crate::ids::DevicePath;
use crate::os::{At, Devices as _, MountPoints as _};
use crate::path::HostPath;
use windows::Win32::Foundation::ERROR_FILE_NOT_FOUND;

#[test]
fn the_space_behind_a_file_is_that_of_its_volume() {
    let place = Place::new("the_space");
    place.write("file", "x");
    let space = |path: &str| place.os.space(&place.at(path), Deadline::Never).unwrap();
    assert!(space("").available > 0);
    assert!(space("").available <= space("").total);
    assert_eq!(space("file").total, space("").total);
}

#[test]
fn the_volume_of_the_temporary_files_can_be_written() {
    let place = Place::new("the_volume");
    let information = place
        .os
        .volume_information(&place.at(""), Deadline::Never)
        .unwrap();
    assert!(!information.read_only);
    assert!(!information.file_system.is_empty());
}

#[test]
fn the_drive_has_a_volume_that_is_mounted_there() {
    let place = Place::new("the_drive");
    let drive = HostPath::from_kubelet(r"C:\").unwrap();
    let never = Deadline::Never;
    let volume = place.os.mounted_volume(&At::path(&drive), never).unwrap();
    let mounted = place.os.mount_points_of(&volume, never).unwrap();
    assert!(mounted.contains(&r"C:\".to_owned()), "{mounted:?}");
}

#[test]
fn a_plain_directory_is_no_mount_point() {
    let place = Place::new("a_plain_directory");
    place.make("plain");
    let volume = place.os.mounted_volume(&place.at("plain"), Deadline::Never);
    assert!(volume.is_err(), "{volume:?}");
}

#[test]
fn a_disk_that_is_not_there_is_not_found() {
    let place = Place::new("a_disk_that_is_not_there");
    let disk = DevicePath(r"\\.\PhysicalDrive999".to_owned());
    let number = place.os.device_number(&disk, Deadline::Never);
    assert_eq!(code(number), ERROR_FILE_NOT_FOUND);
}
