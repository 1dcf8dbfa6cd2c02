//! Making, listing, growing and deleting volumes with the driver `local`.

mod common;

use common::{GIB, MIB, POOL, Rig, STAGING, capability, config, create, map, path};
use csi_node::local::{LocalConfig, LocalDriver};
use csi_node::proto::controller_server::Controller as _;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::proto::volume_capability::{AccessType, MountVolume};
use csi_node::proto::*;
use csi_proxy::ErrorKind;
use csi_proxy::clock::Deadline;
use csi_proxy::os::{At, CreateVirtualDisk};
use csi_proxy_sim::{Fault, SimNode};
use tonic::{Code, Request};

#[test]
fn a_volume_is_made_once_however_often_it_is_asked_for() {
    let rig = Rig::new();
    let first = rig.create("pvc-1", GIB + 1).unwrap();
    assert_eq!(first.volume_id, "pvc-1");
    assert_eq!(first.capacity_bytes, GIB + MIB);
    let topology = map(&[("topology.local.csi-proxy.io/node", "node-1")]);
    assert_eq!(first.accessible_topology[0].segments, topology);
    let before = rig.node.snapshot();
    assert_eq!(rig.create("pvc-1", GIB + 1).unwrap(), first);
    rig.assert_unchanged(&before);
    assert_eq!(
        rig.tree(POOL),
        [r"C:\csi\pool\pvc-1.vhdx", r"C:\csi\pool\state\"]
    );
}

#[test]
fn what_a_volume_cannot_be_made_from_is_refused_by_name() {
    let rig = Rig::new();
    let before = rig.node.snapshot();
    let base = || create("v", GIB);
    let clone = volume_content_source::Type::Volume(volume_content_source::VolumeSource {
        volume_id: "w".to_owned(),
    });
    let range = |required_bytes, limit_bytes| {
        Some(CapacityRange {
            required_bytes,
            limit_bytes,
        })
    };
    let elsewhere = TopologyRequirement {
        requisite: vec![Topology {
            segments: map(&[("topology.local.csi-proxy.io/node", "node-2")]),
        }],
        preferred: vec![],
    };
    let cases = [
        (
            "name",
            Code::InvalidArgument,
            CreateVolumeRequest {
                name: String::new(),
                ..base()
            },
        ),
        (
            "name",
            Code::InvalidArgument,
            CreateVolumeRequest {
                name: "a".repeat(129),
                ..base()
            },
        ),
        (
            "name",
            Code::InvalidArgument,
            CreateVolumeRequest {
                name: "a\nb".into(),
                ..base()
            },
        ),
        (
            "volume_capabilities",
            Code::InvalidArgument,
            CreateVolumeRequest {
                volume_capabilities: vec![],
                ..base()
            },
        ),
        (
            "volume_capabilities[0].access_mode",
            Code::InvalidArgument,
            CreateVolumeRequest {
                volume_capabilities: vec![capability(Mode::MultiNodeMultiWriter)],
                ..base()
            },
        ),
        (
            "parameters.fstype",
            Code::InvalidArgument,
            CreateVolumeRequest {
                parameters: map(&[("fstype", "ntfs")]),
                ..base()
            },
        ),
        (
            "parameters.fsType",
            Code::InvalidArgument,
            CreateVolumeRequest {
                parameters: map(&[("fsType", "ext4")]),
                ..base()
            },
        ),
        (
            "mutable_parameters",
            Code::InvalidArgument,
            CreateVolumeRequest {
                mutable_parameters: map(&[("iops", "5")]),
                ..base()
            },
        ),
        (
            "volume_content_source",
            Code::InvalidArgument,
            CreateVolumeRequest {
                volume_content_source: Some(VolumeContentSource {
                    r#type: Some(clone),
                }),
                ..base()
            },
        ),
        (
            "required_bytes",
            Code::InvalidArgument,
            CreateVolumeRequest {
                capacity_range: range(-1, 0),
                ..base()
            },
        ),
        (
            "capacity_range",
            Code::InvalidArgument,
            CreateVolumeRequest {
                capacity_range: range(2, 1),
                ..base()
            },
        ),
        (
            "capacity_range",
            Code::OutOfRange,
            CreateVolumeRequest {
                capacity_range: range(65 << 40, 0),
                ..base()
            },
        ),
        (
            "requisite",
            Code::ResourceExhausted,
            CreateVolumeRequest {
                accessibility_requirements: Some(elsewhere),
                ..base()
            },
        ),
    ];
    for (field, code, request) in cases {
        let error = rig
            .call(rig.plugin.create_volume(Request::new(request)))
            .unwrap_err();
        assert_eq!(error.code(), code, "{}", error.message());
        assert!(
            error.message().contains(field),
            "{field} in {}",
            error.message()
        );
    }
    rig.assert_unchanged(&before);
}

#[test]
fn secrets_are_accepted_and_never_shown() {
    let rig = Rig::new();
    let mut request = create("", GIB);
    request.secrets = map(&[("password", "hunter2")]);
    let error = rig
        .call(rig.plugin.create_volume(Request::new(request.clone())))
        .unwrap_err();
    assert!(!format!("{error:?}").contains("hunter2"));
    request.name = "v".to_owned();
    rig.call(rig.plugin.create_volume(Request::new(request)))
        .unwrap();
    assert!(!format!("{:?}", rig.node.call_log()).contains("hunter2"));
}

#[test]
fn a_volume_too_small_for_refs_is_out_of_range() {
    let rig = Rig::new();
    let refs = |name: &str, bytes| CreateVolumeRequest {
        parameters: map(&[("fsType", "refs")]),
        ..create(name, bytes)
    };
    let before = rig.node.snapshot();
    let answer = |request| rig.call(rig.plugin.create_volume(Request::new(request)));
    let error = answer(refs("v", 64 * MIB)).unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange);
    let least = 2 * GIB + 32 * MIB;
    assert!(error.message().contains(&least.to_string()), "{error:?}");
    rig.assert_unchanged(&before);
    // The least is enough to be formatted.
    let volume = answer(refs("v", least)).unwrap().volume.unwrap();
    let request = NodeStageVolumeRequest {
        volume_context: volume.volume_context,
        ..common::stage("v", STAGING, Mode::SingleNodeWriter)
    };
    rig.stage_with(request).unwrap();
    // Without a wish it is what a volume gets.
    let mut unsized_request = refs("w", 0);
    unsized_request.capacity_range = None;
    let volume = answer(unsized_request).unwrap().volume.unwrap();
    assert_eq!(volume.capacity_bytes, least);
}

