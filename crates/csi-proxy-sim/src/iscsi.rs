//! iSCSI targets with their portals, and the node's sessions.

use serde::{Deserialize, Serialize};

use crate::cim::{Association, Class};
use crate::state::State;

pub(crate) const CLASSES: &[Class] = &[];
pub(crate) const ASSOCIATIONS: &[Association] = &[];

/// iSCSI targets that the node can reach, and its portals and sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Iscsi {}

pub(crate) fn reboot(_: &mut State) {}
