//! Every port call of every operation is made to fail once: with each return code that is
//! documented for it, and with its answer lost after the effect. The error tells what
//! happened, and the call again reaches the right state without doing anything twice.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Answer, GIB, POOL, Rig, STAGING, TARGET, parent};
use csi_proxy::codes::{self, Row};
use csi_proxy::error::ErrorKind;
use csi_proxy::port::{Call, SystemCode};
use csi_proxy_sim::Fault;
use tonic::Status;

/// What the operating system may answer to any call: no access, in use, I/O error, no
/// resources.
const WIN32: [u32; 4] = [5, 32, 1117, 1450];
/// What WMI may answer to any call: failed, access denied, provider failure, shutting down.
const HRESULTS: [u32; 4] = [0x8004_1001, 0x8004_1003, 0x8004_1004, 0x8004_1033];

/// What must not be done a second time.
const ONCE: [&str; 4] = [
    "MSFT_Volume.Format",
    "MSFT_Disk.CreatePartition",
    "MSFT_Disk.Initialize",
    "MSFT_Partition.Resize",
];

/// `CreatePartition` has made the partition all the same, so it is no failure.
const ACCESS_PATH_IN_USE: u32 = 42002;

type Step = fn(&Rig) -> Answer<()>;

/// The life of a volume; each step is one RPC.
const LIFE: [(&str, Step); 9] = [
    ("create", |rig| rig.create("v", GIB).map(drop)),
    ("first stage", |rig| rig.stage("v")),
    ("publish", |rig| rig.publish("v")),
    ("unpublish", |rig| rig.unpublish("v")),
    ("unstage", |rig| rig.unstage("v")),
    ("controller expand", |rig| rig.grow("v", 2 * GIB).map(drop)),
    ("stage", |rig| rig.stage("v")),
    ("node expand", |rig| {
        rig.node_expand("v", STAGING, 2 * GIB).map(drop)
    }),
    ("last unstage and delete", |rig| {
        rig.unstage("v").and_then(|()| rig.delete("v"))
    }),
];

/// Whether the step is done although the call has failed: the work is, and the lock is given
/// back before the next one is taken.
fn is_success(call: &Call) -> bool {
    call.operation() == "unlock"
}

/// One way for a call to fail.
#[derive(Clone, Copy)]
enum Failure {
    Method(Row),
    Win32(u32),
    HResult(u32),
}

#[test]
fn a_call_that_fails_is_told_with_code_and_meaning_and_the_retry_works() {
    let faults = in_each_step(|step, expected| {
        let mut problems = Vec::new();
        for (index, call) in calls_of(step).iter().enumerate() {
            for failure in failures_of(call) {
                problems.push(fails_once(step, index, call, failure, expected).map_err(
                    |problem| {
                        let (name, operation) = (LIFE[step].0, call.operation());
                        let answer = failure.shown();
                        format!(
                            "{name}: call {} ({operation}) answers {answer}: {problem}",
                            index + 1
                        )
                    },
                ));
            }
        }
        problems
    });
    common::report(&format!("{faults} faults"));
    assert!(faults > 300);
}

#[test]
fn a_lost_answer_is_not_done_twice() {
    let lost = in_each_step(|step, expected| {
        let lose = |(index, call): (usize, &Call)| {
            loses_answer(step, index, expected).map_err(|problem| {
                let (name, operation) = (LIFE[step].0, call.operation());
                format!(
                    "{name}: answer of call {} ({operation}) lost: {problem}",
                    index + 1
                )
            })
        };
        // A lock is taken in the process itself, whose answer is not lost.
        let calls = calls_of(step);
        let calls = calls.iter().enumerate();
        let calls = calls.filter(|(_, call)| !matches!(call, Call::Locks(_)));
        calls.map(lose).collect()
    });
    common::report(&format!("{lost} lost answers"));
}

/// Runs a part of a test for each step of the life, with what is to be seen after it.
/// Answers how many results there were; problems among them fail the test.
fn in_each_step(part: impl Fn(usize, &[String]) -> Vec<Result<(), String>> + Sync) -> usize {
    let results: Vec<_> = std::thread::scope(|scope| {
        let part = &part;
        let threads: Vec<_> = (0..LIFE.len())
            .map(|step| scope.spawn(move || part(step, &finished(step))))
            .collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.flatten().collect()
    });
    let problems: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .collect();
    assert!(
        problems.is_empty(),
        "{} problems: {problems:#?}",
        problems.len()
    );
    results.len()
}

fn fails_once(
    step: usize,
    index: usize,
    call: &Call,
    failure: Failure,
    expected: &[String],
) -> Result<(), String> {
    let act = LIFE[step].1;
    let rig = before(step);
    rig.node
        .inject(failure.fault(Fault::at_call(position(index))));
    match act(&rig) {
        Ok(()) if is_success(call) => {}
        Ok(()) => return Err("told as success".to_owned()),
        Err(status) if !failure.is_told_by(&status) => {
            return Err(format!("told as {status:?}"));
        }
        Err(_) => act(&rig).map_err(|status| format!("the retry: {status:?}"))?,
    }
    match call {
        // It is given back before the next one is taken.
        Call::Locks(_) => every_lock_is_given_back(&rig),
        _ => same(&seen(&rig), expected),
    }
}

