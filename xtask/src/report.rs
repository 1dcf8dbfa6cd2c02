//! The steps of a run, and the summary at its end.

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};

/// What a step answers: a remark for the summary, or why it failed.
pub(crate) type Outcome = Result<String, Box<dyn Error>>;

/// Every step that has run.
#[derive(Default)]
pub(crate) struct Report {
    part: &'static str,
    steps: Vec<Step>,
}

struct Step {
    part: &'static str,
    name: &'static str,
    outcome: Result<String, String>,
    time: Duration,
}

impl Report {
    /// The steps that follow belong to `part`.
    pub(crate) fn begin(&mut self, part: &'static str) {
        self.part = part;
    }

    /// Runs a step; a failed one does not end the run. Answers whether it passed.
    pub(crate) fn step(&mut self, name: &'static str, run: impl FnOnce() -> Outcome) -> bool {
        println!("== {}: {name}", self.part);
        let start = Instant::now();
        let outcome = run().map_err(|error| error.to_string());
        if let Err(error) = &outcome {
            println!("== {}: {name} failed: {error}", self.part);
        }
        let passed = outcome.is_ok();
        self.steps.push(Step {
            part: self.part,
            name,
            outcome,
            time: start.elapsed(),
        });
        passed
    }

    /// The number of steps that failed.
    pub(crate) fn failed(&self) -> usize {
        self.steps
            .iter()
            .filter(|step| step.outcome.is_err())
            .count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        let failed = self.failed();
        let time: Duration = self.steps.iter().map(|step| step.time).sum();
        writeln!(
            f,
            "{} steps in {:.1} s: {} passed, {failed} failed",
            self.steps.len(),
            time.as_secs_f64(),
            self.steps.len() - failed,
        )
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, remark) = match &self.outcome {
            Ok(remark) => ("ok", remark),
            Err(reason) => ("FAILED", reason),
        };
        let line = format!(
            "{:<7} {:<12} {word:<6} {:>7.1} s  {remark}",
            self.part,
            self.name,
            self.time.as_secs_f64(),
        );
        f.write_str(line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_counted_and_the_run_goes_on() {
        let mut report = Report::default();
        report.begin("linux");
        assert!(!report.step("one", || Err("it broke".into())));
        assert!(report.step("two", || Ok("3 passed".into())));
        assert_eq!(report.failed(), 1);
        let text = report.to_string();
        assert!(text.contains("it broke"), "{text}");
        assert!(text.trim_end().ends_with("1 passed, 1 failed"), "{text}");
    }
}
