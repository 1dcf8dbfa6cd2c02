//! What a server serves, as its settings say.

use csi_proxy_api::{API, Group};
use csi_proxy_server::{Place, Server, Settings, serve_http};
use csi_proxy_sim::SimNode;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::harness::{Served, TIMEOUT, find, settings};
use crate::methods::node;
use crate::wire;

#[tokio::test]
async fn only_the_groups_that_were_asked_for_are_served() {
    let groups = vec![Group::Smb, Group::System];
    let served = Served::start(
        node(),
        Settings {
            groups,
            ..settings()
        },
    );
    for api in &API {
        let served = wire::open(&api.endpoint_in(served.directory())).is_ok();
        let wanted = matches!(api.group, Group::Smb | Group::System);
        assert_eq!(served, wanted, "{}", api.service);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_answers_questions_and_changes_nothing() {
    let served = Served::start(
        node(),
        Settings {
            read_only: true,
            ..settings()
        },
    );
    let before = served.node.snapshot();
    for api in &API {
        let mut caller = served.connect(api).await;
        for method in api.methods {
            let answer = caller.call(method, json!({})).await;
            let refused = answer.is_err_and(|status| {
                status.code() == Code::PermissionDenied
                    && status.message().contains("--read-only-api")
            });
            assert_eq!(refused, !method.read_only, "{}", method.path);
        }
    }
    assert!(served.node.snapshot() == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_content_is_written_over_only_by_a_server_that_allows_it() {
    let request = json!({ "disk_number": 4 });
    let served = Served::start(node(), settings());
    let error = served.call("disk v1 PartitionDisk", request.clone()).await;
    assert_eq!(error.expect_err("ext4").code(), Code::FailedPrecondition);

    let node = node();
    let host = node.process().host().allowing_foreign_content();
    let served = Served::start_with(node, host, settings());
    let done = served.call("disk v1 PartitionDisk", request).await;
    done.expect("it is allowed");
    let volumes = served
        .call("volume v1 ListVolumesOnDisk", json!({ "disk_number": 4 }))
        .await;
    let volumes = volumes.expect("a volume");
    let request = json!({ "volume_id": volumes["volume_ids"][0] });
    served
        .call("volume v1 FormatVolume", request)
        .await
        .expect("it is allowed");
}

#[tokio::test]
async fn a_name_that_another_server_has_is_an_error_that_says_so() {
    let served = Served::start(node(), settings());
    let place = Place {
        directory: served.directory().to_owned(),
        pipe_sddl: None,
    };
    let host = SimNode::builder().build().process().host();
    let error = Server::bind(host, settings(), &place, &served.metrics);
    let error = error.err().expect("the sockets are taken");
    let source = std::error::Error::source(&error)
        .expect("a cause")
        .to_string();
    assert!(
        error.to_string().contains("cannot serve disk v1 at"),
        "{error}"
    );
    assert!(source.contains("another program serves there"), "{source}");
}

async fn get(address: std::net::SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.lines().next().unwrap_or_default();
    (status.to_owned(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_and_health_are_told_over_http() {
    let served = Served::start(node(), settings());
    served
        .call("disk v1 ListDiskLocations", json!({}))
        .await
        .expect("disks");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (metrics, ready) = (served.metrics.clone(), served.ready.clone());
    tokio::spawn(serve_http(listener, metrics, ready, std::future::pending()));

    assert_eq!(get(address, "/healthz").await.0, "HTTP/1.1 200 OK");
    assert_eq!(get(address, "/readyz").await.0, "HTTP/1.1 200 OK");
    let (status, text) = get(address, "/metrics").await;
    assert_eq!(status, "HTTP/1.1 200 OK");
    for line in [
        r#"grpc_server_started_total{grpc_type="unary",grpc_service="v1.Disk",grpc_method="ListDiskLocations"} 1"#,
        r#"csi_proxy_wmi_round_trips_total{operation="query MSFT_Disk"} 1"#,
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(get(address, "/nothing").await.0, "HTTP/1.1 404 Not Found");
    served.stop().await.expect("a clean end");
    assert_eq!(get(address, "/healthz").await.0, "HTTP/1.1 200 OK");
    let (status, _) = get(address, "/readyz").await;
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
}

/// The services that a pipe tells of.
async fn services(served: &Served, api: &'static csi_proxy_api::Api) -> Result<Vec<String>, Code> {
    let channel = csi_proxy_api::channel(api, served.directory(), TIMEOUT).await;
    let mut client = ServerReflectionClient::new(channel.expect("a connection"));
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = client
        .server_reflection_info(tokio_stream::once(request))
        .await;
    let mut answers = answers.map_err(|status| status.code())?.into_inner();
    let answer = answers
        .next()
        .await
        .expect("an answer")
        .map_err(|status| status.code())?;
    match answer.message_response {
        Some(MessageResponse::ListServicesResponse(list)) => Ok(list
            .service
            .into_iter()
            .map(|service| service.name)
            .collect()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_is_off_until_it_is_asked_for() {
    let (api, _) = find("disk v1 Rescan");
    let served = Served::start(node(), settings());
    assert_eq!(services(&served, api).await, Err(Code::Unimplemented));
    let served = Served::start(
        node(),
        Settings {
            reflection: true,
            ..settings()
        },
    );
    let services = services(&served, api).await.expect("reflection");
    assert!(services.contains(&"v1.Disk".to_owned()), "{services:?}");
    assert!(
        !services.iter().any(|name| name.ends_with(".Volume")),
        "{services:?}"
    );
}
