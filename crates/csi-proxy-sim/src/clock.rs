//! The node's clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use csi_proxy::clock::{Clock, Moment};

/// The clock of a simulated node. A new one stands at zero.
#[derive(Debug)]
pub struct SimClock {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Debug)]
struct State {
    now: Duration,
    mode: Mode,
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Whoever sleeps moves the clock to the end of the sleep at once.
    Auto,
    /// The clock moves when it is told to.
    Manual,
    /// The clock runs `scale` times as fast as the machine's.
    Real { since: Instant, scale: u32 },
}

impl SimClock {
    /// A clock that jumps: whoever sleeps until a moment finds that it has come. Good for
    /// tests in which one caller waits at a time.
    pub fn auto() -> Self {
        Self::in_mode(Mode::Auto)
    }

    /// A clock that stands still until [`SimClock::advance`].
    pub fn manual() -> Self {
        Self::in_mode(Mode::Manual)
    }

    /// A clock that runs with the machine's, `scale` times as fast (0 counts as 1).
    pub fn real(scale: u32) -> Self {
        Self::in_mode(Mode::Real {
            since: Instant::now(),
            scale: scale.max(1),
        })
    }

    fn in_mode(mode: Mode) -> Self {
        Self {
            state: Mutex::new(State {
                now: Duration::ZERO,
                mode,
            }),
            moved: Condvar::new(),
        }
    }

    /// Moves the clock on and wakes who waits for a moment that has come.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        state.now = state.now.saturating_add(by);
        self.moved.notify_all();
    }

    /// Moves the clock to a moment, unless it is past it already.
    pub(crate) fn advance_to(&self, moment: Moment) {
        let missing = moment.0.saturating_sub(self.now().0);
        self.advance(missing);
    }

    /// Returns once `moment` has come, or as soon as `ended` is set and [`SimClock::wake`] is
    /// called.
    pub(crate) fn sleep_until_or(&self, moment: Moment, ended: &AtomicBool) {
        self.sleep(moment, || ended.load(Ordering::SeqCst));
    }

    /// Lets all who sleep look whether they still need to.
    pub(crate) fn wake(&self) {
        // With the lock nobody is between looking and sleeping.
        let _state = self.lock();
        self.moved.notify_all();
    }

    fn sleep(&self, moment: Moment, has_ended: impl Fn() -> bool) {
        let mut state = self.lock();
        loop {
            let left = moment.0.saturating_sub(state.now());
            if left.is_zero() || has_ended() {
                return;
            }
            state = match state.mode {
                Mode::Auto => {
                    state.now = moment.0;
                    self.moved.notify_all();
                    return;
                }
                Mode::Manual => self
                    .moved
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Mode::Real { scale, .. } => {
                    // One microsecond more than the rest, which the division rounds down.
                    let wait = (left / scale).saturating_add(Duration::from_micros(1));
                    self.moved
                        .wait_timeout(state, wait)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn now(&self) -> Duration {
        match self.mode {
            Mode::Auto | Mode::Manual => self.now,
            Mode::Real { since, scale } => self
                .now
                .saturating_add(since.elapsed().saturating_mul(scale)),
        }
    }
}

impl Clock for SimClock {
    fn now(&self) -> Moment {
        Moment(self.lock().now())
    }

    fn sleep_until(&self, moment: Moment) {
        self.sleep(moment, || false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn an_automatic_clock_jumps_to_the_end_of_a_sleep() {
        let clock = SimClock::auto();
        clock.sleep_until(Moment(HOUR));
        assert_eq!(clock.now(), Moment(HOUR));
        clock.sleep_until(Moment(HOUR / 2));
        assert_eq!(clock.now(), Moment(HOUR));
    }

    #[test]
    fn a_manual_clock_wakes_the_sleeper_when_it_is_advanced() {
        let clock = Arc::new(SimClock::manual());
        let sleeper = {
            let clock = Arc::clone(&clock);
            std::thread::spawn(move || {
                clock.sleep_until(Moment(HOUR));
                clock.now()
            })
        };
        clock.advance(HOUR / 2);
        clock.advance(HOUR / 2);
        assert_eq!(sleeper.join().unwrap(), Moment(HOUR));
    }

    #[test]
    fn a_real_clock_runs_as_fast_as_its_scale() {
        let clock = SimClock::real(1_000_000);
        clock.sleep_until(Moment(HOUR));
        assert!(clock.now() >= Moment(HOUR));
    }
}
