//! The client of the control endpoint.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use csi_proxy::Host;
use csi_proxy::clock::{Clock, Deadline, Moment};
use csi_proxy::port::{Answer, Call, Carried, PortError, PortResult, Transport};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::socket::{Address, Connection, connect};
use super::{ControlError, Kind, Line, Outcome, PortCall, Request};

/// A connection to a node in another process. It is one process of that node: its locks end
/// with it. Clones are the same connection; calls from many threads do not wait for each
/// other.
#[derive(Clone)]
pub struct ControlClient(Arc<Inner>);

struct Inner {
    uri: String,
    writer: Mutex<Box<dyn Connection>>,
    waiting: Arc<Waiting>,
    last_id: AtomicU64,
}

/// Who waits for which answer. It is empty and closed when the connection has ended.
#[derive(Default)]
struct Waiting(Mutex<Option<BTreeMap<u64, Sender<Outcome>>>>);

impl ControlClient {
    /// Connects to `unix:///path` or `tcp://127.0.0.1:port`.
    pub fn connect(uri: &str) -> Result<Self, ControlError> {
        let failed = |source| ControlError::Io {
            uri: uri.to_owned(),
            doing: "no connection to the simulated node; does it run?",
            source,
        };
        let writer = connect(&Address::parse(uri)?).map_err(failed)?;
        let reader = writer.another().map_err(failed)?;
        let waiting = Arc::new(Waiting(Mutex::new(Some(BTreeMap::new()))));
        let told = Arc::clone(&waiting);
        thread::Builder::new()
            .name("sim-control-answers".to_owned())
            .spawn(move || listen(reader, &told))
            .map_err(failed)?;
        Ok(Self(Arc::new(Inner {
            uri: uri.to_owned(),
            writer: Mutex::new(writer),
            waiting,
            last_id: AtomicU64::new(0),
        })))
    }

    /// Whether the connection has not ended.
    pub fn is_open(&self) -> bool {
        lock(&self.0.waiting.0).is_some()
    }

    /// The production library over the node's ports.
    pub fn host(&self) -> Host {
        let ports = Arc::new(Carried(self.clone()));
        Host::new(ports.clone(), ports)
    }

    /// Makes a request whose answer is of that type.
    pub fn request<T: DeserializeOwned>(&self, request: &Request) -> Result<T, ControlError> {
        match self.ask(request)? {
            Outcome::Ok(value) => {
                serde_json::from_value(value).map_err(|error| self.protocol(&error))
            }
            Outcome::Error(reason) => Err(ControlError::Refused(reason)),
            Outcome::PortError(error) => Err(ControlError::Refused(error.to_string())),
        }
    }

    /// What stands at a path.
    pub fn check(&self, path: &str) -> Result<Kind, ControlError> {
        let path = path.to_owned();
        self.request(&Request::Check { path })
    }

    fn ask(&self, request: &Request) -> Result<Outcome, ControlError> {
        let id = self.0.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let line = line_of(id, request).map_err(|error| self.protocol(&error))?;
        let answer = self.0.waiting.wait_for(id).ok_or_else(|| self.closed())?;
        let written = lock(&self.0.writer).write_all(line.as_bytes());
        written.map_err(|source| ControlError::Io {
            uri: self.0.uri.clone(),
            doing: "the request could not be sent",
            source,
        })?;
        answer.recv().map_err(|_| self.closed())
    }

    fn closed(&self) -> ControlError {
        ControlError::Io {
            uri: self.0.uri.clone(),
            doing: "the connection has ended",
            source: std::io::ErrorKind::ConnectionAborted.into(),
        }
    }

    fn protocol(&self, error: &serde_json::Error) -> ControlError {
        ControlError::Protocol {
            uri: self.0.uri.clone(),
            reason: error.to_string(),
        }
    }

    /// Port calls end as if the process had been cut off from Windows when the connection
    /// is lost.
    fn port_call(
        &self,
        call: &Call,
        deadline: Deadline,
    ) -> Result<PortResult<Answer>, ControlError> {
        let deadline = match deadline {
            Deadline::At(moment) => Some(moment),
            Deadline::Never => None,
        };
        let request = match call {
            Call::Cim(call) => Request::Cim(PortCall {
                call: call.clone(),
                timeout_ms: None,
                deadline,
            }),
            other => Request::Os(PortCall {
                call: other.clone(),
                timeout_ms: None,
                deadline,
            }),
        };
        match self.ask(&request)? {
            Outcome::Ok(value) => {
                let answer = serde_json::from_value(value);
                answer.map(Ok).map_err(|error| self.protocol(&error))
            }
            Outcome::PortError(error) => Ok(Err(error)),
            Outcome::Error(reason) => Err(ControlError::Refused(reason)),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        lock(&self.writer).close();
    }
}

impl Transport for ControlClient {
    fn carry(&self, call: &Call, deadline: Deadline) -> PortResult<Answer> {
        self.port_call(call, deadline).unwrap_or_else(|error| {
            Err(PortError::Unavailable {
                reason: error.to_string(),
            })
        })
    }

    fn clock(&self) -> &dyn Clock {
        self
    }
}

/// The node's clock. Once the connection has ended the clock is at its end, so that whoever
/// waits on it stops waiting.
impl Clock for ControlClient {
    fn now(&self) -> Moment {
        self.request(&Request::Now)
            .unwrap_or(Moment(std::time::Duration::MAX))
    }

    fn sleep_until(&self, moment: Moment) {
        // It returns early only when the connection has ended.
        let _: Result<(), _> = self.request(&Request::SleepUntil(moment));
    }
}

impl Waiting {
    fn wait_for(&self, id: u64) -> Option<Receiver<Outcome>> {
        let (sender, receiver) = channel();
        lock(&self.0).as_mut()?.insert(id, sender);
        Some(receiver)
    }

    fn tell(&self, line: Line) {
        let sender = line.id.and_then(|id| lock(&self.0).as_mut()?.remove(&id));
        if let Some(sender) = sender {
            // Who no longer waits needs no answer.
            let _ = sender.send(line.answer);
        }
    }
}

fn listen(connection: Box<dyn Connection>, waiting: &Waiting) {
    let mut lines = BufReader::new(connection);
    let mut line = Vec::new();
    while matches!(lines.read_until(b'\n', &mut line), Ok(read) if read > 0) {
        if let Ok(line) = serde_json::from_slice(&line) {
            waiting.tell(line);
        }
        line.clear();
    }
    *lock(&waiting.0) = None;
}

fn line_of(id: u64, request: &Request) -> serde_json::Result<String> {
    let mut object = match serde_json::to_value(request)? {
        Value::String(verb) => serde_json::Map::from_iter([(verb, Value::Null)]),
        Value::Object(object) => object,
        other => serde_json::Map::from_iter([("request".to_owned(), other)]),
    };
    object.insert("id".to_owned(), id.into());
    Ok(format!("{}\n", Value::Object(object)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
