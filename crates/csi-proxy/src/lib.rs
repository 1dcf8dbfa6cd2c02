//! The privileged storage operations of a Windows node, for CSI drivers.

#![deny(missing_docs)]

pub mod cim;
pub mod clock;
pub mod codes;
pub mod error;
pub mod filesystem;
mod host;
mod ids;
mod invalid;
pub mod iscsi;
#[expect(dead_code, reason = "the volume group will follow links with it")]
mod links;
#[expect(dead_code, reason = "the groups will be written on it")]
mod operation;
pub mod os;
pub mod page83;
mod path;
pub mod port;
pub mod reparse;
#[expect(dead_code, reason = "the groups will be written on it")]
mod row;
mod secret;
pub mod smb;
pub mod system;
#[cfg(windows)]
pub mod windows;
#[cfg(any(windows, test))]
mod workers;
#[cfg(any(windows, test))]
mod wql;

pub use error::{Error, ErrorKind, Result};
pub use host::Host;
pub use ids::{DevicePath, DiskNumber, NotAnId, VolumeId};
pub use invalid::InvalidValue;
pub use iscsi::{NodeAddress, Portal};
pub use path::{HostPath, NotAHostPath};
pub use secret::Secret;
pub use smb::{Credentials, SharePath};
