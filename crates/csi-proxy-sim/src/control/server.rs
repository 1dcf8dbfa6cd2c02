//! The server of the control endpoint: a thread per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use super::answer::answer;
use super::socket::{Address, Connection, Listener, connect};
use super::{ControlError, Line, Outcome, Request};
use crate::node::SimNode;
use crate::process::Process;

/// The longest line that is read, in bytes.
const LONGEST_LINE: u64 = 64 << 20;

/// The control endpoint of a node, open until this is dropped.
pub struct ControlServer {
    address: Address,
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stopping: AtomicBool,
    /// To close them at the end; those that have ended are among them until then.
    connections: Mutex<Vec<Box<dyn Connection>>>,
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
        let listener = Listener::open(&asked).map_err(failed)?;
        let address = listener.address().map_err(failed)?;
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("sim-control".to_owned())
            .spawn(move || accept(&listener, &node, &accepting))
            .map_err(failed)?;
        Ok(Self {
            address,
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
        // Wakes the thread that waits for connections; if that fails, it has ended.
        let _ = connect(&self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for connection in self.shared.lock().drain(..) {
            connection.close();
        }
        if let Address::Unix(path) = &self.address {
            // Someone may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Box<dyn Connection>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &Listener, node: &SimNode, shared: &Shared) {
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
            shared.lock().push(another);
        }
        let node = node.clone();
        let serving = thread::Builder::new().name("sim-control-connection".to_owned());
        // Without a thread the connection is closed, and the client is told by that.
        let _ = serving.spawn(move || serve(&node, connection));
    }
}

/// Answers the requests of one connection, which is a process of the node.
fn serve(node: &SimNode, connection: Box<dyn Connection>) {
    let process = node.process();
    if let Ok(writer) = connection.another() {
        let writer = Arc::new(Mutex::new(writer));
        let mut reader = BufReader::new(connection);
        while let Some(line) = next_line(&mut reader) {
            take(node, &process, &line, &writer);
        }
    }
    process.crash();
}

/// A line, or nothing at the end, after an error or when it is too long.
fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = reader.take(LONGEST_LINE).read_line(&mut line).ok()?;
    (read > 0 && line.ends_with('\n')).then_some(line)
}

type Writer = Arc<Mutex<Box<dyn Connection>>>;

/// Answers one line. A request with an id is answered whenever it is done, so that others
/// on the connection need not wait for it; one without is answered in its turn.
fn take(node: &SimNode, process: &Process, line: &str, writer: &Writer) {
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
fn parse(line: &str) -> Result<(Option<u64>, Request), (Option<u64>, String)> {
    let mut value: Value = serde_json::from_str(line).map_err(|error| (None, error.to_string()))?;
    let id = value.as_object_mut().and_then(|object| object.remove("id"));
    let id = match id {
        None => None,
        Some(id) => Some(
            id.as_u64()
                .ok_or((None, "the id is no number".to_owned()))?,
        ),
    };
    let request = serde_json::from_value(value).map_err(|error| (id, error.to_string()))?;
    Ok((id, request))
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
