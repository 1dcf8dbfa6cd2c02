//! SMB servers with their shares, and the node's global mappings.

use serde::{Deserialize, Serialize};

use crate::cim::Class;
use crate::state::State;

pub(crate) const CLASSES: &[Class] = &[];

/// SMB servers that the node can reach, and its mappings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Smb {}

pub(crate) fn reboot(_: &mut State) {}
