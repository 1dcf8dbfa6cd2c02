//! The part `linux`: what the compiler, the linters and the project's own tests say.

use std::process::Command;

use crate::command::{cargo, run, run_watched, succeeds};
use crate::lints;
use crate::report::{Outcome, Report};

/// Runs the part.
pub(crate) fn run_part(report: &mut Report) {
    report.step("tools", tools);
    report.step("fmt", || ran(&mut cargo(["fmt", "--all", "--check"])));
    report.step("lints", lints::check);
    report.step("clippy", clippy);
    report.step("doc", doc);
    report.step("test", test);
}

fn ran(command: &mut Command) -> Outcome {
    run(command)?;
    Ok(String::new())
}

/// Gets rustfmt and clippy where they are missing and rustup is there.
fn tools() -> Outcome {
    for (component, program) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if succeeds(&mut cargo([program, "--version"])) {
            continue;
        }
        if !succeeds(Command::new("rustup").arg("--version")) {
            let missing = format!(
                "cargo {program} is missing and there is no rustup to add it: install {component} \
                 for the toolchain in use"
            );
            return Err(missing.into());
        }
        run(Command::new("rustup").args(["component", "add", component]))?;
    }
    Ok(String::new())
}

/// Compiles everything, benches and examples among it.
fn clippy() -> Outcome {
    ran(&mut cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn doc() -> Outcome {
    ran(cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-Dwarnings"))
}

fn test() -> Outcome {
    counted(&mut cargo(["test", "--workspace", "--no-fail-fast"]))
}

/// Runs a `cargo test` and answers how many tests passed.
pub(crate) fn counted(tests: &mut Command) -> Outcome {
    let mut total = Tally::default();
    let ended = run_watched(tests, |line| total.add(line));
    let Tally {
        passed,
        failed,
        ignored,
    } = total;
    let counts = format!("{passed} tests passed, {failed} failed, {ignored} ignored");
    match ended {
        Ok(()) => Ok(counts),
        Err(error) => Err(format!("{error} ({counts})").into()),
    }
}

/// The sum over the test programs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Adds a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`; lines of
    /// other kinds add nothing.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split("; ") {
            let Some((number, word)) = count.split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_all_programs_are_added_up() {
        let mut total = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            total.add(line);
        }
        let expected = Tally {
            passed: 13,
            failed: 2,
            ignored: 1,
        };
        assert_eq!(total, expected);
    }
}
