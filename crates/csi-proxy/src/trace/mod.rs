//! Port calls as lines of a file: recorded on one node, answered again anywhere.
//!
//! A trace is a text of JSON lines. The first is a [`Header`]: what wrote it, on what kind of
//! node, and how the node stood at the start. Every further line is a port call with its
//! answer, in the order in which the answers came. Times are those of the node's clock, from
//! the start of the trace; questions to the clock are not recorded.
//!
//! [`Host::recorded`](crate::Host::recorded) writes one, [`Trace`] reads it, and a
//! [`Replayer`] answers the same calls from it:
//!
//! ```
//! use std::sync::Arc;
//! use csi_proxy::clock::Deadline;
//! use csi_proxy::port::Carried;
//! use csi_proxy::trace::{Replayer, Trace};
//! use csi_proxy::{Host, HostPath};
//!
//! let text = concat!(
//!     r#"{"format":1,"program":"0.1.0","node":{"kind":"simulated"}}"#, "\n",
//!     r#"{"seq":1,"at_us":0,"took_us":1000,"call":{"files":{"create_directories":"#,
//!     r#"{"path":"C:\\dir"}}},"answer":{"ok":{"files":{"create_directories":true}}}}"#, "\n",
//! );
//! let ports = Arc::new(Carried(Replayer::new(&Trace::parse(text)?)));
//! let host = Host::new(ports.clone(), ports.clone());
//! host.filesystem().mkdir(&HostPath::from_kubelet(r"C:\dir")?, Deadline::Never)?;
//! ports.0.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is not in it
//!
//! - Secrets: a placeholder with a number stands for each, equal ones have equal numbers.
//! - What files hold: only their length and a digest, whose key is forgotten with the
//!   recorder, so that it tells equal contents within one trace and nothing else. The
//!   library's own records of formats are kept.
//! - What disks hold, see [`Contents`].
//!
//! Names stay: of paths, disks, volumes, services, shares and users.

mod contents;
mod difference;
mod format;
mod recorder;
mod replayer;
mod secrets;
mod snapshot;

pub use contents::Contents;
pub use difference::difference;
pub use format::{Entry, FORMAT, Header, NodeKind, Start, Trace, TraceError};
pub use recorder::{Output, Recorder};
pub use replayer::{Mismatch, Replayer};
pub use secrets::Secrets;
pub use snapshot::Snapshot;
