//! The privileged storage operations of a Windows node, for CSI drivers.

#![deny(missing_docs)]

pub mod cim;
pub mod clock;
pub mod codes;
mod content;
pub mod disk;
pub mod error;
pub mod filesystem;
mod format_record;
#[cfg(feature = "tonic")]
mod grpc;
mod host;
mod ids;
mod invalid;
pub mod iscsi;
mod links;
pub mod locator;
mod lock;
mod operation;
pub mod os;
pub mod page83;
mod path;
pub mod port;
pub mod reparse;
mod row;
mod secret;
pub mod smb;
pub mod staging;
pub mod system;
pub mod trace;
pub mod volume;
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
pub use locator::Locator;
pub use lock::Lock;
pub use path::{HostPath, NotAHostPath};
pub use secret::Secret;
pub use smb::{Credentials, SharePath};
