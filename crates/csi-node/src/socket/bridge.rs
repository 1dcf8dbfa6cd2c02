//! Blocking sockets for an asynchronous server: tokio has no Unix sockets on Windows.
//!
//! A thread accepts. Each connection has two more, which carry its bytes between the socket
//! and an end of a [`tokio::io::duplex`] pipe; the server has the other end.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_stream::Stream;

/// What a pipe holds, and what is read from a socket at a time.
const BUFFER: usize = 32 << 10;

/// How long to wait when no connection can be accepted, because the system is out of
/// something.
const RETRY: Duration = Duration::from_millis(100);

/// A socket that waits for connections.
pub(crate) trait Listener: Send + 'static {
    type Socket: Socket;

    /// Waits for one.
    fn accept(&self) -> Result<Self::Socket>;
}

/// A connection whose calls block.
pub(crate) trait Socket: Read + Write + Send + Sized + 'static {
    /// The same connection, for another thread.
    fn another(&self) -> Result<Self>;

    /// Ends it for both threads.
    fn shutdown(&self, how: Shutdown) -> Result<()>;
}

/// The connections that are made to a listener.
#[derive(Debug)]
pub(crate) struct Incoming {
    connections: mpsc::Receiver<Result<DuplexStream>>,
    closed: Arc<AtomicBool>,
}

impl Incoming {
    /// Starts to accept, for the runtime that this is called in.
    pub(crate) fn new(listener: impl Listener) -> Result<Self> {
        let (sender, connections) = mpsc::channel(1);
        let closed = Arc::new(AtomicBool::new(false));
        let (runtime, flag) = (Handle::current(), Arc::clone(&closed));
        thread::Builder::new()
            .name("accept".to_owned())
            .spawn(move || {
                accept(&listener, &runtime, &sender, &flag);
                // Whoever sees the end of the connections finds the socket closed.
                drop(listener);
                drop(sender);
            })?;
        Ok(Self {
            connections,
            closed,
        })
    }

    /// What makes the next connection the last one, which is not served: the thread that
    /// accepts ends with it.
    pub(crate) fn closer(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.closed)
    }
}

impl Stream for Incoming {
    type Item = Result<DuplexStream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.connections.poll_recv(context)
    }
}

fn accept<L: Listener>(
    listener: &L,
    runtime: &Handle,
    sender: &mpsc::Sender<Result<DuplexStream>>,
    closed: &AtomicBool,
) {
    while !sender.is_closed() {
        let accepted = listener.accept();
        if closed.load(Ordering::Acquire) {
            return;
        }
        match accepted.and_then(|socket| bridge(socket, runtime)) {
            Ok(stream) => {
                if sender.blocking_send(Ok(stream)).is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!("a connection could not be taken: {error}");
                thread::sleep(RETRY);
            }
        }
    }
}

/// Starts the two threads of a connection. They end when either side has closed it.
fn bridge<S: Socket>(socket: S, runtime: &Handle) -> Result<DuplexStream> {
    let (near, far) = tokio::io::duplex(BUFFER);
    let (from_server, to_server) = tokio::io::split(far);
    let other = socket.another()?;
    spawn("to server", {
        let runtime = runtime.clone();
        move || carry_in(socket, to_server, &runtime)
    })?;
    spawn("from server", {
        let runtime = runtime.clone();
        move || carry_out(from_server, other, &runtime)
    })?;
    Ok(near)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map(drop)
}

/// What the client sends. Its end is passed on, and the server may still answer.
fn carry_in<S: Socket>(mut socket: S, mut server: WriteHalf<DuplexStream>, runtime: &Handle) {
    let mut buffer = vec![0; BUFFER];
    loop {
        match socket.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(length) => {
                let sent = runtime.block_on(server.write_all(&buffer[..length]));
                if sent.is_err() {
                    break;
                }
            }
        }
    }
    // The server may have closed it first.
    let _ = runtime.block_on(server.shutdown());
}

/// What the server answers. When it has closed the connection, so do we: what the client
/// still sends has no reader.
fn carry_out<S: Socket>(mut server: ReadHalf<DuplexStream>, mut socket: S, runtime: &Handle) {
    let mut buffer = vec![0; BUFFER];
    loop {
        match runtime.block_on(server.read(&mut buffer)) {
            Ok(0) | Err(_) => break,
            Ok(length) => {
                if socket.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
        }
    }
    // The client may have closed it first.
    let _ = socket.shutdown(Shutdown::Both);
}

#[cfg(all(test, unix))]
#[path = "bridge_tests.rs"]
mod tests;
