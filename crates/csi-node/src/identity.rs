//! The CSI Identity service.

use tonic::{Request, Response, Status};

use crate::plugin::Plugin;
use crate::proto::identity_server::Identity;
use crate::proto::plugin_capability::{Service, Type, VolumeExpansion, service, volume_expansion};
use crate::proto::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest,
    GetPluginInfoResponse, PluginCapability, ProbeRequest, ProbeResponse,
};

#[tonic::async_trait]
impl Identity for Plugin {
    /// The name never changes over the plugin's life: volumes are filed under it.
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        self.answer("GetPluginInfo", async {
            Ok(GetPluginInfoResponse {
                name: self.driver.info().name.clone(),
                vendor_version: env!("CARGO_PKG_VERSION").to_owned(),
                manifest: [].into(),
            })
        })
        .await
    }

    /// The services there are. A driver that makes volumes makes them on its own node, and
    /// Windows expands a VHDX file only while it is detached.
    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        self.answer("GetPluginCapabilities", async {
            let mut capabilities = Vec::new();
            if self.driver.controller().is_some() {
                capabilities.push(service(service::Type::ControllerService));
                let offline = volume_expansion::Type::Offline.into();
                capabilities.push(Type::VolumeExpansion(VolumeExpansion { r#type: offline }));
            }
            if !self.driver.info().topology.is_empty() {
                capabilities.push(service(service::Type::VolumeAccessibilityConstraints));
            }
            let capabilities = capabilities
                .into_iter()
                .map(|capability| PluginCapability {
                    r#type: Some(capability),
                })
                .collect();
            Ok(GetPluginCapabilitiesResponse { capabilities })
        })
        .await
    }

    /// Ready from the first call on: nothing has to be prepared. What the driver lacks on its
    /// node is FailedPrecondition, as CSI asks for.
    async fn probe(
        &self,
        request: Request<ProbeRequest>,
    ) -> Result<Response<ProbeResponse>, Status> {
        const OPERATION: &str = "Probe";
        self.answer(OPERATION, async {
            self.reading(
                OPERATION,
                "plugin",
                request.metadata(),
                |driver, deadline| driver.probe(deadline),
            )
            .await?;
            Ok(ProbeResponse { ready: Some(true) })
        })
        .await
    }
}

fn service(service: service::Type) -> Type {
    Type::Service(Service {
        r#type: service.into(),
    })
}
