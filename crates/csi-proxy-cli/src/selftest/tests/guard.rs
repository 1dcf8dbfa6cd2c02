//! The guard: nothing that is not the self-test's own is changed, whatever is asked.

use csi_proxy::clock::Deadline;
use csi_proxy::disk::DiskState;
use csi_proxy::filesystem::LinkTarget;
use csi_proxy::os::{At, AttachVirtualDisk, CreateVirtualDisk, ReadRange};
use csi_proxy::volume::{FormatOptions, NewSize};
use csi_proxy::{DevicePath, DiskNumber, Host, VolumeId};
use csi_proxy_sim::storage::SimDisk;
use csi_proxy_sim::{Fault, NodeChange, SimNode};

use super::super::area::Area;
use super::{folder, look, node, path, run};

const NEVER: Deadline = Deadline::Never;

/// Asks for something that must be refused without a change.
fn refused<T, E: std::fmt::Display>(what: &str, ask: impl FnOnce(&Host) -> Result<T, E>) {
    let node = node();
    put_their_vhdx(&node);
    let area = Area::new(node.process().host(), folder());
    let before = look(&node);
    let error = ask(&area.host).err().map(|error| error.to_string());
    let refusal = area.guard.refused();
    assert!(
        refusal.is_some(),
        "{what} was not refused by the guard: {error:?}"
    );
    assert!(
        error.is_some_and(|error| error.contains("not its own")),
        "{what}"
    );
    assert_eq!(look(&node), before, "{what}");
}

/// Someone else's virtual disk, attached, outside the folder.
fn put_their_vhdx(node: &SimNode) {
    let os = node.process().os();
    let at = At::path(&path(r"C:\theirs.vhdx"));
    let create = CreateVirtualDisk {
        at: at.clone(),
        size: 64 << 20,
    };
    os.create_virtual_disk(&create, NEVER).unwrap();
    let attach = AttachVirtualDisk {
        at,
        read_only: false,
    };
    os.attach_virtual_disk(&attach, NEVER).unwrap();
}

fn their_volume(host: &Host) -> VolumeId {
    let volumes = host.volume().list_on_disk(DiskNumber(1), None, NEVER);
    volumes.unwrap().remove(0)
}

#[test]
fn disks_of_others_are_not_changed() {
    // A data disk, an empty one, and someone else's virtual disk.
    for disk in [1, 4, 5].map(DiskNumber) {
        refused("offline", |host| {
            host.disk().set_state(disk, DiskState::Offline, NEVER)
        });
    }
    refused("online", |host| {
        host.disk()
            .set_state(DiskNumber(3), DiskState::Online, NEVER)
    });
    for disk in [4, 5].map(DiskNumber) {
        refused("partition", |host| host.disk().partition(disk, NEVER));
    }
    refused("read", |host| {
        let range = ReadRange {
            device: DevicePath::disk(DiskNumber(1)),
            offset: 0,
            length: 512,
        };
        host.os().read_range(&range, NEVER)
    });
}

#[test]
fn volumes_of_others_are_not_changed() {
    refused("resize", |host| {
        host.volume()
            .resize(&their_volume(host), NewSize::Largest, NEVER)
    });
    refused("flush", |host| {
        host.volume().write_cache(&their_volume(host), NEVER)
    });
    refused("mount", |host| {
        let directory = folder().join("x").unwrap();
        host.filesystem().mkdir(&folder(), NEVER)?;
        host.filesystem().mkdir(&directory, NEVER)?;
        let mounted = host.volume().mount(&their_volume(host), &directory, NEVER);
        // The folder was the self-test's own to make, and goes.
        host.filesystem().rmdir(&folder(), true, NEVER)?;
        mounted
    });
    let host = node().process().host();
    let formatted = FormatOptions::default();
    let area = Area::new(host.with_state_dir(path(r"C:\state")), folder());
    assert!(area.host.state_dir().is_none());
    let volume = their_volume(&area.host);
    assert!(
        area.host
            .volume()
            .format(&volume, &formatted, NEVER)
            .is_err()
    );
}

#[test]
fn files_of_others_are_not_changed() {
    for place in [
        r"C:\x",
        r"C:\csi-proxy-selftest-2",
        r"D:\csi-proxy-selftest",
    ] {
        refused(place, |host| host.filesystem().mkdir(&path(place), NEVER));
    }
    refused("rmdir", |host| {
        host.filesystem()
            .rmdir(&path(r"C:\theirs.vhdx"), true, NEVER)
    });
    refused("link", |host| {
        let to = LinkTarget::Path(At::path(&folder()));
        host.filesystem()
            .create_symlink(to, &path(r"C:\link"), NEVER)
    });
    refused("unmount", |host| {
        host.os()
            .delete_mount_point(&At::path(&path(r"C:\")), NEVER)
    });
    refused("detach", |host| {
        let at = At::path(&path(r"C:\theirs.vhdx"));
        host.os().detach_virtual_disk(&at, NEVER)
    });
    refused("delete", |host| {
        host.os()
            .remove_file(&At::path(&path(r"C:\theirs.vhdx")), NEVER)
    });
}

#[test]
fn services_shares_and_sessions_are_not_changed() {
    refused("service", |host| {
        host.system().start_service("MSiSCSI", NEVER)
    });
}

/// The disk is taken away during the suite and another one gets its number.
#[test]
fn a_disk_that_took_the_place_of_ours_is_not_changed() {
    for (operation, nth) in [
        ("query MSFT_Disk", 3),
        ("MSFT_Disk.Offline", 1),
        ("MSFT_Disk.Initialize", 1),
        ("MSFT_Volume.Format", 1),
        ("MSFT_Partition.Resize", 1),
        ("query MSFT_Partition", 9),
    ] {
        let node = node();
        let others = SimDisk::ntfs(256 << 20).serial("someone-else");
        let change = NodeChange::ReplaceDisk {
            number: 5,
            with: Box::new(others.clone()),
        };
        node.inject(Fault::on(operation).nth(nth).before_change(change));
        assert!(!run(&node).passed, "{operation}");
        assert_eq!(node.faults_left(), 0, "{operation}");
        let shown = node.show();
        let theirs = shown.find("someone-else").map(|at| &shown[at..]);
        let untouched = super::node();
        let number = untouched.attach_disk(&others);
        assert_eq!(number, DiskNumber(5));
        let alone = untouched.show();
        let alone = alone.find("someone-else").map(|at| &alone[at..]);
        assert!(theirs.is_some(), "{shown}");
        assert_eq!(without_guids(theirs), without_guids(alone), "{operation}");
    }
}

/// GUIDs are made up anew for each disk.
fn without_guids(shown: Option<&str>) -> String {
    let text = shown.unwrap_or_default();
    let lines = text.lines().filter(|line| !line.contains("volume"));
    lines.collect::<Vec<_>>().join("\n")
}
