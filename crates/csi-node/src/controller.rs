//! The CSI Controller service, for drivers that make their volumes themselves.

use csi_proxy::{Error, ErrorKind};
use sha2::{Digest as _, Sha256};
use tonic::{Request, Response, Status};

use crate::driver::{Condition, ControllerDriver, Create, Driver, Page, PluginInfo, Uses, Volume};
use crate::plugin::Plugin;
use crate::proto::controller_server::Controller;
use crate::proto::controller_service_capability::rpc::Type as Rpc;
use crate::proto::{
    self, ControllerExpandVolumeRequest, ControllerExpandVolumeResponse,
    ControllerGetCapabilitiesRequest, ControllerGetCapabilitiesResponse,
    ControllerGetVolumeRequest, ControllerGetVolumeResponse, ControllerServiceCapability,
    CreateVolumeRequest, CreateVolumeResponse, DeleteVolumeRequest, DeleteVolumeResponse,
    GetCapacityRequest, GetCapacityResponse, ListVolumesRequest, ListVolumesResponse, Topology,
    ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse, VolumeCondition,
    controller_get_volume_response, controller_service_capability, list_volumes_response,
    validate_volume_capabilities_response,
};
use crate::validate::{Fields, reachable, shown};

/// What the service offers.
const OFFERS: [Rpc; 6] = [
    Rpc::CreateDeleteVolume,
    Rpc::ListVolumes,
    Rpc::GetCapacity,
    Rpc::ExpandVolume,
    Rpc::GetVolume,
    Rpc::VolumeCondition,
];

