//! Where a plugin listens, what it finds there, and how it ends. On Windows no socket is served.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};

use csi_node::driver::{
    AtPath, Driver, NodeExpand, PluginInfo, Publish, Stage, Stats, Unpublish, Unstage,
};
use csi_node::local::{LocalConfig, LocalDriver};
use csi_node::proto::identity_client::IdentityClient;
use csi_node::proto::node_client::NodeClient;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::proto::{
    DeleteVolumeResponse, GetPluginInfoRequest, NodeGetInfoRequest, ProbeRequest,
};
use csi_node::{Endpoint, Plugin, Server};
use csi_proxy::clock::Deadline;
use csi_proxy::{Host, HostPath, Result};
use csi_proxy_sim::SimNode;
use tokio::sync::oneshot;
use tonic::transport::Channel;
use tonic::{Code, Request};
use tonic_prost::ProstCodec;

/// A driver whose stage waits until the test lets it go on.
struct Held {
    host: Host,
    info: PluginInfo,
    begun: Mutex<mpsc::Sender<()>>,
    go: Mutex<mpsc::Receiver<()>>,
}

impl Driver for Held {
    fn host(&self) -> &Host {
        &self.host
    }

    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn stage(&self, _: &Stage, _: Deadline) -> Result<()> {
        self.begun.lock().unwrap().send(()).unwrap();
        self.go.lock().unwrap().recv().unwrap();
        Ok(())
    }

    fn unstage(&self, _: &Unstage, _: Deadline) -> Result<()> {
        panic!("only stage is called")
    }

    fn publish(&self, _: &Publish, _: Deadline) -> Result<()> {
        panic!("only stage is called")
    }

    fn unpublish(&self, _: &Unpublish, _: Deadline) -> Result<()> {
        panic!("only stage is called")
    }

    fn stats(&self, _: &AtPath, _: Deadline) -> Result<Stats> {
        panic!("only stage is called")
    }

    fn expand(&self, _: &NodeExpand, _: Deadline) -> Result<u64> {
        panic!("only stage is called")
    }
}

/// The plugin, what tells that stage has begun, and what lets it go on.
fn held() -> (Plugin, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (begun, has_begun) = mpsc::channel();
    let (go_on, go) = mpsc::channel();
    let driver = Held {
        host: SimNode::builder().build().process().host(),
        info: PluginInfo {
            name: "held.example.com".to_owned(),
            node_id: "node-1".to_owned(),
            topology: [].into(),
            max_volumes: 0,
        },
        begun: Mutex::new(begun),
        go: Mutex::new(go),
    };
    (Plugin::new(driver), has_begun, go_on)
}

/// A directory of the test's own.
fn directory(test: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("csi-node-{test}-{}", std::process::id()));
    std::fs::remove_dir_all(&directory).ok();
    directory
}

fn unix(path: &Path) -> Endpoint {
    format!("unix://{}", path.display()).parse().unwrap()
}

async fn connect(endpoint: &Endpoint) -> Channel {
    let uri = match endpoint {
        Endpoint::Unix(path) => format!("unix://{}", path.display()),
        Endpoint::Tcp(address) => format!("http://{address}"),
    };
    tonic::transport::Endpoint::from_shared(uri)
        .unwrap()
        .connect()
        .await
        .unwrap()
}

/// Serves at the endpoint and answers how it is ended and awaited.
async fn serve(
    endpoint: &Endpoint,
    plugin: Plugin,
) -> (
    Endpoint,
    oneshot::Sender<()>,
    tokio::task::JoinHandle<std::result::Result<(), csi_node::EndpointError>>,
) {
    let server = Server::bind(endpoint).await.unwrap();
    let bound = server.endpoint().clone();
    let (end, ended) = oneshot::channel::<()>();
    let served = tokio::spawn(server.serve(plugin, async {
        ended.await.ok();
    }));
    (bound, end, served)
}

#[tokio::test]
async fn the_services_answer_at_both_kinds_of_endpoint() {
    let directory = directory("both-kinds");
    let socket = unix(&directory.join("csi.sock"));
    for endpoint in [socket, "tcp://127.0.0.1:0".parse().unwrap()] {
        let (bound, end, served) = serve(&endpoint, held().0).await;
        let channel = connect(&bound).await;
        let mut identity = IdentityClient::new(channel.clone());
        let info = identity.get_plugin_info(GetPluginInfoRequest {}).await;
        assert_eq!(info.unwrap().into_inner().name, "held.example.com");
        let probe = identity.probe(ProbeRequest {}).await.unwrap();
        assert_eq!(probe.into_inner().ready, Some(true));
        let info = NodeClient::new(channel)
            .node_get_info(NodeGetInfoRequest {})
            .await;
        assert_eq!(info.unwrap().into_inner().node_id, "node-1");
        end.send(()).unwrap();
        served.await.unwrap().unwrap();
    }
    assert!(!directory.join("csi.sock").exists());
    std::fs::remove_dir_all(directory).unwrap();
}

/// A request with bytes where CSI has text.
#[derive(Clone, PartialEq, prost::Message)]
struct Bytes {
    #[prost(bytes = "vec", tag = "1")]
    volume_id: Vec<u8>,
}

