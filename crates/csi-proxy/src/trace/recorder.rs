//! Writes a trace.

use std::fmt;
use std::hash::RandomState;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::contents::{take_from_answer, take_from_call};
use super::format::{Header, Line, Outcome};
use super::secrets::Secrets;
use crate::cim::Cim;
use crate::clock::{Clock, Deadline, Moment};
use crate::os::Os;
use crate::port::{Answer, Call, PortResult, Transport};

/// Is told why a trace ends early.
type OnFailure = Box<dyn Fn(&io::Error) + Send + Sync>;

/// Where a trace goes. All recorders of one node share it.
///
/// A line is written at once and whole, whichever thread made the call. When writing fails,
/// the trace ends there; the calls go on.
pub struct Output {
    start: Moment,
    key: RandomState,
    on_failure: OnFailure,
    state: Mutex<State>,
}

struct State {
    /// Nothing after a failure.
    writer: Option<Box<dyn Write + Send>>,
    secrets: Secrets,
    last: u64,
}

impl Output {
    /// Begins a trace with its header. `start` is now on the node's clock, `secrets` has
    /// those that the header mentions, and `on_failure` is told once when the trace ends
    /// because it cannot be written.
    ///
    /// # Errors
    /// The header could not be written.
    pub fn begin(
        mut writer: impl Write + Send + 'static,
        header: &Header,
        start: Moment,
        secrets: Secrets,
        on_failure: impl Fn(&io::Error) + Send + Sync + 'static,
    ) -> io::Result<Arc<Self>> {
        write_line(&mut writer, header)?;
        Ok(Arc::new(Self {
            start,
            key: RandomState::new(),
            on_failure: Box::new(on_failure),
            state: Mutex::new(State {
                writer: Some(Box::new(writer)),
                secrets,
                last: 0,
            }),
        }))
    }

    /// The number of a call that begins; nothing once the trace has ended.
    fn begin_call(&self) -> Option<u64> {
        let mut state = self.state();
        state.writer.as_ref()?;
        state.last += 1;
        Some(state.last)
    }

    fn write(&self, made: &Made, call: &Call, answer: &PortResult<Answer>) {
        let mut state = self.state();
        let mut kept = call.redacted(|name, secret| state.secrets.hide_argument(name, secret));
        let sent = take_from_call(&mut kept, &self.key);
        let mut answer = answer.clone();
        let got = match &mut answer {
            Ok(answer) => take_from_answer(call, answer, &self.key),
            Err(_) => None,
        };
        let line = Line {
            seq: made.sequence,
            at_us: microseconds(self.since_start(made.began)),
            took_us: microseconds(made.ended.0.saturating_sub(made.began.0)),
            timeout_us: made.deadline.remaining(made.began).map(microseconds),
            call: kept,
            sent,
            answer: match answer {
                Ok(answer) => Outcome::Ok(answer),
                Err(error) => Outcome::Error(error),
            },
            got,
        };
        let Some(writer) = &mut state.writer else {
            return;
        };
        if let Err(error) = write_line(writer, &line) {
            state.writer = None;
            drop(state);
            (self.on_failure)(&error);
        }
    }

    fn since_start(&self, moment: Moment) -> Duration {
        moment.0.saturating_sub(self.start.0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

/// When a call was made.
struct Made {
    sequence: u64,
    began: Moment,
    ended: Moment,
    deadline: Deadline,
}

/// Writes a value as one line, with one call.
fn write_line(writer: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    writer.write_all(&line)?;
    writer.flush()
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Both ports of a node, with every call written to a trace.
pub struct Recorder {
    cim: Arc<dyn Cim>,
    os: Arc<dyn Os>,
    output: Arc<Output>,
}

impl Recorder {
    /// Writes the calls on these ports there.
    pub fn new(cim: Arc<dyn Cim>, os: Arc<dyn Os>, output: Arc<Output>) -> Self {
        Self { cim, os, output }
    }
}

impl Transport for Recorder {
    fn carry(&self, call: &Call, deadline: Deadline) -> PortResult<Answer> {
        let Some(sequence) = self.output.begin_call() else {
            return call.perform(&*self.cim, &*self.os, deadline);
        };
        let began = self.os.now();
        let answer = call.perform(&*self.cim, &*self.os, deadline);
        let made = Made {
            sequence,
            began,
            ended: self.os.now(),
            deadline,
        };
        self.output.write(&made, call, &answer);
        answer
    }

    fn clock(&self) -> &dyn Clock {
        &*self.os
    }
}
