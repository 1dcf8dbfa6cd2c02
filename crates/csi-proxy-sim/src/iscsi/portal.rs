//! The class `MSFT_iSCSITargetPortal`.
//!
//! Source: <https://learn.microsoft.com/previous-versions/windows/desktop/iscsidisc/msft-iscsitargetportal>

use std::collections::BTreeSet;

use csi_proxy::cim::{Namespace, Value};
use csi_proxy::port::PortResult;
use serde::{Deserialize, Serialize};

use super::{Iscsi, check_running, is_running, refusal, status};
use crate::cim::{Class, Hint, Method, MethodCall, Reply, Row, done};
use crate::state::State;

pub(super) const CLASS: Class = Class {
    namespace: Namespace::Storage,
    name: "MSFT_iSCSITargetPortal",
    properties: &[
        "InitiatorInstanceName",
        "InitiatorPortalAddress",
        "IsDataDigest",
        "IsHeaderDigest",
        "TargetPortalAddress",
        "TargetPortalPortNumber",
    ],
    rows,
    methods: &[
        Method {
            name: "New",
            is_static: true,
            parameters: &[
                "TargetPortalAddress",
                "TargetPortalPortNumber",
                "InitiatorInstanceName",
                "InitiatorPortalAddress",
                "IsDataDigest",
                "IsHeaderDigest",
                "AuthenticationType",
                "ChapUsername",
                "ChapSecret",
            ],
            run: new,
        },
        Method {
            name: "Remove",
            is_static: false,
            parameters: &[
                "InitiatorInstanceName",
                "InitiatorPortalAddress",
                "TargetPortalPortNumber",
            ],
            run: remove,
        },
        Method {
            name: "Update",
            is_static: false,
            parameters: &[],
            run: update,
        },
    ],
};

/// A portal that was made known to the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Portal {
    /// `TargetPortalAddress`.
    pub address: String,
    /// `TargetPortalPortNumber`.
    pub port: u16,
    /// The targets that it named when it was last asked.
    pub targets: BTreeSet<String>,
}

impl Portal {
    pub(super) fn key(&self) -> String {
        format!("{}:{}", self.address.to_lowercase(), self.port)
    }
}

impl Iscsi {
    /// The targets that answer at a portal; none means that nobody is there.
    fn targets_at(&self, address: &str, port: u16) -> BTreeSet<String> {
        let targets = self.targets.iter();
        targets
            .filter(|(_, target)| target.is_at(address, port))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Asks all portals again; one that is away says nothing new.
    pub(super) fn discover(&mut self) {
        for index in 0..self.portals.len() {
            let portal = &self.portals[index];
            let targets = self.targets_at(&portal.address, portal.port);
            if !targets.is_empty() {
                self.portals[index].targets = targets;
            }
        }
    }
}

fn rows(state: &State, _: &Hint<'_>) -> Vec<Row> {
    if !is_running(state) {
        return Vec::new();
    }
    let row = |portal: &Portal| Row {
        key: portal.key(),
        properties: vec![
            ("InitiatorInstanceName", Value::Null),
            ("InitiatorPortalAddress", Value::Null),
            ("IsDataDigest", false.into()),
            ("IsHeaderDigest", false.into()),
            ("TargetPortalAddress", portal.address.as_str().into()),
            ("TargetPortalPortNumber", portal.port.into()),
        ],
    };
    state.iscsi.portals.iter().map(row).collect()
}

fn new(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    check_running(call)?;
    let (address, port) = wanted(call)?;
    let targets = call.state.iscsi.targets_at(&address, port);
    let portal = Portal {
        address,
        port,
        targets,
    };
    let portals = &mut call.state.iscsi.portals;
    if portals.iter().any(|known| known.key() == portal.key()) {
        return Err(refusal(call, status::PORTAL_EXISTS));
    }
    if portal.targets.is_empty() {
        return Err(refusal(call, status::CONNECTION_FAILED));
    }
    portals.push(portal);
    done(0)
}

/// The portal that a call names. The port is 3260 when it is left open.
pub(super) fn wanted(call: &MethodCall<'_>) -> PortResult<(String, u16)> {
    let invalid = || refusal(call, status::INVALID_PARAMETER);
    let address = call.text("TargetPortalAddress")?;
    let port = call.integer("TargetPortalPortNumber")?.unwrap_or(3260);
    let port = u16::try_from(port).ok().filter(|port| *port > 0);
    Ok((address.ok_or_else(invalid)?, port.ok_or_else(invalid)?))
}

/// The sessions that were made through it stay.
fn remove(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    check_running(call)?;
    let portals = &mut call.state.iscsi.portals;
    let before = portals.len();
    portals.retain(|portal| portal.key() != call.key);
    match portals.len() < before {
        true => done(0),
        false => Err(refusal(call, status::PORTAL_NOT_FOUND)),
    }
}

fn update(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    check_running(call)?;
    let iscsi = &mut call.state.iscsi;
    let found = iscsi.portals.iter().position(|one| one.key() == call.key);
    let Some(index) = found else {
        return Err(refusal(call, status::PORTAL_NOT_FOUND));
    };
    let portal = &iscsi.portals[index];
    let targets = iscsi.targets_at(&portal.address, portal.port);
    if targets.is_empty() {
        return Err(refusal(call, status::CONNECTION_FAILED));
    }
    iscsi.portals[index].targets = targets;
    done(0)
}
