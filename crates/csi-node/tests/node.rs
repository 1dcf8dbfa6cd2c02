//! Staging and publishing volumes with the driver `local`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{GIB, POOL, Rig, STAGING, TARGET, parent, path, publish, stage};
use csi_node::proto::node_server::Node as _;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::proto::*;
use csi_proxy::clock::Deadline;
use csi_proxy::os::{At, CreateLink, SetMountPoint};
use tonic::{Code, Request};

/// A rig with the volume `v`.
fn with_volume() -> Rig {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig
}

fn link(rig: &Rig, at: &str, target: &str) {
    let request = CreateLink {
        at: At::path(&path(at)),
        target: target.to_owned(),
    };
    rig.host()
        .os()
        .create_link(&request, Deadline::Never)
        .unwrap();
}

fn read_only(request: NodePublishVolumeRequest) -> NodePublishVolumeRequest {
    NodePublishVolumeRequest {
        readonly: true,
        volume_capability: Some(common::capability(Mode::SingleNodeReaderOnly)),
        ..request
    }
}

#[test]
fn the_life_of_a_volume_leaves_only_its_file() {
    let rig = with_volume();
    let file = format!(r"{TARGET}\dir\file.txt");
    for round in ["first", "second"] {
        rig.stage("v").unwrap();
        rig.publish("v").unwrap();
        if round == "first" {
            rig.make_directory(parent(&file));
            rig.write(&file, "content");
        }
        assert_eq!(rig.read(&file), "content");
        rig.unpublish("v").unwrap();
        rig.unstage("v").unwrap();
        assert!(!rig.exists(TARGET));
        assert!(!rig.exists(&format!(r"{STAGING}\dir")));
    }
    assert_eq!(
        rig.tree(POOL),
        [r"C:\csi\pool\state\", r"C:\csi\pool\v.vhdx"]
    );
    rig.delete("v").unwrap();
    assert_eq!(rig.tree(POOL), [r"C:\csi\pool\state\"]);
}

#[test]
fn every_call_again_changes_nothing() {
    let rig = with_volume();
    let twice = |call: &dyn Fn()| {
        call();
        let before = rig.node.snapshot();
        call();
        rig.assert_unchanged(&before);
    };
    twice(&|| rig.stage("v").unwrap());
    twice(&|| rig.publish("v").unwrap());
    twice(&|| assert_eq!(rig.node_expand("v", TARGET, GIB).unwrap(), GIB));
    twice(&|| rig.unpublish("v").unwrap());
    twice(&|| rig.unstage("v").unwrap());
}

#[test]
fn the_kubelets_spellings_of_a_path_are_one_path() {
    let rig = with_volume();
    let spellings = [
        STAGING.to_owned(),
        STAGING[2..].to_owned(),
        STAGING[2..].replace('\\', "/"),
        STAGING.replace('\\', "/"),
        format!("c{}", &STAGING[1..]),
        format!(r"\\?\{STAGING}"),
    ];
    for spelling in &spellings {
        rig.stage_with(stage("v", spelling, Mode::SingleNodeWriter))
            .unwrap();
        rig.publish_with(publish("v", spelling, TARGET)).unwrap();
    }
    assert_eq!(rig.tree(parent(TARGET)), [format!("{TARGET} -> {STAGING}")]);
    rig.unpublish("v").unwrap();
    for spelling in &spellings {
        rig.unstage_at("v", spelling).unwrap();
    }
}

#[test]
fn a_volume_that_does_not_exist_is_not_found() {
    let rig = Rig::new();
    for id in ["v", "No Id", "a'b", r"..\v"] {
        assert_eq!(rig.stage(id).unwrap_err().code(), Code::NotFound, "{id}");
        assert_eq!(rig.publish(id).unwrap_err().code(), Code::NotFound, "{id}");
        assert_eq!(
            rig.stats(id, STAGING).unwrap_err().code(),
            Code::NotFound,
            "{id}"
        );
        let error = rig.node_expand(id, STAGING, GIB).unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{id}");
        rig.unpublish(id).unwrap();
        rig.unstage(id).unwrap();
    }
}

#[test]
fn missing_fields_are_named() {
    let rig = with_volume();
    let before = rig.node.snapshot();
    let stage = || stage("v", STAGING, Mode::SingleNodeWriter);
    for (field, request) in [
        (
            "volume_id",
            NodeStageVolumeRequest {
                volume_id: String::new(),
                ..stage()
            },
        ),
        (
            "staging_target_path",
            NodeStageVolumeRequest {
                staging_target_path: String::new(),
                ..stage()
            },
        ),
        (
            "volume_capability",
            NodeStageVolumeRequest {
                volume_capability: None,
                ..stage()
            },
        ),
    ] {
        let error = rig.stage_with(request).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(field), "{}", error.message());
    }
    let publish = || publish("v", STAGING, TARGET);
    for (field, code, request) in [
        (
            "volume_id",
            Code::InvalidArgument,
            NodePublishVolumeRequest {
                volume_id: String::new(),
                ..publish()
            },
        ),
        (
            "target_path",
            Code::InvalidArgument,
            NodePublishVolumeRequest {
                target_path: String::new(),
                ..publish()
            },
        ),
        (
            "volume_capability",
            Code::InvalidArgument,
            NodePublishVolumeRequest {
                volume_capability: None,
                ..publish()
            },
        ),
        (
            "staging_target_path",
            Code::FailedPrecondition,
            NodePublishVolumeRequest {
                staging_target_path: String::new(),
                ..publish()
            },
        ),
    ] {
        let error = rig.publish_with(request).unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.message().contains(field), "{}", error.message());
    }
    for answer in [
        rig.unstage_at("", STAGING),
        rig.unstage_at("v", ""),
        rig.unpublish_at("", TARGET),
        rig.unpublish_at("v", ""),
        rig.stats("", STAGING).map(drop),
        rig.stats("v", "").map(drop),
        rig.node_expand("", STAGING, GIB).map(drop),
        rig.node_expand("v", "", GIB).map(drop),
    ] {
        assert_eq!(answer.unwrap_err().code(), Code::InvalidArgument);
    }
    rig.assert_unchanged(&before);
}

#[test]
fn an_unknown_key_of_the_volume_context_is_named_as_such() {
    let rig = with_volume();
    let request = NodeStageVolumeRequest {
        volume_context: common::map(&[("zz", "1")]),
        ..stage("v", STAGING, Mode::SingleNodeWriter)
    };
    let error = rig.stage_with(request).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let named = error.message().contains("field volume_context.zz");
    assert!(named, "{error:?}");
}

#[test]
fn what_is_not_staged_cannot_be_published() {
    let rig = with_volume();
    assert_eq!(
        rig.publish("v").unwrap_err().code(),
        Code::FailedPrecondition
    );
    rig.create("w", GIB).unwrap();
    rig.stage("w").unwrap();
    let error = rig.publish("v").unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(!rig.exists(TARGET));
}

#[test]
fn a_volume_is_published_to_several_pods() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    let second = TARGET.replace(r"\p\", r"\q\");
    rig.publish("v").unwrap();
    rig.publish_with(publish("v", STAGING, &second)).unwrap();
    rig.write(&format!(r"{TARGET}\file"), "shared");
    assert_eq!(rig.read(&format!(r"{second}\file")), "shared");
    rig.unpublish("v").unwrap();
    assert_eq!(rig.read(&format!(r"{second}\file")), "shared");
}

#[test]
fn something_else_at_the_target_path_stays() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    let others: [&dyn Fn(); 4] = [
        &|| rig.write(TARGET, "a file"),
        &|| {
            rig.make_directory(TARGET);
            rig.write(&format!(r"{TARGET}\file"), "files");
        },
        &|| link(&rig, TARGET, r"C:\elsewhere"),
        &|| {
            rig.make_directory(TARGET);
            let volume = rig
                .host()
                .os()
                .mounted_volume(&At::path(&path(STAGING)), Deadline::Never);
            let request = SetMountPoint {
                at: At::path(&path(TARGET)),
                volume: volume.unwrap(),
            };
            rig.host()
                .os()
                .set_mount_point(&request, Deadline::Never)
                .unwrap();
        },
    ];
    for (index, make) in others.into_iter().enumerate() {
        make();
        let before = rig.node.snapshot();
        let error = rig.publish("v").unwrap_err();
        assert_eq!(error.code(), Code::AlreadyExists, "{index}");
        rig.assert_unchanged(&before);
        // A link goes with unpublish, wherever it leads; what else is there stays.
        let link = index == 2;
        assert_eq!(rig.unpublish("v").is_ok(), link, "{index}");
        assert_eq!(rig.exists(TARGET), !link, "{index}");
        let os = rig.host();
        let at = At::path(&path(TARGET));
        if index == 3 {
            os.os().delete_mount_point(&at, Deadline::Never).unwrap();
        }
        os.os().remove_file(&at, Deadline::Never).ok();
        os.os()
            .remove_file(
                &At::path(&path(&format!(r"{TARGET}\file"))),
                Deadline::Never,
            )
            .ok();
        os.os().remove_directory(&at, Deadline::Never).ok();
        assert!(!rig.exists(TARGET));
    }
}

