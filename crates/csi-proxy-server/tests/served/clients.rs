//! Clients that behave badly, and many at once: the server serves on.

use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use csi_proxy_server::{Limits, Settings};
use csi_proxy_sim::{Fault, Latency, SimClock, SimNode};
use serde_json::json;
use tokio::task::JoinSet;
use tonic::Code;

use crate::harness::{Caller, KUBELET, Served, find, settings};
use crate::wire;

/// A node on which waiting takes real time.
fn slow_node() -> SimNode {
    SimNode::builder().clock(SimClock::real(1)).build()
}

fn node() -> SimNode {
    SimNode::builder().latency(Latency::NONE).build()
}

async fn serves(served: &Served) {
    let request = json!({ "path": format!(r"{KUBELET}\x") });
    let answer = served.call("filesystem v1 PathExists", request).await;
    assert_eq!(answer.expect("it serves"), json!({}));
}

fn endpoint(served: &Served) -> PathBuf {
    let (api, _) = find("filesystem v1 PathExists");
    api.endpoint_in(served.directory())
}

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_http_are_answered_with_the_end_of_the_connection() {
    let served = Served::start(node(), settings());
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 4096],
        &[0xff; 4096],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let path = endpoint(&served);
        let garbage = garbage.to_vec();
        let closed = tokio::task::spawn_blocking(move || {
            let mut stream = wire::connect(&path);
            // The server may be gone before all is said.
            drop(stream.write_all(&garbage));
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)
        });
        // An error is an end too.
        drop(closed.await.expect("it ends"));
        serves(&served).await;
    }
}

/// The kinds and streams of the frames that come back, up to one of stream 1.
fn frames(stream: &mut impl Read) -> Vec<(u8, u8)> {
    let mut frames = Vec::new();
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).expect("a frame");
        let [high, middle, low, kind, .., number] = header;
        let size = u32::from_be_bytes([0, high, middle, low]);
        let mut payload = vec![0; size as usize];
        stream.read_exact(&mut payload).expect("its payload");
        frames.push((kind, number));
        if number == 1 {
            return frames;
        }
    }
}

