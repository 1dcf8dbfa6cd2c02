//! Files together with disks and VHDX files that come and go, over the ports.

use csi_proxy::cim::{Invoke, Namespace, Object, Query};
use csi_proxy::clock::Deadline::Never;
use csi_proxy::os::{
    At, AttachVirtualDisk, Bytes, CreateVirtualDisk, Os, ReadFile, RemoveTree, SetMountPoint,
    WriteFile,
};
use csi_proxy::port::{PortError, PortResult, SystemCode};
use csi_proxy::{Host, VolumeId};

use super::{at, path};
use crate::SimNode;
use crate::storage::SimDisk;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const FILE: &str = r"C:\pool\v.vhdx";
const MOUNT: &str = r"C:\var\lib\kubelet\m";

fn code<T: std::fmt::Debug>(result: PortResult<T>) -> u32 {
    match result.unwrap_err() {
        PortError::System {
            code: SystemCode::Win32(code),
            ..
        } => code,
        error => panic!("{error}"),
    }
}

fn write(os: &dyn Os, text: &str) -> PortResult<()> {
    let request = WriteFile {
        at: at(text),
        contents: Bytes(b"kept".to_vec()),
    };
    os.write_file(&request, Never)
}

fn read(os: &dyn Os, text: &str) -> PortResult<Vec<u8>> {
    let at = at(text);
    let request = ReadFile { at, limit: 100 };
    os.read_file(&request, Never).map(|bytes| bytes.0)
}

fn query(host: &Host, class: &str, properties: &[&str]) -> Vec<Object> {
    let query = Query::new(Namespace::Storage, class, properties);
    host.cim().query(&query, Never).unwrap()
}

fn invoke(host: &Host, invoke: &Invoke) {
    let output = host.cim().invoke(invoke, Never).unwrap();
    assert_eq!(output.return_value, 0, "{invoke:?}");
}

fn attach(host: &Host, read_only: bool) {
    let at = at(FILE);
    let request = AttachVirtualDisk { at, read_only };
    host.os().attach_virtual_disk(&request, Never).unwrap();
}

fn detach(host: &Host) {
    host.os().detach_virtual_disk(&at(FILE), Never).unwrap();
}

/// Makes a VHDX file with one NTFS volume, mounted, with a file on it.
fn mounted(host: &Host) -> VolumeId {
    let os = host.os();
    os.create_directories(&at(r"C:\pool"), Never).unwrap();
    os.create_directories(&at(MOUNT), Never).unwrap();
    let create = CreateVirtualDisk {
        at: at(FILE),
        size: GIB,
    };
    os.create_virtual_disk(&create, Never).unwrap();
    attach(host, false);
    let disks = query(host, "MSFT_Disk", &["Location"]);
    let ours = |disk: &&Object| disk.properties["Location"].as_str() == Some(FILE);
    let disk = disks.iter().find(ours).unwrap();
    let on_disk = |method| Invoke::on(Namespace::Storage, "MSFT_Disk", &disk.path, method);
    if query(host, "MSFT_Disk", &["IsOffline"])
        .iter()
        .any(|disk| disk.properties["IsOffline"].as_bool() == Some(true))
    {
        invoke(host, &on_disk("Online"));
    }
    invoke(host, &on_disk("Initialize").with("PartitionStyle", 2_u32));
    let create = on_disk("CreatePartition").with("UseMaximumSize", true);
    invoke(host, &create);
    let volumes = query(host, "MSFT_Volume", &["UniqueId", "FileSystemType"]);
    let raw = |volume: &&Object| volume.properties["FileSystemType"].as_u64() == Some(0);
    let volume = volumes.iter().find(raw).unwrap();
    let format = Invoke::on(Namespace::Storage, "MSFT_Volume", &volume.path, "Format");
    invoke(host, &format.with("FileSystem", "NTFS"));
    let volume = volume.properties["UniqueId"].as_str().unwrap();
    let volume = VolumeId::new(volume).unwrap();
    let mount = SetMountPoint {
        at: at(MOUNT),
        volume: volume.clone(),
    };
    os.set_mount_point(&mount, Never).unwrap();
    write(os, &format!(r"{MOUNT}\f")).unwrap();
    volume
}

fn access_paths(host: &Host) -> Vec<String> {
    let partitions = query(host, "MSFT_Partition", &["AccessPaths"]);
    let paths = partitions
        .iter()
        .filter_map(|one| one.properties["AccessPaths"].as_array());
    paths
        .flatten()
        .filter_map(|path| path.as_str().map(ToOwned::to_owned))
        .collect()
}

