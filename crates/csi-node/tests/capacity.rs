//! What GetCapacity promises is what CreateVolume makes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{GIB, MIB, POOL, Rig, capability, config, create, map};
use csi_node::proto::controller_server::Controller as _;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::proto::volume_capability::{AccessType, MountVolume};
use csi_node::proto::*;
use csi_proxy_sim::{Fault, SimNode};
use tonic::{Code, Request};

const LOOK: &str = "virtual_disk_info";

/// A node whose pool may hold 3 GiB, 2 of which the volume `a` has.
fn with_a_gib_left() -> Rig {
    let mut config = config();
    config.limit = Some(3 << 30);
    let rig = Rig::with(SimNode::builder().build(), config);
    rig.create("a", 2 * GIB).unwrap();
    rig
}

#[test]
fn a_volume_that_cannot_be_looked_at_for_now_is_not_counted_as_less() {
    let rig = with_a_gib_left();
    for (win32, code) in [
        // In use, not ready, an I/O error, no access, no resources.
        (32, Code::FailedPrecondition),
        (21, Code::FailedPrecondition),
        (1117, Code::Internal),
        (5, Code::PermissionDenied),
        (1450, Code::ResourceExhausted),
    ] {
        rig.node.inject(Fault::on(LOOK).win32(win32));
        let error = rig.capacity(GetCapacityRequest::default()).unwrap_err();
        assert_eq!(error.code(), code, "{error:?}");
        assert!(error.message().contains("a.vhdx"), "{error:?}");
        // The first look is for the volume itself.
        rig.node.inject(Fault::on(LOOK).nth(2).win32(win32));
        assert_eq!(rig.create("b", 2 * GIB).unwrap_err().code(), code);
        rig.node.inject(Fault::on(LOOK).nth(2).win32(win32));
        assert_eq!(rig.grow("a", 3 * GIB).unwrap_err().code(), code);
    }
    assert_eq!(rig.tree(POOL).len(), 2);
    let capacity = rig.capacity(GetCapacityRequest::default()).unwrap();
    assert_eq!(capacity.available_capacity, GIB);
}

#[test]
fn a_file_that_is_no_virtual_disk_counts_with_its_bytes() {
    let rig = with_a_gib_left();
    // What is no VHDX at all, and what was one: damaged, its header, its file.
    for code in [87, 0xC03A_0004, 0xC03A_0008, 1392] {
        rig.node.inject(Fault::on(LOOK).win32(code));
        let capacity = rig.capacity(GetCapacityRequest::default()).unwrap();
        assert!(capacity.available_capacity > 2 * GIB, "{capacity:?}");
    }
}

#[test]
fn a_file_that_could_not_be_looked_at_for_now_is_not_deleted() {
    let rig = with_a_gib_left();
    rig.node.inject(Fault::on(LOOK).win32(1117));
    let error = rig.delete("a").unwrap_err();
    assert_eq!(error.code(), Code::Internal, "{error:?}");
    assert!(rig.exists(r"C:\csi\pool\a.vhdx"));
    rig.delete("a").unwrap();
}

#[test]
fn the_smallest_volume_is_the_one_that_can_be_made() {
    let rig = Rig::new();
    let refs = VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: "refs".to_owned(),
            ..Default::default()
        })),
        ..capability(Mode::SingleNodeWriter)
    };
    let plain = capability(Mode::SingleNodeWriter);
    for (index, (parameters, capability, least)) in [
        (&[][..], plain.clone(), 64 * MIB),
        (&[("fsType", "ntfs")], plain.clone(), 64 * MIB),
        (&[("fsType", "refs")], plain, 2 * GIB + 32 * MIB),
        (&[], refs, 2 * GIB + 32 * MIB),
    ]
    .into_iter()
    .enumerate()
    {
        let request = GetCapacityRequest {
            parameters: map(parameters),
            volume_capabilities: vec![capability.clone()],
            ..Default::default()
        };
        let capacity = rig.capacity(request).unwrap();
        assert_eq!(capacity.minimum_volume_size, Some(least));
        let make = |bytes| {
            let request = CreateVolumeRequest {
                parameters: map(parameters),
                volume_capabilities: vec![capability.clone()],
                capacity_range: Some(CapacityRange {
                    required_bytes: bytes,
                    limit_bytes: bytes,
                }),
                ..create(&format!("v{index}"), 0)
            };
            rig.call(rig.plugin.create_volume(Request::new(request)))
        };
        assert_eq!(make(least - MIB).unwrap_err().code(), Code::OutOfRange);
        assert_eq!(make(least).unwrap().volume.unwrap().capacity_bytes, least);
    }
}

#[test]
fn a_new_volume_that_nobody_writes_cannot_be_had() {
    let rig = Rig::new();
    let reader = capability(Mode::SingleNodeReaderOnly);
    let for_uses = |capabilities: &[VolumeCapability]| CreateVolumeRequest {
        volume_capabilities: capabilities.to_vec(),
        ..create("v", GIB)
    };
    let make = |request| rig.call(rig.plugin.create_volume(Request::new(request)));
    let available = |capabilities: &[VolumeCapability]| {
        let request = GetCapacityRequest {
            volume_capabilities: capabilities.to_vec(),
            ..Default::default()
        };
        rig.capacity(request).unwrap().available_capacity
    };
    let readers = [reader.clone(), reader.clone()];
    let before = rig.node.snapshot();
    let error = make(for_uses(&readers)).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error:?}");
    for part in ["volume_capabilities", "SINGLE_NODE_WRITER", "empty"] {
        assert!(error.message().contains(part), "{part} in {error:?}");
    }
    rig.assert_unchanged(&before);
    assert_eq!(available(&readers), 0);
    let both = [reader, capability(Mode::SingleNodeWriter)];
    assert!(available(&both) > 0);
    make(for_uses(&both)).unwrap();
    // One that is there may have a content.
    make(for_uses(&readers)).unwrap();
}
