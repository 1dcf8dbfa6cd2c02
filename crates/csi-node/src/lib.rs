//! The CSI services and drivers.

#![deny(missing_docs)]

mod controller;
pub mod driver;
mod endpoint;
mod identity;
mod jobs;
pub mod local;
mod node_service;
mod plugin;
pub mod proto;
mod publish;
mod server;
mod status;
mod validate;

pub use driver::Driver;
pub use endpoint::{Endpoint, EndpointError};
pub use plugin::{Plugin, PluginBuilder};
pub use server::Server;
