//! Two processes of the plugin on one node, as while an update rolls: they fight for the
//! same volumes over the node's control endpoint, and only one at a time works on a volume.
//!
//! The test is all of them: by itself it starts two more of its program, which are told by
//! environment variables to be plugins.

// Elsewhere the plugins have no socket to be called at.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test ends at the first fault")]

mod common;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{GIB, POOL, create, publish, stage, unpublish, unstage};
use csi_node::local::LocalDriver;
use csi_node::proto::DeleteVolumeRequest;
use csi_node::proto::controller_client::ControllerClient;
use csi_node::proto::node_client::NodeClient;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::{Endpoint, Plugin, Server};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::control::{ControlClient, ControlServer};
use tonic::transport::{Channel, Endpoint as Remote};
use tonic::{Code, Status};

/// The control endpoint of the node, for a program that is to be a plugin.
const CONTROL: &str = "CSI_NODE_TEST_CONTROL";
/// The endpoint that it serves at.
const ENDPOINT: &str = "CSI_NODE_TEST_ENDPOINT";
const VOLUMES: usize = 10;
/// How often a call is made again that was aborted; far more than is ever needed.
const ATTEMPTS: usize = 10_000;

#[test]
fn two_processes_fight_for_the_same_volumes() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match std::env::var(CONTROL) {
        Ok(control) => {
            let endpoint = std::env::var(ENDPOINT).unwrap();
            runtime.block_on(serve(&control, &endpoint));
        }
        Err(_) => runtime.block_on(fight()),
    }
}

/// A plugin, until its standard input ends.
async fn serve(control: &str, endpoint: &str) {
    let host = ControlClient::connect(control).unwrap().host();
    let driver = LocalDriver::new(host, common::config()).unwrap();
    let endpoint: Endpoint = endpoint.parse().unwrap();
    let server = Server::bind(&endpoint).await.unwrap();
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let shutdown = async {
        ended.await.ok();
    };
    server.serve(Plugin::new(driver), shutdown).await.unwrap();
}

/// One of the two plugins, from outside.
struct Rival {
    process: Child,
    controller: ControllerClient<Channel>,
    node: NodeClient<Channel>,
    target: String,
}

impl Rival {
    async fn start(directory: &Path, control: &str, name: &str) -> Self {
        let socket = directory.join(name);
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "two_processes_fight_for_the_same_volumes"])
            .env(CONTROL, control)
            .env(ENDPOINT, format!("unix://{}", socket.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let channel = connect(&socket).await;
        Self {
            process,
            controller: ControllerClient::new(channel.clone()),
            node: NodeClient::new(channel),
            target: format!(r"C:\pods\{name}"),
        }
    }

    async fn create(&self, id: &str) -> Result<(), Status> {
        let mut controller = self.controller.clone();
        controller.create_volume(create(id, GIB)).await.map(drop)
    }

    async fn delete(&self, id: &str) -> Result<(), Status> {
        let request = DeleteVolumeRequest {
            volume_id: id.to_owned(),
            ..Default::default()
        };
        self.controller
            .clone()
            .delete_volume(request)
            .await
            .map(drop)
    }

    async fn stage(&self, id: &str) -> Result<(), Status> {
        let request = stage(id, &staging(id), Mode::SingleNodeWriter);
        self.node.clone().node_stage_volume(request).await.map(drop)
    }

    async fn unstage(&self, id: &str) -> Result<(), Status> {
        let request = unstage(id, &staging(id));
        self.node
            .clone()
            .node_unstage_volume(request)
            .await
            .map(drop)
    }

    async fn publish(&self, id: &str) -> Result<(), Status> {
        let request = publish(id, &staging(id), &self.target);
        self.node
            .clone()
            .node_publish_volume(request)
            .await
            .map(drop)
    }

    async fn unpublish(&self, id: &str) -> Result<(), Status> {
        let request = unpublish(id, &self.target);
        self.node
            .clone()
            .node_unpublish_volume(request)
            .await
            .map(drop)
    }
}

fn staging(id: &str) -> String {
    format!(r"C:\staging\{id}")
}

/// The plugin is a process that has just been started.
async fn connect(socket: &Path) -> Channel {
    let remote = Remote::from_shared(format!("unix://{}", socket.display())).unwrap();
    loop {
        match remote.connect().await {
            Ok(channel) => return channel,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Makes a call until another process is no longer in its way. Answers how often it was.
async fn insist<F: Future<Output = Result<(), Status>>>(call: impl Fn() -> F) -> usize {
    for aborted in 0..ATTEMPTS {
        match call().await {
            Ok(()) => return aborted,
            Err(status) if status.code() == Code::Aborted => {}
            Err(status) => panic!("{status:?}"),
        }
    }
    panic!("aborted {ATTEMPTS} times");
}

async fn fight() {
    let directory: PathBuf = std::env::temp_dir().join(format!("csi-two-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let node = SimNode::builder().build();
    let uri = format!("unix://{}", directory.join("control.sock").display());
    let control = ControlServer::start(node.clone(), &uri).unwrap();
    let uri = control.uri();
    let rig = common::Rig::on(node.clone());
    let (one, mut two) = tokio::join!(
        Rival::start(&directory, &uri, "one"),
        Rival::start(&directory, &uri, "two"),
    );

    node.reset_counts();
    let mut aborted = 0;
    for number in 0..VOLUMES {
        let id = &format!("v-{number}");
        aborted += both(|| one.create(id), || two.create(id)).await;
        aborted += both(|| one.stage(id), || two.stage(id)).await;
        aborted += both(|| one.publish(id), || two.publish(id)).await;
        rig.write(&format!(r"{}\file", one.target), id);
        assert_eq!(rig.read(&format!(r"{}\file", two.target)), *id);
        aborted += both(|| one.unpublish(id), || two.unpublish(id)).await;
        aborted += both(|| one.unstage(id), || two.unstage(id)).await;
        aborted += both(|| one.stage(id), || two.stage(id)).await;
        assert_eq!(rig.read(&format!(r"{}\file", staging(id))), *id);
        aborted += both(|| one.unstage(id), || two.unstage(id)).await;
        aborted += both(|| one.delete(id), || two.delete(id)).await;
    }
    let counts = node.counts();
    for once in [
        "MSFT_Volume.Format",
        "MSFT_Disk.Initialize",
        "MSFT_Disk.CreatePartition",
    ] {
        assert_eq!(counts.of(once), VOLUMES as u64, "{once}");
    }
    common::report(&format!(
        "{VOLUMES} volumes, {aborted} calls aborted, each formatted once"
    ));

    // What a killed process has staged, the other one takes over.
    insist(|| two.create("last")).await;
    insist(|| two.stage("last")).await;
    two.process.kill().unwrap();
    two.process.wait().unwrap();
    insist(|| one.unstage("last")).await;
    insist(|| one.delete("last")).await;
    assert_eq!(rig.tree(POOL), [r"C:\csi\pool\state\"]);
    assert_eq!(rig.locks(), 0);

    end(one);
    // It ends by a connection to itself, so its socket must still be there.
    drop(control);
    std::fs::remove_dir_all(&directory).unwrap();
}

async fn both<F, G>(one: impl Fn() -> F, two: impl Fn() -> G) -> usize
where
    F: Future<Output = Result<(), Status>>,
    G: Future<Output = Result<(), Status>>,
{
    let (first, second) = tokio::join!(insist(one), insist(two));
    first + second
}

/// Ends a plugin the clean way.
fn end(mut rival: Rival) {
    drop(rival.process.stdin.take());
    assert!(rival.process.wait().unwrap().success());
}