#[test]
fn a_junction_to_the_staging_path_is_a_publish_like_a_link() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    let target = STAGING.to_owned();
    rig.node.change(|state| {
        let junction = csi_proxy::os::Reparse::Junction { target };
        state.put_link(TARGET, junction).unwrap();
    });
    rig.publish("v").unwrap();
    rig.unpublish("v").unwrap();
    assert!(!rig.exists(TARGET));
    rig.stats("v", STAGING).unwrap();
}

#[test]
fn the_link_of_another_volume_stays() {
    let rig = with_volume();
    rig.create("w", GIB).unwrap();
    rig.stage("v").unwrap();
    rig.publish("v").unwrap();
    let before = rig.node.snapshot();
    for other in ["w", "nonexistent", "No Id"] {
        let error = rig.unpublish(other).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error:?}");
        rig.assert_unchanged(&before);
    }
    rig.unpublish("v").unwrap();
    assert!(!rig.exists(TARGET));
}

#[test]
fn a_dead_link_goes_with_unpublish() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    rig.publish("v").unwrap();
    rig.unstage("v").unwrap();
    rig.unpublish("v").unwrap();
    assert!(!rig.exists(TARGET));
    rig.stage("v").unwrap();
    rig.publish("v").unwrap();
    // The mount point stays, its volume is gone.
    rig.node.reboot();
    let mut rig = rig;
    rig.restart_at_once();
    rig.unpublish("v").unwrap();
    assert!(!rig.exists(TARGET));
}

