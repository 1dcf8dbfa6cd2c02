//! The classes `MSFT_iSCSISession` and `MSFT_iSCSIConnection`, and what logging in and out
//! does.
//!
//! Source: <https://learn.microsoft.com/previous-versions/windows/desktop/iscsidisc/msft-iscsisession>,
//! <https://learn.microsoft.com/previous-versions/windows/desktop/iscsidisc/msft-iscsiconnection>

use csi_proxy::cim::{Namespace, Value};
use csi_proxy::port::PortResult;
use serde::{Deserialize, Serialize};

use super::target::SECRET_LENGTH;
use super::{Iscsi, Target, check_running, is_running, refusal, status};
use crate::cim::{Association, Class, Hint, Method, MethodCall, Reply, Row, done};
use crate::password::Password;
use crate::state::State;
use crate::storage::{DiskId, attach_parked, detach, disk_key};

const INITIATOR: &str = "iqn.1991-05.com.microsoft:node";

pub(super) const CLASS: Class = Class {
    namespace: Namespace::Storage,
    name: "MSFT_iSCSISession",
    properties: &[
        "AuthenticationType",
        "InitiatorNodeAddress",
        "IsConnected",
        "IsDiscovered",
        "IsPersistent",
        "NumberOfConnections",
        "SessionIdentifier",
        "TargetNodeAddress",
    ],
    rows: sessions,
    methods: &[
        Method {
            name: "Register",
            is_static: false,
            parameters: &["IsMultipathEnabled", "ChapUsername", "ChapSecret"],
            run: register,
        },
        Method {
            name: "Unregister",
            is_static: false,
            parameters: &[],
            run: unregister,
        },
        Method {
            name: "SetCHAPSecret",
            is_static: true,
            parameters: &["ChapSecret"],
            run: set_chap_secret,
        },
    ],
};

pub(super) const CONNECTION: Class = Class {
    namespace: Namespace::Storage,
    name: "MSFT_iSCSIConnection",
    properties: &[
        "ConnectionIdentifier",
        "InitiatorAddress",
        "InitiatorPortNumber",
        "TargetAddress",
        "TargetPortNumber",
    ],
    rows: connections,
    methods: &[],
};

pub(super) const TO_CONNECTION: Association = Association {
    name: "MSFT_iSCSISessionToiSCSIConnection",
    ends: ["MSFT_iSCSISession", "MSFT_iSCSIConnection"],
    roles: ["iSCSISession", "iSCSIConnection"],
    follow: |state, from, key| {
        let mut sessions = state.iscsi.sessions.iter();
        let session = sessions.find(|session| match from {
            0 => session.key() == key,
            _ => session.connection_key() == key,
        });
        let other = session.map(|session| match from {
            0 => session.connection_key(),
            _ => session.key(),
        });
        other.into_iter().collect()
    },
};

pub(super) const TO_DISK: Association = Association {
    name: "MSFT_iSCSISessionToDisk",
    ends: ["MSFT_iSCSISession", "MSFT_Disk"],
    roles: ["iSCSISession", "Disk"],
    follow: |state, from, key| disks(state, from, key, Session::key),
};

pub(super) const CONNECTION_TO_DISK: Association = Association {
    name: "MSFT_iSCSIConnectionToDisk",
    ends: ["MSFT_iSCSIConnection", "MSFT_Disk"],
    roles: ["iSCSIConnection", "Disk"],
    follow: |state, from, key| disks(state, from, key, Session::connection_key),
};

/// A session of the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// `SessionIdentifier`. It is never used again.
    pub identifier: String,
    /// How it was made.
    pub login: Login,
    /// The disks that it brought.
    pub disks: Vec<DiskId>,
}

/// What a session is made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The target's node address, in lower case.
    pub target: String,
    /// The portal's address.
    pub address: String,
    /// The portal's port.
    pub port: u16,
    /// `NONE`, `ONEWAYCHAP` or `MUTUALCHAP`.
    pub authentication: String,
    /// The CHAP user.
    pub user: Option<String>,
    /// The CHAP secret.
    pub secret: Option<Password>,
}

impl Session {
    pub(super) fn key(&self) -> String {
        self.identifier.clone()
    }

    /// Each session has one connection.
    pub(super) fn connection_key(&self) -> String {
        format!("{}-1", self.identifier)
    }
}

impl Iscsi {
    fn is_persistent(&self, session: &Session) -> bool {
        let mut persistent = self.persistent.iter();
        persistent.any(|login| login.target == session.login.target)
    }

    fn session(&self, identifier: &str) -> Option<&Session> {
        let mut sessions = self.sessions.iter();
        sessions.find(|session| session.identifier == identifier)
    }
}

/// From a session, or its connection, to its disks, and back.
fn disks(state: &State, from: usize, key: &str, of: fn(&Session) -> String) -> Vec<String> {
    let sessions = state.iscsi.sessions.iter();
    match from {
        0 => sessions
            .filter(|session| of(session) == key)
            .flat_map(|session| &session.disks)
            .map(|disk| disk_key(*disk))
            .collect(),
        _ => sessions
            .filter(|session| session.disks.iter().any(|disk| disk_key(*disk) == key))
            .map(of)
            .collect(),
    }
}

