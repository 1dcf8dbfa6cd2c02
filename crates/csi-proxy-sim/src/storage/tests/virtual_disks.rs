//! The rules of VHDX files.

use csi_proxy::HostPath;
use csi_proxy::cim::{Namespace, Object, Query};
use csi_proxy::clock::Deadline;
use csi_proxy::os::{At, AttachVirtualDisk, CreateVirtualDisk, ExpandVirtualDisk};
use csi_proxy::port::{PortError, PortResult, SystemCode};

use crate::{Process, SimNode};

const MIB: u64 = 1 << 20;
const NOW: Deadline = Deadline::Never;

struct Rig {
    node: SimNode,
    process: Process,
}

/// The Win32 code of a call that was refused.
fn code<T: std::fmt::Debug>(result: PortResult<T>) -> u32 {
    match result {
        Err(PortError::System {
            code: SystemCode::Win32(code),
            ..
        }) => code,
        other => panic!("{other:?}"),
    }
}

impl Rig {
    /// A node with a file `C:\a.vhdx` of 100 MiB.
    fn new() -> Self {
        let node = SimNode::builder().build();
        let process = node.process();
        let rig = Self { node, process };
        rig.create(100 * MIB).unwrap();
        rig
    }

    fn at() -> At {
        At::path(&HostPath::from_kubelet(r"C:\a.vhdx").unwrap())
    }

    fn create(&self, size: u64) -> PortResult<()> {
        let at = Self::at();
        self.process
            .os()
            .create_virtual_disk(&CreateVirtualDisk { at, size }, NOW)
    }

    fn attach(&self, read_only: bool) -> PortResult<()> {
        let at = Self::at();
        self.process
            .os()
            .attach_virtual_disk(&AttachVirtualDisk { at, read_only }, NOW)
    }

    fn detach(&self) -> PortResult<()> {
        self.process.os().detach_virtual_disk(&Self::at(), NOW)
    }

    fn expand(&self, size: u64) -> PortResult<()> {
        let at = Self::at();
        self.process
            .os()
            .expand_virtual_disk(&ExpandVirtualDisk { at, size }, NOW)
    }

    fn disk(&self) -> Object {
        let properties = [
            "Number",
            "UniqueId",
            "Location",
            "BusType",
            "IsReadOnly",
            "Size",
        ];
        let query = Query::new(Namespace::Storage, "MSFT_Disk", &properties);
        self.process
            .cim()
            .query(&query.with("Number", 1u32), NOW)
            .unwrap()
            .remove(0)
    }
}

#[test]
fn an_attached_file_is_a_file_backed_disk_at_its_path() {
    let rig = Rig::new();
    rig.attach(false).unwrap();
    let disk = rig.disk();
    assert_eq!(disk.properties["Location"].as_str(), Some(r"C:\a.vhdx"));
    assert_eq!(disk.properties["BusType"].as_u64(), Some(15));
    assert_eq!(disk.properties["Size"].as_u64(), Some(100 * MIB));
    assert_eq!(disk.properties["IsReadOnly"].as_bool(), Some(false));
    let path = rig.process.os().virtual_disk_path(&Rig::at(), NOW).unwrap();
    assert_eq!(path.0, r"\\.\PhysicalDrive1");
}

#[test]
fn the_unique_id_is_the_same_at_every_attachment() {
    let rig = Rig::new();
    rig.attach(false).unwrap();
    let first = rig.disk().properties["UniqueId"].clone();
    rig.detach().unwrap();
    rig.attach(true).unwrap();
    let second = rig.disk();
    assert_eq!(second.properties["UniqueId"], first);
    assert_eq!(second.properties["IsReadOnly"].as_bool(), Some(true));
}

#[test]
fn attached_twice_is_a_sharing_violation_and_detached_twice_not_ready() {
    let rig = Rig::new();
    rig.attach(false).unwrap();
    assert_eq!(code(rig.attach(false)), 32);
    rig.detach().unwrap();
    assert_eq!(code(rig.detach()), 21);
}

#[test]
fn a_file_grows_only_while_it_is_detached() {
    let rig = Rig::new();
    rig.attach(false).unwrap();
    assert_eq!(code(rig.expand(200 * MIB)), 32);
    rig.detach().unwrap();
    assert_eq!(code(rig.expand(50 * MIB)), 87);
    rig.expand(200 * MIB).unwrap();
    rig.attach(false).unwrap();
    assert_eq!(rig.disk().properties["Size"].as_u64(), Some(200 * MIB));
}

#[test]
fn a_file_that_exists_is_not_made_again() {
    let rig = Rig::new();
    let before = rig.node.snapshot();
    assert_eq!(code(rig.create(100 * MIB)), 80);
    assert_eq!(rig.node.snapshot(), before);
}

#[test]
fn sizes_are_whole_mib_of_at_least_three() {
    let rig = Rig::new();
    for size in [0, MIB, 100 * MIB + 512, (64 << 40) + MIB] {
        assert_eq!(code(rig.create(size)), 87, "{size}");
    }
}

#[test]
fn the_file_of_an_attached_disk_is_not_removed() {
    let rig = Rig::new();
    rig.attach(false).unwrap();
    let remove = || rig.process.os().remove_file(&Rig::at(), NOW);
    assert_eq!(code(remove()), 32);
    rig.detach().unwrap();
    remove().unwrap();
    assert!(rig.node.snapshot().storage.virtual_disks.is_empty());
    assert_eq!(rig.node.snapshot().storage.media.len(), 1);
}

#[test]
fn a_reboot_detaches_and_keeps_the_file() {
    let rig = Rig::new();
    rig.attach(false).unwrap();
    rig.node.reboot();
    let info = rig
        .node
        .process()
        .os()
        .virtual_disk_info(&Rig::at(), NOW)
        .unwrap();
    assert!(!info.attached);
    assert_eq!(info.virtual_size, 100 * MIB);
}

#[test]
fn a_file_takes_what_was_written_to_it() {
    let rig = Rig::new();
    let size = || {
        let info = rig.process.os().virtual_disk_info(&Rig::at(), NOW);
        info.unwrap().physical_size
    };
    assert_eq!(size(), 4 * MIB);
    rig.node.change(|state| {
        let medium = state.storage.media.values_mut().last().unwrap();
        medium.bytes.write(40 * MIB, b"x");
    });
    assert_eq!(size(), 36 * MIB);
}

#[test]
fn a_file_that_comes_and_goes_leaves_the_node_as_it_was() {
    let node = SimNode::builder().build();
    let before = node.snapshot();
    let process = node.process();
    let rig = Rig { node, process };
    rig.create(100 * MIB).unwrap();
    rig.attach(false).unwrap();
    rig.detach().unwrap();
    rig.process.os().remove_file(&Rig::at(), NOW).unwrap();
    assert_eq!(rig.node.snapshot(), before);
}
