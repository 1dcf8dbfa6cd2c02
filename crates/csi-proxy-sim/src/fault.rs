//! Scripted faults: what goes wrong, and at which call.

mod check;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use csi_proxy::cim::{CimAnswer, CimCall, Output};
use csi_proxy::port::{Answer, Call, PortResult};
use serde::{Deserialize, Serialize};

use crate::change::{NodeChange, NotChanged};
use crate::state::State;
use crate::win32::{hresult, win32};

pub use check::NotAFault;

/// Something that goes wrong at a port call. It is injected with
/// [`crate::SimNode::inject`] and happens once, or as often as [`Fault::times`] says.
///
/// ```
/// # use csi_proxy_sim::{Fault, SimNode};
/// # let node = SimNode::builder().build();
/// // The second format is refused: the drive is read-only.
/// node.inject(Fault::on("MSFT_Volume.Format").nth(2).returns(43006));
/// // The process dies right after its fifth call from now.
/// node.inject(Fault::at_call(5).crash_after());
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The operation, as [`Call::operation`] names it; nothing means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    /// At which such call after the injection, from 1 on.
    #[serde(default = "once")]
    nth: u64,
    /// At how many in a row.
    #[serde(default = "once")]
    times: u64,
    /// What happens.
    effect: Effect,
}

fn once() -> u64 {
    1
}

/// What happens at a call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    /// Nothing; the fault is not complete.
    #[default]
    #[serde(skip_deserializing)]
    Nothing,
    /// The method answers this return value and does nothing.
    Returns(u32),
    /// The call fails with this HRESULT and does nothing.
    Hresult(u32),
    /// The call fails with this code of `GetLastError` and does nothing.
    Win32(u32),
    /// The call takes so much longer; as data, in seconds.
    Stalls(#[serde(with = "seconds")] Duration),
    /// The call takes effect and its answer is lost.
    LosesAnswer,
    /// Something changes just before the call.
    Before(NodeChange),
    /// The same as code.
    #[serde(skip)]
    BeforeFn(ChangeFn),
    /// The process ends before the call does anything.
    CrashBefore,
    /// The process ends when the call has taken effect.
    CrashAfter,
    /// The node reboots before the call does anything.
    RebootBefore,
    /// The node reboots when the call has taken effect.
    RebootAfter,
}

/// A change as code.
#[derive(Clone)]
pub(crate) struct ChangeFn(pub(crate) Arc<dyn Fn(&mut State) + Send + Sync>);

impl fmt::Debug for ChangeFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangeFn")
    }
}

impl Fault {
    /// At the first call of an operation: `MSFT_Volume.Format`, `query MSFT_Disk`,
    /// `associators MSFT_Volume`, `create_link`, see [`Call::operation`].
    pub fn on(operation: &str) -> Self {
        Self {
            operation: Some(operation.to_owned()),
            ..Self::at_call(1)
        }
    }

    /// At the n-th port call of any kind after the injection, from 1 on.
    pub fn at_call(n: u64) -> Self {
        Self {
            operation: None,
            nth: n,
            times: 1,
            effect: Effect::Nothing,
        }
    }

    /// At the n-th such call after the injection, from 1 on.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        self.nth = n;
        self
    }

    /// At so many such calls in a row.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// The method does nothing and answers this return value. Calls that are no methods
    /// fail with the number as a code of `GetLastError` or an HRESULT.
    #[must_use]
    pub fn returns(self, code: u32) -> Self {
        self.with(Effect::Returns(code))
    }

    /// The call does nothing and fails with this HRESULT.
    #[must_use]
    pub fn hresult(self, code: u32) -> Self {
        self.with(Effect::Hresult(code))
    }

    /// The call does nothing and fails with this code of `GetLastError`.
    #[must_use]
    pub fn win32(self, code: u32) -> Self {
        self.with(Effect::Win32(code))
    }

    /// The call takes so much longer. A caller whose deadline comes first is told
    /// [`csi_proxy::port::PortError::DeadlineExceeded`], and the call takes effect later.
    #[must_use]
    pub fn stalls(self, time: Duration) -> Self {
        self.with(Effect::Stalls(time))
    }

    /// The call takes effect, and its answer is
    /// [`csi_proxy::port::PortError::OutcomeUnknown`].
    #[must_use]
    pub fn loses_answer(self) -> Self {
        self.with(Effect::LosesAnswer)
    }

    /// The node is changed just before the call.
    #[must_use]
    pub fn before(self, change: impl Fn(&mut State) + Send + Sync + 'static) -> Self {
        self.with(Effect::BeforeFn(ChangeFn(Arc::new(change))))
    }

    /// The same with a change that has a name.
    #[must_use]
    pub fn before_change(self, change: NodeChange) -> Self {
        self.with(Effect::Before(change))
    }

    /// The process that calls ends before the call does anything.
    #[must_use]
    pub fn crash_before(self) -> Self {
        self.with(Effect::CrashBefore)
    }

    /// The process that calls ends when the call has taken effect.
    #[must_use]
    pub fn crash_after(self) -> Self {
        self.with(Effect::CrashAfter)
    }

    /// The node reboots before the call does anything.
    #[must_use]
    pub fn reboot_before(self) -> Self {
        self.with(Effect::RebootBefore)
    }

    /// The node reboots when the call has taken effect.
    #[must_use]
    pub fn reboot_after(self) -> Self {
        self.with(Effect::RebootAfter)
    }

    fn with(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }
}

