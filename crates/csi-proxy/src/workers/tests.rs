use std::sync::mpsc;

use super::*;
use crate::cim::{ObjectPath, Output};
use crate::clock::SystemClock;
use crate::port::SystemCode;

/// What the fake does with the next call on any connection.
enum Step {
    Answer,
    Refuse,
    Lose {
        sent: bool,
    },
    Panic,
    /// Says that it has begun, then hangs until the other end sends or goes.
    Hang(mpsc::Sender<()>, mpsc::Receiver<()>),
}

#[derive(Clone, Default)]
struct Fake {
    steps: Arc<Mutex<VecDeque<Step>>>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    connects: usize,
    calls: usize,
}

impl Fake {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let fake = Self::default();
        fake.steps.lock().unwrap().extend(steps);
        fake
    }

    fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }
}

fn refused() -> PortError {
    PortError::System {
        api: "fake".to_owned(),
        code: SystemCode::HResult(0x8004_1003),
        message: String::new(),
    }
}

fn disconnected() -> PortError {
    PortError::System {
        api: "fake".to_owned(),
        code: SystemCode::HResult(0x8001_0108),
        message: String::new(),
    }
}

impl Provider for Fake {
    type Connection = Namespace;

    fn connect(&self, namespace: Namespace) -> PortResult<Namespace> {
        self.seen.lock().unwrap().connects += 1;
        Ok(namespace)
    }

    fn perform(&self, connection: &mut Namespace, request: &Request) -> Result<CimAnswer, Failure> {
        assert_eq!(*connection, request.namespace());
        self.seen.lock().unwrap().calls += 1;
        let step = self.steps.lock().unwrap().pop_front();
        match step.unwrap_or(Step::Answer) {
            Step::Answer => Ok(answer(request)),
            Step::Refuse => Err(Failure::Refused(refused())),
            Step::Lose { sent } => Err(Failure::Lost {
                sent,
                error: disconnected(),
            }),
            Step::Panic => panic!("the provider panics, as this test wants"),
            Step::Hang(began, go_on) => {
                began.send(()).unwrap();
                let _ = go_on.recv();
                Ok(answer(request))
            }
        }
    }
}

fn answer(request: &Request) -> CimAnswer {
    match request {
        Request::Query(_) => CimAnswer::Query(Vec::new()),
        Request::Associators(_) => CimAnswer::Associators(Vec::new()),
        Request::Invoke(_) => CimAnswer::Invoke(Output {
            return_value: 0,
            properties: Default::default(),
        }),
    }
}

fn read() -> Request {
    Request::Query(Query::new(Namespace::Storage, "MSFT_Disk", &[]))
}

fn dependents() -> Request {
    Request::Associators(Associators::new(
        Namespace::Cimv2,
        &ObjectPath("Win32_Service.Name=\"MSiSCSI\"".to_owned()),
        "Win32_DependentService",
        "Win32_Service",
        &["Name"],
    ))
}

fn change() -> Request {
    Request::Invoke(Invoke::on_class(
        Namespace::Storage,
        "MSFT_StorageSetting",
        "UpdateHostStorageCache",
    ))
}

fn workers(fake: &Fake, threads: usize, abandoned: usize) -> Workers<Fake> {
    let limits = Limits { threads, abandoned };
    Workers::new(fake.clone(), Arc::new(SystemClock::new()), limits)
}

/// A hanging step, what tells that it has begun, and what ends it.
fn hang() -> (Step, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (began, has_begun) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    (Step::Hang(began, ended), has_begun, end)
}

/// Gives up a call that hangs and answers its id.
fn give_up(workers: &Workers<Fake>, has_begun: mpsc::Receiver<()>) -> CallId {
    let clock = Arc::clone(&workers.0.clock);
    // The deadline must not pass before a thread has taken the call.
    let mut wait = Duration::from_millis(5);
    loop {
        let given_up = workers.call(read(), clock.deadline_in(wait));
        match given_up {
            Err(PortError::DeadlineExceeded { running: Some(id) }) => {
                has_begun.recv().unwrap();
                return id;
            }
            Err(PortError::DeadlineExceeded { running: None }) => wait *= 2,
            other => panic!("{other:?}"),
        }
    }
}

/// Returns once the abandoned call has ended.
fn wait_for_end(workers: &Workers<Fake>, id: CallId) {
    while workers.is_running(id) {
        std::thread::yield_now();
    }
}

#[test]
fn one_connection_for_each_namespace_serves_a_caller() {
    let fake = Fake::default();
    let workers = workers(&fake, 4, 1);
    for _ in 0..100 {
        workers.call(read(), Deadline::Never).unwrap();
        workers.call(dependents(), Deadline::Never).unwrap();
        workers.call(change(), Deadline::Never).unwrap();
    }
    let expected = Seen {
        connects: 2,
        calls: 300,
    };
    assert_eq!(fake.seen(), expected);
}

#[test]
fn an_error_of_the_provider_keeps_the_connection_and_is_not_repeated() {
    let fake = Fake::new([Step::Refuse]);
    let workers = workers(&fake, 1, 1);
    assert_eq!(workers.call(read(), Deadline::Never), Err(refused()));
    workers.call(read(), Deadline::Never).unwrap();
    let expected = Seen {
        connects: 1,
        calls: 2,
    };
    assert_eq!(fake.seen(), expected);
}

