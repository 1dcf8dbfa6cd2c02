//! A server over a simulated node, and calls of any method with JSON.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use csi_proxy::{Host, HostPath};
use csi_proxy_api::{Api, Group, Method, channel, local_directory};
use csi_proxy_server::{Limits, Metrics, Place, Ready, ServeError, Server, Settings, WorkingDirs};
use csi_proxy_sim::SimNode;
use prost::Message as _;
use prost::bytes::{Buf, BufMut, Bytes};
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;

/// Where clients may work.
pub(crate) const KUBELET: &str = r"C:\var\lib\kubelet";

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Settings that serve everything.
pub(crate) fn settings() -> Settings {
    Settings {
        groups: Group::ALL.to_vec(),
        read_only: false,
        working_dirs: WorkingDirs::new([HostPath::strict(KUBELET).expect("a path")]),
        require_privacy: false,
        reflection: false,
        limits: Limits::default(),
    }
}

/// A server that serves.
pub(crate) struct Served {
    pub(crate) node: SimNode,
    pub(crate) metrics: Metrics,
    pub(crate) ready: Ready,
    directory: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<Result<(), ServeError>>>,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Served {
    /// Serves a node in a directory of its own.
    pub(crate) fn start(node: SimNode, settings: Settings) -> Self {
        let host = node.process().host();
        Self::start_with(node, host, settings)
    }

    /// Serves a node by way of a host.
    pub(crate) fn start_with(node: SimNode, host: Host, settings: Settings) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("csi-served-{}-{number}", std::process::id());
        // The names of pipes may have several parts.
        let parent = match cfg!(windows) {
            true => local_directory().to_owned(),
            false => std::env::temp_dir(),
        };
        Self::serve(parent.join(name), node, host, settings)
    }

    /// Serves a node in that directory.
    #[cfg(unix)]
    pub(crate) fn start_in(directory: PathBuf, node: SimNode, settings: Settings) -> Self {
        let host = node.process().host();
        Self::serve(directory, node, host, settings)
    }

    fn serve(directory: PathBuf, node: SimNode, host: Host, settings: Settings) -> Self {
        let place = Place {
            directory: directory.clone(),
            pipe_sddl: None,
        };
        let state_dir = HostPath::strict(r"C:\ProgramData\csi-proxy").expect("a path");
        let host = host.with_state_dir(state_dir);
        let metrics = Metrics::new();
        let server = Server::bind(host, settings, &place, &metrics).expect("free sockets");
        let (stop, stopped) = oneshot::channel::<()>();
        let ready = Ready::default();
        let readiness = ready.clone();
        let serving = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            server.serve(stopped, TIMEOUT, &readiness).await
        });
        Self {
            node,
            metrics,
            ready,
            directory,
            stop: Some(stop),
            serving: Some(serving),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A connection to a version.
    pub(crate) async fn connect(&self, api: &'static Api) -> Caller {
        let channel = channel(api, &self.directory, TIMEOUT).await;
        Caller::new(api, channel.expect("a connection"))
    }

    /// Calls `group version Method` on a new connection.
    pub(crate) async fn call(&self, method: &str, request: Value) -> Result<Value, Status> {
        let (api, method) = find(method);
        self.connect(api).await.call(method, request).await
    }

    /// Stops it and answers how it ended.
    pub(crate) async fn stop(mut self) -> Result<(), ServeError> {
        self.end().await
    }

    /// Stops it; its directory stays.
    #[cfg(unix)]
    pub(crate) async fn stop_without_cleaning(mut self) {
        self.end().await.expect("a clean end");
        self.directory = PathBuf::new();
    }

    async fn end(&mut self) -> Result<(), ServeError> {
        drop(self.stop.take());
        let serving = self.serving.take().expect("it serves");
        serving.await.expect("it does not panic")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // What is left over in the temporary directory harms nobody.
        drop(fs::remove_dir_all(&self.directory));
    }
}

/// `disk v1 Rescan`.
pub(crate) fn find(text: &str) -> (&'static Api, &'static Method) {
    let words: Vec<_> = text.split(' ').collect();
    let [group, version, name] = words[..] else {
        panic!("group, version and method, not {text:?}");
    };
    let api = Api::find(group.parse().expect("a group"), version).expect(text);
    let method = api.methods.iter().find(|method| method.name == name);
    (api, method.expect(text))
}

/// A client of one version that speaks JSON.
#[derive(Clone)]
pub(crate) struct Caller {
    api: &'static Api,
    pool: DescriptorPool,
    grpc: Grpc<Channel>,
}

impl Caller {
    pub(crate) fn new(api: &'static Api, channel: Channel) -> Self {
        let pool = DescriptorPool::decode(api.file_descriptor_set()).expect("descriptors");
        Self {
            api,
            pool,
            grpc: Grpc::new(channel),
        }
    }

    pub(crate) async fn call(&mut self, method: &Method, request: Value) -> Result<Value, Status> {
        self.call_within(TIMEOUT, method, request).await
    }

    /// Calls with a deadline.
    pub(crate) async fn call_within(
        &mut self,
        limit: Duration,
        method: &Method,
        request: Value,
    ) -> Result<Value, Status> {
        let message = |name: &str| {
            let name = format!("{}.{name}", self.api.version);
            self.pool.get_message_by_name(&name).expect("a message")
        };
        let response = message(method.response);
        let request =
            DynamicMessage::deserialize(message(method.request), request).expect("a request");
        let mut request = tonic::Request::new(Bytes::from(request.encode_to_vec()));
        request.set_timeout(limit);
        self.grpc
            .ready()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let path = method.path.parse().expect("a path");
        let bytes = self.grpc.unary(request, path, Raw).await?.into_inner();
        let answer = DynamicMessage::decode(response, bytes).expect("a response");
        Ok(json(&answer))
    }
}

/// A message as the Go clients' JSON has it: the names of the `.proto` file, plain numbers.
fn json(message: &DynamicMessage) -> Value {
    let options = SerializeOptions::new()
        .use_proto_field_name(true)
        .use_enum_numbers(true)
        .stringify_64_bit_integers(false);
    let serializer = serde_json::value::Serializer;
    message
        .serialize_with_options(serializer, &options)
        .expect("JSON")
}

/// Messages that somebody else has encoded.
#[derive(Clone, Copy)]
pub(crate) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