fn every_lock_is_given_back(rig: &Rig) -> Result<(), String> {
    let anew: [Step; 7] = [
        |rig| rig.unpublish("v"),
        |rig| rig.unstage("v"),
        |rig| rig.delete("v"),
        |rig| rig.create("v", GIB).map(drop),
        |rig| rig.stage("v"),
        |rig| rig.unstage("v"),
        |rig| rig.delete("v"),
    ];
    for act in anew {
        act(rig).map_err(|status| format!("afterwards: {status:?}"))?;
    }
    match rig.locks() {
        0 => Ok(()),
        locks => Err(format!("{locks} locks are held")),
    }
}

fn loses_answer(step: usize, index: usize, expected: &[String]) -> Result<(), String> {
    let act = LIFE[step].1;
    let rig = before(step);
    rig.node
        .inject(Fault::at_call(position(index)).loses_answer());
    rig.node.reset_counts();
    // What only reads may have been done anew at once.
    if act(&rig).is_err() {
        act(&rig).map_err(|status| format!("the retry: {status:?}"))?;
    }
    let counts = rig.node.counts();
    match ONCE.iter().find(|method| counts.of(method) > 1) {
        Some(method) => Err(format!("{method} twice")),
        None => same(&seen(&rig), expected),
    }
}

fn same(seen: &[String], expected: &[String]) -> Result<(), String> {
    match seen == expected {
        true => Ok(()),
        false => Err(format!("seen {seen:#?}, expected {expected:#?}")),
    }
}

impl Failure {
    fn fault(self, fault: Fault) -> Fault {
        match self {
            Self::Method(row) => fault.returns(row.code),
            Self::Win32(code) => fault.win32(code),
            Self::HResult(code) => fault.hresult(code),
        }
    }

    fn kind_and_meaning(self) -> (ErrorKind, &'static str) {
        match self {
            Self::Method(row) => (row.kind, row.meaning),
            Self::Win32(code) => system(SystemCode::Win32(code)),
            Self::HResult(code) => system(SystemCode::HResult(code)),
        }
    }

    fn shown(self) -> String {
        match self {
            Self::Method(row) => row.code.to_string(),
            Self::Win32(code) => format!("Win32 error {code}"),
            Self::HResult(code) => format!("HRESULT {code:#010x}"),
        }
    }

    /// Whether the error says what happened.
    fn is_told_by(self, status: &Status) -> bool {
        let (kind, meaning) = self.kind_and_meaning();
        let message = status.message();
        message.contains(meaning)
            && message.contains(&self.shown())
            && status.code() as i32 == kind.grpc_code()
    }
}

fn system(code: SystemCode) -> (ErrorKind, &'static str) {
    (
        codes::system_kind(code),
        codes::system_meaning(code).unwrap(),
    )
}

/// How the call can fail.
fn failures_of(call: &Call) -> Vec<Failure> {
    let any = |codes: [u32; 4], failure: fn(u32) -> Failure| codes.map(failure).to_vec();
    match call {
        Call::Cim(csi_proxy::cim::CimCall::Invoke(_)) => {
            let documented = codes::documented(&call.operation());
            assert!(!documented.is_empty(), "{}", call.operation());
            let mut failures = any(HRESULTS, Failure::HResult);
            let failed = documented
                .into_iter()
                .filter(|row| row.code != ACCESS_PATH_IN_USE);
            failures.extend(failed.map(Failure::Method));
            failures
        }
        Call::Cim(_) => any(HRESULTS, Failure::HResult),
        _ => any(WIN32, Failure::Win32),
    }
}

/// The call at an index is the one with this number after a fault is injected.
fn position(index: usize) -> u64 {
    u64::try_from(index).unwrap() + 1
}

/// A node on which the life has come up to a step.
fn before(step: usize) -> Rig {
    let rig = Rig::new();
    for (_, earlier) in &LIFE[..step] {
        earlier(&rig).unwrap();
    }
    rig
}

/// The port calls of a step without faults.
fn calls_of(step: usize) -> Vec<Call> {
    let rig = before(step);
    let from = rig.node.call_log().len();
    LIFE[step].1(&rig).unwrap();
    let log = rig.node.call_log();
    log[from..].iter().map(|entry| entry.call.clone()).collect()
}

/// What is to be seen after a step without faults.
fn finished(step: usize) -> Vec<String> {
    let rig = before(step);
    LIFE[step].1(&rig).unwrap();
    seen(&rig)
}

/// What a step has changed on the node.
fn seen(rig: &Rig) -> Vec<String> {
    let mut seen = rig.tree(POOL);
    seen.extend(rig.tree(parent(STAGING)));
    seen.extend(rig.tree(parent(TARGET)));
    seen.extend(rig.disks());
    seen.push(format!("{} locks", rig.locks()));
    for entry in rig.list(0, "").unwrap().entries {
        let volume = entry.volume.unwrap();
        seen.push(format!("{} {}", volume.volume_id, volume.capacity_bytes));
        if let Ok(stats) = rig.stats("v", STAGING) {
            seen.push(format!("{:?}", stats.usage));
        }
    }
    seen
}
