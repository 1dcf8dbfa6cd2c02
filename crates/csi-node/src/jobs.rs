//! One operation per volume at a time, on threads that may block.
//!
//! CSI asks a plugin to be safe against several calls for one volume, and lets it answer
//! Aborted to all but one. A call that comes again while the first still runs is a retry: it
//! joins the first and gets its answer, so that a long format is waited for and never begun
//! twice. A caller waits up to its own deadline; the work goes on without it.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csi_proxy::clock::{Clock, Deadline};
use csi_proxy::{Error, ErrorKind, Result};
use tokio::sync::{Semaphore, watch};

/// How often a waiting caller looks at the node's clock, which need not run like ours.
const TICK: Duration = Duration::from_millis(5);

/// A request, for telling a retry from another request. It has no `Debug`: the message holds
/// secrets.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The RPC.
    pub(crate) operation: &'static str,
    /// Its message.
    pub(crate) request: Vec<u8>,
}

type Outcome = Result<Arc<dyn Any + Send + Sync>>;

struct Running {
    call: Call,
    outcome: watch::Receiver<Option<Outcome>>,
}

/// The work that runs.
#[derive(Clone)]
pub(crate) struct Jobs {
    running: Arc<Mutex<HashMap<String, Running>>>,
    threads: Arc<Semaphore>,
    most: u32,
}

impl Jobs {
    /// At most `most` at a time; more wait for their turn.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            running: Arc::default(),
            threads: Arc::new(Semaphore::new(most as usize)),
            most,
        }
    }

    /// Does `work` for a volume and waits for it until the deadline on the node's clock.
    ///
    /// The same call that runs already is joined; another one is Aborted.
    pub(crate) async fn for_volume<T: Clone + Send + Sync + 'static>(
        &self,
        volume: &str,
        call: Call,
        clock: &dyn Clock,
        deadline: Deadline,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let operation = call.operation;
        let outcome = self.start_or_join(volume, call, work)?;
        let object = format!("volume {volume}");
        wait(operation, &object, outcome, clock, deadline).await
    }

    /// Does `work` that needs no volume for itself.
    pub(crate) async fn reading<T: Clone + Send + Sync + 'static>(
        &self,
        operation: &'static str,
        object: &str,
        clock: &dyn Clock,
        deadline: Deadline,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tell, outcome) = watch::channel(None);
        self.spawn(operation, object.to_owned(), work, move |answer| {
            tell.send_replace(Some(answer));
        });
        wait(operation, object, outcome, clock, deadline).await
    }

    /// Takes no more work and waits until all that runs has ended.
    pub(crate) async fn drain(&self) {
        // The permits are given out in the order of asking, so all earlier work is done.
        if self.threads.acquire_many(self.most).await.is_ok() {
            self.threads.close();
        }
    }

    fn start_or_join<T: Clone + Send + Sync + 'static>(
        &self,
        volume: &str,
        call: Call,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<watch::Receiver<Option<Outcome>>> {
        let mut running = lock(&self.running);
        if let Some(other) = running.get(volume) {
            return match other.call == call {
                true => Ok(other.outcome.clone()),
                false => Err(Error::new(
                    ErrorKind::Aborted,
                    call.operation,
                    format!("volume {volume}"),
                    format!("{} of this volume is still running", other.call.operation),
                )),
            };
        }
        let (tell, outcome) = watch::channel(None);
        let entry = Running {
            call: call.clone(),
            outcome: outcome.clone(),
        };
        running.insert(volume.to_owned(), entry);
        drop(running);
        let (all, key) = (Arc::clone(&self.running), volume.to_owned());
        let object = format!("volume {volume}");
        self.spawn(call.operation, object, work, move |answer| {
            // First the entry: who has the answer must find the volume free.
            lock(&all).remove(&key);
            tell.send_replace(Some(answer));
        });
        Ok(outcome)
    }

    fn spawn<T: Send + Sync + 'static>(
        &self,
        operation: &'static str,
        object: String,
        work: impl FnOnce() -> Result<T> + Send + 'static,
        end: impl FnOnce(Outcome) + Send + 'static,
    ) {
        let threads = Arc::clone(&self.threads);
        // Taken at once where it can be, so that a drain that comes next waits for it.
        let at_once = Arc::clone(&threads).try_acquire_owned();
        tokio::spawn(async move {
            let permit = match at_once {
                Ok(permit) => Ok(permit),
                Err(_) => threads.acquire_owned().await,
            };
            let Ok(permit) = permit else {
                let detail = "the plugin is shutting down";
                let kind = ErrorKind::Unavailable;
                return end(Err(Error::new(kind, operation, object, detail)));
            };
            let done = tokio::task::spawn_blocking(move || {
                let answer = work();
                drop(permit);
                answer
            });
            end(match done.await {
                Ok(answer) => answer.map(|value| Arc::new(value) as Arc<_>),
                Err(panic) => Err(Error::new(ErrorKind::Internal, operation, object, panic)),
            });
        });
    }
}

