//! The server over real sockets, with a simulated node behind it.
#![cfg(unix)]

mod clients;
mod harness;
mod methods;
mod paths;
mod settings;
