//! Unix sockets alone.

use std::os::unix::fs::PermissionsExt as _;

use csi_proxy_api::API;
use csi_proxy_sim::SimNode;
use serde_json::json;

use crate::harness::{KUBELET, Served, find, settings};

fn node() -> SimNode {
    crate::methods::node()
}

#[tokio::test]
async fn sockets_are_for_this_user_alone() {
    let served = Served::start(node(), settings());
    for api in &API {
        let socket = api.endpoint_in(served.directory());
        let mode = socket.metadata().expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", socket.display());
    }
    let mode = served
        .directory()
        .metadata()
        .expect("a directory")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn a_socket_that_was_left_behind_is_replaced() {
    let first = Served::start(node(), settings());
    let (api, method) = find("filesystem v1 PathExists");
    let socket = api.endpoint_in(first.directory());
    first.stop_without_cleaning().await;
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("the name is free"));
    assert!(socket.exists(), "a socket without a program");
    let directory = socket.parent().expect("a directory").to_owned();
    let served = Served::start_in(directory, node(), settings());
    let mut caller = served.connect(api).await;
    let answer = caller.call(method, json!({ "path": KUBELET })).await;
    assert_eq!(answer.expect("it serves"), json!({ "exists": true }));
}
