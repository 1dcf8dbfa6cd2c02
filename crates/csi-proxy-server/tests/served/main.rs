//! The server over real pipes or sockets, with a simulated node behind it.

mod clients;
mod harness;
mod methods;
mod paths;
#[cfg(windows)]
mod pipes;
mod settings;
#[cfg(unix)]
mod sockets;
mod wire;
