//! Scripted faults: what goes wrong, and at which call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use csi_proxy::cim::{CimAnswer, CimCall, Output};
use csi_proxy::port::{Answer, Call, PortResult};
use serde::{Deserialize, Serialize};

use crate::change::NodeChange;
use crate::state::State;
use crate::win32::{hresult, win32};

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
    Nothing,
    /// The method answers this return value and does nothing.
    Returns(u32),
    /// The call fails with this HRESULT and does nothing.
    Hresult(u32),
    /// The call fails with this code of `GetLastError` and does nothing.
    Win32(u32),
    /// The call takes so much longer, in seconds.
    Stalls(f64),
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
        self.with(Effect::Stalls(time.as_secs_f64()))
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

    /// Counts a call. Answers the effect if it is one at which the fault happens.
    fn meets(&mut self, operation: &str) -> Option<Effect> {
        if self
            .operation
            .as_deref()
            .is_some_and(|own| own != operation)
        {
            return None;
        }
        self.nth = self.nth.saturating_sub(1);
        if self.nth > 0 {
            return None;
        }
        self.nth = 1;
        self.times = self.times.saturating_sub(1);
        Some(self.effect.clone())
    }
}

/// The faults that have not happened yet.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn inject(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    /// What happens at this call. All faults count it; the oldest that meets it happens.
    pub(crate) fn at(&mut self, call: &Call) -> Option<Effect> {
        if self.0.is_empty() {
            return None;
        }
        let operation = call.operation();
        let mut effects = Vec::new();
        for fault in &mut self.0 {
            effects.extend(fault.meets(&operation));
        }
        self.0.retain(|fault| fault.times > 0);
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