/// The published Go clients write the path of the pipe into `:authority`: as it is in older
/// versions of gRPC, escaped in newer ones.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_name_the_pipe_as_their_authority_are_served() {
    const HEADERS: u8 = 1;
    let served = Served::start(node(), settings());
    for authority in [
        &br"\\.\\pipe\\csi-proxy-filesystem-v1"[..],
        b"%5C%5C.%5Cpipe%5Ccsi-proxy-filesystem-v1",
    ] {
        let text = |text: &[u8]| [&[u8::try_from(text.len()).expect("short")], text].concat();
        let headers = [
            // :method POST and :scheme http of the static table, then texts by its names.
            &b"\x83\x86\x04"[..],
            &text(b"/v1.Filesystem/PathExists"),
            b"\x41",
            &text(authority),
            b"\x0f\x10",
            &text(b"application/grpc"),
            b"\x00",
            &text(b"te"),
            &text(b"trailers"),
        ]
        .concat();
        let request = [
            &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
            // Empty settings; the headers, which end; an empty message, which ends the stream.
            &[0, 0, 0, 4, 0, 0, 0, 0, 0],
            &[
                0,
                0,
                u8::try_from(headers.len()).expect("short"),
                HEADERS,
                4,
                0,
                0,
                0,
                1,
            ],
            &headers,
            &[0, 0, 5, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0],
        ]
        .concat();
        let path = endpoint(&served);
        let answered = tokio::task::spawn_blocking(move || {
            let mut stream = wire::connect(&path);
            stream.write_all(&request).expect("it is said");
            frames(&mut stream)
        });
        let frames = answered.await.expect("it ends");
        assert_eq!(frames.last(), Some(&(HEADERS, 1)), "{frames:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_connections_that_say_nothing_hold_up_nobody_and_are_closed() {
    let limits = Limits {
        first_words: Duration::from_secs(2),
        ..Limits::default()
    };
    let served = Served::start(
        node(),
        Settings {
            limits,
            ..settings()
        },
    );
    let path = endpoint(&served);
    let silent = tokio::task::spawn_blocking(move || {
        let open = (0..1000).map(|_| wire::connect(&path));
        open.collect::<Vec<_>>()
    });
    let silent = silent.await.expect("a thousand connections");
    serves(&served).await;
    let closed = tokio::task::spawn_blocking(move || {
        for mut stream in silent {
            // Returns once it is closed.
            drop(stream.read_to_end(&mut Vec::new()));
        }
    });
    closed.await.expect("all are closed");
    serves(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_client_was_killed_is_done_to_its_end() {
    let served = Served::start(slow_node(), settings());
    served
        .node
        .inject(Fault::on("create_directories").stalls(Duration::from_millis(300)));
    let (api, method) = find("filesystem v1 Mkdir");
    let mut caller = served.connect(api).await;
    let path = format!(r"{KUBELET}\x");
    let request = json!({ "path": path });
    let call = tokio::spawn(async move { caller.call(method, request).await });
    until("the call is on the node", || served.node.counts().os > 0).await;
    call.abort();
    drop(call.await);
    serves_and_has(&served, &path).await;
    let text = served.metrics.text();
    let cancelled = r#"grpc_method="Mkdir",grpc_code="Canceled"} 1"#;
    assert!(text.contains(cancelled), "{text}");
}

async fn serves_and_has(served: &Served, path: &str) {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let request = json!({ "path": path });
        let answer = served.call("filesystem v1 PathExists", request).await;
        if answer.expect("it serves") == json!({ "exists": true }) {
            return;
        }
        assert!(Instant::now() < limit, "{path} is made");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_call_is_answered_before_the_server_ends() {
    let served = Served::start(slow_node(), settings());
    served
        .node
        .inject(Fault::on("create_directories").stalls(Duration::from_millis(300)));
    let (api, method) = find("filesystem v1 Mkdir");
    let mut caller = served.connect(api).await;
    let request = json!({ "path": format!(r"{KUBELET}\x") });
    let call = tokio::spawn(async move { caller.call(method, request).await });
    let node = served.node.clone();
    until("the call is on the node", || node.counts().os > 0).await;
    served.stop().await.expect("a clean end");
    call.await
        .expect("no panic")
        .expect("the answer of the call");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_limit_wait_and_beyond_the_queue_are_refused() {
    let limits = Limits {
        running: 1,
        waiting: 2,
        per_connection: 8,
        ..Limits::default()
    };
    let served = Served::start(
        slow_node(),
        Settings {
            limits,
            ..settings()
        },
    );
    let stall = Duration::from_millis(500);
    served.node.inject(Fault::on("stat").stalls(stall));
    let (api, method) = find("filesystem v1 PathExists");
    let caller = served.connect(api).await;
    let call = |caller: &Caller| {
        let mut caller = caller.clone();
        let request = json!({ "path": KUBELET });
        async move { caller.call(method, request).await }
    };
    let mut calls = JoinSet::new();
    calls.spawn(call(&caller));
    until("the first one runs", || served.node.counts().os > 0).await;
    for _ in 0..4 {
        calls.spawn(call(&caller));
    }
    let answers = calls.join_all().await;
    let refused: Vec<_> = answers
        .iter()
        .filter_map(|answer| answer.as_ref().err())
        .collect();
    assert_eq!(refused.len(), 2, "{answers:?}");
    for status in refused {
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    }
    serves(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_takes_no_more_than_its_share() {
    let limits = Limits {
        running: 3,
        per_connection: 2,
        ..Limits::default()
    };
    let served = Served::start(
        slow_node(),
        Settings {
            limits,
            ..settings()
        },
    );
    served.node.inject(
        Fault::on("create_directories")
            .times(2)
            .stalls(Duration::from_millis(500)),
    );
    let (api, method) = find("filesystem v1 Mkdir");
    let mut flood = served.connect(api).await;
    // A client that has not heard of its limit yet goes beyond it and is refused.
    let request = json!({ "path": KUBELET });
    flood.call(method, request).await.expect("the first call");
    let mut calls = JoinSet::new();
    for number in 0..50 {
        let mut caller = flood.clone();
        let request = json!({ "path": format!(r"{KUBELET}\{number}") });
        calls.spawn(async move { caller.call(method, request).await });
    }
    until("two of them run", || served.node.counts().os >= 2).await;
    // The third place is free for others.
    serves(&served).await;
    for answer in calls.join_all().await {
        answer.expect("all of them are done");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_names_a_deadline_hears_from_the_server_in_time() {
    let served = Served::start(slow_node(), settings());
    served
        .node
        .inject(Fault::on("stat").stalls(Duration::from_secs(30)));
    let (api, method) = find("filesystem v1 PathExists");
    let mut caller = served.connect(api).await;
    let request = json!({ "path": KUBELET });
    let answer = caller.call_within(Duration::from_millis(200), method, request);
    let error = answer.await.expect_err("it takes half a minute");
    // Which of the two clocks, the client's or the server's, is first does not matter.
    let codes = [Code::DeadlineExceeded, Code::Cancelled];
    assert!(codes.contains(&error.code()), "{error:?}");
    served.node.clear_faults();
    serves(&served).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_more_than_4_mb_is_refused() {
    let served = Served::start(node(), settings());
    let request = json!({ "path": "x".repeat((4 << 20) + 1) });
    let error = served.call("filesystem v1 Mkdir", request).await;
    assert_eq!(error.expect_err("too long").code(), Code::OutOfRange);
    // One that is just short enough is read.
    let request = json!({ "path": "x".repeat((4 << 20) - 100) });
    let error = served.call("filesystem v1 Mkdir", request).await;
    assert_eq!(error.expect_err("no path").code(), Code::InvalidArgument);
}

/// 50 clients, each of one version, on one server: 5,000 calls.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_clients_at_once_are_served_without_an_error() {
    let served = Served::start(crate::methods::node(), settings());
    let mut clients = JoinSet::new();
    let started = Instant::now();
    for number in 0..50 {
        let (method, request) = match number % 5 {
            0 => ("filesystem v1 PathExists", json!({ "path": KUBELET })),
            1 => (
                "filesystem v2alpha1 Mkdir",
                json!({ "path": format!(r"{KUBELET}\{number}") }),
            ),
            2 => ("disk v1 ListDiskLocations", json!({})),
            3 => ("system v1alpha1 GetService", json!({ "name": "base" })),
            _ => ("volume v1 ListVolumesOnDisk", json!({ "disk_number": 3 })),
        };
        let (api, method) = find(method);
        let mut caller = served.connect(api).await;
        clients.spawn(async move {
            let mut times = Vec::new();
            for _ in 0..100 {
                let started = Instant::now();
                caller
                    .call(method, request.clone())
                    .await
                    .expect(method.path);
                times.push(started.elapsed());
            }
            times
        });
    }
    let mut times: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    let all = started.elapsed();
    times.sort();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{} calls in {all:?}: median {median:?}, longest {longest:?}",
        times.len()
    );
    assert_eq!(times.len(), 5000);
    served.stop().await.expect("a clean end");
}