#[test]
fn unpublish_takes_the_lock_of_the_volume() {
    let rig = with_volume();
    let name = csi_proxy::os::LockName(format!(r"volume:{POOL}\v.vhdx").to_lowercase());
    let other = rig.node.process().host();
    let token = other.os().try_lock(&name, Deadline::Never).unwrap();
    assert_eq!(rig.unpublish("v").unwrap_err().code(), Code::Aborted);
    other.os().unlock(&token.unwrap(), Deadline::Never).unwrap();
    rig.unpublish("v").unwrap();
}

#[test]
fn a_directory_that_no_stage_or_publish_made_stays() {
    let rig = with_volume();
    rig.create("w", GIB).unwrap();
    rig.stage("v").unwrap();
    let in_volume = format!(r"{STAGING}\empty");
    let link_in_volume = format!(r"{STAGING}\link");
    rig.make_directory(&in_volume);
    link(&rig, &link_in_volume, r"C:\elsewhere");
    rig.publish("v").unwrap();
    rig.make_directory(r"C:\Data");
    let before = rig.node.snapshot();
    let published = format!(r"{TARGET}\link");
    for at in [r"C:\Data", &in_volume, &link_in_volume, &published] {
        for id in ["v", "w", "nonexistent"] {
            rig.unpublish_at(id, at).unwrap();
            rig.unstage_at(id, at).unwrap();
            rig.assert_unchanged(&before);
        }
    }
}

