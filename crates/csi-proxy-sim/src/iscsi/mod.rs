//! iSCSI targets with their portals, and the node's sessions.
//!
//! The pages of the classes
//! (<https://learn.microsoft.com/previous-versions/windows/desktop/iscsidisc/>) name no
//! errors. Methods fail with the status of the initiator's function behind them, which
//! through WMI is an HRESULT; which status a situation has is assumed where no comment
//! names a source.

mod portal;
mod session;
mod status;
mod target;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use csi_proxy::port::{PortError, PortResult};
use serde::{Deserialize, Serialize};

use crate::Builder;
use crate::cim::{Association, Class, MethodCall};
use crate::password::Password;
use crate::state::State;
use crate::storage::{BusType, MediumId, SimDisk};
use crate::win32::hresult;

pub use portal::Portal;
pub use session::{Login, Session};

pub(crate) const CLASSES: &[Class] = &[
    portal::CLASS,
    target::CLASS,
    session::CLASS,
    session::CONNECTION,
];
pub(crate) const ASSOCIATIONS: &[Association] = &[
    target::TO_PORTAL,
    target::TO_SESSION,
    target::TO_CONNECTION,
    session::TO_CONNECTION,
    session::TO_DISK,
    session::CONNECTION_TO_DISK,
];

/// iSCSI targets that the node can reach, and its portals and sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Iscsi {
    /// The targets, by their node address in lower case.
    pub targets: BTreeMap<String, Target>,
    /// The portals that were made known to the node.
    pub portals: Vec<Portal>,
    /// The sessions that there are.
    pub sessions: Vec<Session>,
    /// The logins that are made again when the initiator's service starts.
    pub persistent: Vec<Login>,
    /// The secret that targets must know in mutual CHAP.
    pub initiator_secret: Option<Password>,
    /// The persistent logins wait for the service.
    restore: bool,
    last_session: u64,
}

/// An iSCSI target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its portals: address and port.
    pub portals: Vec<(String, u16)>,
    /// Whether it can be reached.
    pub online: bool,
    /// The credentials that it asks for.
    pub chap: Option<Chap>,
    /// Its disks.
    luns: Vec<MediumId>,
}

/// CHAP credentials of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chap {
    /// The user that initiators must name.
    pub user: String,
    /// The secret that they must know.
    pub secret: Password,
    /// The secret that the target itself shows in mutual CHAP.
    #[serde(default)]
    pub mutual_secret: Option<Password>,
}

/// A target to put there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimTarget {
    /// Its portals: address and port.
    pub portals: Vec<(String, u16)>,
    /// The credentials that it asks for.
    pub chap: Option<Chap>,
    /// Its disks.
    pub luns: Vec<SimDisk>,
}

impl SimTarget {
    /// A target at a portal.
    pub fn at(address: &str, port: u16) -> Self {
        Self {
            portals: vec![(address.to_owned(), port)],
            ..Self::default()
        }
    }

    /// Adds a disk.
    #[must_use]
    pub fn lun(mut self, disk: SimDisk) -> Self {
        self.luns.push(disk);
        self
    }

    /// Asks for one-way CHAP.
    #[must_use]
    pub fn chap(mut self, user: &str, secret: &str) -> Self {
        self.chap = Some(Chap {
            user: user.to_owned(),
            secret: secret.into(),
            mutual_secret: None,
        });
        self
    }

    /// Shows this secret in mutual CHAP; [`SimTarget::chap`] comes first.
    #[must_use]
    pub fn mutual_chap(mut self, secret: &str) -> Self {
        if let Some(chap) = &mut self.chap {
            chap.mutual_secret = Some(secret.into());
        }
        self
    }
}

impl Builder {
    /// Puts an iSCSI target there. Its disks appear on the node with a session.
    #[must_use]
    pub fn iscsi_target(mut self, node_address: &str, target: SimTarget) -> Self {
        self.state.put_iscsi_target(node_address, target);
        self
    }
}

impl State {
    /// Puts an iSCSI target there, in the place of the one of that name. Its disks appear on
    /// the node with a session.
    pub fn put_iscsi_target(&mut self, node_address: &str, target: SimTarget) {
        self.remove_iscsi_target(node_address);
        let luns = target.luns.into_iter();
        let luns = luns.map(|disk| {
            let bus_type = BusType::Iscsi;
            crate::storage::park(self, &SimDisk { bus_type, ..disk })
        });
        let luns = luns.collect();
        let target = Target {
            portals: target.portals,
            online: true,
            chap: target.chap,
            luns,
        };
        let address = node_address.to_lowercase();
        self.iscsi.targets.insert(address, target);
    }

    /// Removes an iSCSI target with its disks and what is on them; its sessions end.
    pub fn remove_iscsi_target(&mut self, node_address: &str) {
        let address = node_address.to_lowercase();
        let Some(target) = self.iscsi.targets.remove(&address) else {
            return;
        };
        let sessions = std::mem::take(&mut self.iscsi.sessions);
        for session in sessions {
            match session.login.target == address {
                true => session::take_disks_away(self, &session),
                false => self.iscsi.sessions.push(session),
            }
        }
        for medium in target.luns {
            self.storage.parked.remove(&medium);
            crate::storage::forget_medium(self, medium);
        }
    }
}

impl Target {
    fn is_at(&self, address: &str, port: u16) -> bool {
        let mut portals = self.portals.iter();
        self.online
            && portals.any(|portal| portal.0.eq_ignore_ascii_case(address) && portal.1 == port)
    }
}

/// Whether the initiator's service runs: without it nothing can be asked or done.
fn is_running(state: &State) -> bool {
    state.services.runs("MSiSCSI")
}

/// Refuses a call when the service does not run.
fn check_running(call: &MethodCall<'_>) -> PortResult<()> {
    match is_running(call.state) {
        true => Ok(()),
        false => Err(refusal(call, status::SERVICE_NOT_RUNNING)),
    }
}

fn refusal(call: &MethodCall<'_>, code: u32) -> PortError {
    hresult(&call.api, code)
}

/// The node reboots: the sessions end. Those that persist come back with the service.
pub(crate) fn reboot(state: &mut State) {
    while let Some(session) = state.iscsi.sessions.pop() {
        session::take_disks_away(state, &session);
    }
    state.iscsi.restore = true;
}

/// Does what is due: makes the persistent logins again once the service runs.
pub(crate) fn settle(state: &mut State) {
    if !state.iscsi.restore || !is_running(state) {
        return;
    }
    state.iscsi.restore = false;
    for login in state.iscsi.persistent.clone() {
        // A target that is away or refuses has no session; nobody is told.
        let _ = session::log_in(state, &login);
    }
}