#[test]
fn a_partition_shows_where_its_volume_is_mounted() {
    let node = SimNode::builder().build();
    let host = node.process().host();
    let volume = mounted(&host);
    let mount = format!(r"{MOUNT}\");
    let paths = access_paths(&host);
    assert!(paths.contains(&mount), "{paths:?}");
    assert!(paths.contains(&volume.to_string()), "{paths:?}");
    host.os().delete_mount_point(&at(MOUNT), Never).unwrap();
    assert!(!access_paths(&host).contains(&mount));
}

#[test]
fn a_mount_point_lives_as_long_as_the_vhdx_file_is_attached() {
    let node = SimNode::builder().build();
    let host = node.process().host();
    let file = format!(r"{MOUNT}\f");
    let volume = mounted(&host);
    detach(&host);
    assert_eq!(code(read(host.os(), &file)), 3);
    assert_eq!(code(host.os().mount_points_of(&volume, Never)), 2);
    let found = host.os().mounted_volume(&at(MOUNT), Never).unwrap();
    assert_eq!(found, volume);
    attach(&host, false);
    assert_eq!(read(host.os(), &file).unwrap(), b"kept");
}

#[test]
fn mount_points_and_files_survive_a_reboot() {
    let node = SimNode::builder().build();
    let host = node.process().host();
    let file = format!(r"{MOUNT}\f");
    let volume = mounted(&host);
    node.reboot();
    let host = node.process().host();
    assert_eq!(code(read(host.os(), &file)), 3);
    let found = host.os().mounted_volume(&at(MOUNT), Never).unwrap();
    assert_eq!(found, volume);
    attach(&host, false);
    assert_eq!(read(host.os(), &file).unwrap(), b"kept");
}

#[test]
fn a_vhdx_file_that_is_attached_read_only_is_a_volume_that_cannot_be_written() {
    let node = SimNode::builder().build();
    let host = node.process().host();
    let file = format!(r"{MOUNT}\f");
    mounted(&host);
    detach(&host);
    attach(&host, true);
    assert_eq!(read(host.os(), &file).unwrap(), b"kept");
    assert_eq!(code(write(host.os(), &file)), 19);
    let information = host.os().volume_information(&at(MOUNT), Never).unwrap();
    assert!(information.read_only);
}

#[test]
fn an_attached_vhdx_file_cannot_be_removed_and_a_detached_one_takes_its_files_along() {
    let node = SimNode::builder().build();
    let host = node.process().host();
    let volume = mounted(&host);
    let pool = RemoveTree {
        at: At::path(&path(r"C:\pool")),
        keep_root: false,
    };
    assert_eq!(code(host.os().remove_tree(&pool, Never)), 32);
    assert_eq!(code(host.os().remove_file(&at(FILE), Never)), 32);
    detach(&host);
    host.os().remove_tree(&pool, Never).unwrap();
    let state = node.snapshot();
    assert!(state.storage.virtual_disks.is_empty());
    assert!(state.paths_of(&volume).is_empty());
}

#[test]
fn the_files_of_a_volume_fill_the_vhdx_file_and_its_drive() {
    let node = SimNode::builder().build();
    let host = node.process().host();
    mounted(&host);
    let free = |text: &str| host.os().space(&at(text), Never).unwrap().available;
    let physical = || {
        let info = host.os().virtual_disk_info(&at(FILE), Never);
        info.unwrap().physical_size
    };
    let before = (free(r"C:\"), free(MOUNT), physical());
    node.change(|state| {
        let big = vec![1; usize::try_from(64 * MIB).unwrap()];
        state.put_file(&format!(r"{MOUNT}\big"), &big).unwrap();
    });
    assert_eq!(before.1 - free(MOUNT), 64 * MIB);
    let grown = physical() - before.2;
    assert!(grown >= 32 * MIB, "{grown}");
    assert_eq!(before.0 - free(r"C:\"), grown);
}

#[test]
fn a_mount_point_is_dead_while_its_disk_is_offline() {
    let builder = SimNode::builder().disk(SimDisk::ntfs(GIB).serial("data"));
    let node = builder.build();
    let host = node.process().host();
    let disks = query(&host, "MSFT_Disk", &["SerialNumber"]);
    let data = |disk: &&Object| disk.properties["SerialNumber"].as_str() == Some("data");
    let disk = disks.iter().find(data).unwrap();
    let volumes = query(&host, "MSFT_Volume", &["UniqueId", "FileSystemType"]);
    let volume = volumes.last().unwrap().properties["UniqueId"].as_str();
    let volume = VolumeId::new(volume.unwrap()).unwrap();
    host.os().create_directories(&at(MOUNT), Never).unwrap();
    let at_mount = at(MOUNT);
    let mount = SetMountPoint {
        at: at_mount,
        volume,
    };
    host.os().set_mount_point(&mount, Never).unwrap();
    write(host.os(), &format!(r"{MOUNT}\f")).unwrap();
    let on_disk = |method| Invoke::on(Namespace::Storage, "MSFT_Disk", &disk.path, method);
    invoke(&host, &on_disk("Offline"));
    assert_eq!(code(read(host.os(), &format!(r"{MOUNT}\f"))), 3);
    invoke(&host, &on_disk("Online"));
    assert_eq!(read(host.os(), &format!(r"{MOUNT}\f")).unwrap(), b"kept");
}
