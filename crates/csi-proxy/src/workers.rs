//! A few threads that make WMI calls for everybody, so that a provider that hangs costs one
//! thread and its caller the deadline, not the node.
//!
//! Each thread keeps one connection per namespace for as long as it lives. What is behind a
//! connection is a [`Provider`]: WMI on Windows, a fake in the tests.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::cim::{Associators, CimAnswer, Invoke, Namespace, Query};
use crate::clock::{Clock, Deadline};
use crate::port::{CallId, PortError, PortResult};

/// Makes connections, and calls on them. A connection stays on the thread that made it.
pub(crate) trait Provider: Send + Sync + 'static {
    /// A connection to one namespace.
    type Connection;

    /// Connects to a namespace.
    fn connect(&self, namespace: Namespace) -> PortResult<Self::Connection>;

    /// Makes a call.
    fn perform(
        &self,
        connection: &mut Self::Connection,
        request: &Request,
    ) -> Result<CimAnswer, Failure>;
}

/// A call that a provider performs.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// [`crate::cim::Cim::query`]
    Query(Query),
    /// [`crate::cim::Cim::associators`]
    Associators(Associators),
    /// [`crate::cim::Cim::invoke`]
    Invoke(Invoke),
}

impl Request {
    fn namespace(&self) -> Namespace {
        match self {
            Self::Query(query) => query.namespace,
            Self::Associators(request) => request.namespace,
            Self::Invoke(invoke) => invoke.namespace,
        }
    }

    /// The call in one word, for errors.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Query(query) => format!("query {}", query.class),
            Self::Associators(request) => format!("associators {}", request.result_class),
            Self::Invoke(invoke) => format!("{}.{}", invoke.target.class(), invoke.method),
        }
    }

    /// Whether the call changes nothing and may be made twice.
    fn only_reads(&self) -> bool {
        !matches!(self, Self::Invoke(_))
    }
}

/// Why a call on a connection failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The provider answered an error; the connection is good.
    Refused(PortError),
    /// The connection is dead.
    Lost {
        /// Whether the call may have reached the provider.
        sent: bool,
        /// What was seen of it.
        error: PortError,
    },
}

/// How long a caller sleeps before it looks at the clock again, which need not run as fast as
/// the machine's.
const LOOK: Duration = Duration::from_millis(50);

/// How many threads there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Threads that take calls.
    pub(crate) threads: usize,
    /// Threads that hang in a call which its caller gave up.
    pub(crate) abandoned: usize,
}

/// The threads. Dropping it ends those that do not hang.
pub(crate) struct Workers<P: Provider>(Arc<Shared<P>>);

struct Shared<P> {
    provider: P,
    clock: Arc<dyn Clock>,
    limits: Limits,
    state: Mutex<State>,
    /// There is a request in the queue, or the end has come.
    work: Condvar,
    /// There is an answer.
    answered: Condvar,
}

#[derive(Default)]
struct State {
    last_id: u64,
    queue: VecDeque<(CallId, Request)>,
    running: HashSet<CallId>,
    /// Those of `running` whose callers have gone.
    abandoned: HashSet<CallId>,
    answers: HashMap<CallId, PortResult<CimAnswer>>,
    /// Threads that take calls, those that wait for one included.
    threads: usize,
    closed: bool,
}

impl State {
    /// How many threads have no call, or have just answered their last one.
    fn free(&self) -> usize {
        let busy = self.running.len() - self.abandoned.len();
        self.threads.saturating_sub(busy)
    }
}

impl<P: Provider> Workers<P> {
    /// Threads are started when they are needed.
    pub(crate) fn new(provider: P, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        Self(Arc::new(Shared {
            provider,
            clock,
            limits,
            state: Mutex::default(),
            work: Condvar::new(),
            answered: Condvar::new(),
        }))
    }

