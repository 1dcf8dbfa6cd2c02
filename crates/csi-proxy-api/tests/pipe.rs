//! Clients over real named pipes. No CSI Proxy may run on the machine: it has these names.
#![cfg(windows)]

use std::error::Error as _;
use std::fs;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use csi_proxy_api::{Connect, disk, local_directory, volume};
use tokio::io::AsyncReadExt;
use tokio::net::windows::named_pipe::ServerOptions;

const TIMEOUT: Duration = Duration::from_secs(30);

/// What an HTTP/2 client says first, RFC 9113 section 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[test]
fn the_pipe_of_a_version_lies_in_the_local_directory() {
    let api = disk::v1::Client::API;
    let endpoint = api.endpoint_in(local_directory());
    assert_eq!(endpoint.to_str(), Some(api.pipe().as_str()));
}

#[tokio::test]
async fn a_pipe_that_is_not_there_is_an_error_at_once() {
    let error = disk::v1::Client::connect(local_directory(), TIMEOUT)
        .await
        .expect_err("no server");
    assert_eq!(
        error.to_string(),
        r"cannot connect to \\.\pipe\csi-proxy-disk-v1"
    );
    assert!(error.source().is_some());
}

#[tokio::test]
async fn a_client_waits_for_a_busy_pipe() {
    let pipe = volume::v1::Client::API.pipe();
    let _taken = ServerOptions::new()
        .first_pipe_instance(true)
        .create(&pipe)
        .expect("the first instance");
    let _other = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&pipe)
        .expect("another client");

    let mut client = pin!(volume::v1::Client::connect(local_directory(), TIMEOUT));
    let waits = poll_fn(|context| Poll::Ready(client.as_mut().poll(context).is_pending()));
    assert!(waits.await, "every instance is taken");

    let mut server = ServerOptions::new().create(&pipe).expect("an instance");
    let (client, preface) = tokio::join!(client, async {
        server.connect().await.expect("a client");
        let mut preface = [0; PREFACE.len()];
        server.read_exact(&mut preface).await.expect("the preface");
        preface
    });
    client.expect("connect");
    assert_eq!(preface, PREFACE);
}
