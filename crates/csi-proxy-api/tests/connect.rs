//! Clients over real sockets.
// How a full queue answers is the system's own matter.
#![cfg(target_os = "linux")]

use std::error::Error;
use std::fs;
use std::future::poll_fn;
use std::io;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use csi_proxy_api::disk::v1beta2::disk_server::{Disk, DiskServer};
use csi_proxy_api::disk::v1beta2::{self as disk, Client};
use csi_proxy_api::{Connect, ConnectError};
use tokio::net::{UnixListener, UnixSocket};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A directory of its own for each test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("csi-api-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        Client::API.endpoint_in(&self.0)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left over in the temporary directory harms nobody.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A disk that is online or not, and another disk that is never there.
#[derive(Clone, Default)]
struct OneDisk {
    online: Arc<Mutex<bool>>,
}

fn only_disk_7(id: &str) -> Result<(), Status> {
    match id {
        "7" => Ok(()),
        _ => Err(Status::not_found(format!("no disk {id:?}"))),
    }
}

fn unused() -> Status {
    Status::unimplemented("not part of this test")
}

#[tonic::async_trait]
impl Disk for OneDisk {
    async fn list_disk_i_ds(
        &self,
        _: Request<disk::ListDiskIDsRequest>,
    ) -> Result<Response<disk::ListDiskIDsResponse>, Status> {
        let identifiers = [("page83", "6000c29"), ("serialNumber", "ABC")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let ids = disk::DiskIDs {
            identifiers: identifiers.into(),
        };
        Ok(Response::new(disk::ListDiskIDsResponse {
            disk_i_ds: [("7".to_owned(), ids)].into(),
        }))
    }

    async fn set_attach_state(
        &self,
        request: Request<disk::SetAttachStateRequest>,
    ) -> Result<Response<disk::SetAttachStateResponse>, Status> {
        let request = request.into_inner();
        only_disk_7(&request.disk_id)?;
        *self.online.lock().await = request.is_online;
        Ok(Response::new(disk::SetAttachStateResponse {}))
    }

    async fn get_attach_state(
        &self,
        request: Request<disk::GetAttachStateRequest>,
    ) -> Result<Response<disk::GetAttachStateResponse>, Status> {
        only_disk_7(&request.into_inner().disk_id)?;
        let is_online = *self.online.lock().await;
        Ok(Response::new(disk::GetAttachStateResponse { is_online }))
    }

    async fn list_disk_locations(
        &self,
        _: Request<disk::ListDiskLocationsRequest>,
    ) -> Result<Response<disk::ListDiskLocationsResponse>, Status> {
        Err(unused())
    }

    async fn partition_disk(
        &self,
        _: Request<disk::PartitionDiskRequest>,
    ) -> Result<Response<disk::PartitionDiskResponse>, Status> {
        Err(unused())
    }

    async fn rescan(
        &self,
        _: Request<disk::RescanRequest>,
    ) -> Result<Response<disk::RescanResponse>, Status> {
        Err(unused())
    }

    async fn disk_stats(
        &self,
        _: Request<disk::DiskStatsRequest>,
    ) -> Result<Response<disk::DiskStatsResponse>, Status> {
        Err(unused())
    }
}

/// Serves until `stop` is told, then lets running calls end.
fn serve(listener: UnixListener, disk: OneDisk) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        Server::builder()
            .add_service(DiskServer::new(disk))
            .serve_with_incoming_shutdown(UnixListenerStream::new(listener), async {
                drop(stopped.await);
            })
            .await
            .expect("the server serves");
    });
    (stop, server)
}

async fn is_online(client: &mut Client) -> bool {
    let request = disk::GetAttachStateRequest {
        disk_id: "7".to_owned(),
    };
    let response = client
        .get_attach_state(request)
        .await
        .expect("disk 7 is there");
    response.into_inner().is_online
}

async fn set_online(client: &mut Client, id: &str) -> Result<(), Status> {
    let request = disk::SetAttachStateRequest {
        disk_id: id.to_owned(),
        is_online: true,
    };
    client.set_attach_state(request).await.map(drop)
}

