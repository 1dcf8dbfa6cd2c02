//! CSI calls to running plugins.

use csi_node::proto::controller_client::ControllerClient;
use csi_node::proto::node_client::NodeClient;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use csi_node::proto::{
    CapacityRange, CreateVolumeRequest, NodeStageVolumeRequest, NodeUnstageVolumeRequest,
    VolumeCapability,
};
use tokio::task::JoinHandle;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

use crate::program::{Directory, stderr};
use crate::running::{LIMIT, Node, exists};

const STAGING: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\v\globalmount";

fn capability() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
        access_type: Some(AccessType::Mount(MountVolume::default())),
    }
}

pub(crate) async fn create(endpoint: &str, name: &str) -> Result<(), Status> {
    let channel = connect(endpoint).await;
    let request = CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(CapacityRange {
            required_bytes: 1 << 30,
            limit_bytes: 0,
        }),
        volume_capabilities: vec![capability()],
        ..Default::default()
    };
    let created = ControllerClient::new(channel)
        .create_volume(request)
        .await?;
    let volume = created.into_inner().volume.expect("a volume is answered");
    assert_eq!(volume.volume_id, name);
    Ok(())
}

pub(crate) async fn stage(endpoint: &str, volume: &str) -> Result<(), Status> {
    stage_at(endpoint, volume, STAGING).await
}

async fn stage_at(endpoint: &str, volume: &str, staging: &str) -> Result<(), Status> {
    let request = NodeStageVolumeRequest {
        volume_id: volume.to_owned(),
        staging_target_path: staging.to_owned(),
        volume_capability: Some(capability()),
        ..Default::default()
    };
    let mut client = NodeClient::new(connect(endpoint).await);
    client.node_stage_volume(request).await.map(|_| ())
}

pub(crate) async fn unstage(endpoint: &str, volume: &str) -> Result<(), Status> {
    let request = NodeUnstageVolumeRequest {
        volume_id: volume.to_owned(),
        staging_target_path: STAGING.to_owned(),
    };
    let mut client = NodeClient::new(connect(endpoint).await);
    client.node_unstage_volume(request).await.map(|_| ())
}

async fn connect(endpoint: &str) -> tonic::transport::Channel {
    let endpoint = Endpoint::new(endpoint.to_owned()).expect("it is an endpoint");
    endpoint.connect().await.expect("the plugin listens")
}

fn formats(node: &Node) -> u64 {
    let counts: csi_proxy_sim::Counts =
        serde_json::from_str(&node.sim_ok(&["counts"])).expect("counts are JSON");
    counts.of("MSFT_Volume.Format")
}