    /// Makes a call on one of the threads and waits for its answer until the deadline.
    pub(crate) fn call(&self, request: Request, deadline: Deadline) -> PortResult<CimAnswer> {
        let shared = &self.0;
        let mut state = shared.lock();
        if deadline.has_passed(shared.clock.now()) {
            return Err(PortError::DeadlineExceeded { running: None });
        }
        if state.abandoned.len() >= shared.limits.abandoned {
            return Err(PortError::Unavailable {
                reason: format!("{} WMI calls hang", state.abandoned.len()),
            });
        }
        state.last_id += 1;
        let id = CallId(state.last_id);
        state.queue.push_back((id, request));
        if let Err(error) = shared.staff(&mut state) {
            state.queue.retain(|(queued, _)| *queued != id);
            return Err(error);
        }
        loop {
            if let Some(answer) = state.answers.remove(&id) {
                return answer;
            }
            state = match deadline.remaining(shared.clock.now()) {
                None => wait(&shared.answered, state),
                Some(left) if left.is_zero() => return Err(shared.give_up(state, id)),
                Some(left) => {
                    let waited = shared.answered.wait_timeout(state, left.min(LOOK));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Whether a call that was given up still runs.
    pub(crate) fn is_running(&self, id: CallId) -> bool {
        self.0.lock().running.contains(&id)
    }
}

impl<P: Provider> Drop for Workers<P> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

impl<P: Provider> Shared<P> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that somebody takes what is in the queue, as far as the limit allows.
    fn staff(self: &Arc<Self>, state: &mut State) -> PortResult<()> {
        self.work.notify_one();
        if state.free() >= state.queue.len() || state.threads >= self.limits.threads {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let started = std::thread::Builder::new()
            .name("wmi".to_owned())
            .spawn(move || shared.work());
        match started {
            Ok(_) => state.threads += 1,
            // Those that are there will take it in their turn.
            Err(_) if state.threads > 0 => {}
            Err(error) => {
                return Err(PortError::Unavailable {
                    reason: format!("no thread for WMI: {error}"),
                });
            }
        }
        Ok(())
    }

    /// The caller of `id` stops waiting.
    fn give_up(self: &Arc<Self>, mut state: MutexGuard<'_, State>, id: CallId) -> PortError {
        if !state.running.contains(&id) {
            state.queue.retain(|(queued, _)| *queued != id);
            return PortError::DeadlineExceeded { running: None };
        }
        state.abandoned.insert(id);
        state.threads -= 1;
        // Its place is free again, for whoever waits in the queue. If no thread can be had
        // now, the next call tries again.
        let _ = self.staff(&mut state);
        PortError::DeadlineExceeded { running: Some(id) }
    }

    /// What a thread does.
    fn work(self: Arc<Self>) {
        let mut connections = HashMap::new();
        while let Some((id, request)) = self.next() {
            let mut running = Running {
                shared: &self,
                id,
                answer: Some(Err(PortError::OutcomeUnknown {
                    api: request.name(),
                })),
            };
            running.answer = Some(perform(&self.provider, &mut connections, &request));
            if !running.finish(false) {
                return;
            }
        }
    }

    /// Waits for a request; nothing when the end has come.
    fn next(&self) -> Option<(CallId, Request)> {
        let mut state = self.lock();
        loop {
            if let Some((id, request)) = state.queue.pop_front() {
                state.running.insert(id);
                return Some((id, request));
            }
            if state.closed {
                state.threads -= 1;
                return None;
            }
            state = wait(&self.work, state);
        }
    }
}

/// A call that a thread makes. Should the thread panic, its caller learns that the outcome
/// is unknown.
struct Running<'a, P: Provider> {
    shared: &'a Shared<P>,
    id: CallId,
    answer: Option<PortResult<CimAnswer>>,
}

impl<P: Provider> Running<'_, P> {
    /// Hands the answer over. Answers whether the thread goes on: not when the call was
    /// given up, since then it has been replaced.
    fn finish(&mut self, thread_ends: bool) -> bool {
        let Some(answer) = self.answer.take() else {
            return true;
        };
        let mut state = self.shared.lock();
        state.running.remove(&self.id);
        if state.abandoned.remove(&self.id) {
            return false;
        }
        if thread_ends {
            state.threads -= 1;
        }
        state.answers.insert(self.id, answer);
        self.shared.answered.notify_all();
        true
    }
}

impl<P: Provider> Drop for Running<'_, P> {
    fn drop(&mut self) {
        self.finish(true);
    }
}

/// Makes a call on the thread's connection to its namespace. A dead connection is replaced;
/// on the new one only what has not taken effect is made again, and that once.
fn perform<P: Provider>(
    provider: &P,
    connections: &mut HashMap<Namespace, P::Connection>,
    request: &Request,
) -> PortResult<CimAnswer> {
    match attempt(provider, connections, request)? {
        Ok(answer) => return Ok(answer),
        Err(lost) if lost.sent && !request.only_reads() => return Err(unknown(request)),
        Err(_) => {}
    }
    match attempt(provider, connections, request)? {
        Ok(answer) => Ok(answer),
        Err(lost) if lost.sent && !request.only_reads() => Err(unknown(request)),
        Err(lost) => Err(lost.error),
    }
}

struct Lost {
    sent: bool,
    error: PortError,
}

fn attempt<P: Provider>(
    provider: &P,
    connections: &mut HashMap<Namespace, P::Connection>,
    request: &Request,
) -> PortResult<Result<CimAnswer, Lost>> {
    let namespace = request.namespace();
    let mut connection = match connections.remove(&namespace) {
        Some(connection) => connection,
        None => provider.connect(namespace)?,
    };
    let answer = match provider.perform(&mut connection, request) {
        Ok(answer) => Ok(Ok(answer)),
        Err(Failure::Refused(error)) => Err(error),
        Err(Failure::Lost { sent, error }) => return Ok(Err(Lost { sent, error })),
    };
    connections.insert(namespace, connection);
    answer
}

fn unknown(request: &Request) -> PortError {
    PortError::OutcomeUnknown {
        api: request.name(),
    }
}

fn wait<'a>(on: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    on.wait(state).unwrap_or_else(PoisonError::into_inner)
}

/// What an HRESULT says about the connection: nothing when it is good, otherwise whether the
/// call may have reached the provider.
///
/// Sources: "WMI Error Constants", "COM Error Codes (Generic)" and "RPC Return Values" of
/// Microsoft's documentation.
pub(crate) fn connection_lost(hresult: u32) -> Option<bool> {
    match hresult {
        // RPC_E_SERVER_DIED_DNE, RPC_S_CALL_FAILED_DNE: "did not execute".
        0x8001_0012 | 0x8007_06BF => Some(false),
        // RPC_E_SERVER_DIED, RPC_E_DISCONNECTED, CO_E_OBJNOTCONNECTED,
        // RPC_S_SERVER_UNAVAILABLE, RPC_S_CALL_FAILED
        0x8001_0007 | 0x8001_0108 | 0x8004_01FD | 0x8007_06BA | 0x8007_06BE => Some(true),
        // WBEM_E_TRANSPORT_FAILURE, WBEM_E_CALL_CANCELLED (what a stopping WMI answers to
        // calls that run), WBEM_E_SHUTTING_DOWN
        0x8004_1015 | 0x8004_1032 | 0x8004_1033 => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
