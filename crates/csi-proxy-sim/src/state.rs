//! The whole node as one value.

use serde::{Deserialize, Serialize};

use crate::fs::FileSystems;
use crate::iscsi::Iscsi;
use crate::locks::Locks;
use crate::services::{Bios, Services};
use crate::smb::Smb;
use crate::storage::Storage;

/// All that is on the node. It is plain data: two of them are equal when nothing has changed
/// in between.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Disks, their media, partitions and volumes; VHDX files' contents; running formats.
    pub storage: Storage,
    /// The trees of files on the volumes, and where volumes are mounted.
    pub fs: FileSystems,
    /// SMB servers and the node's mappings.
    pub smb: Smb,
    /// iSCSI targets, portals and sessions.
    pub iscsi: Iscsi,
    /// Windows services.
    pub services: Services,
    /// The firmware.
    pub bios: Bios,
    /// Locks that processes hold.
    pub locks: Locks,
}
