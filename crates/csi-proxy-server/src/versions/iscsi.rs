//! The versions of the group `iscsi`.

use csi_proxy::iscsi::{Authentication, ChapSecret};
use csi_proxy::{Error, ErrorKind, NodeAddress, Portal, Result, Secret};

use super::table;
use crate::call::Call;

/// The values of `AuthenticationType`, the same in both versions.
const NONE: i32 = 0;
const ONE_WAY_CHAP: i32 = 1;
const MUTUAL_CHAP: i32 = 2;

// A target is known by its name alone, so the portal of a connected one is not needed.
table! { iscsi [
    v1alpha1 {},
    v1alpha2 {
        set_mutual_chap_secret(SetMutualChapSecretRequest { mutual_chap_secret })
            -> SetMutualChapSecretResponse {
            let secret = chap_secret(call, "MutualChapSecret", mutual_chap_secret)?;
            call.host().iscsi().set_mutual_chap_secret(&secret, call.deadline)?;
            SetMutualChapSecretResponse {}
        }
    }
] iscsi_server::Iscsi, call {
    add_target_portal(AddTargetPortalRequest { target_portal }) -> AddTargetPortalResponse {
        let TargetPortal { target_address, target_port } = target_portal.unwrap_or_default();
        let portal = portal(call, &target_address, target_port)?;
        call.host().iscsi().add_target_portal(&portal, call.deadline)?;
        AddTargetPortalResponse {}
    }
    discover_target_portal(DiscoverTargetPortalRequest { target_portal })
        -> DiscoverTargetPortalResponse {
        let TargetPortal { target_address, target_port } = target_portal.unwrap_or_default();
        let portal = portal(call, &target_address, target_port)?;
        let targets = call.host().iscsi().discover_target_portal(&portal, call.deadline)?;
        DiscoverTargetPortalResponse { iqns: targets.iter().map(ToString::to_string).collect() }
    }
    remove_target_portal(RemoveTargetPortalRequest { target_portal })
        -> RemoveTargetPortalResponse {
        let TargetPortal { target_address, target_port } = target_portal.unwrap_or_default();
        let portal = portal(call, &target_address, target_port)?;
        call.host().iscsi().remove_target_portal(&portal, call.deadline)?;
        RemoveTargetPortalResponse {}
    }
    list_target_portals(ListTargetPortalsRequest {}) -> ListTargetPortalsResponse {
        let portals = call.host().iscsi().list_target_portals(call.deadline)?;
        let target_portals = portals.iter().map(|portal| TargetPortal {
            target_address: portal.address().to_owned(),
            target_port: portal.port().into(),
        });
        ListTargetPortalsResponse { target_portals: target_portals.collect() }
    }
    connect_target(ConnectTargetRequest {
        target_portal, iqn, auth_type, chap_username, chap_secret
    }) -> ConnectTargetResponse {
        let TargetPortal { target_address, target_port } = target_portal.unwrap_or_default();
        let portal = portal(call, &target_address, target_port)?;
        let target = target(call, &iqn)?;
        let authentication = authentication(call, auth_type, chap_username, chap_secret)?;
        call.host().iscsi().connect_target(&portal, &target, &authentication, call.deadline)?;
        ConnectTargetResponse {}
    }
    disconnect_target(DisconnectTargetRequest { target_portal: _, iqn })
        -> DisconnectTargetResponse {
        call.host().iscsi().disconnect_target(&target(call, &iqn)?, call.deadline)?;
        DisconnectTargetResponse {}
    }
    get_target_disks(GetTargetDisksRequest { target_portal: _, iqn }) -> GetTargetDisksResponse {
        let disks = call.host().iscsi().target_disks(&target(call, &iqn)?, call.deadline)?;
        GetTargetDisksResponse { disk_i_ds: disks.iter().map(ToString::to_string).collect() }
    }
}}

fn portal(call: &Call<'_>, address: &str, port: u32) -> Result<Portal> {
    let port = u16::try_from(port).map_err(|_| {
        let detail = "expected a TCP port, or 0 for 3260";
        wrong(call, format!("target_port {port}"), detail)
    })?;
    Portal::new(address, port).map_err(|error| error.in_field(call.operation(), "target_address"))
}

fn target(call: &Call<'_>, iqn: &str) -> Result<NodeAddress> {
    NodeAddress::new(iqn).map_err(|error| error.in_field(call.operation(), "iqn"))
}

fn chap_secret(call: &Call<'_>, field: &str, secret: String) -> Result<ChapSecret> {
    ChapSecret::new(Secret::new(secret)).map_err(|error| error.in_field(call.operation(), field))
}

fn authentication(
    call: &Call<'_>,
    kind: i32,
    username: String,
    secret: String,
) -> Result<Authentication> {
    let secret = || chap_secret(call, "chap_secret", secret);
    match kind {
        NONE => Ok(Authentication::None),
        ONE_WAY_CHAP => Ok(Authentication::OneWayChap {
            secret: secret()?,
            username,
        }),
        MUTUAL_CHAP => Ok(Authentication::MutualChap {
            secret: secret()?,
            username,
        }),
        other => {
            let detail = "expected NONE (0), ONE_WAY_CHAP (1) or MUTUAL_CHAP (2)";
            Err(wrong(call, format!("auth_type {other}"), detail))
        }
    }
}

fn wrong(call: &Call<'_>, field: String, detail: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, call.operation(), field, detail)
}