#[test]
fn a_path_in_the_pool_or_the_state_directory_is_refused() {
    let rig = with_volume();
    let before = rig.node.snapshot();
    for at in [
        POOL.to_owned(),
        POOL.to_uppercase(),
        format!(r"{POOL}\state"),
        format!(r"{POOL}\mount"),
    ] {
        for answer in [
            rig.stage_with(stage("v", &at, Mode::SingleNodeWriter)),
            rig.publish_with(publish("v", STAGING, &at)),
            rig.unpublish_at("v", &at),
            rig.unstage_at("v", &at),
        ] {
            let error = answer.unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{error:?}");
            assert!(error.message().contains("target_path"), "{error:?}");
        }
    }
    rig.assert_unchanged(&before);
}

#[test]
fn an_empty_directory_at_the_target_path_gives_way() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    rig.make_directory(TARGET);
    rig.publish("v").unwrap();
    assert_eq!(rig.tree(parent(TARGET)), [format!("{TARGET} -> {STAGING}")]);
}

#[test]
fn a_reader_is_given_a_disk_that_cannot_be_written() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    rig.write(&format!(r"{STAGING}\file"), "kept");
    rig.unstage("v").unwrap();
    let reader = || stage("v", STAGING, Mode::SingleNodeReaderOnly);
    rig.stage_with(reader()).unwrap();
    rig.stage_with(reader()).unwrap();
    rig.publish_with(read_only(publish("v", STAGING, TARGET)))
        .unwrap();
    assert_eq!(rig.read(&format!(r"{TARGET}\file")), "kept");
    let write = csi_proxy::os::WriteFile {
        at: At::path(&path(&format!(r"{TARGET}\file"))),
        contents: csi_proxy::os::Bytes(b"changed".to_vec()),
    };
    rig.host()
        .os()
        .write_file(&write, Deadline::Never)
        .unwrap_err();
    // The other use needs another stage.
    assert_eq!(
        rig.publish("v").unwrap_err().code(),
        Code::FailedPrecondition
    );
    assert_eq!(rig.stage("v").unwrap_err().code(), Code::AlreadyExists);
    rig.unpublish("v").unwrap();
    rig.unstage("v").unwrap();
    rig.stage("v").unwrap();
    rig.write(&format!(r"{STAGING}\file"), "changed");
}

#[test]
fn a_read_only_publish_of_a_volume_staged_writable_is_refused() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    for request in [
        NodePublishVolumeRequest {
            readonly: true,
            ..publish("v", STAGING, TARGET)
        },
        read_only(publish("v", STAGING, TARGET)),
    ] {
        let error = rig.publish_with(request).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.message().contains("read"), "{}", error.message());
    }
    let reader = stage("v", STAGING, Mode::SingleNodeReaderOnly);
    assert_eq!(
        rig.stage_with(reader).unwrap_err().code(),
        Code::AlreadyExists
    );
    assert!(!rig.exists(TARGET));
}

#[test]
fn a_volume_that_was_never_written_cannot_be_staged_for_a_reader() {
    let rig = with_volume();
    let before = rig.tree(POOL);
    let reader = stage("v", STAGING, Mode::SingleNodeReaderOnly);
    let error = rig.stage_with(reader).unwrap_err();
    assert_eq!(
        error.code(),
        Code::FailedPrecondition,
        "{}",
        error.message()
    );
    assert_eq!(rig.tree(POOL), before);
    // The refusal left nothing attached.
    rig.delete("v").unwrap();
}

#[test]
fn a_refusal_is_told_although_the_file_cannot_be_detached() {
    let rig = with_volume();
    rig.node
        .inject(csi_proxy_sim::Fault::on("detach_virtual_disk").win32(1117));
    let reader = stage("v", STAGING, Mode::SingleNodeReaderOnly);
    let error = rig.stage_with(reader).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:?}");
    for part in ["stays attached", "1117"] {
        assert!(error.message().contains(part), "{error:?}");
    }
}