#[test]
fn a_query_is_repeated_once_on_a_new_connection() {
    let fake = Fake::new([Step::Answer, Step::Lose { sent: true }]);
    let workers = workers(&fake, 1, 1);
    workers.call(read(), Deadline::Never).unwrap();
    workers.call(read(), Deadline::Never).unwrap();
    let expected = Seen {
        connects: 2,
        calls: 3,
    };
    assert_eq!(fake.seen(), expected);
}

#[test]
fn a_query_is_not_repeated_twice() {
    let lost = || Step::Lose { sent: true };
    let fake = Fake::new([lost(), lost()]);
    let workers = workers(&fake, 1, 1);
    assert_eq!(workers.call(read(), Deadline::Never), Err(disconnected()));
    assert_eq!(fake.seen().calls, 2);
}

#[test]
fn a_method_whose_answer_was_lost_is_not_repeated() {
    let fake = Fake::new([Step::Lose { sent: true }]);
    let workers = workers(&fake, 1, 1);
    let expected = Err(PortError::OutcomeUnknown {
        api: "MSFT_StorageSetting.UpdateHostStorageCache".to_owned(),
    });
    assert_eq!(workers.call(change(), Deadline::Never), expected);
    assert_eq!(fake.seen().calls, 1);
}

#[test]
fn a_method_that_was_never_sent_is_made_on_the_new_connection() {
    let fake = Fake::new([Step::Lose { sent: false }]);
    let workers = workers(&fake, 1, 1);
    workers.call(change(), Deadline::Never).unwrap();
    assert_eq!(fake.seen().connects, 2);
}

#[test]
fn a_hanging_call_costs_its_caller_the_deadline_and_one_thread() {
    let (hang, has_begun, end) = hang();
    let fake = Fake::new([hang]);
    let workers = workers(&fake, 1, 2);
    let id = give_up(&workers, has_begun);
    assert!(workers.is_running(id));
    workers.call(read(), Deadline::Never).unwrap();
    assert!(workers.is_running(id));
    drop(end);
    wait_for_end(&workers, id);
    workers.call(read(), Deadline::Never).unwrap();
    assert_eq!(workers.0.lock().threads, 1);
}

#[test]
fn too_many_hanging_calls_make_the_node_unavailable_until_one_returns() {
    let (first, first_has_begun, first_end) = hang();
    let (second, second_has_begun, _second_end) = hang();
    let fake = Fake::new([first, second]);
    let workers = workers(&fake, 1, 2);
    let first_id = give_up(&workers, first_has_begun);
    give_up(&workers, second_has_begun);
    assert!(matches!(
        workers.call(read(), Deadline::Never),
        Err(PortError::Unavailable { .. })
    ));
    drop(first_end);
    wait_for_end(&workers, first_id);
    workers.call(read(), Deadline::Never).unwrap();
}

#[test]
fn a_call_that_nobody_has_taken_is_called_back_at_its_deadline() {
    let (hang, has_begun, end) = hang();
    let fake = Fake::new([hang]);
    let workers = Arc::new(workers(&fake, 1, 1));
    let first = std::thread::spawn({
        let workers = Arc::clone(&workers);
        move || workers.call(read(), Deadline::Never)
    });
    has_begun.recv().unwrap();
    let deadline = workers.0.clock.deadline_in(Duration::from_millis(5));
    let given_up = workers.call(change(), deadline);
    let expected = Err(PortError::DeadlineExceeded { running: None });
    assert_eq!(given_up, expected);
    drop(end);
    first.join().unwrap().unwrap();
    assert_eq!(fake.seen().calls, 1);
}

#[test]
fn a_deadline_that_has_passed_sends_nothing() {
    let fake = Fake::default();
    let workers = workers(&fake, 1, 1);
    let passed = workers.0.clock.deadline_in(Duration::ZERO);
    let expected = Err(PortError::DeadlineExceeded { running: None });
    assert_eq!(workers.call(read(), passed), expected);
    assert_eq!(fake.seen(), Seen::default());
}

#[test]
fn a_panic_of_the_provider_leaves_the_outcome_unknown_and_the_rest_working() {
    let fake = Fake::new([Step::Panic]);
    let workers = workers(&fake, 1, 1);
    assert!(matches!(
        workers.call(change(), Deadline::Never),
        Err(PortError::OutcomeUnknown { .. })
    ));
    workers.call(read(), Deadline::Never).unwrap();
}

#[test]
fn calls_of_many_callers_run_side_by_side_up_to_the_limit() {
    let steps: Vec<_> = (0..3).map(|_| hang()).collect();
    let mut begun = Vec::new();
    let mut ends = Vec::new();
    let mut hangs = Vec::new();
    for (step, has_begun, end) in steps {
        hangs.push(step);
        begun.push(has_begun);
        ends.push(end);
    }
    let fake = Fake::new(hangs);
    let workers = Arc::new(workers(&fake, 3, 1));
    let callers: Vec<_> = (0..10)
        .map(|_| {
            let workers = Arc::clone(&workers);
            std::thread::spawn(move || workers.call(read(), Deadline::Never))
        })
        .collect();
    for has_begun in begun {
        has_begun.recv().unwrap();
    }
    assert_eq!(fake.seen().calls, 3);
    drop(ends);
    for caller in callers {
        caller.join().unwrap().unwrap();
    }
    assert!(workers.0.lock().threads <= 3);
}

#[test]
fn only_what_is_known_not_to_have_run_counts_as_not_sent() {
    assert_eq!(connection_lost(0x8007_06BF), Some(false));
    assert_eq!(connection_lost(0x8007_06BA), Some(true));
    assert_eq!(connection_lost(0x8004_1033), Some(true));
    assert_eq!(connection_lost(0x8004_1003), None);
}
