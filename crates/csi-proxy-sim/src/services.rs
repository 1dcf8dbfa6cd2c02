//! Windows services and the firmware.

use serde::{Deserialize, Serialize};

use crate::cim::{Association, Class};
use crate::state::State;

pub(crate) const CLASSES: &[Class] = &[];
pub(crate) const ASSOCIATIONS: &[Association] = &[];

/// The node's services.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Services {}

/// What `CIM_BIOSElement` tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bios {}

pub(crate) fn reboot(_: &mut State) {}
