//! Standard output, whose reader may have seen enough.

use std::io::{self, ErrorKind, Stdout, Write};

/// Standard output. Once its reader is gone, as with `| head`, the rest is dropped.
pub(crate) struct Output(Stdout);

impl Output {
    /// The one of the program.
    pub(crate) fn standard() -> Self {
        Self(io::stdout())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}
