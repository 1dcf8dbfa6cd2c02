//! The CSI Node service.

use csi_proxy::ErrorKind;
use tonic::{Request, Response, Status};

use crate::controller::{condition, int64};
use crate::driver::{AtPath, NodeExpand, Publish, Stage, Stats, Unpublish, Unstage};
use crate::plugin::Plugin;
use crate::proto::node_server::Node;
use crate::proto::node_service_capability::rpc::Type as Rpc;
use crate::proto::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetCapabilitiesRequest,
    NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse,
    NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, NodePublishVolumeRequest,
    NodePublishVolumeResponse, NodeServiceCapability, NodeStageVolumeRequest,
    NodeStageVolumeResponse, NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse,
    NodeUnstageVolumeRequest, NodeUnstageVolumeResponse, Topology, VolumeUsage,
    node_service_capability, volume_usage,
};
use crate::validate::Fields;

/// What the service offers.
const OFFERS: [Rpc; 4] = [
    Rpc::StageUnstageVolume,
    Rpc::GetVolumeStats,
    Rpc::ExpandVolume,
    Rpc::VolumeCondition,
];

#[tonic::async_trait]
impl Node for Plugin {
    /// Once per node, before any publish. A volume that is staged at the path already is
    /// success; what it cannot be used for is FailedPrecondition.
    async fn node_stage_volume(
        &self,
        request: Request<NodeStageVolumeRequest>,
    ) -> Result<Response<NodeStageVolumeResponse>, Status> {
        const OPERATION: &str = "NodeStageVolume";
        self.answer(OPERATION, async {
            let stage = read_stage(OPERATION, request.get_ref())?;
            let id = stage.volume_id.clone();
            self.for_volume(OPERATION, &id, &request, move |driver, deadline| {
                driver.stage(&stage, deadline)
            })
            .await?;
            Ok(NodeStageVolumeResponse {})
        })
        .await
    }

    /// After all unpublishes. A volume that is not staged at the path is success.
    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Result<Response<NodeUnstageVolumeResponse>, Status> {
        const OPERATION: &str = "NodeUnstageVolume";
        self.answer(OPERATION, async {
            let unstage = read_unstage(OPERATION, request.get_ref())?;
            let id = unstage.volume_id.clone();
            self.for_volume(OPERATION, &id, &request, move |driver, deadline| {
                driver.unstage(&unstage, deadline)
            })
            .await?;
            Ok(NodeUnstageVolumeResponse {})
        })
        .await
    }

    /// For each pod. A volume that is not staged, or staged for another use, is
    /// FailedPrecondition; the same publish again is success.
    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Result<Response<NodePublishVolumeResponse>, Status> {
        const OPERATION: &str = "NodePublishVolume";
        self.answer(OPERATION, async {
            let publish = read_publish(OPERATION, request.get_ref())?;
            let id = publish.volume_id.clone();
            self.for_volume(OPERATION, &id, &request, move |driver, deadline| {
                driver.publish(&publish, deadline)
            })
            .await?;
            Ok(NodePublishVolumeResponse {})
        })
        .await
    }

    /// Removes what publish made at the path; nothing there is success.
    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        const OPERATION: &str = "NodeUnpublishVolume";
        self.answer(OPERATION, async {
            let unpublish = read_unpublish(OPERATION, request.get_ref())?;
            let id = unpublish.volume_id.clone();
            self.for_volume(OPERATION, &id, &request, move |driver, deadline| {
                driver.unpublish(&unpublish, deadline)
            })
            .await?;
            Ok(NodeUnpublishVolumeResponse {})
        })
        .await
    }

    /// The path must be where this volume is staged or published, otherwise NotFound.
    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Result<Response<NodeGetVolumeStatsResponse>, Status> {
        const OPERATION: &str = "NodeGetVolumeStats";
        self.answer(OPERATION, async {
            let fields = Fields(OPERATION);
            let (metadata, _, request) = request.into_parts();
            let at = read_at(fields, &request.volume_id, &request.volume_path)
                .and_then(|at| optional_path(fields, &request.staging_target_path).map(|()| at))?;
            let id = at.volume_id.clone();
            let stats = self
                .reading(
                    OPERATION,
                    &format!("volume {id}"),
                    &metadata,
                    move |driver, deadline| driver.stats(&at, deadline),
                )
                .await?;
            Ok(NodeGetVolumeStatsResponse {
                usage: vec![usage(&stats)],
                volume_condition: Some(condition(&stats.condition)),
            })
        })
        .await
    }

    /// After the Controller has grown the volume: grows partition and file system to it. The
    /// answer is the size of the volume, as the Controller counts it.
    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> Result<Response<NodeExpandVolumeResponse>, Status> {
        const OPERATION: &str = "NodeExpandVolume";
        self.answer(OPERATION, async {
            let expand = read_node_expand(OPERATION, request.get_ref())?;
            let id = expand.at.volume_id.clone();
            let size = self
                .for_volume(OPERATION, &id, &request, move |driver, deadline| {
                    driver.expand(&expand, deadline)
                })
                .await?;
            Ok(NodeExpandVolumeResponse {
                capacity_bytes: int64(size),
            })
        })
        .await
    }

    /// What of this service can be called.
    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        self.answer("NodeGetCapabilities", async {
            let capabilities = OFFERS.map(|rpc| NodeServiceCapability {
                r#type: Some(node_service_capability::Type::Rpc(
                    node_service_capability::Rpc { r#type: rpc.into() },
                )),
            });
            Ok(NodeGetCapabilitiesResponse {
                capabilities: capabilities.into(),
            })
        })
        .await
    }

    /// The name of the node, and where its volumes can be used from.
    async fn node_get_info(
        &self,
        _: Request<NodeGetInfoRequest>,
    ) -> Result<Response<NodeGetInfoResponse>, Status> {
        self.answer("NodeGetInfo", async {
            let info = self.driver.info();
            let topology = (!info.topology.is_empty()).then(|| Topology {
                segments: info.topology.clone(),
            });
            Ok(NodeGetInfoResponse {
                node_id: info.node_id.clone(),
                max_volumes_per_node: info.max_volumes,
                accessible_topology: topology,
            })
        })
        .await
    }
}

