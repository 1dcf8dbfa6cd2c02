//! CreateVolume with a name that there is already: the same volume, or AlreadyExists.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Answer, GIB, MIB, POOL, Rig, STAGING, capability, create, map};
use csi_node::proto::controller_server::Controller as _;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::proto::volume_capability::{AccessType, MountVolume};
use csi_node::proto::*;
use csi_proxy_sim::Fault;
use tonic::{Code, Request};

const CONTEXT_FILE: &str = r"C:\csi\pool\v.context.json";

fn make(rig: &Rig, request: CreateVolumeRequest) -> Answer<Volume> {
    let answer = rig.call(rig.plugin.create_volume(Request::new(request)));
    answer.map(|answer| answer.volume.unwrap())
}

fn with_parameters(pairs: &[(&str, &str)]) -> CreateVolumeRequest {
    CreateVolumeRequest {
        parameters: map(pairs),
        ..create("v", 4 * GIB)
    }
}

fn for_file_system(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        volume_capabilities: vec![VolumeCapability {
            access_type: Some(AccessType::Mount(MountVolume {
                fs_type: name.to_owned(),
                ..Default::default()
            })),
            ..capability(Mode::SingleNodeWriter)
        }],
        ..create("v", 4 * GIB)
    }
}

#[test]
fn the_same_name_with_another_size_already_exists() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    let error = rig.create("v", 2 * GIB).unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    for part in ["volume v", "1073741824", "2147483648"] {
        assert!(error.message().contains(part), "{}", error.message());
    }
    let mut smaller = create("v", 1);
    smaller.capacity_range = Some(CapacityRange {
        required_bytes: 1,
        limit_bytes: GIB - 1,
    });
    let error = rig
        .call(rig.plugin.create_volume(Request::new(smaller)))
        .unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    // A smaller wish without a limit is met by what is there.
    assert_eq!(rig.create("v", 5 * MIB).unwrap().capacity_bytes, GIB);
}

#[test]
fn the_same_name_with_other_parameters_already_exists() {
    let requests = [
        with_parameters(&[]),
        with_parameters(&[("fsType", "ntfs")]),
        with_parameters(&[("fsType", "refs")]),
        with_parameters(&[("allocationUnitSize", "65536")]),
        with_parameters(&[("allocationUnitSize", "4096")]),
        with_parameters(&[("label", "data")]),
        with_parameters(&[("label", "Data")]),
        with_parameters(&[("label", "data"), ("fsType", "ntfs")]),
    ];
    for (index, first) in requests.iter().enumerate() {
        let mut rig = Rig::new();
        let made = make(&rig, first.clone()).unwrap();
        // Also when another plugin than the one that made it is asked.
        rig.restart();
        let before = rig.node.snapshot();
        for (other, request) in requests.iter().enumerate() {
            match make(&rig, request.clone()) {
                Ok(volume) => assert_eq!((index, &volume), (other, &made)),
                Err(status) => {
                    assert_eq!(status.code(), Code::AlreadyExists, "{index} {other}");
                    assert!(index != other, "{index}: {status:?}");
                    let told = status.message();
                    for (key, value) in first.parameters.iter().chain(&request.parameters) {
                        assert!(told.contains(key) && told.contains(value), "{told}");
                    }
                }
            }
        }
        rig.assert_unchanged(&before);
    }
}

#[test]
fn the_file_system_that_a_capability_names_is_a_parameter_too() {
    let rig = Rig::new();
    let made = make(&rig, for_file_system("ReFS")).unwrap();
    assert_eq!(made.volume_context, map(&[("fsType", "refs")]));
    assert_eq!(make(&rig, for_file_system("refs")).unwrap(), made);
    let same = with_parameters(&[("fsType", "refs")]);
    assert_eq!(make(&rig, same).unwrap(), made);
    for other in [for_file_system("ntfs"), for_file_system("")] {
        assert_eq!(make(&rig, other).unwrap_err().code(), Code::AlreadyExists);
    }
    // One volume cannot have two.
    let mut both = for_file_system("ntfs");
    both.name = "w".to_owned();
    both.volume_capabilities
        .extend(for_file_system("refs").volume_capabilities);
    let error = make(&rig, both).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error:?}");
}

