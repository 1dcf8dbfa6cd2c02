//! VHDX files.

use serde::{Deserialize, Serialize};

use super::DiskId;

/// A VHDX file, besides what it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VirtualDisk {
    /// The identity in the file's header; an attached disk's unique id follows from it.
    pub identity: String,
    /// The disk it is attached as.
    pub attached: Option<DiskId>,
}
