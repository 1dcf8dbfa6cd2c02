//! The signals that end a running program.

use std::io;

#[cfg_attr(unix, path = "shutdown/unix.rs")]
#[cfg_attr(windows, path = "shutdown/windows.rs")]
mod signals;

use signals::Signals;

/// The wait for a signal to end. It listens from its making on.
pub(crate) struct Shutdown(Signals);

impl Shutdown {
    /// Starts to listen.
    pub(crate) fn listen() -> io::Result<Self> {
        Signals::listen().map(Self)
    }

    /// Returns with the name of the first signal that comes.
    pub(crate) async fn signal(mut self) -> &'static str {
        self.next().await
    }

    /// Returns with the name of the next signal that comes.
    pub(crate) async fn next(&mut self) -> &'static str {
        self.0.next().await
    }
}