#[test]
fn each_volume_has_both_access_modes() {
    let rig = Rig::new();
    let made = rig.create("v", GIB).unwrap();
    let reader = CreateVolumeRequest {
        volume_capabilities: vec![capability(Mode::SingleNodeReaderOnly)],
        ..create("v", GIB)
    };
    assert_eq!(make(&rig, reader).unwrap(), made);
}

#[test]
fn parameters_come_back_as_the_volume_context() {
    let rig = Rig::new();
    let mut request = create("v", 4 * GIB);
    request.parameters = map(&[("fsType", "ReFS"), ("allocationUnitSize", "65536")]);
    let answer = rig
        .call(rig.plugin.create_volume(Request::new(request)))
        .unwrap();
    let expected = map(&[("fsType", "refs"), ("allocationUnitSize", "65536")]);
    assert_eq!(answer.volume.unwrap().volume_context, expected);
}

#[test]
fn the_volume_context_is_the_same_whoever_asks() {
    let rig = Rig::new();
    let pairs = [("label", "it's \u{1f4be}"), ("allocationUnitSize", "8192")];
    let expected = map(&pairs);
    make(&rig, with_parameters(&pairs)).unwrap();
    rig.create("plain", GIB).unwrap();
    let listed = rig.list(0, "").unwrap().entries;
    let contexts: Vec<_> = listed
        .into_iter()
        .map(|entry| entry.volume.unwrap().volume_context)
        .collect();
    assert_eq!(contexts, [map(&[]), expected.clone()]);
    let request = ControllerGetVolumeRequest {
        volume_id: "v".to_owned(),
    };
    let got = rig.call(rig.plugin.controller_get_volume(Request::new(request)));
    assert_eq!(got.unwrap().volume.unwrap().volume_context, expected);
    // It is what a stage takes.
    let request = NodeStageVolumeRequest {
        volume_context: expected,
        ..common::stage("v", STAGING, Mode::SingleNodeWriter)
    };
    rig.stage_with(request).unwrap();
    rig.unstage("v").unwrap();
    assert!(rig.exists(CONTEXT_FILE));
    rig.delete("v").unwrap();
    rig.delete("plain").unwrap();
    assert_eq!(rig.tree(POOL), [r"C:\csi\pool\state\"]);
}

#[test]
fn a_context_that_cannot_be_read_is_told_and_goes_with_its_volume() {
    let rig = Rig::new();
    let request = with_parameters(&[("label", "data")]);
    make(&rig, request.clone()).unwrap();
    rig.write(CONTEXT_FILE, "not ours");
    let error = make(&rig, request).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains(CONTEXT_FILE), "{error:?}");
    let entry = rig.list(0, "").unwrap().entries.remove(0);
    let condition = entry.status.unwrap().volume_condition.unwrap();
    assert!(condition.abnormal && condition.message.contains(CONTEXT_FILE));
    rig.delete("v").unwrap();
    assert!(!rig.exists(CONTEXT_FILE));
}

#[test]
fn a_volume_that_is_made_anew_has_its_new_parameters() {
    let rig = Rig::new();
    let labelled = with_parameters(&[("label", "data")]);
    for fault in ["create_virtual_disk", "rename"] {
        // What a creation leaves that was cut off and is not repeated.
        rig.node.inject(Fault::on(fault).win32(5));
        make(&rig, labelled.clone()).unwrap_err();
        assert!(rig.exists(CONTEXT_FILE));
        let made = make(&rig, with_parameters(&[])).unwrap();
        assert_eq!(made.volume_context, map(&[]));
        assert!(!rig.exists(CONTEXT_FILE));
        rig.delete("v").unwrap();
    }
    rig.node.inject(Fault::on("create_virtual_disk").win32(5));
    make(&rig, labelled).unwrap_err();
    rig.create("w", GIB).unwrap();
    assert!(!rig.exists(CONTEXT_FILE));
}
