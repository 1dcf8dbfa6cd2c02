//! Every operation of the groups disk and volume, with and without COM.

use csi_proxy::disk::DiskState;
use csi_proxy::volume::{FormatOptions, NewSize};
use csi_proxy::{DiskNumber, Host, Locator, VolumeId};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::storage::SimDisk;

use crate::{Compared, GIB, NEVER, path};

const DATA: DiskNumber = DiskNumber(1);
const MISSING: DiskNumber = DiskNumber(99);

fn node() -> SimNode {
    let data = SimDisk::raw(4 * GIB)
        .serial("vol0123456789abcdef0_00000001.")
        .unique_id("6002248045A1B2C3")
        .location("PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 5");
    SimNode::builder()
        .disk(
            SimDisk::ntfs(8 * GIB)
                .number(2)
                .serial(r#"a "quoted" \ 'serial'"#),
        )
        .disk(data.number(1))
        .disk(SimDisk::raw(GIB).number(3).offline().read_only())
        .build()
}

#[test]
fn the_disk_group_answers_the_same_through_com() {
    let both = Compared::new(node);
    both.same(|host| host.disk().list_locations(NEVER));
    both.same(|host| host.disk().list_ids(NEVER));
    both.same(|host| host.disk().rescan(NEVER));
    for disk in [DATA, DiskNumber(2), DiskNumber(3), MISSING] {
        both.same(|host| host.disk().stats(disk, NEVER));
        both.same(|host| host.disk().info(disk, NEVER));
        both.same(|host| host.disk().state(disk, NEVER));
        both.same(|host| host.disk().set_state(disk, DiskState::Offline, NEVER));
        both.same(|host| host.disk().set_state(disk, DiskState::Online, NEVER));
        both.same(|host| host.disk().clear_read_only(disk, NEVER));
        both.same(|host| host.disk().partition(disk, NEVER));
        both.same(|host| host.disk().partition(disk, NEVER));
    }
    for name in ["naa.6002248045A1B2C3", "naa.no-such-disk"] {
        both.same(|host| host.disk().number_by_name(name, NEVER));
    }
    for locator in [
        "lun=5",
        "serial=vol-0123456789abcdef0",
        "unique-id=6002248045A1B2C3",
    ] {
        let locator: Locator = locator.parse().unwrap();
        both.same(|host| host.disk().find(&locator, NEVER));
    }
}

fn volume_of(host: &Host, disk: DiskNumber) -> csi_proxy::Result<VolumeId> {
    let volumes = host.volume().list_on_disk(disk, None, NEVER)?;
    Ok(volumes.into_iter().next().unwrap())
}

/// A call on the first volume of disk 1.
fn on_volume<T>(
    call: impl Fn(&Host, &VolumeId) -> csi_proxy::Result<T>,
) -> impl Fn(&Host) -> csi_proxy::Result<T> {
    move |host| call(host, &volume_of(host, DATA)?)
}

#[test]
fn the_volume_group_answers_the_same_through_com() {
    let both = Compared::new(node);
    let mount = path(r"C:\var\lib\kubelet\mount");
    both.same(|host| host.filesystem().mkdir(&mount, NEVER));
    both.same(|host| host.disk().partition(DATA, NEVER));
    both.same(|host| host.volume().list_on_disk(DATA, None, NEVER));
    both.same(|host| host.volume().list_on_disk(DATA, Some(2), NEVER));
    both.same(|host| host.volume().list_on_disk(DATA, Some(9), NEVER));
    let options = FormatOptions {
        label: Some("a label".to_owned()),
        allocation_unit: Some(4096),
        ..FormatOptions::default()
    };
    for _ in 0..2 {
        both.same(on_volume(|host, id| host.volume().is_formatted(id, NEVER)));
        both.same(on_volume(|host, id| {
            host.volume().format(id, &options, NEVER)
        }));
    }
    for _ in 0..2 {
        both.same(on_volume(|host, id| host.volume().mount(id, &mount, NEVER)));
    }
    both.same(|host| host.volume().id_from_target_path(&mount, NEVER));
    both.same(|host| host.volume().closest_id_from_target_path(&mount, NEVER));
    both.same(on_volume(|host, id| host.volume().stats(id, NEVER)));
    both.same(on_volume(|host, id| host.volume().health(id, NEVER)));
    both.same(on_volume(|host, id| host.volume().disk_number(id, NEVER)));
    both.same(on_volume(|host, id| host.volume().write_cache(id, NEVER)));
    for size in [
        NewSize::Largest,
        NewSize::Bytes(64 * GIB),
        NewSize::Bytes(GIB),
    ] {
        both.same(on_volume(|host, id| host.volume().resize(id, size, NEVER)));
    }
    for _ in 0..2 {
        both.same(on_volume(|host, id| {
            host.volume().unmount(id, &mount, NEVER)
        }));
    }
}

#[test]
fn a_volume_that_is_not_there_is_the_same_error_through_com() {
    let both = Compared::new(node);
    let id = VolumeId::new(r"\\?\Volume{00000000-1111-2222-3333-444444444444}\").unwrap();
    let options = FormatOptions::default();
    both.same(|host| host.volume().is_formatted(&id, NEVER));
    both.same(|host| host.volume().format(&id, &options, NEVER));
    both.same(|host| host.volume().stats(&id, NEVER));
    both.same(|host| host.volume().disk_number(&id, NEVER));
    both.same(|host| host.volume().resize(&id, NewSize::Largest, NEVER));
}