#[tonic::async_trait]
impl Controller for Plugin {
    /// The name decides: the same name again gives the same volume, and AlreadyExists when
    /// that one does not fit the request. A size that no volume can have is OutOfRange; no
    /// room here is ResourceExhausted, so that another node may be tried.
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        const OPERATION: &str = "CreateVolume";
        self.answer(OPERATION, async {
            let create = read_create(OPERATION, request.get_ref(), self.driver.info())?;
            let id = offered(&*self.driver, OPERATION)?.volume_id(&create.name);
            let volume = self
                .for_volume(OPERATION, &id, &request, move |driver, deadline| {
                    let controller = offered(driver, OPERATION)?;
                    controller.check_parameters(&create.parameters, &create.capabilities)?;
                    controller.create(&create, deadline)
                })
                .await?;
            Ok(CreateVolumeResponse {
                volume: Some(message(volume, self.driver.info())),
            })
        })
        .await
    }

    /// A volume that does not exist is deleted; one in use is FailedPrecondition.
    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        const OPERATION: &str = "DeleteVolume";
        self.answer(OPERATION, async {
            let id = Fields(OPERATION).text("volume_id", &request.get_ref().volume_id)?;
            let volume = id.clone();
            self.for_volume(OPERATION, &id, &request, move |driver, deadline| {
                offered(driver, OPERATION)?.delete(&volume, deadline)
            })
            .await?;
            Ok(DeleteVolumeResponse {})
        })
        .await
    }

    /// Confirms only when all capabilities are supported and the volume is the one of the
    /// context and the parameters; otherwise the message says what differs. A volume that does not exist is
    /// NotFound.
    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<ValidateVolumeCapabilitiesResponse>, Status> {
        const OPERATION: &str = "ValidateVolumeCapabilities";
        self.answer(OPERATION, async {
            let fields = Fields(OPERATION);
            let (metadata, _, request) = request.into_parts();
            let id = fields.text("volume_id", &request.volume_id)?;
            if request.volume_capabilities.is_empty() {
                return Err(fields.wrong("volume_capabilities", "is missing"));
            }
            fields.map("volume_context", &request.volume_context)?;
            fields.map("parameters", &request.parameters)?;
            let volume = id.clone();
            self.reading(
                OPERATION,
                &format!("volume {id}"),
                &metadata,
                move |driver, deadline| {
                    let controller = offered(driver, OPERATION)?;
                    let volume = controller.get(&volume, deadline)?;
                    let wanted = fields.capabilities(&request.volume_capabilities);
                    let supported = wanted.and_then(|capabilities| {
                        let uses = Uses {
                            capabilities,
                            context: request.volume_context.clone(),
                            parameters: request.parameters.clone(),
                        };
                        controller.check_uses(&volume, &uses)?;
                        no_mutable(fields, &request.mutable_parameters)
                    });
                    Ok(confirm(request, supported))
                },
            )
            .await
        })
        .await
    }

    /// In the order of the ids. A token that this plugin did not give is Aborted, as CSI
    /// asks, so that the caller starts anew.
    async fn list_volumes(
        &self,
        request: Request<ListVolumesRequest>,
    ) -> Result<Response<ListVolumesResponse>, Status> {
        const OPERATION: &str = "ListVolumes";
        self.answer(OPERATION, async {
            let page = read_page(OPERATION, request.get_ref(), self.driver.info())?;
            let listing = self
                .reading(
                    OPERATION,
                    "volumes",
                    request.metadata(),
                    move |driver, deadline| offered(driver, OPERATION)?.list(&page, deadline),
                )
                .await?;
            let last = listing.volumes.last().map(|volume| volume.id.clone());
            let next_token = match last {
                Some(id) if listing.more => token(self.driver.info(), &id),
                _ => String::new(),
            };
            let info = self.driver.info();
            let entries = listing
                .volumes
                .into_iter()
                .map(|volume| list_volumes_response::Entry {
                    status: Some(list_volumes_response::VolumeStatus {
                        published_node_ids: nodes(&volume, info),
                        volume_condition: Some(condition(&volume.condition)),
                    }),
                    volume: Some(message(volume, info)),
                })
                .collect();
            Ok(ListVolumesResponse {
                entries,
                next_token,
            })
        })
        .await
    }

    /// The capacity for volumes with the capabilities, the parameters and the place that are
    /// asked for: none with capabilities or at a place that cannot be had. Parameters that
    /// CreateVolume refuses are refused here too.
    async fn get_capacity(
        &self,
        request: Request<GetCapacityRequest>,
    ) -> Result<Response<GetCapacityResponse>, Status> {
        const OPERATION: &str = "GetCapacity";
        self.answer(OPERATION, async {
            let (metadata, _, request) = request.into_parts();
            Fields(OPERATION).map("parameters", &request.parameters)?;
            let place = request.accessible_topology.as_slice();
            let here = reachable(place, &self.driver.info().topology);
            let wanted = &request.volume_capabilities;
            let wanted = match wanted.is_empty() {
                true => Some(Vec::new()),
                false => Fields(OPERATION).capabilities(wanted).ok(),
            };
            let usable = wanted.is_some();
            let capacity = self
                .reading(OPERATION, "capacity", &metadata, move |driver, deadline| {
                    let controller = offered(driver, OPERATION)?;
                    let wanted = wanted.as_deref().unwrap_or_default();
                    controller.capacity(&request.parameters, wanted, deadline)
                })
                .await?;
            let available = match here && usable {
                true => capacity.available,
                false => 0,
            };
            Ok(GetCapacityResponse {
                available_capacity: int64(available),
                maximum_volume_size: Some(int64(capacity.maximum.min(available))),
                minimum_volume_size: Some(int64(capacity.minimum)),
            })
        })
        .await
    }

    /// What of this service can be called.
    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<ControllerGetCapabilitiesResponse>, Status> {
        self.answer("ControllerGetCapabilities", async {
            let capabilities = OFFERS.map(|rpc| ControllerServiceCapability {
                r#type: Some(controller_service_capability::Type::Rpc(
                    controller_service_capability::Rpc { r#type: rpc.into() },
                )),
            });
            Ok(ControllerGetCapabilitiesResponse {
                capabilities: capabilities.into(),
            })
        })
        .await
    }

    /// Offline only: a volume in use is FailedPrecondition. A size that is there already is
    /// success; one that no volume can have is OutOfRange, no room here is ResourceExhausted.
    /// The node grows partition and file system afterwards.
    async fn controller_expand_volume(
        &self,
        request: Request<ControllerExpandVolumeRequest>,
    ) -> Result<Response<ControllerExpandVolumeResponse>, Status> {
        const OPERATION: &str = "ControllerExpandVolume";
        self.answer(OPERATION, async {
            let (id, range) = read_expand(OPERATION, request.get_ref())?;
            let volume = id.clone();
            let size = self
                .for_volume(OPERATION, &id, &request, move |driver, deadline| {
                    offered(driver, OPERATION)?.grow(&volume, range, deadline)
                })
                .await?;
            Ok(ControllerExpandVolumeResponse {
                capacity_bytes: int64(size),
                node_expansion_required: true,
            })
        })
        .await
    }

    /// A volume, where it is in use, and how it is.
    async fn controller_get_volume(
        &self,
        request: Request<ControllerGetVolumeRequest>,
    ) -> Result<Response<ControllerGetVolumeResponse>, Status> {
        const OPERATION: &str = "ControllerGetVolume";
        self.answer(OPERATION, async {
            let id = Fields(OPERATION).text("volume_id", &request.get_ref().volume_id)?;
            let asked = id.clone();
            let volume = self
                .reading(
                    OPERATION,
                    &format!("volume {id}"),
                    request.metadata(),
                    move |driver, deadline| offered(driver, OPERATION)?.get(&asked, deadline),
                )
                .await?;
            let info = self.driver.info();
            Ok(ControllerGetVolumeResponse {
                status: Some(controller_get_volume_response::VolumeStatus {
                    published_node_ids: nodes(&volume, info),
                    volume_condition: Some(condition(&volume.condition)),
                }),
                volume: Some(message(volume, info)),
            })
        })
        .await
    }
}

