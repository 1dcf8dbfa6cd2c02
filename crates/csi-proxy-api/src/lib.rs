//! The gRPC API of CSI Proxy's client/server model: six groups in 23 versions, each with a
//! server, a client, and a named pipe of its own.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use csi_proxy_api::{Connect, disk, local_directory};
//!
//! # async fn rescan() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = disk::v1::Client::connect(local_directory(), Duration::from_secs(10)).await?;
//! client.rescan(disk::v1::RescanRequest {}).await?;
//! # Ok(())
//! # }
//! ```

#![deny(missing_docs)]

mod api;
mod connect;
mod generated;
mod redacted;
mod transport;

pub use api::{API, Api, Group, Method, UnknownGroup};
pub use connect::{Connect, ConnectError, channel, local_directory};
pub use generated::{disk, filesystem, iscsi, smb, system, volume};
