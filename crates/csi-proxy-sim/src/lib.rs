//! A simulated Windows node.
