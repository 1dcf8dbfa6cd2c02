//! The CSI calls of the demo and the self-test, as Kubernetes makes them.

use std::time::Duration;

use csi_node::proto::controller_client::ControllerClient;
use csi_node::proto::identity_client::IdentityClient;
use csi_node::proto::node_client::NodeClient;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use csi_node::proto::{
    CapacityRange, ControllerExpandVolumeRequest, ControllerExpandVolumeResponse,
    CreateVolumeRequest, DeleteVolumeRequest, GetPluginInfoRequest, GetPluginInfoResponse,
    ListVolumesRequest, NodeExpandVolumeRequest, NodeGetInfoRequest, NodeGetVolumeStatsRequest,
    NodeGetVolumeStatsResponse, NodePublishVolumeRequest, NodeStageVolumeRequest,
    NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, ProbeRequest, Volume, VolumeCapability,
};
use csi_proxy::HostPath;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::failure::{Failure, Result};

/// How long a call may take; the kubelet's own limit.
const CALL_LIMIT: Duration = Duration::from_secs(120);

/// The three services of one plugin.
#[derive(Clone)]
pub(crate) struct Client {
    identity: IdentityClient<Channel>,
    controller: ControllerClient<Channel>,
    node: NodeClient<Channel>,
}

/// Where a volume is staged and published.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) staging: HostPath,
    pub(crate) target: HostPath,
}

impl Client {
    /// Connects to an endpoint as the plugin names it: `unix://` or `tcp://`.
    pub(crate) async fn connect(endpoint: &str) -> Result<Self> {
        let wrong = |error| Failure::from_error(format!("cannot connect to {endpoint}"), &error);
        // gRPC knows `unix`, and calls TCP without encryption `http`.
        let channel = Endpoint::new(endpoint.replacen("tcp://", "http://", 1))
            .map_err(wrong)?
            .timeout(CALL_LIMIT)
            .connect()
            .await
            .map_err(wrong)?;
        Ok(Self {
            identity: IdentityClient::new(channel.clone()),
            controller: ControllerClient::new(channel.clone()),
            node: NodeClient::new(channel),
        })
    }

    /// The plugin's name and version.
    pub(crate) async fn info(&mut self) -> Result<GetPluginInfoResponse> {
        let answer = self.identity.get_plugin_info(GetPluginInfoRequest {}).await;
        ok("GetPluginInfo", answer)
    }

    /// Whether the plugin says that it is ready.
    pub(crate) async fn ready(&mut self) -> Result<bool> {
        let answer = ok("Probe", self.identity.probe(ProbeRequest {}).await)?;
        // Not given means ready.
        Ok(answer.ready.unwrap_or(true))
    }

    /// The node's id.
    pub(crate) async fn node_id(&mut self) -> Result<String> {
        let answer = self.node.node_get_info(NodeGetInfoRequest {}).await;
        Ok(ok("NodeGetInfo", answer)?.node_id)
    }

    /// Makes a volume of exactly so many bytes.
    pub(crate) async fn create(&mut self, name: &str, size: i64) -> Result<Volume> {
        let request = CreateVolumeRequest {
            name: name.to_owned(),
            capacity_range: Some(CapacityRange {
                required_bytes: size,
                limit_bytes: size,
            }),
            volume_capabilities: vec![capability()],
            ..Default::default()
        };
        let answer = ok("CreateVolume", self.controller.create_volume(request).await)?;
        answer
            .volume
            .ok_or_else(|| Failure::new("CreateVolume answered no volume"))
    }

    /// The ids of all volumes.
    pub(crate) async fn volumes(&mut self) -> Result<Vec<String>> {
        let request = ListVolumesRequest::default();
        let answer = ok("ListVolumes", self.controller.list_volumes(request).await)?;
        let volumes = answer.entries.into_iter().filter_map(|entry| entry.volume);
        Ok(volumes.map(|volume| volume.volume_id).collect())
    }

    /// Deletes a volume.
    pub(crate) async fn delete(&mut self, volume: &str) -> Result<()> {
        let request = DeleteVolumeRequest {
            volume_id: volume.to_owned(),
            ..Default::default()
        };
        ok("DeleteVolume", self.controller.delete_volume(request).await)?;
        Ok(())
    }

