//! The endpoint from outside.

use std::time::{Duration, Instant};

use csi_proxy::clock::{Clock, Deadline};
use csi_proxy::os::{At, LockName};
use csi_proxy::port::PortError;
use csi_proxy::{HostPath, Secret};

use super::*;
use crate::storage::SimDisk;
use crate::{Counts, SimClock, SimNode, State};

const NOW: Deadline = Deadline::Never;

fn tcp(node: &SimNode) -> (ControlServer, ControlClient) {
    let server = ControlServer::start(node.clone(), "tcp://127.0.0.1:0").unwrap();
    let client = ControlClient::connect(&server.uri()).unwrap();
    (server, client)
}

fn at(path: &str) -> At {
    At::path(&HostPath::from_kubelet(path).unwrap())
}

#[test]
fn paths_are_made_checked_and_removed() {
    let node = SimNode::builder().build();
    let (_server, client) = tcp(&node);
    let path = |text: &str| text.to_owned();
    assert_eq!(client.check("/tmp/a").unwrap(), Kind::NotFound);
    let () = client
        .request(&Request::MakeDirectory {
            path: path("/tmp/a"),
        })
        .unwrap();
    assert_eq!(client.check(r"C:\TMP\a").unwrap(), Kind::Directory);
    let file = Request::MakeFile {
        path: path("/tmp/a/f"),
        contents: path("text"),
    };
    let () = client.request(&file).unwrap();
    assert_eq!(client.check("/tmp/a/f").unwrap(), Kind::File);
    let dead = crate::NodeChange::MakeLink {
        path: path(r"C:\tmp\dead"),
        target: path(r"C:\nowhere"),
    };
    let () = client.request(&Request::Change(dead)).unwrap();
    assert_eq!(client.check("/tmp/dead").unwrap(), Kind::Other);
    for _ in 0..2 {
        let () = client
            .request(&Request::Remove {
                path: path("/tmp/a"),
            })
            .unwrap();
    }
    assert_eq!(client.check("/tmp/a").unwrap(), Kind::NotFound);
}

#[test]
fn a_wrong_request_is_answered_and_the_connection_stays() {
    let node = SimNode::builder().build();
    let (_server, client) = tcp(&node);
    let wrong = Request::DetachDisk { number: 77 };
    let error = client.request::<()>(&wrong).unwrap_err();
    assert_eq!(error.to_string(), "there is no disk 77");
    let error = client.check("..").unwrap_err();
    assert!(matches!(error, ControlError::Refused(_)), "{error}");
    assert_eq!(client.check("/").unwrap(), Kind::Directory);
}