#[test]
fn a_volume_staged_with_another_file_system_already_exists() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    let before = rig.node.snapshot();
    let named = |name: &str| NodeStageVolumeRequest {
        volume_context: common::map(&[("fsType", name)]),
        ..stage("v", STAGING, Mode::SingleNodeWriter)
    };
    let error = rig.stage_with(named("refs")).unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists, "{error:?}");
    for part in ["NTFS", "ReFS"] {
        assert!(error.message().contains(part), "{error:?}");
    }
    rig.stage_with(named("ntfs")).unwrap();
    rig.assert_unchanged(&before);
}

#[test]
fn a_volume_that_was_formatted_otherwise_is_not_mounted() {
    for by_parameter in [true, false] {
        let rig = with_volume();
        rig.stage("v").unwrap();
        rig.write(&format!(r"{STAGING}\file"), "kept");
        rig.unstage("v").unwrap();
        let mut request = stage("v", STAGING, Mode::SingleNodeWriter);
        match by_parameter {
            true => request.volume_context = common::map(&[("fsType", "refs")]),
            false => {
                let mount = csi_node::proto::volume_capability::MountVolume {
                    fs_type: "ReFS".to_owned(),
                    ..Default::default()
                };
                let access = volume_capability::AccessType::Mount(mount);
                request.volume_capability.as_mut().unwrap().access_type = Some(access);
            }
        }
        let before = (rig.tree(POOL), rig.tree(r"C:\var"), rig.disks());
        let error = rig.stage_with(request).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error:?}");
        for part in ["NTFS", "ReFS"] {
            assert!(error.message().contains(part), "{error:?}");
        }
        // Nothing is mounted, and nothing stays attached.
        let after = (rig.tree(POOL), rig.tree(r"C:\var"), rig.disks());
        assert_eq!(after, before);
        rig.stage("v").unwrap();
        assert_eq!(rig.read(&format!(r"{STAGING}\file")), "kept");
    }
}

#[test]
fn a_volume_is_staged_at_one_path_at_a_time() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    let other = STAGING.replace(r"\v\", r"\other\");
    let before = rig.node.snapshot();
    let error = rig
        .stage_with(stage("v", &other, Mode::SingleNodeWriter))
        .unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains(STAGING), "{}", error.message());
    // Nor is it taken away from where it is.
    rig.unstage_at("v", &other).unwrap();
    rig.assert_unchanged(&before);
}

#[test]
fn a_path_of_another_volume_is_not_this_ones() {
    let rig = with_volume();
    rig.create("w", GIB).unwrap();
    rig.stage("v").unwrap();
    for at in [STAGING, TARGET, r"C:\", r"C:\var", r"C:\nowhere"] {
        let stats = rig.stats("w", at).unwrap_err();
        assert!(
            matches!(stats.code(), Code::NotFound | Code::InvalidArgument),
            "{at}: {stats:?}"
        );
        let expand = rig.node_expand("w", at, GIB).unwrap_err();
        assert!(
            matches!(expand.code(), Code::NotFound | Code::InvalidArgument),
            "{at}: {expand:?}"
        );
    }
}

#[test]
fn the_node_says_who_it_is() {
    let mut config = common::config();
    config.max_volumes = 12;
    let rig = Rig::with(csi_proxy_sim::SimNode::builder().build(), config);
    let info = rig
        .call(
            rig.plugin
                .node_get_info(Request::new(NodeGetInfoRequest {})),
        )
        .unwrap();
    assert_eq!((&*info.node_id, info.max_volumes_per_node), ("node-1", 12));
    let segments = info.accessible_topology.unwrap().segments;
    assert_eq!(
        segments,
        common::map(&[("topology.local.csi-proxy.io/node", "node-1")])
    );
}

#[test]
fn a_volume_taken_away_under_a_staged_path_is_staged_again() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    rig.write(&format!(r"{STAGING}\file"), "kept");
    let file = At::path(&path(&format!(r"{POOL}\v.vhdx")));
    rig.host()
        .os()
        .detach_virtual_disk(&file, Deadline::Never)
        .unwrap();
    assert_eq!(
        rig.publish("v").unwrap_err().code(),
        Code::FailedPrecondition
    );
    rig.stage("v").unwrap();
    assert_eq!(rig.read(&format!(r"{STAGING}\file")), "kept");
    rig.host()
        .os()
        .detach_virtual_disk(&file, Deadline::Never)
        .unwrap();
    rig.unstage("v").unwrap();
    rig.delete("v").unwrap();
}