    /// Grows a volume; the refusal is the caller's to judge.
    pub(crate) async fn controller_expand(
        &mut self,
        volume: &str,
        size: i64,
    ) -> std::result::Result<ControllerExpandVolumeResponse, Status> {
        let request = ControllerExpandVolumeRequest {
            volume_id: volume.to_owned(),
            capacity_range: Some(at_least(size)),
            volume_capability: Some(capability()),
            ..Default::default()
        };
        let answer = self.controller.controller_expand_volume(request).await?;
        Ok(answer.into_inner())
    }

    /// Makes a volume ready at its staging path.
    pub(crate) async fn stage(&mut self, volume: &Volume, places: &Places) -> Result<()> {
        let request = NodeStageVolumeRequest {
            volume_id: volume.volume_id.clone(),
            staging_target_path: as_the_kubelet(&places.staging),
            volume_capability: Some(capability()),
            volume_context: volume.volume_context.clone(),
            ..Default::default()
        };
        ok(
            "NodeStageVolume",
            self.node.node_stage_volume(request).await,
        )?;
        Ok(())
    }

    /// Undoes [`Client::stage`].
    pub(crate) async fn unstage(&mut self, volume: &str, places: &Places) -> Result<()> {
        let request = NodeUnstageVolumeRequest {
            volume_id: volume.to_owned(),
            staging_target_path: as_the_kubelet(&places.staging),
        };
        let answer = self.node.node_unstage_volume(request).await;
        ok("NodeUnstageVolume", answer)?;
        Ok(())
    }

    /// Makes a staged volume appear at its target path.
    pub(crate) async fn publish(&mut self, volume: &Volume, places: &Places) -> Result<()> {
        let request = NodePublishVolumeRequest {
            volume_id: volume.volume_id.clone(),
            staging_target_path: as_the_kubelet(&places.staging),
            target_path: as_the_kubelet(&places.target),
            volume_capability: Some(capability()),
            volume_context: volume.volume_context.clone(),
            ..Default::default()
        };
        let answer = self.node.node_publish_volume(request).await;
        ok("NodePublishVolume", answer)?;
        Ok(())
    }

    /// Undoes [`Client::publish`].
    pub(crate) async fn unpublish(&mut self, volume: &str, places: &Places) -> Result<()> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: volume.to_owned(),
            target_path: as_the_kubelet(&places.target),
        };
        let answer = self.node.node_unpublish_volume(request).await;
        ok("NodeUnpublishVolume", answer)?;
        Ok(())
    }

    /// How full a published volume is.
    pub(crate) async fn stats(
        &mut self,
        volume: &str,
        places: &Places,
    ) -> Result<NodeGetVolumeStatsResponse> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: volume.to_owned(),
            volume_path: as_the_kubelet(&places.target),
            staging_target_path: as_the_kubelet(&places.staging),
        };
        let answer = self.node.node_get_volume_stats(request).await;
        ok("NodeGetVolumeStats", answer)
    }

    /// Grows the file system of a published volume to the volume's size, which it answers.
    pub(crate) async fn node_expand(
        &mut self,
        volume: &str,
        size: i64,
        places: &Places,
    ) -> Result<i64> {
        let request = NodeExpandVolumeRequest {
            volume_id: volume.to_owned(),
            volume_path: as_the_kubelet(&places.target),
            capacity_range: Some(at_least(size)),
            staging_target_path: as_the_kubelet(&places.staging),
            volume_capability: Some(capability()),
            ..Default::default()
        };
        let answer = self.node.node_expand_volume(request).await;
        Ok(ok("NodeExpandVolume", answer)?.capacity_bytes)
    }
}

/// A path as the kubelet on Windows sends it, without `C:`.
fn as_the_kubelet(path: &HostPath) -> String {
    let text = path.as_str();
    text.strip_prefix("C:").unwrap_or(text).to_owned()
}

fn at_least(size: i64) -> CapacityRange {
    CapacityRange {
        required_bytes: size,
        limit_bytes: 0,
    }
}

/// A file system that the pods of one node read and write.
fn capability() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: "ntfs".to_owned(),
            ..Default::default()
        })),
    }
}

/// The answer, or a failure that names the call and gRPC's code.
fn ok<T>(call: &str, answer: std::result::Result<tonic::Response<T>, Status>) -> Result<T> {
    answer
        .map(tonic::Response::into_inner)
        .map_err(|status| refused(call, &status))
}

/// A call that was refused, with gRPC's code.
pub(crate) fn refused(call: &str, status: &Status) -> Failure {
    Failure::new(format!(
        "{call} answered {:?}: {}",
        status.code(),
        status.message()
    ))
}
