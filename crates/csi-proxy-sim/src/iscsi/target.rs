//! The class `MSFT_iSCSITarget`.
//!
//! Source: <https://learn.microsoft.com/previous-versions/windows/desktop/iscsidisc/msft-iscsitarget>

use csi_proxy::cim::Namespace;
use csi_proxy::port::PortResult;

use super::session::{Login, Session, log_in, log_out};
use super::{Iscsi, check_running, is_running, portal, refusal, status};
use crate::cim::{Association, Class, Hint, Method, MethodCall, Reply, Row, done};
use crate::password::Password;
use crate::state::State;

pub(super) const CLASS: Class = Class {
    namespace: Namespace::Storage,
    name: "MSFT_iSCSITarget",
    properties: &["IsConnected", "NodeAddress"],
    rows,
    methods: &[
        Method {
            name: "Connect",
            is_static: true,
            parameters: &[
                "NodeAddress",
                "TargetPortalAddress",
                "TargetPortalPortNumber",
                "InitiatorPortalAddress",
                "IsDataDigest",
                "IsHeaderDigest",
                "ReportToPnP",
                "AuthenticationType",
                "IsMultipathEnabled",
                "IsPersistent",
                "InitiatorInstanceName",
                "ChapUsername",
                "ChapSecret",
            ],
            run: connect,
        },
        Method {
            name: "Disconnect",
            is_static: false,
            parameters: &["SessionIdentifier"],
            run: disconnect,
        },
        Method {
            name: "Update",
            is_static: true,
            parameters: &[],
            run: update,
        },
    ],
};

pub(super) const TO_PORTAL: Association = Association {
    name: "MSFT_iSCSITargetToiSCSITargetPortal",
    ends: ["MSFT_iSCSITarget", "MSFT_iSCSITargetPortal"],
    roles: ["iSCSITarget", "iSCSITargetPortal"],
    follow: |state, from, key| {
        let portals = &state.iscsi.portals;
        if from == 1 {
            let portal = portals.iter().find(|portal| portal.key() == key);
            return portal.map_or_else(Vec::new, |portal| portal.targets.iter().cloned().collect());
        }
        let named = portals.iter().filter(|portal| portal.targets.contains(key));
        named.map(portal::Portal::key).collect()
    },
};

pub(super) const TO_SESSION: Association = Association {
    name: "MSFT_iSCSITargetToiSCSISession",
    ends: ["MSFT_iSCSITarget", "MSFT_iSCSISession"],
    roles: ["iSCSITarget", "iSCSISession"],
    follow: |state, from, key| sessions(state, from, key, Session::key),
};

pub(super) const TO_CONNECTION: Association = Association {
    name: "MSFT_iSCSITargetToiSCSIConnection",
    ends: ["MSFT_iSCSITarget", "MSFT_iSCSIConnection"],
    roles: ["iSCSITarget", "iSCSIConnection"],
    follow: |state, from, key| sessions(state, from, key, Session::connection_key),
};

/// From a target to something of its sessions, and back.
fn sessions(state: &State, from: usize, key: &str, of: fn(&Session) -> String) -> Vec<String> {
    let sessions = state.iscsi.sessions.iter();
    match from {
        0 => sessions
            .filter(|session| session.login.target == key)
            .map(of)
            .collect(),
        _ => sessions
            .filter(|session| of(session) == key)
            .map(|session| session.login.target.clone())
            .collect(),
    }
}

impl Iscsi {
    /// The targets that the node knows: from its portals, and from its sessions.
    fn known_targets(&self) -> std::collections::BTreeSet<&String> {
        let discovered = self.portals.iter().flat_map(|portal| &portal.targets);
        let connected = self.sessions.iter().map(|session| &session.login.target);
        discovered.chain(connected).collect()
    }

    fn is_connected(&self, target: &str) -> bool {
        let mut sessions = self.sessions.iter();
        sessions.any(|session| session.login.target == target)
    }
}

fn rows(state: &State, _: &Hint<'_>) -> Vec<Row> {
    if !is_running(state) {
        return Vec::new();
    }
    let known = state.iscsi.known_targets().into_iter();
    known
        .map(|name| Row {
            key: name.clone(),
            properties: vec![
                ("IsConnected", state.iscsi.is_connected(name).into()),
                ("NodeAddress", name.as_str().into()),
            ],
        })
        .collect()
}

fn connect(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    check_running(call)?;
    let login = wanted(call)?;
    let iscsi = &call.state.iscsi;
    if !iscsi.known_targets().contains(&login.target) {
        return Err(refusal(call, status::TARGET_UNKNOWN));
    }
    // "The target has already been logged in via an iSCSI session."
    if iscsi.is_connected(&login.target) {
        return Err(refusal(call, status::ALREADY_LOGGED_IN));
    }
    if let Err(code) = log_in(call.state, &login) {
        return Err(refusal(call, code));
    }
    if call.boolean("IsPersistent")?.unwrap_or(false) {
        call.state.iscsi.persistent.push(login);
    }
    done(0)
}

/// The login that the parameters ask for.
fn wanted(call: &MethodCall<'_>) -> PortResult<Login> {
    let invalid = || refusal(call, status::INVALID_PARAMETER);
    let target = call.text("NodeAddress")?.ok_or_else(invalid)?;
    let (address, port) = portal::wanted(call)?;
    let authentication = call.text("AuthenticationType")?;
    let authentication = authentication.map_or_else(|| "NONE".to_owned(), |one| one.to_uppercase());
    let user = call.text("ChapUsername")?;
    let secret = call.text("ChapSecret")?.map(Password::from);
    match authentication.as_str() {
        "NONE" => {}
        "ONEWAYCHAP" | "MUTUALCHAP" => {
            if user.as_ref().is_none_or(String::is_empty) {
                return Err(refusal(call, status::INVALID_USER));
            }
            let length = secret.as_ref().map_or(0, Password::length);
            if !SECRET_LENGTH.contains(&length) {
                return Err(refusal(call, status::TARGET_SECRET_LENGTH));
            }
        }
        _ => return Err(refusal(call, status::INVALID_AUTHENTICATION)),
    }
    Ok(Login {
        target: target.to_lowercase(),
        address,
        port,
        authentication,
        user,
        secret,
    })
}

/// A CHAP secret has 12 to 16 bytes without IPsec.
pub(super) const SECRET_LENGTH: std::ops::RangeInclusive<usize> = 12..=16;

/// Without a session's identifier all sessions of the target end.
fn disconnect(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    check_running(call)?;
    let wanted = call.text("SessionIdentifier")?;
    let sessions = call.state.iscsi.sessions.iter();
    let ends: Vec<String> = sessions
        .filter(|session| session.login.target == call.key)
        .map(|session| session.identifier.clone())
        .filter(|identifier| wanted.as_ref().is_none_or(|wanted| wanted == identifier))
        .collect();
    if ends.is_empty() {
        return Err(refusal(call, status::INVALID_SESSION_ID));
    }
    for identifier in ends {
        if let Err(code) = log_out(call.state, &identifier) {
            return Err(refusal(call, code));
        }
    }
    done(0)
}

fn update(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    check_running(call)?;
    call.state.iscsi.discover();
    done(0)
}
