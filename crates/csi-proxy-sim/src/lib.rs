//! A simulated Windows node.

#![deny(missing_docs)]
#![expect(
    dead_code,
    reason = "the modules of the model are filled one after the other"
)]

mod builder;
pub(crate) mod cim;
mod clock;
pub mod fs;
pub mod iscsi;
mod latency;
mod locks;
mod node;
mod password;
mod ports;
mod process;
mod runtime;
pub mod services;
pub mod smb;
mod state;
pub mod storage;
mod win32;

pub use builder::Builder;
pub use clock::SimClock;
pub use fs::Change;
pub use latency::Latency;
pub use node::SimNode;
pub use password::Password;
pub use process::Process;
pub use runtime::{Counts, LogEntry};
pub use state::State;
