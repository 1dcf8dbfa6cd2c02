//! The CSI services and drivers.