/// Makes the volume v and stages it while each format takes so many seconds more. Answers the
/// call, whose format has begun.
async fn stage_while_formats_stall(
    node: &Node,
    endpoint: &str,
    seconds: u32,
) -> JoinHandle<Result<(), Status>> {
    create(endpoint, "v").await.expect("the volume is made");
    node.sim_ok(&["fault", &format!("MSFT_Volume.Format=stalls:{seconds}")]);
    let endpoint = endpoint.to_owned();
    let staging = tokio::spawn(async move { stage(&endpoint, "v").await });
    while formats(node) == 0 {
        tokio::task::yield_now().await;
    }
    staging
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_a_running_format_finish() {
    let directory = Directory::new("finish");
    let endpoint = directory.socket("csi.sock");
    let file = directory.join("node.json").display().to_string();
    let node = Node::start(&directory, &["--sim-state", &file]);
    let staging = stage_while_formats_stall(&node, &endpoint, 2).await;
    let (code, told) = node.terminate();
    assert_eq!(code, Some(0), "{told}");
    let staged = staging.await.expect("the call ends");
    assert!(staged.is_ok(), "{staged:?}: {told}");

    let node = Node::start(&directory, &["--sim-state", &file]);
    let shown = node.sim_ok(&["show"]);
    assert!(shown.contains(r"mounted at C:\var\lib\kubelet"), "{shown}");
    unstage(&endpoint, "v")
        .await
        .expect("the volume is unstaged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_sigterm_cuts_off_what_the_first_lets_finish() {
    let directory = Directory::new("cut");
    let endpoint = directory.socket("csi.sock");
    let node = Node::start(&directory, &[]);
    let staging = stage_while_formats_stall(&node, &endpoint, 100000).await;
    node.signal();
    while exists(&directory.join("csi.sock")) {
        tokio::task::yield_now().await;
    }
    let (code, told) = node.terminate();
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("again"), "{told}");
    assert!(staging.await.expect("the call ends").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_costs_one_call_and_the_next_one_goes_on() {
    let directory = Directory::new("crash");
    let endpoint = directory.socket("csi.sock");
    let node = Node::start(&directory, &[]);
    create(&endpoint, "v").await.expect("the volume is made");
    node.sim_ok(&["fault", "attach_virtual_disk=crash-after"]);
    let status = stage(&endpoint, "v").await.expect_err("the process ended");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    staged_at_last(&endpoint).await;
    assert_eq!(formats(&node), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_on_a_drive_that_the_node_does_not_have_are_not_found() {
    let directory = Directory::new("drive");
    let endpoint = directory.socket("csi.sock");
    let node = Node::start(&directory, &[r"--pool=X:\pool"]);
    let status = create(&endpoint, "v").await.expect_err("there is no X:");
    assert_eq!(status.code(), Code::NotFound, "{status}");
    assert!(status.message().contains("error 3"), "{status}");
    node.kill();

    let _node = Node::start(&directory, &[]);
    create(&endpoint, "v").await.expect("the volume is made");
    let staged = stage_at(&endpoint, "v", r"X:\staging").await;
    let status = staged.expect_err("there is no X:");
    assert_eq!(status.code(), Code::NotFound, "{status}");
    assert!(status.message().contains("error 3"), "{status}");
}

/// Stages as the kubelet does: again, as long as the plugin is away.
async fn staged_at_last(endpoint: &str) {
    let began = std::time::Instant::now();
    while let Err(status) = stage(endpoint, "v").await {
        // A connection that closes before the call is on its way is an error of the transport
        // to tonic's client, with codes of many kinds; others call all of them Unavailable.
        let is_of_transport = std::error::Error::source(&status).is_some();
        let is_away = status.code() == Code::Unavailable || is_of_transport;
        assert!(is_away, "{status}");
        assert!(began.elapsed() < LIMIT, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_reboot_the_plugin_comes_back_and_goes_on() {
    let directory = Directory::new("reboot");
    let other = Directory::new("reboot-other");
    let node = Node::start(&directory, &[]);
    let at = format!("--simulate-at={}", directory.socket("sim.sock"));
    let _second = Node::start(&other, &[&at]);
    let endpoints = [directory.socket("csi.sock"), other.socket("csi.sock")];
    create(&endpoints[0], "v")
        .await
        .expect("the volume is made");
    for endpoint in &endpoints {
        staged_at_last(endpoint).await;
        node.sim_ok(&["reboot"]);
        staged_at_last(endpoint).await;
        unstage(endpoint, "v").await.expect("it is unstaged");
    }
    assert_eq!(formats(&node), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reboot_cuts_off_a_call_that_hangs_and_its_retry_is_not_held_up() {
    let directory = Directory::new("reboot-hang");
    let endpoint = directory.socket("csi.sock");
    let node = Node::start(&directory, &[]);
    let staging = stage_while_formats_stall(&node, &endpoint, 100000).await;
    node.sim_ok(&["reboot"]);
    let status = staging.await.expect("the call ends");
    let status = status.expect_err("the process ended");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    staged_at_last(&endpoint).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_plugins_on_one_node_format_a_volume_once() {
    let directory = Directory::new("two");
    let first = Node::start(&directory, &[]);
    let other = Directory::new("two-other");
    let at = format!("--simulate-at={}", directory.socket("sim.sock"));
    let _second = Node::start(&other, &[&at]);
    let endpoints = [directory.socket("csi.sock"), other.socket("csi.sock")];
    create(&endpoints[0], "v")
        .await
        .expect("the volume is made");
    first.sim_ok(&["fault", "MSFT_Volume.Format=stalls:0.2"]);
    let fight = endpoints.clone().map(|endpoint| {
        tokio::spawn(async move {
            loop {
                match stage(&endpoint, "v").await {
                    Err(status) if status.code() == Code::Aborted => {
                        tokio::task::yield_now().await;
                    }
                    ended => break ended,
                }
            }
        })
    });
    for call in fight {
        let staged = call.await.expect("the call ends");
        assert!(staged.is_ok(), "{staged:?}");
    }
    assert_eq!(formats(&first), 1);
    unstage(&endpoints[1], "v")
        .await
        .expect("either of them unstages it");
}

#[test]
fn a_node_of_another_program_that_is_not_there_is_named() {
    let directory = Directory::new("not-there");
    let at = directory.socket("sim.sock");
    let endpoint = directory.socket("csi.sock");
    let arguments = ["node", "--driver", "local", "--simulate-at", &at];
    let output = crate::program::run(&[&arguments[..], &["--endpoint", &endpoint]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&at), "{}", stderr(&output));
}