fn read_stage(
    operation: &'static str,
    request: &NodeStageVolumeRequest,
) -> csi_proxy::Result<Stage> {
    let fields = Fields(operation);
    Ok(Stage {
        volume_id: fields.text("volume_id", &request.volume_id)?,
        staging_path: fields.path("staging_target_path", &request.staging_target_path)?,
        capability: fields.capability(request.volume_capability.as_ref())?,
        volume_context: fields.map("volume_context", &request.volume_context)?,
        publish_context: fields.map("publish_context", &request.publish_context)?,
        secrets: fields.secrets(&request.secrets)?,
    })
}

fn read_unstage(
    operation: &'static str,
    request: &NodeUnstageVolumeRequest,
) -> csi_proxy::Result<Unstage> {
    let fields = Fields(operation);
    Ok(Unstage {
        volume_id: fields.text("volume_id", &request.volume_id)?,
        staging_path: fields.path("staging_target_path", &request.staging_target_path)?,
    })
}

fn read_publish(
    operation: &'static str,
    request: &NodePublishVolumeRequest,
) -> csi_proxy::Result<Publish> {
    let fields = Fields(operation);
    fields.map("volume_context", &request.volume_context)?;
    fields.map("publish_context", &request.publish_context)?;
    fields.secrets(&request.secrets)?;
    let volume_id = fields.text("volume_id", &request.volume_id)?;
    let target_path = fields.path("target_path", &request.target_path)?;
    let capability = fields.capability(request.volume_capability.as_ref())?;
    // CSI counts this one as a volume that was not staged.
    if request.staging_target_path.is_empty() {
        let error = fields.wrong("staging_target_path", "is missing: stage the volume first");
        return Err(error.with_kind(ErrorKind::FailedPrecondition));
    }
    Ok(Publish {
        volume_id,
        staging_path: fields.path("staging_target_path", &request.staging_target_path)?,
        target_path,
        capability,
        read_only: request.readonly,
    })
}

fn read_unpublish(
    operation: &'static str,
    request: &NodeUnpublishVolumeRequest,
) -> csi_proxy::Result<Unpublish> {
    let fields = Fields(operation);
    Ok(Unpublish {
        volume_id: fields.text("volume_id", &request.volume_id)?,
        target_path: fields.path("target_path", &request.target_path)?,
    })
}

fn read_node_expand(
    operation: &'static str,
    request: &NodeExpandVolumeRequest,
) -> csi_proxy::Result<NodeExpand> {
    let fields = Fields(operation);
    let expand = NodeExpand {
        at: read_at(fields, &request.volume_id, &request.volume_path)?,
        range: fields.range(request.capacity_range.as_ref())?,
    };
    fields.secrets(&request.secrets)?;
    optional_path(fields, &request.staging_target_path)?;
    if let Some(capability) = &request.volume_capability {
        fields.capability(Some(capability))?;
    }
    Ok(expand)
}

/// A path that no volume can be at is one that the volume is not at: NotFound, as CSI asks
/// for. Only a path that is missing is wrong.
fn read_at(fields: Fields, volume_id: &str, volume_path: &str) -> csi_proxy::Result<AtPath> {
    let path = fields.path("volume_path", volume_path);
    Ok(AtPath {
        volume_id: fields.text("volume_id", volume_id)?,
        path: path.map_err(|error| match volume_path {
            "" => error,
            _ => error.with_kind(ErrorKind::NotFound),
        })?,
    })
}

fn optional_path(fields: Fields, path: &str) -> csi_proxy::Result<()> {
    match path {
        "" => Ok(()),
        path => fields.path("staging_target_path", path).map(|_| ()),
    }
}

fn usage(stats: &Stats) -> VolumeUsage {
    VolumeUsage {
        available: int64(stats.available),
        total: int64(stats.total),
        used: int64(stats.total.saturating_sub(stats.available)),
        unit: volume_usage::Unit::Bytes.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_path_that_no_volume_can_be_at_is_not_found() {
        let kind = |path| {
            let read = read_at(Fields("NodeGetVolumeStats"), "v", path);
            read.map_err(|error| error.kind()).err()
        };
        assert_eq!(kind("some/path"), Some(ErrorKind::NotFound));
        assert_eq!(kind(r"C:\a:stream"), Some(ErrorKind::NotFound));
        assert_eq!(kind(""), Some(ErrorKind::InvalidArgument));
        assert_eq!(kind(r"C:\var\lib\kubelet\mount"), None);
    }
}
