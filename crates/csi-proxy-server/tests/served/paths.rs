//! Paths that lead out of the working directories: refused, and nothing is changed.

use csi_proxy::os::Reparse;
use csi_proxy_sim::{Fault, NodeChange, SimNode};
use serde_json::{Value, json};
use tonic::Code;

use crate::harness::{KUBELET, Served, settings};

const VOLUME: &str = r"\\?\Volume{33333333-3333-3333-3333-333333333333}\";

/// Every method that takes a path, with that path.
fn requests(path: &str) -> Vec<(&'static str, Value)> {
    let inside = format!(r"{KUBELET}\directory");
    let free = format!(r"{KUBELET}\free");
    let mut requests = Vec::new();
    for version in ["v1beta2", "v1", "v2alpha1"] {
        let name = |method: &str| format!("filesystem {version} {method}");
        requests.extend([
            (name("PathExists"), json!({ "path": path })),
            (name("Mkdir"), json!({ "path": path })),
            (name("Rmdir"), json!({ "path": path })),
            (name("Rmdir"), json!({ "path": path, "force": true })),
            (name("IsSymlink"), json!({ "path": path })),
            (
                name("CreateSymlink"),
                json!({ "source_path": inside, "target_path": path }),
            ),
            (
                name("CreateSymlink"),
                json!({ "source_path": path, "target_path": free }),
            ),
        ]);
    }
    for version in ["v1alpha1", "v1beta1"] {
        let name = |method: &str| format!("filesystem {version} {method}");
        requests.extend([
            (name("PathExists"), json!({ "path": path })),
            (name("Mkdir"), json!({ "path": path, "context": 1 })),
            (name("Rmdir"), json!({ "path": path, "force": true })),
            (name("IsMountPoint"), json!({ "path": path })),
            (
                name("LinkPath"),
                json!({ "source_path": inside, "target_path": path }),
            ),
            (
                name("LinkPath"),
                json!({ "source_path": path, "target_path": free }),
            ),
        ]);
    }
    let both = json!({ "volume_id": VOLUME, "target_path": path });
    let target = json!({ "target_path": path });
    let mut others = vec![
        ("filesystem v2alpha1 RmdirContents", json!({ "path": path })),
        ("volume v1 MountVolume", both.clone()),
        ("volume v1 UnmountVolume", both),
        ("volume v1 GetVolumeIDFromTargetPath", target.clone()),
        ("volume v2alpha1 GetClosestVolumeIDFromTargetPath", target),
        (
            "volume v1beta2 GetVolumeIDFromMount",
            json!({ "mount": path }),
        ),
        (
            "volume v1beta2 MountVolume",
            json!({ "volume_id": VOLUME, "path": path }),
        ),
        (
            "volume v1beta2 DismountVolume",
            json!({ "volume_id": VOLUME, "path": path }),
        ),
    ];
    let share = json!({
        "remote_path": r"\\files\data",
        "local_path": path,
        "username": r"CORP\ann",
        "password": "hunter2",
    });
    others.extend(
        [
            "smb v1 NewSmbGlobalMapping",
            "smb v1beta1 NewSmbGlobalMapping",
        ]
        .map(|method| (method, share.clone())),
    );
    let requests = requests.into_iter().map(|(method, request)| {
        // Tests may leak.
        let method: &'static str = method.leak();
        (method, request)
    });
    requests.chain(others).collect()
}

fn link(at: &str, target: &str) -> NodeChange {
    NodeChange::MakeLink {
        path: format!(r"{KUBELET}\{at}"),
        target: target.to_owned(),
    }
}