async fn wait<T: Clone + Send + Sync + 'static>(
    operation: &'static str,
    object: &str,
    mut outcome: watch::Receiver<Option<Outcome>>,
    clock: &dyn Clock,
    deadline: Deadline,
) -> Result<T> {
    let fail = |kind, detail: &str| Err(Error::new(kind, operation, object, detail));
    loop {
        if let Some(answer) = outcome.borrow_and_update().clone() {
            return match answer?.downcast_ref::<T>() {
                Some(value) => Ok(value.clone()),
                None => fail(ErrorKind::Internal, "the answer is of another kind"),
            };
        }
        if deadline.has_passed(clock.now()) {
            let detail = "no answer before the deadline; the work goes on, call again";
            return fail(ErrorKind::DeadlineExceeded, detail);
        }
        // Either the answer is there or it is time to look at the clock.
        if let Ok(Err(_)) = tokio::time::timeout(TICK, outcome.changed()).await {
            return fail(ErrorKind::Internal, "the work ended without an answer");
        }
    }
}

fn lock(running: &Mutex<HashMap<String, Running>>) -> MutexGuard<'_, HashMap<String, Running>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use csi_proxy::clock::{Moment, SystemClock};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;

    /// A clock that stands still until it is told.
    #[derive(Default)]
    struct Hand(Mutex<Duration>);

    impl Hand {
        fn set(&self, seconds: u64) {
            *self.0.lock().unwrap() = Duration::from_secs(seconds);
        }
    }

    impl Clock for Hand {
        fn now(&self) -> Moment {
            Moment(*self.0.lock().unwrap())
        }

        fn sleep_until(&self, _: Moment) {
            panic!("nothing here sleeps on the node's clock");
        }
    }

    fn stage(text: &str) -> Call {
        Call {
            operation: "NodeStageVolume",
            request: text.as_bytes().to_vec(),
        }
    }

    /// Work that ends when it is told, and counts how often it was begun.
    fn held(begun: &Arc<AtomicU32>) -> (mpsc::Sender<()>, impl FnOnce() -> Result<u32> + use<>) {
        let (go, wait) = mpsc::channel::<()>();
        let begun = Arc::clone(begun);
        let work = move || {
            let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
            wait.recv().ok();
            Ok(number)
        };
        (go, work)
    }

    #[tokio::test]
    async fn the_same_request_joins_and_another_is_aborted() {
        let (jobs, clock) = (Jobs::new(4), SystemClock::new());
        let begun = Arc::default();
        let (go, work) = held(&begun);
        let (_unused, second) = held(&begun);
        let first = jobs.for_volume("v", stage("a"), &clock, Deadline::Never, work);
        let again = jobs.for_volume("v", stage("a"), &clock, Deadline::Never, second);
        let other = async {
            let other = jobs.for_volume("v", stage("b"), &clock, Deadline::Never, || Ok(9));
            assert_eq!(other.await.unwrap_err().kind(), ErrorKind::Aborted);
            let elsewhere = jobs.for_volume("w", stage("b"), &clock, Deadline::Never, || Ok(9));
            assert_eq!(elsewhere.await.unwrap(), 9);
            go.send(()).unwrap();
        };
        let (first, again, ()) = tokio::join!(first, again, other);
        assert_eq!((first.unwrap(), again.unwrap()), (1, 1));
        let after = jobs.for_volume("v", stage("b"), &clock, Deadline::Never, || Ok(3));
        assert_eq!(after.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn the_deadline_is_the_nodes_and_the_work_goes_on() {
        let (jobs, clock) = (Jobs::new(4), Hand::default());
        let begun = Arc::default();
        let (go, work) = held(&begun);
        let at = |seconds| Deadline::At(Moment(Duration::from_secs(seconds)));
        let first = jobs.for_volume("v", stage("a"), &clock, at(120), work);
        let (first, ()) = tokio::join!(first, async { clock.set(121) });
        let late = first.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::DeadlineExceeded);
        assert!(late.to_string().contains("volume v: no answer"), "{late}");

        let (_unused, second) = held(&begun);
        let again = jobs.for_volume("v", stage("a"), &clock, at(241), second);
        let (again, ()) = tokio::join!(again, async { go.send(()).unwrap() });
        assert_eq!(again.unwrap(), 1);
        assert_eq!(begun.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error_and_frees_the_volume() {
        let (jobs, clock) = (Jobs::new(1), SystemClock::new());
        let work = || -> Result<u32> { panic!("a fault of ours") };
        let first = jobs.for_volume("v", stage("a"), &clock, Deadline::Never, work);
        let error = first.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().contains("volume v: "), "{error}");
        let after = jobs.for_volume("v", stage("b"), &clock, Deadline::Never, || Ok(1));
        assert_eq!(after.await.unwrap(), 1);
    }

    #[tokio::test]
    async fn drain_waits_for_what_runs_and_refuses_what_comes_later() {
        let (jobs, clock) = (Jobs::new(2), SystemClock::new());
        let begun = Arc::default();
        let (go, work) = held(&begun);
        let first = jobs.for_volume("v", stage("a"), &clock, Deadline::Never, work);
        let drained = async {
            let drain = jobs.drain();
            tokio::pin!(drain);
            let early = tokio::time::timeout(TICK, &mut drain).await;
            assert!(early.is_err(), "drained while work runs");
            go.send(()).unwrap();
            drain.await;
        };
        let (first, ()) = tokio::join!(first, drained);
        assert_eq!(first.unwrap(), 1);
        let late = jobs.for_volume("v", stage("b"), &clock, Deadline::Never, || Ok(1));
        assert_eq!(late.await.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
