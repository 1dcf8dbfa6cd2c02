//! Answers calls from a trace.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::difference::difference;
use super::format::{Entry, Trace};
use crate::cim::{Argument, CimCall};
use crate::clock::{Clock, Deadline, Moment};
use crate::os::FilesCall;
use crate::port::{Answer, Call, Carried, PortError, PortResult, Transport};

/// Both ports of a node that answers from a trace: the calls must come as they were recorded.
///
/// A call that the trace does not have at that place is answered
/// [`PortError::Unavailable`], as all after it, and [`Replayer::finish`] tells where. Which
/// secrets and which contents of files are sent does not matter, since they are not in the
/// trace. The clock stands where the recorded one stood after the last answer, and whoever
/// sleeps moves it on.
#[derive(Debug)]
pub struct Replayer {
    trace: Trace,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: usize,
    now: Moment,
    mismatch: Option<Mismatch>,
}

/// A call, an answer or an end that is not as the trace has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Mismatch {
    /// The line of the trace.
    pub line: usize,
    /// What is not as it should be.
    pub reason: String,
}

impl Replayer {
    /// Answers the calls of a trace in their order.
    pub fn new(trace: &Trace) -> Self {
        Self {
            trace: trace.clone(),
            state: Mutex::new(State {
                next: 0,
                now: Moment(std::time::Duration::ZERO),
                mismatch: None,
            }),
        }
    }

    /// Whether all calls of the trace were made, and no other.
    ///
    /// # Errors
    /// The first call that was another one, or the first that was not made.
    pub fn finish(&self) -> Result<(), Mismatch> {
        let state = self.state();
        if let Some(mismatch) = &state.mismatch {
            return Err(mismatch.clone());
        }
        match self.trace.entry(state.next) {
            None => Ok(()),
            Some(entry) => Err(Mismatch {
                line: entry.line,
                reason: format!(
                    "{} was not made, nor {} calls after it",
                    entry.call.operation(),
                    self.trace.len() - state.next - 1
                ),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry that a call must be.
    fn expected(&self, next: usize, call: &Call) -> Result<Entry, Mismatch> {
        let Some(entry) = self.trace.entry(next) else {
            return Err(Mismatch {
                line: self.trace.last_line() + 1,
                reason: format!("the trace has ended, and {} was called", call.operation()),
            });
        };
        let wrong = match call.operation() == entry.call.operation() {
            true => difference(&comparable(call), &comparable(&entry.call)),
            false => Some(format!("called instead of {}", entry.call.operation())),
        };
        match wrong {
            None => Ok(entry),
            Some(difference) => Err(Mismatch {
                line: entry.line,
                reason: format!("{}: {difference}", call.operation()),
            }),
        }
    }
}

impl Transport for Replayer {
    fn carry(&self, call: &Call, _: Deadline) -> PortResult<Answer> {
        let mut state = self.state();
        let expected = match &state.mismatch {
            Some(mismatch) => Err(mismatch.clone()),
            None => self.expected(state.next, call),
        };
        match expected {
            Ok(entry) => {
                state.next += 1;
                state.now = state.now.max(Moment(entry.at.saturating_add(entry.took)));
                entry.answer
            }
            Err(mismatch) => {
                let reason = format!("the trace has no such call: {mismatch}");
                state.mismatch = Some(mismatch);
                Err(PortError::Unavailable { reason })
            }
        }
    }

    fn clock(&self) -> &dyn Clock {
        self
    }
}

impl Clock for Replayer {
    fn now(&self) -> Moment {
        self.state().now
    }

    fn sleep_until(&self, moment: Moment) {
        let mut state = self.state();
        state.now = state.now.max(moment);
    }
}

/// A call without what is not in a trace.
fn comparable(call: &Call) -> Call {
    let mut call = call.redacted(|_, _| String::new());
    match &mut call {
        Call::Cim(CimCall::Invoke(invoke)) => {
            for (name, argument) in &mut invoke.arguments {
                if is_secret(name) {
                    *argument = Argument::Text(String::new());
                }
            }
        }
        Call::Files(FilesCall::WriteFile(request)) => request.contents.0.clear(),
        _ => {}
    }
    call
}

/// The parameters of methods that take secrets.
fn is_secret(parameter: &str) -> bool {
    ["Credential", "ChapSecret"].contains(&parameter)
}

impl Trace {
    /// Makes the calls of the trace again, in order, and checks that its own answers come.
    ///
    /// # Errors
    /// The first answer that does not come as it was recorded: it is not one to its call.
    pub fn check(&self) -> Result<(), Mismatch> {
        let ports = Carried(Replayer::new(self));
        for entry in self.entries() {
            let answer = entry.call.perform(&ports, &ports, Deadline::Never);
            if answer != entry.answer {
                let operation = entry.call.operation();
                return Err(Mismatch {
                    line: entry.line,
                    reason: format!("the answer is not one to {operation}"),
                });
            }
        }
        ports.0.finish()
    }
}