/// The Controller of a driver that has one.
fn offered<'a>(
    driver: &'a dyn Driver,
    operation: &'static str,
) -> csi_proxy::Result<&'a dyn ControllerDriver> {
    driver.controller().ok_or_else(|| {
        let name = &driver.info().name;
        let detail = "this driver does not make volumes";
        Error::new(ErrorKind::Unsupported, operation, name, detail)
    })
}

fn read_create(
    operation: &'static str,
    request: &CreateVolumeRequest,
    info: &PluginInfo,
) -> csi_proxy::Result<Create> {
    let fields = Fields(operation);
    let create = Create {
        name: fields.text("name", &request.name)?,
        range: fields.range(request.capacity_range.as_ref())?,
        capabilities: fields.capabilities(&request.volume_capabilities)?,
        parameters: fields.map("parameters", &request.parameters)?,
    };
    no_mutable(fields, &request.mutable_parameters)?;
    if request.volume_content_source.is_some() {
        let detail = "volumes are not made from snapshots or other volumes";
        return Err(fields.wrong("volume_content_source", detail));
    }
    if let Some(wanted) = &request.accessibility_requirements
        && !reachable(&wanted.requisite, &info.topology)
    {
        let detail = format!(
            "no place that is asked for is this node ({:?})",
            info.topology
        );
        let object = "field accessibility_requirements.requisite";
        let kind = ErrorKind::ResourceExhausted;
        return Err(Error::new(kind, operation, object, detail));
    }
    Ok(create)
}

fn no_mutable(
    fields: Fields,
    parameters: &std::collections::BTreeMap<String, String>,
) -> csi_proxy::Result<()> {
    match parameters.keys().next() {
        None => Ok(()),
        Some(key) => {
            let detail = format!("{}: no parameter can be changed later", shown(key));
            Err(fields.wrong("mutable_parameters", detail))
        }
    }
}

