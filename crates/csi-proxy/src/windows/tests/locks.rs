use windows::Win32::Foundation::ERROR_INVALID_HANDLE;

use super::{code, os};
use crate::clock::Deadline;
use crate::os::{LockName, Locks as _};

fn name(text: &str) -> LockName {
    LockName(format!("test of the locks: {text}"))
}

#[test]
fn a_lock_has_one_holder() {
    let (one, other) = (os(), os());
    let name = name("a_lock_has_one_holder");
    let never = Deadline::Never;
    let token = one.try_lock(&name, never).unwrap().unwrap();
    for _ in 0..3 {
        assert_eq!(other.try_lock(&name, never).unwrap(), None);
        assert_eq!(one.try_lock(&name, never).unwrap(), None);
    }
    one.unlock(&token, never).unwrap();
    assert!(other.try_lock(&name, never).unwrap().is_some());
}

#[test]
fn a_lock_is_free_when_its_holder_has_gone() {
    let name = name("a_lock_is_free");
    let holder = os();
    assert!(holder.try_lock(&name, Deadline::Never).unwrap().is_some());
    drop(holder);
    assert!(os().try_lock(&name, Deadline::Never).unwrap().is_some());
}

#[test]
fn names_are_compared_to_the_letter() {
    let holder = os();
    for text in ["a name", "A name", r"a\name", &"long".repeat(500)] {
        let lock = holder.try_lock(&name(text), Deadline::Never).unwrap();
        assert!(lock.is_some(), "{text}");
    }
}

#[test]
fn a_lock_may_be_given_back_by_another_thread() {
    let holder = os();
    let name = name("another_thread");
    let token = holder.try_lock(&name, Deadline::Never).unwrap().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| holder.unlock(&token, Deadline::Never).unwrap());
    });
    assert!(holder.try_lock(&name, Deadline::Never).unwrap().is_some());
}

#[test]
fn a_lock_is_given_back_once() {
    let holder = os();
    let name = name("given_back_once");
    let token = holder.try_lock(&name, Deadline::Never).unwrap().unwrap();
    holder.unlock(&token, Deadline::Never).unwrap();
    let again = holder.unlock(&token, Deadline::Never);
    assert_eq!(code(again), ERROR_INVALID_HANDLE);
}

#[test]
fn of_many_that_try_one_gets_the_lock() {
    let name = name("of_many_that_try");
    let processes: Vec<_> = (0..8).map(|_| os()).collect();
    let got: usize = std::thread::scope(|scope| {
        let tries: Vec<_> = processes
            .iter()
            .map(|process| scope.spawn(|| process.try_lock(&name, Deadline::Never)))
            .collect();
        tries
            .into_iter()
            .map(|a_try| usize::from(a_try.join().unwrap().unwrap().is_some()))
            .sum()
    });
    assert_eq!(got, 1);
}