fn sessions(state: &State, _: &Hint<'_>) -> Vec<Row> {
    if !is_running(state) {
        return Vec::new();
    }
    let row = |session: &Session| Row {
        key: session.key(),
        properties: vec![
            (
                "AuthenticationType",
                session.login.authentication.as_str().into(),
            ),
            ("InitiatorNodeAddress", INITIATOR.into()),
            ("IsConnected", true.into()),
            ("IsDiscovered", true.into()),
            ("IsPersistent", state.iscsi.is_persistent(session).into()),
            ("NumberOfConnections", 1_u32.into()),
            ("SessionIdentifier", session.identifier.as_str().into()),
            ("TargetNodeAddress", session.login.target.as_str().into()),
        ],
    };
    state.iscsi.sessions.iter().map(row).collect()
}

fn connections(state: &State, _: &Hint<'_>) -> Vec<Row> {
    if !is_running(state) {
        return Vec::new();
    }
    let row = |session: &Session| Row {
        key: session.connection_key(),
        properties: vec![
            ("ConnectionIdentifier", session.connection_key().into()),
            ("InitiatorAddress", Value::Text("0.0.0.0".to_owned())),
            ("InitiatorPortNumber", 49_152_u16.into()),
            ("TargetAddress", session.login.address.as_str().into()),
            ("TargetPortNumber", session.login.port.into()),
        ],
    };
    state.iscsi.sessions.iter().map(row).collect()
}

/// Makes a session, and its disks appear.
pub(super) fn log_in(state: &mut State, login: &Login) -> Result<(), u32> {
    let iscsi = &mut state.iscsi;
    let target = iscsi.targets.get(&login.target);
    let target = target
        .filter(|target| target.is_at(&login.address, login.port))
        .ok_or(status::CONNECTION_FAILED)?;
    target.check(login, iscsi.initiator_secret.as_ref())?;
    let luns = target.luns.clone();
    iscsi.last_session += 1;
    let identifier = format!("ffff8d0c5e2f4010-{:016x}", iscsi.last_session);
    let disks = luns.into_iter();
    let disks = disks.filter_map(|medium| attach_parked(state, medium));
    let disks = disks.collect();
    state.iscsi.sessions.push(Session {
        identifier,
        login: login.clone(),
        disks,
    });
    Ok(())
}

impl Target {
    /// What the target and the initiator think of each other.
    fn check(&self, login: &Login, initiator_secret: Option<&Password>) -> Result<(), u32> {
        let Some(chap) = &self.chap else {
            // A target that does not know CHAP cannot answer an initiator that insists.
            return match login.authentication.as_str() {
                "NONE" => Ok(()),
                _ => Err(status::AUTHENTICATION_FAILURE),
            };
        };
        let user = login.user.as_ref() == Some(&chap.user);
        if login.authentication == "NONE" || !user || login.secret.as_ref() != Some(&chap.secret) {
            return Err(status::AUTHENTICATION_FAILURE);
        }
        if login.authentication == "MUTUALCHAP" {
            let expected = initiator_secret.ok_or(status::AUTHENTICATION_INFO_MISSING)?;
            if chap.mutual_secret.as_ref() != Some(expected) {
                return Err(status::AUTHENTICATION_FAILURE);
            }
        }
        Ok(())
    }
}

/// Ends a session, and its disks disappear. A disk with an open file on it is in use.
pub(super) fn log_out(state: &mut State, identifier: &str) -> Result<(), u32> {
    let session = state.iscsi.session(identifier);
    let session = session.cloned().ok_or(status::INVALID_SESSION_ID)?;
    let mut disks = session.disks.iter();
    if disks.any(|disk| crate::fs::has_open_files(state, *disk)) {
        return Err(status::DEVICE_IN_USE);
    }
    take_disks_away(state, &session);
    let sessions = &mut state.iscsi.sessions;
    sessions.retain(|session| session.identifier != identifier);
    Ok(())
}

pub(super) fn take_disks_away(state: &mut State, session: &Session) {
    for disk in &session.disks {
        detach(state, *disk);
    }
}

fn register(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    check_running(call)?;
    let iscsi = &mut call.state.iscsi;
    let Some(session) = iscsi.session(call.key).cloned() else {
        return Err(refusal(call, status::INVALID_SESSION_ID));
    };
    if !iscsi.is_persistent(&session) {
        iscsi.persistent.push(session.login);
    }
    done(0)
}

fn unregister(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    check_running(call)?;
    let iscsi = &mut call.state.iscsi;
    let Some(session) = iscsi.session(call.key).cloned() else {
        return Err(refusal(call, status::INVALID_SESSION_ID));
    };
    if !iscsi.is_persistent(&session) {
        return Err(refusal(call, status::NOT_PERSISTENT));
    }
    let target = session.login.target;
    iscsi.persistent.retain(|login| login.target != target);
    done(0)
}

fn set_chap_secret(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    check_running(call)?;
    let secret = call.text("ChapSecret")?.map(Password::from);
    let length = secret.as_ref().map_or(0, Password::length);
    if !SECRET_LENGTH.contains(&length) {
        return Err(refusal(call, status::INITIATOR_SECRET_LENGTH));
    }
    call.state.iscsi.initiator_secret = secret;
    done(0)
}
