//! The server of CSI Proxy's client/server model: 23 versions of six groups, each on a pipe or
//! socket of its own, over the library.

#![deny(missing_docs)]

mod audit;
mod authority;
mod call;
mod connection;
mod deadline;
mod http;
mod metrics;
mod observed;
mod pong;
mod server;
mod settings;
mod transport;
mod versions;
mod wmi;
mod working_dirs;

pub use http::{Ready, serve_http};
pub use metrics::Metrics;
pub use server::{BindError, ServeError, Server};
pub use settings::{Limits, Settings};
pub use transport::Place;
pub use working_dirs::WorkingDirs;
