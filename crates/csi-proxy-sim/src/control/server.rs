//! The server of the control endpoint: a thread per connection.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde::Deserialize;
use serde_json::Value;

use super::answer::answer;
use super::socket::{Address, Connection, Listener};
use super::{ControlError, Line, Outcome, Request};
use crate::node::SimNode;
use crate::process::Process;

/// The longest line that is read, in bytes.
const LONGEST_LINE: u64 = 64 << 20;

/// The control endpoint of a node, open until this is dropped.
pub struct ControlServer {
    address: Address,
    listener: Option<Arc<Listener>>,
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stopping: AtomicBool,
    /// Those that are open, to close them at the end.
    connections: Mutex<BTreeMap<u64, Box<dyn Connection>>>,
}

impl ControlServer {
    /// Opens the endpoint of a node at `unix:///path` or `tcp://127.0.0.1:port` (port 0
    /// takes any). A socket file that a process left behind is replaced.
    pub fn start(node: SimNode, uri: &str) -> Result<Self, ControlError> {
        let asked = Address::parse(uri)?;
        let failed = |source: io::Error| ControlError::Io {
            uri: uri.to_owned(),
            doing: "the control endpoint could not be opened",
            source,
        };
        let listener = Arc::new(Listener::open(&asked).map_err(failed)?);
        let address = listener.address().map_err(failed)?;
        let shared = Arc::new(Shared::default());
        let (accepting, at) = (Arc::clone(&shared), Arc::clone(&listener));
        let thread = thread::Builder::new()
            .name("sim-control".to_owned())
            .spawn(move || accept(&at, &node, &accepting))
            .map_err(failed)?;
        Ok(Self {
            address,
            listener: Some(listener),
            shared,
            thread: Some(thread),
        })
    }

    /// The address, with the port that was given.
    pub fn uri(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        if let Some(listener) = self.listener.take() {
            listener.wake();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for connection in self.shared.lock().values() {
            connection.close();
        }
        if let Address::Unix(path) = &self.address {
            // Someone may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Box<dyn Connection>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &Listener, node: &SimNode, shared: &Arc<Shared>) {
    let mut last = 0;
    while !shared.stopping.load(Ordering::SeqCst) {
        let Ok(connection) = listener.accept() else {
            // No handle is free, for example; the next one may succeed.
            thread::sleep(std::time::Duration::from_millis(10));
            continue;
        };
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        if let Ok(another) = connection.another() {
            last += 1;
            shared.lock().insert(last, another);
        }
        let open = Open(Arc::clone(shared), last);
        let node = node.clone();
        let serving = thread::Builder::new().name("sim-control-connection".to_owned());
        // Without a thread the connection is closed, and the client is told by that.
        let _ = serving.spawn(move || {
            serve(&node, connection);
            drop(open);
        });
    }
}

/// A connection among those that are open. It is taken off when its thread ends or cannot
/// start.
struct Open(Arc<Shared>, u64);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// Answers the requests of one connection, which is a process of the node.
fn serve(node: &SimNode, connection: Box<dyn Connection>) {
    let process = node.process();
    if let Ok(writer) = connection.another() {
        let writer = Arc::new(Mutex::new(writer));
        let mut reader = BufReader::new(connection);
        while let Ok(Some(line)) = next_line(&mut reader) {
            take(node, &process, &line, &writer);
        }
    }
    process.crash();
}

/// A line without its end; nothing at the end of all lines, or when it is too long.
fn next_line(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    Ok((line.pop() == Some(b'\n')).then_some(line))
}

type Writer = Arc<Mutex<Box<dyn Connection>>>;

/// Answers one line. A request with an id is answered whenever it is done, so that others
/// on the connection need not wait for it; one without is answered in its turn.
fn take(node: &SimNode, process: &Process, line: &[u8], writer: &Writer) {
    let (id, request) = match parse(line) {
        Ok(parsed) => parsed,
        Err((id, reason)) => return write(writer, id, Outcome::Error(reason)),
    };
    if id.is_none() {
        return write(writer, id, answer(node, process, request));
    }
    let (node, process, again) = (node.clone(), process.clone(), Arc::clone(writer));
    let spawned = thread::Builder::new()
        .name("sim-control-request".to_owned())
        .spawn(move || write(&again, id, answer(&node, &process, request)));
    if let Err(error) = spawned {
        write(writer, id, Outcome::Error(error.to_string()));
    }
}

/// The request in a line, and its id.
fn parse(line: &[u8]) -> Result<(Option<u64>, Request), (Option<u64>, String)> {
    // Read by itself, so that the error of a request that cannot be read has its id.
    let Id { id } = serde_json::from_slice(line).map_err(|error| (None, error.to_string()))?;
    let wrong = |error: serde_json::Error| (id, error.to_string());
    let mut value: Value = serde_json::from_slice(line).map_err(wrong)?;
    if let Some(object) = value.as_object_mut() {
        object.remove("id");
    }
    let request = serde_json::from_value(value).map_err(wrong)?;
    Ok((id, request))
}

/// The id of a request, beside its verb.
#[derive(Deserialize)]
#[serde(expecting = "an object with a verb, as {\"show\": null}")]
struct Id {
    #[serde(default)]
    id: Option<u64>,
}

fn write(writer: &Writer, id: Option<u64>, answer: Outcome) {
    let Ok(mut line) = serde_json::to_vec(&Line { id, answer }) else {
        return;
    };
    line.push(b'\n');
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    // A client that is gone needs no answer.
    let _ = writer.write_all(&line);
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::ControlClient;
    use super::*;

    #[test]
    fn nothing_is_kept_of_connections_that_have_ended() {
        let node = SimNode::builder().build();
        let server = ControlServer::start(node, "tcp://127.0.0.1:0").unwrap();
        for _ in 0..300 {
            let client = ControlClient::connect(&server.uri()).unwrap();
            assert!(client.check("/").is_ok());
        }
        let began = Instant::now();
        while !server.shared.lock().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60));
            thread::yield_now();
        }
    }
}