/// The innermost cause, which is what the system said.
fn cause(error: &ConnectError) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[tokio::test]
async fn messages_go_there_and_back() {
    let directory = Directory::new("round-trip");
    let listener = UnixListener::bind(directory.socket()).expect("bind");
    let (_stop, _server) = serve(listener, OneDisk::default());
    let mut client = Client::connect(&directory.0, TIMEOUT)
        .await
        .expect("connect");

    assert!(!is_online(&mut client).await);
    set_online(&mut client, "7").await.expect("disk 7 is there");
    assert!(is_online(&mut client).await);

    let ids = client
        .list_disk_i_ds(disk::ListDiskIDsRequest {})
        .await
        .expect("ids");
    let ids = ids.into_inner().disk_i_ds;
    assert_eq!(ids.keys().collect::<Vec<_>>(), ["7"]);
    assert_eq!(ids["7"].identifiers["page83"], "6000c29");
    assert_eq!(ids["7"].identifiers["serialNumber"], "ABC");
}

#[tokio::test]
async fn an_error_keeps_its_code_and_message() {
    let directory = Directory::new("error");
    let listener = UnixListener::bind(directory.socket()).expect("bind");
    let (_stop, _server) = serve(listener, OneDisk::default());
    let mut client = Client::connect(&directory.0, TIMEOUT)
        .await
        .expect("connect");

    let error = set_online(&mut client, "8").await.expect_err("no disk 8");
    assert_eq!(
        (error.code(), error.message()),
        (Code::NotFound, "no disk \"8\"")
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_at_once() {
    let directory = Directory::new("missing");
    let error = Client::connect(&directory.0, TIMEOUT)
        .await
        .expect_err("no server");
    let socket = directory.socket();
    assert_eq!(
        error.to_string(),
        format!("cannot connect to {}", socket.display())
    );
    assert_eq!(cause(&error), io::Error::from_raw_os_error(2).to_string());
}

#[tokio::test]
async fn a_client_connects_again_when_the_server_was_restarted() {
    let directory = Directory::new("restart");
    let disk = OneDisk::default();
    let listener = UnixListener::bind(directory.socket()).expect("bind");
    let (stop, server) = serve(listener, disk.clone());
    let mut client = Client::connect(&directory.0, TIMEOUT)
        .await
        .expect("connect");
    set_online(&mut client, "7").await.expect("disk 7 is there");

    stop.send(()).expect("the server runs");
    server.await.expect("the server stops");
    fs::remove_file(directory.socket()).expect("the old socket");
    let listener = UnixListener::bind(directory.socket()).expect("bind again");
    let (_stop, _server) = serve(listener, disk);

    assert!(is_online(&mut client).await);
}

/// A socket whose queue is full, and the connections that fill it.
fn busy(socket: &Path) -> (UnixListener, Vec<BlockingStream>) {
    let listener = UnixSocket::new_stream().expect("socket");
    listener.bind(socket).expect("bind");
    let listener = listener.listen(1).expect("listen");
    // Linux lets one more wait than it was told.
    let waiting = [(), ()].map(|()| BlockingStream::connect(socket).expect("room to wait"));
    (listener, waiting.into())
}

#[tokio::test]
async fn a_server_that_stays_busy_is_an_error_when_the_time_is_over() {
    let directory = Directory::new("busy");
    let (_listener, _waiting) = busy(&directory.socket());
    let timeout = Duration::from_millis(50);
    let error = Client::connect(&directory.0, timeout)
        .await
        .expect_err("nobody accepts");
    assert!(
        cause(&error).starts_with("still busy after 50ms: "),
        "{}",
        cause(&error)
    );
}

#[tokio::test]
async fn a_client_waits_for_a_busy_server() {
    let directory = Directory::new("waits");
    let (listener, waiting) = busy(&directory.socket());
    let mut client = pin!(Client::connect(&directory.0, TIMEOUT));
    let waits = poll_fn(|context| Poll::Ready(client.as_mut().poll(context).is_pending()));
    assert!(waits.await, "nobody has accepted it yet");
    drop(waiting);
    let (_stop, _server) = serve(listener, OneDisk::default());

    let mut client = client.await.expect("connect");
    assert!(!is_online(&mut client).await);
}
