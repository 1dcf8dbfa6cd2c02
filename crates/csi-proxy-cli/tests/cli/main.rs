//! The program `csi-proxy`, run as a user runs it.

mod demo;
// Signals and Unix sockets.
#[cfg(unix)]
mod node;
#[cfg(unix)]
mod plugin;
mod program;
mod record;
#[cfg(unix)]
mod running;
mod selftest;
#[cfg(unix)]
mod serve;
mod sim;
