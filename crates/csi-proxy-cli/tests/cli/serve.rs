//! `csi-proxy serve`, as an administrator of CSI Proxy 1.x starts it.

use std::path::Path;
use std::time::Duration;

use csi_proxy_api::{API, Connect as _, disk, filesystem, smb};

use crate::program::{Directory, failure, run};
use crate::running::{Node, exists};

const TIMEOUT: Duration = Duration::from_secs(30);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Maps a share that is not there.
pub(crate) fn map_a_share(directory: &Path) -> tonic::Status {
    runtime().block_on(async {
        let client = smb::v1::Client::connect(directory, TIMEOUT).await;
        let mut client = client.expect("it serves");
        let request = smb::v1::NewSmbGlobalMappingRequest {
            remote_path: r"\\files\data".to_owned(),
            username: "ann".to_owned(),
            password: "hunter2".to_owned(),
            ..Default::default()
        };
        let answer = client.new_smb_global_mapping(request).await;
        answer.expect_err("there is no such server")
    })
}

#[test]
fn flags_of_csi_proxy_start_it_and_sigterm_ends_it() {
    let directory = Directory::new("serve");
    let flags = [
        r"-kubelet-path=D:\kubelet",
        "-working-dir",
        r"C:\data",
        "-v=2",
    ];
    let server = Node::serve(&directory, &flags);
    let sockets = directory.join("");
    for api in &API {
        assert!(exists(&api.endpoint_in(&sockets)), "{}", api.service);
    }
    runtime().block_on(async {
        let client = filesystem::v1::Client::connect(&sockets, TIMEOUT).await;
        let mut client = client.expect("it serves");
        for (path, inside) in [(r"C:\data\x", true), (r"C:\var\lib\kubelet\x", false)] {
            let path = path.to_owned();
            let request = filesystem::v1::PathExistsRequest { path };
            assert_eq!(client.path_exists(request).await.is_ok(), inside);
        }
    });
    let (code, told) = server.terminate();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("SIGTERM"), "{told}");
    assert!(!exists(&API[0].endpoint_in(&sockets)));
}

#[test]
fn every_call_that_may_change_something_is_in_the_log_without_secrets() {
    let directory = Directory::new("audit");
    let log = directory.join("log");
    let log_file = format!("-log_file={}", log.display());
    let flags = ["-logtostderr=false", &log_file];
    let server = Node::serve(&directory, &flags);
    map_a_share(&directory.join(""));
    let (code, told) = server.terminate();
    assert_eq!(
        (code, told.as_str()),
        (Some(0), ""),
        "the log is in the file"
    );
    let log = std::fs::read_to_string(log).expect("a log");
    let line = log
        .lines()
        .find(|line| line.contains("NewSmbGlobalMapping"));
    let line = line.expect("a line for the call");
    let process = format!("process={}", std::process::id());
    for part in [
        "group=\"smb\"",
        "version=\"v1\"",
        r"files\\\\data",
        "ann",
        "duration_ms=",
        &process,
        "image=",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!log.contains("hunter2"), "{log}");
}

#[test]
fn levels_of_klog_tell_more() {
    for (flag, questions, round_trips) in [
        ("-v=3", false, false),
        ("-v=4", true, false),
        ("-v=6", true, true),
    ] {
        let directory = Directory::new("levels");
        let server = Node::serve(&directory, &[flag]);
        runtime().block_on(async {
            let client = disk::v1::Client::connect(&directory.join(""), TIMEOUT).await;
            let mut client = client.expect("it serves");
            let request = disk::v1::ListDiskLocationsRequest {};
            client.list_disk_locations(request).await.expect("disks");
        });
        let (code, told) = server.terminate();
        assert_eq!(code, Some(0), "{told}");
        assert_eq!(told.contains("ListDiskLocations"), questions, "{told}");
        assert_eq!(told.contains("query MSFT_Disk"), round_trips, "{told}");
    }
}

#[test]
fn a_call_that_does_not_end_in_time_does_not_hold_up_the_end() {
    let directory = Directory::new("grace");
    let server = Node::serve(&directory, &["-v=2", "--shutdown-grace=1"]);
    server.sim_ok(&["fault", "create_directories=stalls:600"]);
    let sockets = directory.join("");
    let (code, told) = runtime().block_on(async {
        let client = filesystem::v1::Client::connect(&sockets, TIMEOUT).await;
        let mut client = client.expect("it serves");
        let path = r"C:\var\lib\kubelet\x".to_owned();
        let call =
            tokio::spawn(async move { client.mkdir(filesystem::v1::MkdirRequest { path }).await });
        while !server.sim_ok(&["counts"]).contains("create_directories") {
            tokio::task::yield_now().await;
        }
        let ended = server.terminate();
        assert!(call.await.expect("no panic").is_err());
        ended
    });
    assert_eq!(code, Some(1), "{told}");
    let line = "1 calls were still running after 1s";
    assert!(told.contains(line), "{told}");
}

#[test]
fn flags_without_an_effect_are_told() {
    let directory = Directory::new("ignored");
    let server = Node::serve(
        &directory,
        &["-kubelet-path=C:\\x", "-skip_headers", "-vmodule=x=1"],
    );
    let (code, told) = server.terminate();
    assert_eq!(code, Some(0), "{told}");
    for flag in ["-skip_headers has no effect", "-vmodule has no effect"] {
        assert!(told.contains(flag), "{told}");
    }
}

#[test]
fn what_cannot_be_served_is_one_line() {
    let line = failure(&run(&["serve"]));
    assert!(line.contains("add --simulate"), "{line}");
    let line = failure(&run(&["serve", "--simulate", "--metrics-bind-address=x"]));
    assert!(line.contains("expected 127.0.0.1:9090"), "{line}");
    let line = failure(&run(&["service", "status"]));
    assert!(line.contains("on Windows only"), "{line}");
}
