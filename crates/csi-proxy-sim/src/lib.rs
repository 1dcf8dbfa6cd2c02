//! A simulated Windows node.

#![deny(missing_docs)]

mod builder;
mod change;
pub(crate) mod cim;
mod clock;
pub mod control;
mod fault;
#[cfg(test)]
mod fault_tests;
mod file;
pub mod fs;
pub mod iscsi;
mod latency;
mod locks;
mod machine;
mod node;
mod password;
mod ports;
mod process;
mod runtime;
pub mod services;
mod show;
mod size;
pub mod smb;
mod state;
pub mod storage;
mod win32;

pub use builder::Builder;
pub use change::{NodeChange, NotChanged};
pub use clock::SimClock;
pub use fault::Fault;
pub use file::FileError;
pub use latency::Latency;
pub use machine::{Machine, MachineError, example_machine};
pub use node::SimNode;
pub use password::Password;
pub use process::Process;
pub use runtime::{Counts, LogEntry};
pub use state::State;