#[test]
fn a_fault_that_could_never_happen_is_refused() {
    let node = SimNode::builder().build();
    let (_server, client) = tcp(&node);
    for (text, expected) in [
        (
            r#"{"operation": "MSFT_Volum.Format", "effect": {"returns": 43006}}"#,
            "MSFT_Volume.Format",
        ),
        (
            r#"{"operation": "stat", "nth": 0, "effect": {"win32": 5}}"#,
            "nth 0",
        ),
        (
            r#"{"operation": "stat", "times": 0, "effect": {"win32": 5}}"#,
            "times 0",
        ),
    ] {
        let fault = serde_json::from_str(text).unwrap();
        let error = client.request::<()>(&Request::Fault(fault)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let nothing = Request::Fault(Fault::on("stat"));
    let error = client.request::<()>(&nothing).unwrap_err().to_string();
    assert!(error.contains("`nothing`, expected"), "{error}");
    assert_eq!(node.faults_left(), 0);
}

#[test]
fn the_node_is_the_same_from_both_sides() {
    let node = SimNode::builder().build();
    let (_server, client) = tcp(&node);
    let disk = Box::new(SimDisk::ntfs(1 << 30));
    let number: u32 = client.request(&Request::AttachDisk(disk)).unwrap();
    assert_eq!(number, 1);
    let state: State = client.request(&Request::State).unwrap();
    assert_eq!(state, node.snapshot());
    let shown: String = client.request(&Request::Show).unwrap();
    assert_eq!(shown, node.show());
    let counts: Counts = client.request(&Request::Counts).unwrap();
    assert_eq!(counts, node.counts());
}

#[test]
fn the_ports_work_from_another_process() {
    let node = SimNode::builder().disk(SimDisk::raw(1 << 30)).build();
    let (_server, client) = tcp(&node);
    let host = client.host();
    assert!(host.os().create_directories(&at("/tmp/x"), NOW).unwrap());
    let missing = host.os().stat(&at("/nowhere"), NOW);
    assert_eq!(missing, node.process().os().stat(&at("/nowhere"), NOW));
    let query =
        csi_proxy::cim::Query::new(csi_proxy::cim::Namespace::Storage, "MSFT_Disk", &["Number"]);
    let rows = host.cim().query(&query, NOW);
    assert_eq!(rows, node.process().cim().query(&query, NOW));
    assert_eq!(rows.unwrap().len(), 2);
}

#[test]
fn a_connection_is_a_process_and_its_locks_end_with_it() {
    let node = SimNode::builder().build();
    let (server, first) = tcp(&node);
    let second = ControlClient::connect(&server.uri()).unwrap();
    let name = LockName("disk:1".to_owned());
    let lock = |client: &ControlClient| client.host().os().try_lock(&name, NOW).unwrap();
    assert!(lock(&first).is_some());
    assert!(lock(&second).is_none());
    drop(first);
    while lock(&second).is_none() {
        std::thread::yield_now();
    }
}

#[test]
fn calls_of_one_connection_do_not_wait_for_each_other() {
    let node = SimNode::builder().clock(SimClock::manual()).build();
    let (_server, client) = tcp(&node);
    node.inject(Fault::on("create_directories").stalls(Duration::from_secs(60)));
    let slow = {
        let host = client.host();
        std::thread::spawn(move || host.os().create_directories(&at("/tmp/x"), NOW))
    };
    while node.counts().of("create_directories") == 0 {
        std::thread::yield_now();
    }
    assert_eq!(client.check("/tmp/x").unwrap(), Kind::NotFound);
    node.clock().advance(Duration::from_secs(60));
    assert_eq!(slow.join().unwrap(), Ok(true));
}

#[test]
fn deadlines_and_waits_are_of_the_node_clock() {
    let node = SimNode::builder().build();
    let (_server, client) = tcp(&node);
    client.sleep_until(Moment(Duration::from_secs(5)));
    assert_eq!(client.now(), node.clock().now());
    let passed = client.deadline_in(Duration::ZERO);
    let answer = client.host().os().stat(&at("/"), passed);
    assert_eq!(answer, Err(PortError::DeadlineExceeded { running: None }));
}

#[test]
fn a_node_that_is_gone_is_unavailable() {
    let node = SimNode::builder().build();
    let (server, client) = tcp(&node);
    let uri = server.uri();
    assert!(client.is_open());
    drop(server);
    let began = Instant::now();
    while client.is_open() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    let answer = client.host().os().stat(&at("/"), NOW);
    assert!(
        matches!(answer, Err(PortError::Unavailable { .. })),
        "{answer:?}"
    );
    assert!(ControlClient::connect(&uri).is_err());
}

#[test]
fn a_secret_reaches_the_node_and_no_log() {
    let node = SimNode::builder().build();
    let (_server, client) = tcp(&node);
    let invoke = csi_proxy::cim::Invoke::on_class(
        csi_proxy::cim::Namespace::Smb,
        "MSFT_SmbGlobalMapping",
        "Create",
    )
    .with("Credential", Secret::new("user:hunter2"));
    // Whether the node takes it does not matter here.
    let _ = client.host().cim().invoke(&invoke, NOW);
    let log = serde_json::to_string(&node.call_log()).unwrap();
    assert!(
        log.contains("Credential") && !log.contains("hunter2"),
        "{log}"
    );
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    fn place(name: &str) -> PathBuf {
        let name = format!("csi-proxy-sim-{}-{name}.sock", std::process::id());
        std::env::temp_dir().join(name)
    }

    fn start(path: &std::path::Path) -> Result<ControlServer, ControlError> {
        let node = SimNode::builder().build();
        ControlServer::start(node, &format!("unix://{}", path.display()))
    }

    #[test]
    fn only_the_owner_may_open_the_socket_and_it_goes_with_the_server() {
        let path = place("mode");
        let server = start(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let client = ControlClient::connect(&server.uri()).unwrap();
        assert_eq!(client.check("/").unwrap(), Kind::Directory);
        drop(server);
        assert!(!path.exists());
    }

    #[test]
    fn a_server_ends_though_its_socket_was_removed() {
        let path = place("removed");
        let server = start(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (ended, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            drop(server);
            ended.send(())
        });
        assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(()));
    }

    #[test]
    fn c18_a_socket_that_was_left_behind_is_replaced() {
        let path = place("stale");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let server = start(&path).unwrap();
        assert!(ControlClient::connect(&server.uri()).is_ok());
    }

    #[test]
    fn c18_a_socket_in_use_another_file_and_a_missing_directory_are_errors() {
        let path = place("used");
        let server = start(&path).unwrap();
        let reason = |path: &std::path::Path| {
            let error = start(path).err().unwrap();
            std::error::Error::source(&error).unwrap().to_string()
        };
        assert!(reason(&path).contains("another process"));
        drop(server);
        std::fs::write(&path, "text").unwrap();
        assert!(reason(&path).contains("no socket"));
        std::fs::remove_file(&path).unwrap();
        assert!(start(std::path::Path::new("/nowhere/at/all.sock")).is_err());
    }
}