#[test]
fn stage_of_a_formatted_volume_needs_few_wmi_calls_and_publish_none() {
    let rig = with_volume();
    rig.stage("v").unwrap();
    rig.unstage("v").unwrap();
    let wmi = |call: &dyn Fn()| {
        rig.node.reset_counts();
        call();
        rig.node.counts().cim
    };
    let stage = wmi(&|| rig.stage("v").unwrap());
    assert!(stage <= 8, "{stage}");
    let again = wmi(&|| rig.stage("v").unwrap());
    assert!(again <= 8, "{again}");
    assert_eq!(wmi(&|| rig.publish("v").unwrap()), 0);
    assert_eq!(wmi(&|| rig.unpublish("v").unwrap()), 0);
}

#[test]
fn the_calls_of_a_stage_do_not_grow_with_the_disks_of_the_node() {
    let calls = |disks: usize| {
        let mut node = csi_proxy_sim::SimNode::builder();
        for _ in 0..disks {
            node = node.disk(csi_proxy_sim::storage::SimDisk::raw(1 << 30));
        }
        let rig = Rig::on(node.build());
        rig.create("v", GIB).unwrap();
        rig.node.reset_counts();
        rig.stage("v").unwrap();
        rig.publish("v").unwrap();
        rig.unpublish("v").unwrap();
        rig.unstage("v").unwrap();
        rig.node.counts().total()
    };
    assert_eq!(calls(1), calls(256));
}

#[test]
fn a_disk_that_wmi_shows_late_is_waited_for() {
    let rig = with_volume();
    let late = csi_proxy_sim::Fault::on("virtual_disk_path").before(|state| {
        let attached = *state.storage.disks.keys().next_back().unwrap();
        let hidden = csi_proxy_sim::storage::Hidden {
            rescans: Some(3),
            seconds: None,
        };
        state.storage.hidden.insert(attached, hidden);
    });
    rig.node.inject(late);
    rig.node.reset_counts();
    rig.stage("v").unwrap();
    let rescans = rig
        .node
        .counts()
        .of("MSFT_StorageSetting.UpdateHostStorageCache");
    assert!(rescans >= 3, "{rescans}");
}

#[test]
fn a_volume_whose_call_was_given_up_stays_locked_until_that_call_ends() {
    let hour = std::time::Duration::from_secs(3600);
    let clock = csi_proxy_sim::SimClock::auto();
    let node = csi_proxy_sim::SimNode::builder().clock(clock).build();
    let rig = Rig::on(node);
    rig.create("v", GIB).unwrap();
    rig.node
        .inject(csi_proxy_sim::Fault::on("MSFT_Disk.Initialize").stalls(hour));
    // The work has 15 minutes.
    let error = rig.stage("v").unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error:?}");
    // Its caller may hear of that before the work itself does; a retry joins the work then.
    let retried = rig.stage("v").unwrap_err();
    let ended = [Code::DeadlineExceeded, Code::Aborted];
    assert!(ended.contains(&retried.code()), "{retried:?}");
    // The plugin itself is kept away, and so is another one, on the disk and on the file.
    let other = Rig::on(rig.node.clone());
    for rig in [&rig, &other] {
        for answer in [
            rig.stage("v"),
            rig.unstage("v"),
            rig.unpublish("v"),
            rig.delete("v"),
            rig.grow("v", 2 * GIB).map(drop),
        ] {
            let status = answer.unwrap_err();
            assert_eq!(status.code(), Code::Aborted, "{status:?}");
        }
    }
    use csi_proxy::clock::Clock as _;
    let late = csi_proxy::clock::Moment(rig.node.clock().now().0 + 2 * hour);
    rig.node.clock().sleep_until(late);
    rig.stage("v").unwrap();
    assert_eq!(rig.node.counts().of("MSFT_Disk.Initialize"), 1);
    rig.unstage("v").unwrap();
    other.delete("v").unwrap();
    assert_eq!(rig.locks(), 0);
}
