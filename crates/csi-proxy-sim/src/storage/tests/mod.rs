//! The rules, one test each, and what the tests have in common.

use csi_proxy::cim::{Invoke, Namespace, Object, Query};
use csi_proxy::clock::Deadline;
use csi_proxy::os::ReadRange;
use csi_proxy::port::{PortError, SystemCode};
use csi_proxy::{DevicePath, DiskNumber};

use super::*;
use crate::{Process, SimNode};

mod disks;
mod virtual_disks;
mod volumes;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const NOW: Deadline = Deadline::Never;

/// A node with a system disk and the given disk as number 1.
fn node_with(disk: SimDisk) -> (SimNode, Process) {
    let node = SimNode::builder().disk(disk).build();
    let process = node.process();
    (node, process)
}

fn query(process: &Process, query: Query) -> Vec<Object> {
    process.cim().query(&query, NOW).unwrap()
}

fn disk(process: &Process, number: u32, properties: &[&str]) -> Object {
    let wanted = Query::new(Namespace::Storage, "MSFT_Disk", properties).with("Number", number);
    query(process, wanted).remove(0)
}

fn partitions(process: &Process, number: u32) -> Vec<Object> {
    let properties = [
        "PartitionNumber",
        "Offset",
        "Size",
        "GptType",
        "AccessPaths",
        "Guid",
    ];
    let wanted = Query::new(Namespace::Storage, "MSFT_Partition", &properties);
    query(process, wanted.with("DiskNumber", number))
}

fn volumes_of(process: &Process, partition: &Object) -> Vec<Object> {
    let request = csi_proxy::cim::Associators::new(
        Namespace::Storage,
        &partition.path,
        "MSFT_PartitionToVolume",
        "MSFT_Volume",
        &[
            "UniqueId",
            "FileSystemType",
            "Size",
            "SizeRemaining",
            "FileSystemLabel",
        ],
    );
    process.cim().associators(&request, NOW).unwrap()
}

/// Calls a method and answers its return value.
fn call(process: &Process, class: &str, object: &Object, method: Invoke) -> u32 {
    let invoke = Invoke {
        arguments: method.arguments,
        ..Invoke::on(Namespace::Storage, class, &object.path, &method.method)
    };
    process.cim().invoke(&invoke, NOW).unwrap().return_value
}

fn method(name: &str) -> Invoke {
    Invoke::on_class(Namespace::Storage, "", name)
}

fn on_disk(process: &Process, wanted: Invoke) -> u32 {
    let object = disk(process, 1, &["Number"]);
    call(process, "MSFT_Disk", &object, wanted)
}

fn on_last_partition(process: &Process, wanted: Invoke) -> u32 {
    let object = partitions(process, 1).pop().unwrap();
    call(process, "MSFT_Partition", &object, wanted)
}

fn last_volume(process: &Process) -> Object {
    volumes_of(process, &partitions(process, 1).pop().unwrap()).remove(0)
}

fn on_last_volume(process: &Process, wanted: Invoke) -> u32 {
    call(process, "MSFT_Volume", &last_volume(process), wanted)
}

fn number(object: &Object, property: &str) -> u64 {
    object.properties[property].as_u64().unwrap()
}

fn read(process: &Process, device: &str, offset: u64, length: u32) -> Vec<u8> {
    let request = ReadRange {
        device: DevicePath(device.to_owned()),
        offset,
        length,
    };
    process.os().read_range(&request, NOW).unwrap().0
}

fn create_partition() -> Invoke {
    method("CreatePartition").with("UseMaximumSize", true)
}

fn format_ntfs() -> Invoke {
    method("Format").with("FileSystem", "NTFS")
}
