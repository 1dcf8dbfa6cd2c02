//! Time as the ports see it: one clock per node, and deadlines on it.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A moment on a [`Clock`], as the time since the clock's own start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment(pub Duration);

/// The moment until which a call may take. It is a moment of the node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deadline {
    /// The call must have answered by then.
    At(Moment),
    /// The call may take as long as it needs.
    Never,
}

impl Deadline {
    /// The time left at `now`: zero when it has passed, nothing for [`Deadline::Never`].
    pub fn remaining(self, now: Moment) -> Option<Duration> {
        match self {
            Self::At(moment) => Some(moment.0.saturating_sub(now.0)),
            Self::Never => None,
        }
    }

    /// Whether the deadline has passed at `now`.
    pub fn has_passed(self, now: Moment) -> bool {
        self.remaining(now) == Some(Duration::ZERO)
    }
}

/// The node's clock. A simulated node has its own, so that a format of 150 s is tested in
/// milliseconds; everything that waits must wait on this one.
pub trait Clock: Send + Sync {
    /// The present moment. It never goes back.
    fn now(&self) -> Moment;

    /// Returns once `moment` has come.
    fn sleep_until(&self, moment: Moment);

    /// The deadline that lies `duration` ahead.
    fn deadline_in(&self, duration: Duration) -> Deadline {
        Deadline::At(Moment(self.now().0.saturating_add(duration)))
    }

    /// Waits for `duration`, or up to the deadline if that comes first. Answers whether
    /// there is time left afterwards.
    fn pause(&self, duration: Duration, deadline: Deadline) -> bool {
        let now = self.now();
        let wait = match deadline.remaining(now) {
            Some(left) => duration.min(left),
            None => duration,
        };
        self.sleep_until(Moment(now.0.saturating_add(wait)));
        !deadline.has_passed(self.now())
    }
}

/// The clock of the machine that the program runs on.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Moment(self.0.elapsed())
    }

    fn sleep_until(&self, moment: Moment) {
        std::thread::sleep(moment.0.saturating_sub(self.0.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_stops_at_the_deadline() {
        let clock = SystemClock::new();
        let deadline = clock.deadline_in(Duration::from_millis(1));
        assert!(!clock.pause(Duration::from_secs(3600), deadline));
        assert!(deadline.has_passed(clock.now()));
    }

    #[test]
    fn never_leaves_any_time() {
        assert_eq!(Deadline::Never.remaining(Moment(Duration::MAX)), None);
    }
}
