//! The operations on a volume, without formatting and growing.

use csi_proxy::ErrorKind::{FailedPrecondition, InvalidArgument, NotFound};
use csi_proxy::volume::{FormatOptions, HealthStatus, NewSize};
use csi_proxy::{DiskNumber, VolumeId};
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};

use crate::{GIB, NEVER, ONE, assert_error, assert_refused, host, node, path, volume_of};

const MOUNT: &str = r"C:\mnt";

fn nobody() -> VolumeId {
    VolumeId::new(r"\\?\Volume{00000000-0000-0000-0000-000000000001}\").unwrap()
}

#[test]
fn a_volume_that_is_not_there_is_not_found() {
    let node = node(SimDisk::ntfs(GIB));
    let host = host(&node);
    let (volume, none, mnt) = (host.volume(), nobody(), path(MOUNT));
    let parts = [none.guid()];
    assert_error(volume.is_formatted(&none, NEVER), NotFound, &parts);
    assert_error(volume.stats(&none, NEVER), NotFound, &parts);
    assert_error(volume.health(&none, NEVER), NotFound, &parts);
    assert_error(volume.disk_number(&none, NEVER), NotFound, &parts);
    assert_error(volume.write_cache(&none, NEVER), NotFound, &parts);
    assert_error(volume.mount(&none, &mnt, NEVER), NotFound, &parts);
    assert_error(
        volume.resize(&none, NewSize::Largest, NEVER),
        NotFound,
        &parts,
    );
    let options = FormatOptions::default();
    assert_error(volume.format(&none, &options, NEVER), NotFound, &parts);
    assert_error(
        volume.list_on_disk(DiskNumber(9), None, NEVER),
        NotFound,
        &["disk 9"],
    );
}

#[test]
fn stats_health_and_the_disk_of_a_volume() {
    let node = node(SimDisk::ntfs(GIB));
    let volume = volume_of(&node, ONE);
    let host = host(&node);
    assert!(host.volume().is_formatted(&volume, NEVER).unwrap());
    let stats = host.volume().stats(&volume, NEVER).unwrap();
    assert!(stats.total_bytes > GIB - (20 << 20) && stats.used_bytes < stats.total_bytes);
    let health = host.volume().health(&volume, NEVER).unwrap();
    assert_eq!(health.status, HealthStatus::Healthy);
    assert_eq!(host.volume().disk_number(&volume, NEVER).unwrap(), ONE);
    host.volume().write_cache(&volume, NEVER).unwrap();
}

#[test]
fn every_health_status_that_windows_documents_is_told() {
    for (number, status, operational) in [
        (0, HealthStatus::Healthy, 2),
        (1, HealthStatus::ScanNeeded, 0xd00d),
        (2, HealthStatus::SpotFixNeeded, 0xd00e),
        (3, HealthStatus::FullRepairNeeded, 0xd00f),
        (4, HealthStatus::Unknown, 6),
    ] {
        let node = node(SimDisk::gpt(GIB).partition(SimPartition {
            health: number,
            ..SimPartition::of(Content::Ntfs)
        }));
        let volume = volume_of(&node, ONE);
        let health = host(&node).volume().health(&volume, NEVER).unwrap();
        assert_eq!(health.status, status, "{number}");
        assert_eq!(health.operational, [operational], "{number}");
        assert_eq!(health.is_healthy(), number == 0, "{number}");
    }
}

#[test]
fn a_volume_without_a_file_system_is_not_formatted_and_has_no_space() {
    let node = node(SimDisk::gpt(GIB).partition(SimPartition::of(Content::Empty)));
    let volume = volume_of(&node, ONE);
    let host = host(&node);
    assert!(!host.volume().is_formatted(&volume, NEVER).unwrap());
    assert_eq!(host.volume().stats(&volume, NEVER).unwrap().total_bytes, 0);
}

#[test]
fn a_volume_is_mounted_at_an_empty_directory_once_and_unmounted() {
    let node = node(SimDisk::ntfs(GIB));
    let volume = volume_of(&node, ONE);
    node.change(|state| state.put_directory(MOUNT).unwrap());
    let host = host(&node);
    for _ in 0..2 {
        host.volume().mount(&volume, &path(MOUNT), NEVER).unwrap();
    }
    assert_eq!(node.counts().of("set_mount_point"), 1);
    assert_eq!(
        host.volume()
            .id_from_target_path(&path(MOUNT), NEVER)
            .unwrap(),
        volume
    );
    for _ in 0..2 {
        host.volume().unmount(&volume, &path(MOUNT), NEVER).unwrap();
    }
    assert_eq!(node.counts().of("delete_mount_point"), 1);
    assert_eq!(node.counts().of("MSFT_Volume.Flush"), 1);
    node.change(|state| state.erase(MOUNT).unwrap());
    let gone = host.volume().unmount(&volume, &path(MOUNT), NEVER);
    assert_error(gone, NotFound, &[MOUNT]);
}

#[test]
fn a_volume_is_not_mounted_where_something_else_is() {
    let node = node(SimDisk::ntfs(GIB));
    let other = node.attach_disk(&SimDisk::ntfs(GIB));
    let (volume, other) = (volume_of(&node, ONE), volume_of(&node, other));
    node.change(|state| {
        state.put_directory(r"C:\full\sub").unwrap();
        state.put_directory(r"C:\other").unwrap();
        state.put_file(r"C:\file", b"x").unwrap();
        let target = r"C:\full".to_owned();
        let link = csi_proxy::os::Reparse::SymbolicLink { target };
        state.put_link(r"C:\link", link).unwrap();
    });
    host(&node)
        .volume()
        .mount(&other, &path(r"C:\other"), NEVER)
        .unwrap();
    for (at, part) in [
        (r"C:\full", "not empty"),
        (r"C:\file", "a file"),
        (r"C:\link", "a link"),
        (r"C:\other", other.guid()),
    ] {
        assert_refused(&node, &[at, part], |host| {
            host.volume().mount(&volume, &path(at), NEVER)
        });
        if at != r"C:\full" {
            assert_refused(&node, &[at], |host| {
                host.volume().unmount(&volume, &path(at), NEVER)
            });
        }
    }
    let missing = host(&node)
        .volume()
        .mount(&volume, &path(r"C:\none"), NEVER);
    assert_error(missing, NotFound, &[r"C:\none"]);
}

#[test]
fn c12_a_volume_id_with_a_quote_or_a_backslash_is_none() {
    for text in [
        r"\\?\Volume{6e6fb07c-1a2b-4c3d-8e9f-0123456789ab' OR '1'='1}\",
        r"\\?\Volume{6e6fb07c-1a2b-4c3d-8e9f-0123456789ab\}\",
    ] {
        let error = VolumeId::new(text).unwrap_err();
        let error = error.in_field("volume mount", "volume_id");
        assert_eq!(error.kind(), InvalidArgument, "{error}");
        for part in ["volume_id", &format!("{text:?}"), r"\\?\Volume{guid}\"] {
            assert!(error.to_string().contains(part), "{part} in {error}");
        }
    }
}

#[test]
fn the_volume_of_a_drives_root_is_found_and_a_plain_directory_has_none() {
    let node = node(SimDisk::raw(GIB));
    let host = host(&node);
    let system = volume_of(&node, DiskNumber(0));
    let volume = host.volume();
    assert_eq!(
        volume.id_from_target_path(&path(r"C:\"), NEVER).unwrap(),
        system
    );
    let windows = path(r"C:\Windows\System32");
    assert_eq!(
        volume.closest_id_from_target_path(&windows, NEVER).unwrap(),
        system
    );
    let plain = volume.id_from_target_path(&windows, NEVER);
    assert_error(plain, FailedPrecondition, &["no volume is mounted"]);
}