fn read_page(
    operation: &'static str,
    request: &ListVolumesRequest,
    info: &PluginInfo,
) -> csi_proxy::Result<Page> {
    let fields = Fields(operation);
    let limit = usize::try_from(request.max_entries).map_err(|_| {
        let detail = format!("{}, expected 0 or more", request.max_entries);
        fields.wrong("max_entries", detail)
    })?;
    let after = match &*request.starting_token {
        "" => None,
        token => Some(read_token(operation, token, info)?),
    };
    Ok(Page {
        after,
        limit: (limit > 0).then_some(limit),
    })
}

/// The token for the volumes after one. It stays good when that volume is deleted meanwhile,
/// and in a plugin that was started anew; the sum at its end tells it from other text and from
/// the tokens of another plugin or node.
fn token(info: &PluginInfo, id: &str) -> String {
    let sum = Sha256::digest(format!("{}\n{}\n{id}", info.name, info.node_id));
    let [a, b, c, d, ..]: [u8; 32] = sum.into();
    format!("{id}:{:08x}", u32::from_be_bytes([a, b, c, d]))
}

fn read_token(
    operation: &'static str,
    token: &str,
    info: &PluginInfo,
) -> csi_proxy::Result<String> {
    let id = token.rsplit_once(':').map(|(id, _)| id);
    let id = id.filter(|id| self::token(info, id) == token);
    id.map(str::to_owned).ok_or_else(|| {
        let detail = format!(
            "{} is no token of this plugin; list from the start",
            shown(token)
        );
        Error::new(
            ErrorKind::Aborted,
            operation,
            "field starting_token",
            detail,
        )
    })
}

fn read_expand(
    operation: &'static str,
    request: &ControllerExpandVolumeRequest,
) -> csi_proxy::Result<(String, crate::driver::SizeRange)> {
    let fields = Fields(operation);
    let id = fields.text("volume_id", &request.volume_id)?;
    let range = fields.range(request.capacity_range.as_ref())?;
    if range.required.is_none() && range.limit.is_none() {
        return Err(fields.wrong("capacity_range", "is missing"));
    }
    if let Some(capability) = &request.volume_capability {
        fields.capability(Some(capability))?;
    }
    Ok((id, range))
}

fn confirm(
    request: ValidateVolumeCapabilitiesRequest,
    supported: csi_proxy::Result<()>,
) -> ValidateVolumeCapabilitiesResponse {
    match supported {
        Ok(()) => ValidateVolumeCapabilitiesResponse {
            confirmed: Some(validate_volume_capabilities_response::Confirmed {
                volume_context: request.volume_context,
                volume_capabilities: request.volume_capabilities,
                parameters: request.parameters,
                mutable_parameters: request.mutable_parameters,
            }),
            message: String::new(),
        },
        Err(error) => ValidateVolumeCapabilitiesResponse {
            confirmed: None,
            // Cut as an error is, since it may quote a long request.
            message: Status::from(error).message().to_owned(),
        },
    }
}

fn message(volume: Volume, info: &PluginInfo) -> proto::Volume {
    proto::Volume {
        capacity_bytes: int64(volume.size),
        volume_id: volume.id,
        volume_context: volume.context,
        content_source: None,
        accessible_topology: vec![Topology {
            segments: info.topology.clone(),
        }],
    }
}

fn nodes(volume: &Volume, info: &PluginInfo) -> Vec<String> {
    volume
        .in_use
        .then(|| info.node_id.clone())
        .into_iter()
        .collect()
}

/// A condition as CSI shows it.
pub(crate) fn condition(condition: &Condition) -> VolumeCondition {
    VolumeCondition {
        abnormal: condition.abnormal,
        message: condition.message.clone(),
    }
}

/// A size as CSI shows it; no disk reaches the end of the type.
pub(crate) fn int64(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
