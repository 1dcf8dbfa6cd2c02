//! The console events of Windows.

use std::io;

use tokio::signal::windows::{CtrlC, CtrlClose, CtrlShutdown, ctrl_c, ctrl_close, ctrl_shutdown};

/// The events that end a program. The container runtime sends `CTRL_SHUTDOWN_EVENT`.
pub(crate) struct Signals {
    interrupt: CtrlC,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl Signals {
    /// Starts to listen.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            close: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// Returns with the name of the next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.close.recv() => "console closed",
            _ = self.shutdown.recv() => "system shutdown",
        }
    }
}
