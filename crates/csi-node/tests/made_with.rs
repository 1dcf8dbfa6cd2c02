//! A volume has the parameters that it was made with, whoever asks for others later.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Answer, GIB, Rig, STAGING, TARGET, capability, create, map, publish, stage};
use csi_node::proto::controller_server::Controller as _;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::proto::volume_capability::{AccessType, MountVolume};
use csi_node::proto::*;
use tonic::{Code, Request};

const REFS: [(&str, &str); 2] = [("fsType", "refs"), ("label", "data")];

/// A node with the volume `v`, which was made with these parameters.
fn made_with(parameters: &[(&str, &str)]) -> Rig {
    let rig = Rig::new();
    let request = CreateVolumeRequest {
        parameters: map(parameters),
        ..create("v", 4 * GIB)
    };
    rig.call(rig.plugin.create_volume(Request::new(request)))
        .unwrap();
    rig
}

fn of_type(fs_type: &str) -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: fs_type.to_owned(),
            ..Default::default()
        })),
        ..capability(Mode::SingleNodeWriter)
    }
}

fn stage_as(fs_type: &str, context: &[(&str, &str)]) -> NodeStageVolumeRequest {
    NodeStageVolumeRequest {
        volume_capability: Some(of_type(fs_type)),
        volume_context: map(context),
        ..stage("v", STAGING, Mode::SingleNodeWriter)
    }
}

/// The file system of what is staged.
fn staged(rig: &Rig) -> String {
    let at = csi_proxy::os::At::path(&common::path(STAGING));
    let information = rig
        .host()
        .os()
        .volume_information(&at, csi_proxy::clock::Deadline::Never)
        .unwrap();
    information.file_system
}

fn validate(
    rig: &Rig,
    fs_type: &str,
    context: &[(&str, &str)],
    parameters: &[(&str, &str)],
) -> Answer<ValidateVolumeCapabilitiesResponse> {
    let request = ValidateVolumeCapabilitiesRequest {
        volume_id: "v".to_owned(),
        volume_capabilities: vec![of_type(fs_type)],
        volume_context: map(context),
        parameters: map(parameters),
        ..Default::default()
    };
    let validated = rig
        .plugin
        .validate_volume_capabilities(Request::new(request));
    rig.call(validated)
}

#[test]
fn another_file_system_context_or_parameter_is_not_confirmed() {
    let rig = made_with(&REFS);
    for (fs_type, context, parameters) in [
        ("", &[][..], &[][..]),
        ("refs", &REFS, &REFS),
        ("ReFS", &[], &[("label", "data")]),
        (
            "",
            &[],
            &[("fsType", "ReFS"), ("csi.storage.k8s.io/pvc/name", "claim")],
        ),
    ] {
        let answer = validate(&rig, fs_type, context, parameters).unwrap();
        assert!(answer.confirmed.is_some(), "{answer:?}");
    }
    for (fs_type, context, parameters, told) in [
        ("ntfs", &[][..], &[][..], &["fs_type", "NTFS", "ReFS"][..]),
        (
            "",
            &[("fsType", "ntfs")],
            &[],
            &["volume_context.fsType", "ntfs", "refs"],
        ),
        (
            "",
            &[("label", "Data")],
            &[],
            &["volume_context.label", "Data", "data"],
        ),
        (
            "",
            &[],
            &[("allocationUnitSize", "65536")],
            &["parameters.allocationUnitSize", "65536", "none"],
        ),
        (
            "ntfs",
            &[],
            &[("fsType", "ntfs")],
            &["parameters.fsType", "ntfs", "refs"],
        ),
    ] {
        let answer = validate(&rig, fs_type, context, parameters).unwrap();
        assert!(answer.confirmed.is_none(), "{told:?}");
        for part in told {
            assert!(
                answer.message.contains(part),
                "{part} in {}",
                answer.message
            );
        }
    }
}

#[test]
fn the_storage_class_of_the_documentation_makes_a_volume() {
    let text = include_str!("../../../docs/driver-local.md");
    let (_, class) = text.split_once("\nparameters:\n").unwrap();
    let lines = class.lines().map_while(|line| line.strip_prefix("  "));
    let parameters: Vec<_> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(key, value)| (key, value.trim_matches('"')))
        .collect();
    assert_eq!(parameters.len(), 3);
    made_with(&parameters).stage("v").unwrap();
}

#[test]
fn a_volume_for_which_no_file_system_was_named_is_an_ntfs_volume() {
    for parameters in [&[][..], &[("label", "data")]] {
        let rig = made_with(parameters);
        let confirmed = |fs_type| validate(&rig, fs_type, &[], &[]).unwrap().confirmed;
        assert!(confirmed("ntfs").is_some() && confirmed("").is_some());
        assert!(confirmed("refs").is_none());
    }
}

#[test]
fn a_volume_is_formatted_as_it_was_made_though_nobody_says_so_again() {
    let rig = made_with(&REFS);
    rig.stage("v").unwrap();
    assert_eq!(staged(&rig), "ReFS");
    rig.stage_with(stage_as("refs", &REFS)).unwrap();
    rig.unstage("v").unwrap();
    rig.stage_with(stage_as("refs", &REFS)).unwrap();
    assert_eq!(staged(&rig), "ReFS");
}

#[test]
fn a_stage_that_asks_for_something_else_changes_nothing() {
    let rig = made_with(&REFS);
    let refused = || {
        let before = rig.node.snapshot();
        for (request, told) in [
            (stage_as("ntfs", &[]), ["fsType", "ntfs", "refs"]),
            (
                stage_as("", &[("fsType", "ntfs")]),
                ["fsType", "ntfs", "refs"],
            ),
            (
                stage_as("", &[("label", "mine")]),
                ["label", "mine", "data"],
            ),
            (
                stage_as("refs", &[("allocationUnitSize", "65536")]),
                ["allocationUnitSize", "65536", "none"],
            ),
        ] {
            let error = rig.stage_with(request).unwrap_err();
            assert_eq!(error.code(), Code::FailedPrecondition, "{error:?}");
            for part in told {
                assert!(error.message().contains(part), "{part} in {error:?}");
            }
        }
        rig.assert_unchanged(&before);
    };
    // Before it is formatted, while it is staged, and after.
    refused();
    rig.stage("v").unwrap();
    refused();
    rig.unstage("v").unwrap();
    refused();
    rig.stage_with(stage_as("refs", &REFS)).unwrap();
}

#[test]
fn a_volume_is_not_published_as_another_file_system() {
    for parameters in [&REFS[..], &[]] {
        let rig = made_with(parameters);
        let (own, other) = match parameters.is_empty() {
            true => ("NTFS", "ReFS"),
            false => ("ReFS", "NTFS"),
        };
        rig.stage("v").unwrap();
        let publish_as = |fs_type: &str| NodePublishVolumeRequest {
            volume_capability: Some(of_type(fs_type)),
            ..publish("v", STAGING, TARGET)
        };
        let before = rig.node.snapshot();
        let error = rig.publish_with(publish_as(other)).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error:?}");
        for part in [own, other] {
            assert!(error.message().contains(part), "{part} in {error:?}");
        }
        rig.assert_unchanged(&before);
        rig.publish_with(publish_as(own)).unwrap();
    }
}
