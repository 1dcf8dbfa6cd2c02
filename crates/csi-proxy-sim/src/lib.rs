//! A simulated Windows node, for tests of storage drivers on any machine.
//!
//! The library [`csi_proxy`] speaks to Windows through two ports, `Cim` (WMI) and `Os`
//! (Win32). This crate implements both over a model that keeps Windows' rules and answers
//! Microsoft's documented return values. A driver's code runs over it unchanged, in
//! milliseconds, and every fault that a real node has once a year can be had at every call.
//!
//! # A first test
//!
//! A [`SimNode`] is the machine, a [`Process`] one process on it, and the process's
//! [`Host`](csi_proxy::Host) what the driver is given:
//!
//! ```
//! use csi_proxy::clock::Deadline;
//! use csi_proxy_sim::SimNode;
//! use csi_proxy_sim::storage::SimDisk;
//!
//! let node = SimNode::builder()
//!     .disk(SimDisk::raw(10 << 30).serial("vol0123456789abcdef0_00000001."))
//!     .build();
//! let host = node.process().host();
//!
//! let locator = "serial=vol-0123456789abcdef0".parse()?;
//! let disk = host.disk().find(&locator, Deadline::Never)?;
//! host.disk().partition(disk.number, Deadline::Never)?;
//! assert_eq!(host.volume().list_on_disk(disk.number, None, Deadline::Never)?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Describing the machine
//!
//! - Disks: [`storage::SimDisk`] with its partitions and what is on them, also things that
//!   Windows does not know (ext4, BitLocker, a damaged NTFS), disks that are offline,
//!   read-only, or found only after a rescan.
//! - Files, links and mount points: `put_directory`, `put_file`, `put_link`, `erase` and
//!   others of [`State`].
//! - SMB servers ([`smb`]), iSCSI targets ([`iscsi`]), services and the firmware
//!   ([`services`]).
//! - The same in a TOML file: [`Machine`]; [`example_machine`] shows every field.
//!
//! The node has a system disk with drive `C:`. [`SimNode::change`] changes it later on, as
//! someone else on the machine would.
//!
//! # "Nothing was changed"
//!
//! [`SimNode::snapshot`] answers the whole node as a value. Two of them are equal when
//! nothing has changed in between: the best assertion after a refused operation.
//!
//! # Time
//!
//! The node has a clock of its own ([`SimClock`]), and everything waits on it. By default it
//! jumps: whoever sleeps finds that the time has come. A manual clock stands still until the
//! test advances it. [`Latency::MEASURED`] makes calls take as long as on a busy node.
//!
//! ```
//! use std::time::Duration;
//!
//! use csi_proxy::clock::{Clock, Deadline};
//! use csi_proxy_sim::{Fault, Latency, SimNode};
//!
//! let node = SimNode::builder().latency(Latency::MEASURED).build();
//! let process = node.process();
//! let ids = |process: &csi_proxy_sim::Process| process.host().disk().list_ids(Deadline::Never);
//!
//! // The first query fails with WBEM_E_FAILED, the next one takes 0.2 s on the node's clock.
//! node.inject(Fault::on("query MSFT_Disk").hresult(0x8004_1001));
//! assert!(ids(&process).is_err());
//! assert!(ids(&process).is_ok());
//! assert!(node.clock().now().0 >= Duration::from_millis(200));
//! // A reboot ends the process, and the kubelet starts another one.
//! node.reboot();
//! assert!(ids(&process).is_err());
//! assert!(ids(&node.process()).is_ok());
//! assert_eq!(node.faults_left(), 0);
//! ```
//!
//! # Faults
//!
//! A [`Fault`] says at which call what goes wrong: a return value, a code, a stall, an
//! answer that is lost after the effect, a change of the machine just before, a crash of the
//! process, a reboot. Both ends are told apart: after a *crash* what Windows was doing goes
//! on and the process's locks are free; after a *reboot* running work, VHDX attachments and
//! sessions are gone, files, links and mount points stay. [`Fault::at_call`] with each
//! number in turn cuts an operation at every port call:
//!
//! ```
//! use csi_proxy::HostPath;
//! use csi_proxy::clock::Deadline;
//! use csi_proxy_sim::{Fault, SimNode};
//!
//! let path = HostPath::from_kubelet("/var/lib/kubelet/x")?;
//! for call in 1.. {
//!     let node = SimNode::builder().build();
//!     node.inject(Fault::at_call(call).crash_after());
//!     // The process dies after its call; a new one repeats the operation.
//!     let _ = node.process().host().filesystem().mkdir(&path, Deadline::Never);
//!     let cut = node.faults_left() == 0;
//!     node.clear_faults();
//!     node.process().host().filesystem().mkdir(&path, Deadline::Never)?;
//!     assert!(node.process().host().filesystem().path_exists(&path, Deadline::Never)?);
//!     if !cut {
//!         break;
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What was asked of Windows
//!
//! [`SimNode::counts`] counts port calls by operation, [`SimNode::call_log`] has the calls
//! themselves, without secrets.
//!
//! # From other processes
//!
//! [`control::ControlServer`] opens a node to other processes, and
//! [`control::ControlClient`] carries the ports to it; `docs/sim-control.md` has the schema
//! for other languages. [`SimNode::save`] and [`SimNode::load`] keep a node in a file.
//!
//! # What it is not
//!
//! The rules come from Microsoft's documentation and from reports of real nodes. Where no
//! return value is documented for a situation the node answers 4 (failed) or 5 (invalid
//! parameter), the source says "assumed", and no driver should depend on it.

#![deny(missing_docs)]

mod builder;
mod change;
pub(crate) mod cim;
mod clock;
#[cfg(windows)]
pub mod com;
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
pub mod replay;
mod runtime;
pub mod services;
mod show;
mod size;
pub mod smb;
mod state;
pub mod storage;
mod win32;
#[cfg(any(windows, test))]
#[cfg_attr(
    not(windows),
    expect(
        dead_code,
        unused_imports,
        reason = "its tests run everywhere, its users on Windows"
    )
)]
mod wmi;

pub use builder::Builder;
pub use change::{NodeChange, NotChanged};
pub use clock::SimClock;
pub use fault::{Fault, NotAFault};
pub use file::FileError;
pub use latency::Latency;
pub use machine::{Machine, MachineError, example_machine};
pub use node::SimNode;
pub use password::Password;
pub use process::Process;
pub use runtime::{Counts, LogEntry};
pub use state::State;
