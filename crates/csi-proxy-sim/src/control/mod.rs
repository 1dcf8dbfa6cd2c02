//! The control endpoint: a simulated node used from other processes.
//!
//! One JSON request and one JSON answer per line, over a Unix socket that only its owner may
//! open or over TCP on the loopback interface. `docs/sim-control.md` has the schema.

mod answer;
mod client;
#[cfg(test)]
mod fuzz;
mod server;
mod socket;
#[cfg(test)]
mod tests;

use std::io;

use csi_proxy::cim::CimCall;
use csi_proxy::clock::Moment;
use csi_proxy::port::{Call, PortError};
use serde::{Deserialize, Serialize};

use crate::change::NodeChange;
use crate::fault::Fault;
use crate::latency::Latency;
use crate::storage::SimDisk;

pub use client::ControlClient;
pub use server::ControlServer;

/// The environment variable that names the endpoint to clients.
pub const CSI_PROXY_SIM: &str = "CSI_PROXY_SIM";

/// What can be asked for.
///
/// Paths are taken as the kubelet writes them (`C:\dir`, `/dir`).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Makes a directory with its parents. Answers null.
    MakeDirectory {
        /// Its path.
        path: String,
    },
    /// Writes a file. Answers null.
    MakeFile {
        /// Its path; the directory must exist.
        path: String,
        /// What is in it.
        #[serde(default)]
        contents: String,
    },
    /// Removes what stands at a path with all below it, a link itself; nothing there is
    /// fine. Answers null.
    Remove {
        /// The path.
        path: String,
    },
    /// What stands at a path, links followed. Answers a [`Kind`].
    Check {
        /// The path.
        path: String,
    },
    /// Attaches a disk. Answers its number.
    AttachDisk(Box<SimDisk>),
    /// Takes a disk away. Answers null.
    DetachDisk {
        /// Its number.
        number: u32,
    },
    /// Makes another change. Answers null.
    Change(NodeChange),
    /// The node as a tree for people. Answers text.
    Show,
    /// The node as a value. Answers a [`crate::State`].
    State,
    /// Injects a fault. Answers null.
    Fault(Fault),
    /// How many port calls there were. Answers [`crate::Counts`].
    Counts,
    /// Starts counting anew. Answers null.
    ResetCounts,
    /// How long calls take from now on. Answers null.
    Latency(Latency),
    /// Reboots the node. Answers null.
    Reboot,
    /// The node's clock. Answers a moment.
    Now,
    /// Waits until the node's clock shows a moment. Answers null.
    SleepUntil(Moment),
    /// A call on the port to WMI. Answers the port's answer.
    Cim(PortCall<CimCall>),
    /// A call on the port to the operating system. Answers the port's answer.
    Os(PortCall<Call>),
}

/// A port call. The connection is a process of the node: its locks end with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortCall<C> {
    /// The call.
    pub call: C,
    /// The deadline, in milliseconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The deadline as a moment of the node's clock; it goes before the timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Moment>,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A file, or a link to one.
    File,
    /// A directory, a mounted volume, or a link to one.
    Directory,
    /// Nothing.
    NotFound,
    /// A link that leads nowhere, a dead mount point, or what nobody may open.
    Other,
}

impl Kind {
    /// The word for it: `file`, `directory`, `not_found` or `other`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::NotFound => "not_found",
            Self::Other => "other",
        }
    }
}

/// One line of the server: the answer to the request with that id, or to the last one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(flatten)]
    answer: Outcome,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Ok(serde_json::Value),
    /// A port call that the port refused.
    PortError(PortError),
    /// A request that could not be done, and why.
    Error(String),
}

/// Why the endpoint could not be opened or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The address is not one of the two forms.
    #[error("{uri:?} is no control endpoint: {reason}")]
    Address {
        /// The address.
        uri: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The socket could not be opened, or was closed.
    #[error("{uri}: {doing}")]
    Io {
        /// The address.
        uri: String,
        /// What was tried.
        doing: &'static str,
        /// What went wrong.
        source: io::Error,
    },
    /// The other side does not speak the protocol.
    #[error("{uri} answered what is no answer: {reason}")]
    Protocol {
        /// The address.
        uri: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The node did not do what was asked for.
    #[error("{0}")]
    Refused(String),
}
