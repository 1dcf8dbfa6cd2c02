//! The CSI services and drivers.
//!
//! A [`Driver`] is one kind of volume on a node; a [`Plugin`] puts the CSI services Identity,
//! Node and, where the driver makes volumes itself, Controller in front of it; a [`Server`]
//! serves them at an [`Endpoint`] of the machine.
//!
//! ```
//! use csi_node::local::{LocalConfig, LocalDriver};
//! use csi_node::{Endpoint, Plugin, Server};
//! use csi_proxy::{Host, HostPath};
//!
//! async fn serve(host: Host) -> Result<(), Box<dyn std::error::Error>> {
//!     let pool = HostPath::from_kubelet(r"C:\csi-volumes")?;
//!     let driver = LocalDriver::new(host, LocalConfig::new(pool, "node-1"))?;
//!     let endpoint: Endpoint = "unix:///run/csi.sock".parse()?;
//!     let server = Server::bind(&endpoint).await?;
//!     let shutdown = async {
//!         tokio::signal::ctrl_c().await.ok();
//!     };
//!     server.serve(Plugin::new(driver), shutdown).await?;
//!     Ok(())
//! }
//! ```

#![deny(missing_docs)]

mod controller;
pub mod driver;
mod endpoint;
mod identity;
mod jobs;
pub mod local;
mod names;
mod node_service;
mod plugin;
pub mod proto;
mod publish;
mod server;
mod validate;

pub use driver::Driver;
pub use endpoint::{Endpoint, EndpointError};
pub use plugin::{Plugin, PluginBuilder};
pub use server::Server;
