//! The CSI services and drivers.

#![deny(missing_docs)]

pub mod proto;