#[tokio::test]
async fn c12_bytes_that_are_no_text_are_refused_by_the_decoder_which_names_the_field() {
    let node = SimNode::builder().build();
    let pool = HostPath::from_kubelet(r"C:\pool").unwrap();
    let config = LocalConfig::new(pool, "node-1");
    let driver = LocalDriver::new(node.process().host(), config).unwrap();
    let endpoint = "tcp://127.0.0.1:0".parse().unwrap();
    let (bound, end, served) = serve(&endpoint, Plugin::new(driver)).await;
    let mut client = tonic::client::Grpc::new(connect(&bound).await);
    let before = node.snapshot();
    // Latin-1, half a character, a lone surrogate, and text that is none for a volume.
    for (bytes, code) in [
        (&b"v\xe9"[..], Code::Internal),
        (b"v\xc3", Code::Internal),
        (b"v\xed\xa0\x80", Code::Internal),
        (b"v\n", Code::InvalidArgument),
    ] {
        client.ready().await.unwrap();
        let request = Request::new(Bytes {
            volume_id: bytes.to_vec(),
        });
        let method = "/csi.v1.Controller/DeleteVolume".parse().unwrap();
        let codec = ProstCodec::<Bytes, DeleteVolumeResponse>::default();
        let error = client.unary(request, method, codec).await.unwrap_err();
        assert_eq!(error.code(), code, "{error:?}");
        assert!(error.message().contains("volume_id"), "{error:?}");
    }
    assert!(node.snapshot() == before);
    end.send(()).unwrap();
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn c18_a_socket_from_before_is_replaced_and_a_missing_directory_is_made() {
    let directory = directory("left-behind").join("plugins").join("local");
    let path = directory.join("csi.sock");
    let first = Server::bind(&unix(&path)).await.unwrap();
    // Dropped without its clean end, as when the process is killed.
    drop(first);
    assert!(path.exists());
    let (bound, end, served) = serve(&unix(&path), held().0).await;
    let probe = IdentityClient::new(connect(&bound).await)
        .probe(ProbeRequest {})
        .await;
    assert_eq!(probe.unwrap().into_inner().ready, Some(true));
    end.send(()).unwrap();
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn c18_a_socket_at_which_a_program_answers_stays() {
    let directory = directory("in-use");
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("csi.sock");
    let _other = UnixListener::bind(&path).unwrap();
    let error = Server::bind(&unix(&path)).await.err().unwrap().to_string();
    assert!(error.contains("another program serves there"), "{error}");
    assert!(!error.contains('\n'), "{error}");
    assert!(path.exists());
}

#[tokio::test]
async fn c18_what_is_no_socket_is_never_removed() {
    let directory = directory("no-socket");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("csi.sock");
    std::fs::write(&file, "precious").unwrap();
    let below = file.join("csi.sock");
    let link = directory.join("link.sock");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [&file, &link, &below, &directory] {
        let error = Server::bind(&unix(path)).await.err().unwrap().to_string();
        assert!(
            error.starts_with(&format!("endpoint unix://{}", path.display())),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

#[tokio::test]
async fn c18_a_port_that_someone_holds_is_one_clear_line() {
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("tcp://{}", other.local_addr().unwrap());
    let error = Server::bind(&endpoint.parse().unwrap())
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains(&endpoint) && !error.contains('\n'),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_lets_running_work_finish_and_its_caller_get_the_answer() {
    let directory = directory("graceful");
    let path = directory.join("csi.sock");
    let (plugin, begun, go_on) = held();
    let (bound, end, served) = serve(&unix(&path), plugin).await;
    let mut node = NodeClient::new(connect(&bound).await);
    let request = common::stage("v", common::STAGING, Mode::SingleNodeWriter);
    let call = tokio::spawn(async move { node.node_stage_volume(request).await });
    tokio::task::spawn_blocking(move || begun.recv().unwrap())
        .await
        .unwrap();

    end.send(()).unwrap();
    // The socket goes at once, the work does not.
    while path.exists() {
        tokio::task::yield_now().await;
    }
    assert!(!served.is_finished() && !call.is_finished());
    go_on.send(()).unwrap();
    call.await.unwrap().unwrap();
    served.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn work_whose_caller_is_gone_still_ends_before_the_server_does() {
    let (plugin, begun, go_on) = held();
    let endpoint = "tcp://127.0.0.1:0".parse().unwrap();
    let (bound, end, served) = serve(&endpoint, plugin).await;
    let mut node = NodeClient::new(connect(&bound).await);
    let request = common::stage("v", common::STAGING, Mode::SingleNodeWriter);
    let call = tokio::spawn(async move { node.node_stage_volume(request).await });
    tokio::task::spawn_blocking(move || begun.recv().unwrap())
        .await
        .unwrap();
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());

    end.send(()).unwrap();
    let finished = Arc::new(Mutex::new(false));
    let seen = Arc::clone(&finished);
    let let_go = tokio::task::spawn_blocking(move || {
        *seen.lock().unwrap() = true;
        go_on.send(()).unwrap();
    });
    served.await.unwrap().unwrap();
    assert!(*finished.lock().unwrap());
    let_go.await.unwrap();
}