#[test]
fn a_full_pool_is_resource_exhausted_and_a_size_beyond_its_limit_out_of_range() {
    let mut config = config();
    config.limit = Some(3 << 30);
    let rig = Rig::with(SimNode::builder().build(), config);
    rig.create("a", 2 * GIB).unwrap();
    let error = rig.create("b", 2 * GIB).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    let error = rig.create("b", 4 * GIB).unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange);
    assert_eq!(rig.create("b", GIB).unwrap().capacity_bytes, GIB);
    // Growing has the same rule.
    let error = rig.grow("b", GIB + 1).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    let error = rig.grow("b", 4 * GIB).unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange);
    assert_eq!(rig.tree(POOL).len(), 3);
}

#[test]
fn volumes_are_promised_no_more_than_the_drive_has() {
    let rig = Rig::new();
    let free = rig
        .capacity(GetCapacityRequest::default())
        .unwrap()
        .available_capacity;
    assert!(free > GIB && free % MIB == 0, "{free}");
    rig.create("a", GIB).unwrap();
    let after = rig.capacity(GetCapacityRequest::default()).unwrap();
    assert!(after.available_capacity <= free - GIB, "{free} {after:?}");
    let error = rig.create("b", free).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
}

#[test]
fn capacity_is_none_where_a_volume_cannot_be_had() {
    let rig = Rig::new();
    let available = |request| rig.capacity(request).unwrap().available_capacity;
    let place = |node: &str| Topology {
        segments: map(&[("topology.local.csi-proxy.io/node", node)]),
    };
    let here = GetCapacityRequest {
        accessible_topology: Some(place("node-1")),
        volume_capabilities: vec![capability(Mode::SingleNodeWriter)],
        ..Default::default()
    };
    assert!(available(here) > 0);
    let elsewhere = GetCapacityRequest {
        accessible_topology: Some(place("node-2")),
        ..Default::default()
    };
    assert_eq!(available(elsewhere), 0);
    let shared = GetCapacityRequest {
        volume_capabilities: vec![capability(Mode::MultiNodeMultiWriter)],
        ..Default::default()
    };
    assert_eq!(available(shared), 0);
    let refs = MountVolume {
        fs_type: "refs".to_owned(),
        ..Default::default()
    };
    for (key, value) in [
        ("tier", "fast"),
        ("allocationUnitSize", "5000"),
        ("fsType", "ntfs"),
    ] {
        let wrong = GetCapacityRequest {
            parameters: map(&[(key, value)]),
            volume_capabilities: vec![VolumeCapability {
                access_type: Some(AccessType::Mount(refs.clone())),
                ..capability(Mode::SingleNodeWriter)
            }],
            ..Default::default()
        };
        let error = rig.capacity(wrong).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{key}");
    }
    let odd = GetCapacityRequest {
        parameters: map(&[("allocationUnitSize", "5000")]),
        ..Default::default()
    };
    assert_eq!(rig.capacity(odd).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn a_list_is_paged_by_tokens_that_outlive_their_volume() {
    let rig = Rig::new();
    for name in ["b", "d", "a", "c"] {
        rig.create(name, 64 * MIB).unwrap();
    }
    // What is no volume is no entry.
    rig.write(r"C:\csi\pool\readme.txt", "x");
    rig.write(r"C:\csi\pool\Not An Id.vhdx", "x");
    let ids = |list: &ListVolumesResponse| -> Vec<String> {
        let id = |entry: &list_volumes_response::Entry| entry.volume.clone().unwrap().volume_id;
        list.entries.iter().map(id).collect()
    };
    let all = rig.list(0, "").unwrap();
    assert_eq!(ids(&all), ["a", "b", "c", "d"]);
    assert_eq!(all.next_token, "");

    let first = rig.list(2, "").unwrap();
    assert_eq!(ids(&first), ["a", "b"]);
    rig.delete("b").unwrap();
    rig.create("bb", 64 * MIB).unwrap();
    let second = rig.list(2, &first.next_token).unwrap();
    assert_eq!(ids(&second), ["bb", "c"]);
    let third = rig.list(2, &second.next_token).unwrap();
    assert_eq!(ids(&third), ["d"]);
    assert_eq!(third.next_token, "");
}

#[test]
fn a_token_of_someone_else_is_aborted_and_a_negative_page_invalid() {
    let rig = Rig::new();
    rig.create("a", 64 * MIB).unwrap();
    rig.create("b", 64 * MIB).unwrap();
    let ours = rig.list(1, "").unwrap().next_token;
    rig.list(1, &ours).unwrap();
    // One that another node's plugin gave, for a volume of the same name.
    let config = LocalConfig::new(path(POOL), "node-2");
    let other = Rig::with(SimNode::builder().build(), config);
    other.create("a", 64 * MIB).unwrap();
    other.create("b", 64 * MIB).unwrap();
    let others = other.list(1, "").unwrap().next_token;
    let changed = ours.replacen('a', "b", 1);
    for token in [
        "invalid-token",
        "after:",
        "after:zzz",
        "a",
        "7",
        ":",
        &others,
        &changed,
    ] {
        assert_eq!(
            rig.list(0, token).unwrap_err().code(),
            Code::Aborted,
            "{token}"
        );
    }
    assert_eq!(rig.list(-1, "").unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn one_unreadable_file_does_not_hide_the_other_volumes() {
    let rig = Rig::new();
    rig.create("a", 64 * MIB).unwrap();
    rig.write(r"C:\csi\pool\broken.vhdx", "this is no VHDX");
    let list = rig.list(0, "").unwrap();
    let condition = |index: usize| {
        let status = list.entries[index].status.clone().unwrap();
        status.volume_condition.unwrap()
    };
    assert!(!condition(0).abnormal);
    assert!(condition(1).abnormal);
    assert!(
        condition(1).message.contains("broken.vhdx"),
        "{:?}",
        condition(1)
    );
}

#[test]
fn one_unreadable_file_does_not_stop_the_pool() {
    let mut config = config();
    config.limit = Some(3 << 30);
    let rig = Rig::with(SimNode::builder().build(), config);
    rig.create("a", GIB).unwrap();
    rig.write(r"C:\csi\pool\junk.vhdx", "this is no VHDX");
    let available = rig.capacity(GetCapacityRequest::default()).unwrap();
    // Its few bytes count, in steps of a MiB.
    assert_eq!(available.available_capacity, 2 * GIB - MIB);
    rig.create("b", 64 * MIB).unwrap();
    assert_eq!(rig.grow("a", GIB + MIB).unwrap(), GIB + MIB);
    for error in [
        rig.create("junk", GIB).unwrap_err(),
        rig.grow("junk", GIB).unwrap_err(),
        rig.stage("junk").unwrap_err(),
    ] {
        assert_eq!(error.code(), Code::FailedPrecondition, "{error:?}");
        assert!(error.message().contains("junk.vhdx"), "{error:?}");
    }
    rig.delete("junk").unwrap();
    assert!(!rig.exists(r"C:\csi\pool\junk.vhdx"));
}

#[test]
fn a_file_that_could_not_be_looked_at_is_not_deleted() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.node
        .inject(Fault::on("virtual_disk_info").nth(1).loses_answer());
    assert_eq!(rig.delete("v").unwrap_err().code(), Code::Unavailable);
    assert!(rig.exists(r"C:\csi\pool\v.vhdx"));
}

#[test]
fn the_record_of_a_format_that_failed_goes_with_its_volume() {
    for fault in [
        Fault::on("MSFT_Volume.Format").loses_answer(),
        Fault::on("MSFT_Volume.Format").returns(4),
    ] {
        let rig = Rig::new();
        rig.create("v", GIB).unwrap();
        rig.create("w", GIB).unwrap();
        rig.node.inject(fault);
        rig.stage("v").unwrap_err();
        rig.unstage("v").unwrap();
        let records = rig.tree(r"C:\csi\pool\state");
        assert!(records.iter().any(|path| path.contains("format-")));
        rig.delete("w").unwrap();
        assert_eq!(rig.tree(r"C:\csi\pool\state"), records);
        rig.delete("v").unwrap();
        assert_eq!(rig.tree(POOL), [r"C:\csi\pool\state\"]);
    }
}

#[test]
fn a_format_whose_end_nobody_knows_is_not_cut_off_and_the_next_stage_goes_on() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    // WBEM_E_FAILED does not say whether Windows has begun.
    rig.node
        .inject(Fault::on("MSFT_Volume.Format").hresult(0x8004_1001));
    rig.stage("v").unwrap_err();
    assert_eq!(rig.unstage("v").unwrap_err().code(), Code::Aborted);
    rig.stage("v").unwrap();
    rig.unstage("v").unwrap();
    rig.delete("v").unwrap();
    assert_eq!(rig.tree(POOL), [r"C:\csi\pool\state\"]);
}

#[test]
fn a_deleted_volume_is_deleted() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    for id in ["v", "v", "never-was", "Not An Id", r"..\..\windows", "a'b"] {
        rig.delete(id).unwrap();
    }
    assert_eq!(rig.tree(POOL), [r"C:\csi\pool\state\"]);
    assert_eq!(rig.delete("").unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn a_volume_in_use_is_neither_deleted_nor_grown() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.stage("v").unwrap();
    assert_eq!(
        rig.delete("v").unwrap_err().code(),
        Code::FailedPrecondition
    );
    assert_eq!(
        rig.grow("v", 2 * GIB).unwrap_err().code(),
        Code::FailedPrecondition
    );
    // A size that is there already needs no work.
    assert_eq!(rig.grow("v", GIB).unwrap(), GIB);
    rig.unstage("v").unwrap();
    assert_eq!(rig.grow("v", 2 * GIB).unwrap(), 2 * GIB);
    rig.delete("v").unwrap();
}

#[test]
fn a_grown_volume_is_larger_for_the_pod_and_keeps_its_files() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.stage("v").unwrap();
    rig.write(&format!(r"{STAGING}\file.txt"), "kept");
    let before = rig.stats("v", STAGING).unwrap().usage[0].total;
    rig.unstage("v").unwrap();
    assert_eq!(rig.grow("v", 2 * GIB - 5).unwrap(), 2 * GIB);
    assert_eq!(rig.grow("v", 2 * GIB - 5).unwrap(), 2 * GIB);
    assert_eq!(rig.grow("v", MIB).unwrap(), 2 * GIB);
    rig.stage("v").unwrap();
    assert_eq!(rig.node_expand("v", STAGING, 2 * GIB).unwrap(), 2 * GIB);
    assert_eq!(rig.node_expand("v", STAGING, 2 * GIB).unwrap(), 2 * GIB);
    let after = rig.stats("v", STAGING).unwrap().usage[0].total;
    assert!(after > before + GIB - 32 * MIB, "{before} {after}");
    assert_eq!(rig.read(&format!(r"{STAGING}\file.txt")), "kept");
    let error = rig.node_expand("v", STAGING, 3 * GIB).unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange);
}

#[test]
fn wrong_sizes_to_grow_to_are_refused() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    let grow = |required_bytes, limit_bytes| {
        let request = ControllerExpandVolumeRequest {
            volume_id: "v".to_owned(),
            capacity_range: Some(CapacityRange {
                required_bytes,
                limit_bytes,
            }),
            ..Default::default()
        };
        rig.call(rig.plugin.controller_expand_volume(Request::new(request)))
            .map_err(|error| error.code())
    };
    assert_eq!(grow(0, 0), Err(Code::InvalidArgument));
    assert_eq!(grow(-1, 0), Err(Code::InvalidArgument));
    assert_eq!(grow(1, MIB), Err(Code::OutOfRange));
    assert_eq!(grow(GIB + 1, GIB + 2), Err(Code::OutOfRange));
    assert_eq!(grow(65 << 40, 0), Err(Code::OutOfRange));
    assert_eq!(rig.grow("w", GIB).unwrap_err().code(), Code::NotFound);
    assert_eq!(rig.grow("W'", GIB).unwrap_err().code(), Code::NotFound);
}

#[test]
fn capabilities_are_confirmed_only_when_all_are_supported() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    let validate = |volume_id: &str, modes: &[Mode], context: &[(&str, &str)]| {
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: volume_id.to_owned(),
            volume_capabilities: modes.iter().map(|mode| capability(*mode)).collect(),
            volume_context: map(context),
            ..Default::default()
        };
        rig.call(
            rig.plugin
                .validate_volume_capabilities(Request::new(request)),
        )
    };
    let both = [Mode::SingleNodeWriter, Mode::SingleNodeReaderOnly];
    let confirmed = validate("v", &both, &[("fsType", "ntfs")])
        .unwrap()
        .confirmed
        .unwrap();
    assert_eq!(confirmed.volume_capabilities.len(), 2);
    let shared = [Mode::SingleNodeWriter, Mode::MultiNodeReaderOnly];
    let refused = validate("v", &shared, &[]).unwrap();
    assert!(
        refused.confirmed.is_none() && refused.message.contains("[1]"),
        "{refused:?}"
    );
    let refused = validate("v", &both, &[("allocationUnitSize", "5000")]).unwrap();
    assert!(
        refused.confirmed.is_none() && refused.message.contains("5000"),
        "{refused:?}"
    );
    let request = ValidateVolumeCapabilitiesRequest {
        volume_id: "v".to_owned(),
        volume_capabilities: vec![VolumeCapability {
            access_type: Some(AccessType::Mount(MountVolume {
                fs_type: "refs".to_owned(),
                ..Default::default()
            })),
            ..capability(Mode::SingleNodeWriter)
        }],
        parameters: map(&[("fsType", "ntfs")]),
        ..Default::default()
    };
    let validated = rig
        .plugin
        .validate_volume_capabilities(Request::new(request));
    let refused = rig.call(validated).unwrap();
    assert!(
        refused.confirmed.is_none() && refused.message.contains("fs_type"),
        "{refused:?}"
    );
    // The field that is wrong is named, and not the one whose keys it shares.
    let refused = validate("v", &both, &[("tier", "fast")]).unwrap();
    assert!(
        refused.confirmed.is_none() && refused.message.contains("field volume_context.tier"),
        "{refused:?}"
    );
    let request = ValidateVolumeCapabilitiesRequest {
        volume_id: "v".to_owned(),
        volume_capabilities: vec![capability(Mode::SingleNodeWriter)],
        parameters: map(&[("tier", "fast")]),
        ..Default::default()
    };
    let validated = rig
        .plugin
        .validate_volume_capabilities(Request::new(request));
    let refused = rig.call(validated).unwrap();
    assert!(
        refused.message.contains("field parameters.tier"),
        "{refused:?}"
    );
    assert_eq!(
        validate("w", &both, &[]).unwrap_err().code(),
        Code::NotFound
    );
    assert_eq!(
        validate("v", &[], &[]).unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(
        validate("", &both, &[]).unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[test]
fn a_volume_tells_where_it_is_in_use() {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    let get = |volume_id: &str| {
        let volume_id = volume_id.to_owned();
        let request = Request::new(ControllerGetVolumeRequest { volume_id });
        rig.call(rig.plugin.controller_get_volume(request))
    };
    assert!(
        get("v")
            .unwrap()
            .status
            .unwrap()
            .published_node_ids
            .is_empty()
    );
    rig.stage("v").unwrap();
    assert_eq!(
        get("v").unwrap().status.unwrap().published_node_ids,
        ["node-1"]
    );
    assert_eq!(get("v").unwrap().volume.unwrap().capacity_bytes, GIB);
    assert_eq!(get("w").unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_file_in_the_pool_that_the_driver_did_not_make_stays() {
    let rig = Rig::new();
    rig.make_directory(POOL);
    let others = [
        "mine.new.vhdx",
        "My File.unfinished.vhdx",
        ".unfinished.vhdx",
    ];
    for other in others {
        rig.write(&format!(r"{POOL}\{other}"), "precious");
    }
    rig.create("v", GIB).unwrap();
    rig.delete("v").unwrap();
    for other in others {
        assert_eq!(rig.read(&format!(r"{POOL}\{other}")), "precious");
    }
}

#[test]
fn a_whole_drive_is_no_pool() {
    let process = SimNode::builder().build().process();
    let config = LocalConfig::new(path(r"C:\"), "node-1");
    let error = LocalDriver::new(process.host(), config).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("field pool"), "{error}");
}

#[test]
fn a_creation_that_was_cut_off_leaves_nothing_behind() {
    let rig = Rig::new();
    rig.create("other", 64 * MIB).unwrap();
    rig.node.inject(Fault::on("rename").nth(1).win32(5));
    assert_eq!(
        rig.create("v", GIB).unwrap_err().code(),
        Code::PermissionDenied
    );
    assert!(rig.exists(r"C:\csi\pool\v.unfinished.vhdx"));
    // Whichever volume is made next, and also when this one is deleted.
    rig.create("next", 64 * MIB).unwrap();
    assert!(!rig.exists(r"C:\csi\pool\v.unfinished.vhdx"));
    let left = CreateVirtualDisk {
        at: At::path(&path(r"C:\csi\pool\v.unfinished.vhdx")),
        size: 64 << 20,
    };
    rig.host()
        .os()
        .create_virtual_disk(&left, Deadline::Never)
        .unwrap();
    rig.delete("v").unwrap();
    assert!(!rig.exists(r"C:\csi\pool\v.unfinished.vhdx"));
}
