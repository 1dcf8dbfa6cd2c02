//! Named pipes alone. Under Wine they are Wine's.

use std::error::Error as _;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Barrier};
use std::thread;

use csi_proxy_api::{API, Connect as _, filesystem};
use csi_proxy_server::{Metrics, Place, Server};
use csi_proxy_sim::SimNode;
use tokio::net::windows::named_pipe::ServerOptions;

use crate::harness::{KUBELET, Served, TIMEOUT, find, settings};
use crate::wire;

/// What an HTTP/2 client says first: RFC 9113, section 3.4, and empty settings.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn node() -> SimNode {
    crate::methods::node()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_has_its_pipe() {
    let served = Served::start(node(), settings());
    let directory = served.directory().to_owned();
    let answered = tokio::task::spawn_blocking(move || {
        let answers = API.iter().map(|api| {
            let mut pipe = wire::open(&api.endpoint_in(&directory)).expect(api.service);
            pipe.write_all(HELLO).expect(api.service);
            let mut settings = [0; 9];
            pipe.read_exact(&mut settings).expect(api.service);
            settings[3]
        });
        answers.collect::<Vec<_>>()
    });
    assert_eq!(answered.await.expect("all answer"), [4; 23], "settings");
}

/// C18: another program has the name.
#[tokio::test]
async fn c18_a_pipe_that_another_program_has_is_an_error_that_says_what_to_do() {
    let directory = csi_proxy_api::local_directory().join(format!("c18-{}", std::process::id()));
    let (api, _) = find("volume v1 ListVolumesOnDisk");
    let theirs = api.endpoint_in(&directory);
    let _theirs = ServerOptions::new().create(&theirs).expect("a pipe");
    let place = Place {
        directory,
        pipe_sddl: None,
    };
    let server = Server::bind(node().process().host(), settings(), &place, &Metrics::new());
    let error = server.err().expect("the name is taken");
    assert_eq!(
        error.to_string(),
        format!("cannot serve volume v1 at {}", theirs.display())
    );
    let reason = error.source().expect("a reason").to_string();
    assert_eq!(reason, "another program serves there; stop it first");
}

/// Each connects once and does not wait for a busy pipe.
#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_clients_that_connect_in_the_same_instant_get_in() {
    let served = Served::start(node(), settings());
    let (api, _) = find("filesystem v1 PathExists");
    let pipe = api.endpoint_in(served.directory());
    let answered = tokio::task::spawn_blocking(move || {
        let together = Arc::new(Barrier::new(32));
        let clients: Vec<_> = (0..32)
            .map(|_| {
                let (pipe, together) = (pipe.clone(), together.clone());
                thread::spawn(move || {
                    together.wait();
                    let mut pipe = wire::open(&pipe)?;
                    pipe.write_all(HELLO)?;
                    let mut settings = [0; 9];
                    pipe.read_exact(&mut settings)?;
                    std::io::Result::Ok(settings[3])
                })
            })
            .collect();
        let answers = clients.into_iter().map(|client| client.join());
        answers
            .map(|answer| answer.expect("no panic").expect("it gets in"))
            .collect::<Vec<_>>()
    });
    assert_eq!(answered.await.expect("no panic"), [4; 32]);
}

/// The pipe is busy for some of them for a moment, and our client waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_of_our_clients_at_once_get_in() {
    let served = Served::start(node(), settings());
    let clients = (0..100).map(|_| {
        let directory = served.directory().to_owned();
        tokio::spawn(async move {
            let client = filesystem::v1::Client::connect(&directory, TIMEOUT).await;
            let path = KUBELET.to_owned();
            let request = filesystem::v1::PathExistsRequest { path };
            let answer = client.expect("it gets in").path_exists(request).await;
            answer.expect("it is answered").into_inner().exists
        })
    });
    for client in clients.collect::<Vec<_>>() {
        assert!(client.await.expect("no panic"));
    }
}

/// A client that is gone before it is looked at holds up nobody.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_go_at_once_hold_up_nobody() {
    let served = Served::start(node(), settings());
    let (api, method) = find("filesystem v1 PathExists");
    let pipe = api.endpoint_in(served.directory());
    let gone = tokio::task::spawn_blocking(move || {
        for _ in 0..500 {
            drop(wire::connect(&pipe));
        }
    });
    gone.await.expect("no panic");
    let request = serde_json::json!({ "path": KUBELET });
    let answer = served.connect(api).await.call(method, request).await;
    answer.expect("it serves");
}