fn node() -> SimNode {
    let node = crate::methods::node();
    node.change(|state| {
        for (at, target) in [
            ("out", r"C:\outside"),
            ("up", r"..\..\..\outside"),
            ("chain", r"C:\var\lib\kubelet\out"),
            ("share", r"\\files\data"),
        ] {
            link(at, target).apply(state).expect("a link");
        }
    });
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_outside_is_refused_by_every_method_and_nothing_is_changed() {
    let served = Served::start(node(), settings());
    let mut calls = 0;
    for (path, code) in [
        // Twins of the working directory.
        (r"C:\var\lib\kubelet-x\y", Code::PermissionDenied),
        (r"C:\var\lib\kubele", Code::PermissionDenied),
        (r"C:\VAR\LIB\KUBELETS", Code::PermissionDenied),
        (r"D:\var\lib\kubelet\x", Code::PermissionDenied),
        (r"C:\outside\secret.txt", Code::PermissionDenied),
        (r"C:\", Code::PermissionDenied),
        // Ways up.
        (r"C:\var\lib\kubelet\..\x", Code::InvalidArgument),
        (
            r"C:\var\lib\kubelet\directory\..\..\..\x",
            Code::InvalidArgument,
        ),
        // Short names.
        (r"C:\var\lib\KUBELE~1\x", Code::PermissionDenied),
        (r"C:\PROGRA~1\x", Code::PermissionDenied),
        // Streams.
        (r"C:\var\lib\kubelet\file.txt:stream", Code::InvalidArgument),
        (
            r"C:\var\lib\kubelet::$INDEX_ALLOCATION",
            Code::InvalidArgument,
        ),
        (r"C:\var\lib\kubelet:x\y", Code::InvalidArgument),
        // Devices.
        (r"C:\var\lib\kubelet\NUL", Code::InvalidArgument),
        (r"C:\var\lib\kubelet\com1.txt", Code::InvalidArgument),
        (r"C:\var\lib\kubelet\CONIN$", Code::InvalidArgument),
        (r"\\?\C:\var\lib\kubelet\x", Code::InvalidArgument),
        (r"\\.\C:\var\lib\kubelet\x", Code::InvalidArgument),
        (r"\??\C:\var\lib\kubelet\x", Code::InvalidArgument),
        (r"\\.\PhysicalDrive0", Code::InvalidArgument),
        (
            r"\\?\GLOBALROOT\Device\HarddiskVolume1\x",
            Code::InvalidArgument,
        ),
        // Names that Windows would change.
        (r"C:\var\lib\kubelet\x.", Code::InvalidArgument),
        (r"C:\var\lib\kubelet \x", Code::InvalidArgument),
        // Other grammars.
        (r"\var\lib\kubelet\x", Code::InvalidArgument),
        ("C:/var/lib/kubelet/x", Code::InvalidArgument),
        (r"C:var\lib\kubelet\x", Code::InvalidArgument),
        (r"\\files\data\x", Code::InvalidArgument),
        // Links in the middle.
        (r"C:\var\lib\kubelet\out\secret.txt", Code::PermissionDenied),
        (r"C:\var\lib\kubelet\out\new", Code::PermissionDenied),
        (r"C:\VAR\lib\kubelet\OUT\secret.txt", Code::PermissionDenied),
        (r"C:\var\lib\kubelet\up\secret.txt", Code::PermissionDenied),
        (
            r"C:\var\lib\kubelet\chain\secret.txt",
            Code::PermissionDenied,
        ),
    ] {
        for (method, request) in requests(path) {
            let before = served.node.snapshot();
            let error = served.call(method, request).await.expect_err(method);
            let shown = format!("{method} {path}: {}", error.message());
            assert_eq!(error.code(), code, "{shown}");
            assert!(served.node.snapshot() == before, "{shown}");
            calls += 1;
        }
    }
    println!("{calls} calls refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_case_of_a_path_does_not_matter() {
    let served = Served::start(node(), settings());
    let request = json!({ "path": r"c:\VAR\Lib\KUBELET\File.TXT" });
    let answer = served.call("filesystem v1 PathExists", request).await;
    assert_eq!(answer.expect("inside"), json!({ "exists": true }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_swapped_in_between_check_and_use_leads_nowhere() {
    let path = format!(r"{KUBELET}\directory\inner");
    for (operation, method, request) in [
        ("stat", "filesystem v1 PathExists", json!({ "path": path })),
        ("stat", "filesystem v1 IsSymlink", json!({ "path": path })),
        (
            "create_directories",
            "filesystem v1 Mkdir",
            json!({ "path": path }),
        ),
        (
            "remove_directory",
            "filesystem v1 Rmdir",
            json!({ "path": path }),
        ),
        (
            "remove_tree",
            "filesystem v1 Rmdir",
            json!({ "path": path, "force": true }),
        ),
        (
            "remove_tree",
            "filesystem v2alpha1 RmdirContents",
            json!({ "path": path }),
        ),
        (
            "create_link",
            "filesystem v1 CreateSymlink",
            json!({ "source_path": KUBELET, "target_path": format!(r"{KUBELET}\directory\new") }),
        ),
        (
            "set_mount_point",
            "volume v1 MountVolume",
            json!({ "volume_id": VOLUME, "target_path": path }),
        ),
    ] {
        let served = Served::start(node(), settings());
        served.node.change(|state| {
            state
                .put_directory(r"C:\outside\inner")
                .expect("a directory");
        });
        let swap = link("directory", r"C:\outside");
        served
            .node
            .inject(Fault::on(operation).before_change(swap.clone()));
        let mut expected = served.node.snapshot();
        let error = served.call(method, request).await.expect_err(method);
        assert_eq!(
            error.code(),
            Code::PermissionDenied,
            "{method}: {}",
            error.message()
        );
        assert_eq!(served.node.faults_left(), 0, "{method} does {operation}");
        swap.apply(&mut expected).expect("a link");
        assert!(
            served.node.snapshot() == expected,
            "{method}: nothing but the link is new"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mount_point_is_not_removed_through_a_link_that_was_swapped_in() {
    let served = Served::start(node(), settings());
    let path = format!(r"{KUBELET}\directory\inner");
    let request = json!({ "volume_id": VOLUME, "target_path": path });
    let mounted = served.call("volume v1 MountVolume", request.clone()).await;
    mounted.expect("an empty directory");
    served.node.change(|state| {
        let volume = VOLUME.parse().expect("a volume");
        let mounted = state.put_link(r"C:\outside\inner", Reparse::MountPoint { volume });
        mounted.expect("the same volume is mounted outside too");
    });
    let swap = link("directory", r"C:\outside");
    let fault = Fault::on("delete_mount_point").before_change(swap.clone());
    served.node.inject(fault);
    let mut expected = served.node.snapshot();
    let error = served.call("volume v1 UnmountVolume", request).await;
    let error = error.expect_err("it leads outside");
    assert_eq!(error.code(), Code::PermissionDenied, "{}", error.message());
    swap.apply(&mut expected).expect("a link");
    assert!(served.node.snapshot() == expected);
}
