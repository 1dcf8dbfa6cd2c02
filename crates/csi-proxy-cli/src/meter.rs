//! What a step costs: time, and port calls.

use std::future::Future;
use std::time::Instant;

use csi_proxy::clock::Moment;

use crate::report::Cost;

/// The format of a volume, as [`csi_proxy::port::Call::operation`] names it.
pub(crate) const FORMAT: &str = "MSFT_Volume.Format";

/// Port calls since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    /// To WMI.
    pub(crate) cim: u64,
    /// To the operating system.
    pub(crate) os: u64,
    /// How many of those to WMI were formats.
    pub(crate) formats: u64,
}

/// Whoever counts the calls on a node.
pub(crate) trait Meter {
    /// The calls so far.
    fn calls(&self) -> Calls;

    /// The node's clock.
    fn now(&self) -> Moment;
}

/// A step that has begun.
pub(crate) struct Begun<'a, M: ?Sized> {
    meter: &'a M,
    start: Instant,
    node_start: Moment,
    calls: Calls,
}

impl<'a, M: Meter + ?Sized> Begun<'a, M> {
    /// Begins to measure.
    pub(crate) fn now(meter: &'a M) -> Self {
        Self {
            meter,
            start: Instant::now(),
            node_start: meter.now(),
            calls: meter.calls(),
        }
    }

    /// What it has cost, and how many formats there were in it.
    pub(crate) fn end(self) -> (Cost, u64) {
        let after = self.meter.calls();
        let cost = Cost {
            time: self.start.elapsed(),
            node_time: self.meter.now().0.saturating_sub(self.node_start.0),
            cim: after.cim - self.calls.cim,
            os: after.os - self.calls.os,
        };
        (cost, after.formats - self.calls.formats)
    }
}

/// Does a step. Answers what it has cost, and how many formats there were in it.
pub(crate) async fn measured<T>(
    meter: &(impl Meter + ?Sized),
    step: impl Future<Output = T>,
) -> (T, Cost, u64) {
    let begun = Begun::now(meter);
    let outcome = step.await;
    let (cost, formats) = begun.end();
    (outcome, cost, formats)
}