/// `MSFT_Volume.Format#2x3: Returns(43006)`, for people: the operation, at which call, at how
/// many in a row, and what happens.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = self.operation.as_deref().unwrap_or_default();
        write!(f, "{operation}#{}", self.nth)?;
        if self.times != 1 {
            write!(f, "x{}", self.times)?;
        }
        write!(f, ": {:?}", self.effect)
    }
}

/// A duration as a number of seconds.
mod seconds {
    use std::time::Duration;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(from)?;
        Duration::try_from_secs_f64(seconds).map_err(|_| {
            let reason = format!("stalls: {seconds}: expected seconds from 0 on, as 2.5");
            D::Error::custom(reason)
        })
    }
}

/// The faults that have not happened yet.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    waiting: Vec<Waiting>,
    /// Those whose change of the node could not be made, and why.
    not_made: Vec<String>,
}

/// A fault, and which calls it still waits for.
#[derive(Debug)]
struct Waiting {
    fault: Fault,
    nth: u64,
    times: u64,
}

impl Waiting {
    /// Counts a call. Answers whether it is one at which the fault happens.
    fn meets(&mut self, operation: &str) -> bool {
        let wanted = self.fault.operation.as_deref();
        // WMI's names compare without case.
        if wanted.is_some_and(|wanted| !wanted.eq_ignore_ascii_case(operation)) {
            return false;
        }
        self.nth = self.nth.saturating_sub(1);
        if self.nth > 0 {
            return false;
        }
        self.nth = 1;
        self.times = self.times.saturating_sub(1);
        true
    }
}

impl Faults {
    pub(crate) fn inject(&mut self, fault: Fault) {
        let (nth, times) = (fault.nth, fault.times);
        self.waiting.push(Waiting { fault, nth, times });
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn left(&self) -> usize {
        self.waiting.len() + self.not_made.len()
    }

    /// Those that are left, a line for each.
    pub(crate) fn shown(&self) -> Vec<String> {
        let waiting = self.waiting.iter().map(|one| {
            let met = one.fault.times - one.times;
            format!(
                "{} (happened {met} of {} times)",
                one.fault, one.fault.times
            )
        });
        waiting.chain(self.not_made.iter().cloned()).collect()
    }

    /// The change that a fault makes before the call could not be made.
    pub(crate) fn could_not_change(&mut self, change: &NodeChange, why: &NotChanged) {
        self.not_made.push(format!("before {change:?}: {why}"));
    }

    /// What happens at this call. All faults count it; the oldest that meets it happens.
    pub(crate) fn at(&mut self, call: &Call) -> Option<Effect> {
        if self.waiting.is_empty() {
            return None;
        }
        let operation = call.operation();
        let mut effects = Vec::new();
        for one in &mut self.waiting {
            if one.meets(&operation) {
                effects.push(one.fault.effect.clone());
            }
        }
        self.waiting.retain(|one| one.times > 0);
        effects.into_iter().next()
    }
}

/// The answer of a call that an effect makes fail; nothing if it does not.
pub(crate) fn failure(effect: &Effect, call: &Call) -> Option<PortResult<Answer>> {
    let operation = call.operation();
    match (effect, call) {
        (Effect::Returns(code), Call::Cim(CimCall::Invoke(_))) => {
            Some(Ok(Answer::Cim(CimAnswer::Invoke(Output {
                return_value: *code,
                properties: std::collections::BTreeMap::new(),
            }))))
        }
        (Effect::Returns(code) | Effect::Hresult(code), Call::Cim(_))
        | (Effect::Hresult(code), _) => Some(Err(hresult(&operation, *code))),
        (Effect::Returns(code) | Effect::Win32(code), _) => Some(Err(win32(&operation, *code))),
        _ => None,
    }
}
