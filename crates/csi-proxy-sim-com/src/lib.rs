//! The simulated node as a DLL that is registered for the class `WbemLocator`: the WMI calls
//! of a program that does not know of it reach the node that `CSI_PROXY_SIM` names.
//!
//! `docs/sim-com.md` says how it is used.

#![deny(missing_docs)]

#[cfg(windows)]
mod exports;
#[cfg(windows)]
mod node;
