//! The bridge over the standard library's Unix sockets, which block as those of Windows do.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Weak;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream as Client;
use tokio_stream::StreamExt as _;

use super::*;
use crate::Plugin;
use crate::local::{LocalConfig, LocalDriver};
use crate::proto::NodeGetInfoRequest;
use crate::proto::node_client::NodeClient;

/// A socket that tells when its last thread has let go of it.
struct Watched(UnixStream, Arc<()>);

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

impl Socket for Watched {
    fn another(&self) -> Result<Self> {
        Ok(Self(self.0.try_clone()?, Arc::clone(&self.1)))
    }

    fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.0.shutdown(how)
    }
}

struct Listening(UnixListener, std::sync::mpsc::Sender<Weak<()>>);

impl Listener for Listening {
    type Socket = Watched;

    fn accept(&self) -> Result<Watched> {
        let held = Arc::new(());
        let _ = self.1.send(Arc::downgrade(&held));
        Ok(Watched(self.0.accept()?.0, held))
    }
}

/// A bridged listener at a path of its own, and what its connections leave.
struct Bridged {
    path: PathBuf,
    incoming: Incoming,
    held: std::sync::mpsc::Receiver<Weak<()>>,
}

impl Bridged {
    fn new(test: &str) -> Self {
        let name = format!("csi-node-bridge-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let (sender, held) = std::sync::mpsc::channel();
        let listener = Listening(UnixListener::bind(&path).unwrap(), sender);
        Self {
            incoming: Incoming::new(listener).unwrap(),
            path,
            held,
        }
    }

    async fn connect(&mut self) -> (Client, DuplexStream) {
        let client = Client::connect(&self.path).await.unwrap();
        (client, self.incoming.next().await.unwrap().unwrap())
    }

    /// Waits until both threads of the oldest connection have ended.
    async fn threads_end(&self) {
        let held = self.held.recv().unwrap();
        while held.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    }
}

impl Stream for Bridged {
    type Item = Result<DuplexStream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.incoming).poll_next(context)
    }
}

impl Drop for Bridged {
    fn drop(&mut self) {
        close(&self.incoming.closer(), &self.path);
        let _ = std::fs::remove_file(&self.path);
    }
}

fn close(closer: &AtomicBool, path: &Path) {
    closer.store(true, Ordering::Release);
    let _ = UnixStream::connect(path);
}

/// More than the pipe and the sockets hold.
fn much() -> Vec<u8> {
    (0..4_u32 << 20)
        .map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect()
}

#[tokio::test]
async fn bytes_go_both_ways_at_once() {
    let mut bridged = Bridged::new("both-ways");
    let (client, server) = bridged.connect().await;
    let (mut from_server, mut to_server) = tokio::io::split(client);
    let (mut from_client, mut to_client) = tokio::io::split(server);
    let sent = much();
    let send = async {
        to_server.write_all(&sent).await.unwrap();
        to_server.shutdown().await.unwrap();
    };
    let echo = async {
        tokio::io::copy(&mut from_client, &mut to_client)
            .await
            .unwrap();
        to_client.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let (_, _, length) = tokio::join!(send, echo, from_server.read_to_end(&mut received));
    assert_eq!(length.unwrap(), sent.len());
    assert!(received == sent);
}

#[tokio::test]
async fn the_server_answers_a_client_that_has_said_all() {
    let mut bridged = Bridged::new("said-all");
    let (mut client, mut server) = bridged.connect().await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut question = String::new();
    server.read_to_string(&mut question).await.unwrap();
    assert_eq!(question, "question");
    server.write_all(b"answer").await.unwrap();
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "answer");
    bridged.threads_end().await;
}

#[tokio::test]
async fn a_connection_that_the_server_closes_leaves_no_thread() {
    let mut bridged = Bridged::new("server-closes");
    let (mut client, server) = bridged.connect().await;
    drop(server);
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    bridged.threads_end().await;
}

#[tokio::test]
async fn a_client_that_goes_leaves_no_thread() {
    let mut bridged = Bridged::new("client-goes");
    let (client, mut server) = bridged.connect().await;
    drop(client);
    assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
    drop(server);
    bridged.threads_end().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_up_nobody_else() {
    let mut bridged = Bridged::new("does-not-read");
    let (_client, mut server) = bridged.connect().await;
    let stuck = tokio::spawn(async move { server.write_all(&much()).await });
    let (mut other, mut to_other) = bridged.connect().await;
    to_other.write_all(b"x").await.unwrap();
    assert_eq!(other.read_u8().await.unwrap(), b'x');
    assert!(!stuck.is_finished());
}

#[tokio::test]
async fn a_closed_listener_lets_go_of_its_socket() {
    let mut bridged = Bridged::new("closed");
    close(&bridged.incoming.closer(), &bridged.path);
    assert!(bridged.incoming.next().await.is_none());
    let refused = Client::connect(&bridged.path).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_plugin_is_served_over_it() {
    let node = csi_proxy_sim::SimNode::builder().build();
    let pool = csi_proxy::HostPath::from_kubelet(r"C:\csi-volumes").unwrap();
    let config = LocalConfig::new(pool, "node-1");
    let driver = LocalDriver::new(node.process().host(), config).unwrap();
    let router = tonic::transport::Server::builder().add_routes(Plugin::new(driver).routes());

    let bridged = Bridged::new("plugin");
    let socket = format!("unix://{}", bridged.path.display());
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(router.serve_with_incoming_shutdown(bridged, async {
        ended.await.unwrap();
    }));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let mut client = NodeClient::connect(socket.clone()).await.unwrap();
        calls.spawn(async move { client.node_get_info(NodeGetInfoRequest {}).await });
    }
    while let Some(answer) = calls.join_next().await {
        let info = answer.unwrap().unwrap().into_inner();
        assert_eq!(info.node_id, "node-1");
    }
    end.send(()).unwrap();
    served.await.unwrap().unwrap();
}
