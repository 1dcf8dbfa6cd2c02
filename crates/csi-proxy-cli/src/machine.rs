//! The simulated node that a command runs on, and a process on it.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use csi_proxy::Host;
use csi_proxy::clock::{Clock, Deadline};
use csi_proxy::port::{Answer, Call, PortError, PortResult, Transport};
use csi_proxy_sim::control::ControlClient;
use csi_proxy_sim::{Latency, Machine, Process, SimClock, SimNode};

use crate::failure::{Failure, Result};
use crate::host::{self, Simulated};

/// How long the simulated node takes to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Speed {
    /// No time at all
    Instant,
    /// As a busy node: 0.2 s for a call of WMI, 2.9 s to format 1 GiB
    Busy,
}

impl Speed {
    /// The same for the node.
    pub(crate) fn latency(self) -> Latency {
        match self {
            Self::Instant => Latency::NONE,
            Self::Busy => Latency::MEASURED,
        }
    }
}

/// A fresh node, as slow as a busy one, whose clock jumps instead of waiting.
pub(crate) fn for_demo() -> SimNode {
    SimNode::builder().latency(Speed::Busy.latency()).build()
}

/// Keeps other programs away from the file of a saved node, until the answer is dropped or
/// this program ends. That is done with a file beside it, since each save replaces the file.
pub(crate) fn take_for_us(saved: &Path) -> Result<File> {
    let mut beside = saved.as_os_str().to_owned();
    beside.push(".lock");
    let file = saved.display();
    let lock = File::options().create(true).append(true).open(&beside);
    let lock =
        lock.map_err(|error| Failure::from_error(format_args!("--sim-state {file}"), &error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Failure::new(format!(
            "--sim-state {file}: another program keeps its node there; name another file"
        ))),
        Err(TryLockError::Error(error)) => Err(Failure::from_error(
            format_args!("--sim-state {file} cannot be locked"),
            &error,
        )),
    }
}

/// The node of `csi-proxy node`: the one that was saved in a file, else the one that a
/// machine file describes, else a fresh one with a clock that runs as ours.
pub(crate) fn for_node(
    machine: Option<&Path>,
    saved: Option<&Path>,
    speed: Option<Speed>,
) -> Result<SimNode> {
    let clock = SimClock::real(1);
    let node = match (saved.filter(|path| path.exists()), machine) {
        (Some(path), _) => SimNode::load(path, clock, Latency::NONE)
            .map_err(|error| Failure::from_error("--sim-state", &error))?,
        (None, Some(path)) => Machine::load(path)
            .and_then(|machine| machine.build())
            .map_err(|error| Failure::from_error("--simulate", &error))?,
        (None, None) => SimNode::builder().clock(clock).build(),
    };
    if let Some(speed) = speed {
        node.set_latency(speed.latency());
    }
    Ok(node)
}

/// How often it is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A process on a node, from its start to its end.
pub(crate) struct Life {
    host: Host,
    /// What is between the library and the node.
    _way: Option<Simulated>,
    process: Option<Process>,
    /// A port call was told that there is no process any more. Nothing for one on this
    /// machine, which lives as long as the program.
    has_ended: Option<Arc<AtomicBool>>,
}

impl Life {
    /// A new process on a node of our own.
    pub(crate) fn on(node: &SimNode) -> Result<Self> {
        let process = node.process();
        Self::over(Box::new(process.clone()), Some(process))
    }

    /// A new process on the node at a control endpoint.
    pub(crate) fn elsewhere(uri: &str) -> Result<Self> {
        let client = ControlClient::connect(uri)
            .map_err(|error| Failure::from_error("--simulate-at", &error))?;
        Self::over(Box::new(client), None)
    }

    /// Our own, on this machine.
    pub(crate) fn here() -> Result<Self> {
        Ok(Self {
            host: host::local(host::SIMULATE)?,
            _way: None,
            process: None,
            has_ended: None,
        })
    }

    fn over(to: Box<dyn Transport>, process: Option<Process>) -> Result<Self> {
        let has_ended = Arc::<AtomicBool>::default();
        let way = Simulated::over(Watched {
            to,
            has_ended: Arc::clone(&has_ended),
        })?;
        Ok(Self {
            host: way.host.clone(),
            _way: Some(way),
            process,
            has_ended: Some(has_ended),
        })
    }

    /// The same with another host in the place of its own, one that watches the calls for
    /// instance.
    pub(crate) fn map_host(mut self, map: impl FnOnce(Host) -> Result<Host>) -> Result<Self> {
        self.host = map(self.host)?;
        Ok(self)
    }

    /// The library in it.
    pub(crate) fn host(&self) -> Host {
        self.host.clone()
    }

    /// Returns when it has ended. The end of one elsewhere shows at its next port call.
    pub(crate) async fn end(&self) {
        let Some(has_ended) = &self.has_ended else {
            return std::future::pending().await;
        };
        let is_alive = |process: &Process| process.is_alive();
        while !has_ended.load(Ordering::SeqCst) && self.process.as_ref().is_none_or(is_alive) {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// The way to a process, which notes when that has ended.
struct Watched {
    to: Box<dyn Transport>,
    has_ended: Arc<AtomicBool>,
}

impl Transport for Watched {
    fn carry(&self, call: &Call, deadline: Deadline) -> PortResult<Answer> {
        let answer = self.to.carry(call, deadline);
        trace(call, &answer);
        if let Err(PortError::Unavailable { .. }) = answer {
            self.has_ended.store(true, Ordering::SeqCst);
        }
        answer
    }

    fn clock(&self) -> &dyn Clock {
        self.to.clock()
    }
}

fn trace(call: &Call, answer: &PortResult<Answer>) {
    tracing::trace!(
        operation = call.operation(),
        error = answer.as_ref().err().map(tracing::field::display),
        "port call"
    );
}

/// The library on a process of the node that is started again whenever it has ended: a
/// crash or a reboot that is simulated does not end our own program.
pub(crate) fn restarted(node: &SimNode) -> Result<Simulated> {
    Simulated::over(Restarted {
        node: node.clone(),
        clock: node.clock(),
        process: Mutex::new(node.process()),
    })
}

struct Restarted {
    node: SimNode,
    clock: Arc<SimClock>,
    process: Mutex<Process>,
}

impl Transport for Restarted {
    fn carry(&self, call: &Call, deadline: Deadline) -> PortResult<Answer> {
        let process = self
            .process
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let answer = process.carry(call, deadline);
        trace(call, &answer);
        if let Err(PortError::Unavailable { .. }) = answer {
            // What ran in it has lost this call; the next one is made by its successor.
            let mut current = self.process.lock().unwrap_or_else(PoisonError::into_inner);
            if current.id() == process.id() {
                *current = self.node.process();
            }
        }
        answer
    }

    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }
}
