//! What the demo and the self-test print: a line per step as it ends, for people or as JSON,
//! and a summary.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde::Serialize;

use crate::failure::{Failure, Result};

/// How a step ended and what it cost.
pub(crate) struct Step<'a> {
    pub(crate) name: &'a str,
    pub(crate) outcome: Outcome,
    pub(crate) cost: Cost,
}

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// What happened.
    Passed(String),
    /// Why this machine cannot do it. It is told, and fails nothing.
    LeftOut(String),
    /// What is wrong.
    Failed(Failure),
}

impl Outcome {
    /// Whether something is wrong.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

impl From<Result<String>> for Outcome {
    fn from(result: Result<String>) -> Self {
        match result {
            Ok(detail) => Self::Passed(detail),
            Err(failure) => Self::Failed(failure),
        }
    }
}

/// Time and port calls of one step, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// On the clock on the wall.
    #[serde(rename = "milliseconds", serialize_with = "milliseconds")]
    pub(crate) time: Duration,
    /// On the clock of the simulated node, which takes as long as a busy real one.
    #[serde(rename = "node_milliseconds", serialize_with = "milliseconds")]
    pub(crate) node_time: Duration,
    #[serde(rename = "wmi_calls")]
    pub(crate) cim: u64,
    #[serde(rename = "os_calls")]
    pub(crate) os: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.time += other.time;
        self.node_time += other.node_time;
        self.cim += other.cim;
        self.os += other.os;
    }
}

/// The lines.
pub(crate) struct Report<W> {
    form: Form,
    out: W,
    /// The width of the names' column.
    width: usize,
    planned: usize,
    steps: usize,
    failed: usize,
    left_out: usize,
    total: Cost,
}

/// The names' column is never smaller.
const LEAST_WIDTH: usize = 12;

/// How the lines look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A table, plain.
    Plain,
    /// A table with colours.
    Coloured,
    /// A JSON object per line.
    Json,
}

impl Form {
    /// The form for standard output: colours are for terminals, and for those who do not
    /// turn them off, <https://no-color.org>.
    pub(crate) fn of_stdout(json: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if json {
            Self::Json
        } else if std::io::stdout().is_terminal() && !plain {
            Self::Coloured
        } else {
            Self::Plain
        }
    }

    fn paint(self, colour: &str, text: &str) -> String {
        match self {
            Self::Coloured => format!("\x1b[{colour}m{text}\x1b[0m"),
            Self::Plain | Self::Json => text.to_owned(),
        }
    }
}

const GREEN: &str = "32";
const RED: &str = "31";
const YELLOW: &str = "33";
const BOLD: &str = "1";

impl<W: Write> Report<W> {
    /// Starts with what it is about, and the heads of the columns. `names` are those of the
    /// steps that there should be.
    pub(crate) fn begin(
        form: Form,
        mut out: W,
        title: &str,
        names: &[&str],
    ) -> std::io::Result<Self> {
        let longest = names.iter().map(|name| name.len() + 2).max().unwrap_or(0);
        let width = longest.max(LEAST_WIDTH);
        if form != Form::Json {
            writeln!(out, "{title}\n")?;
            let heads = format!(
                "{:<width$}{:>10}{:>11}{:>6}{:>6}  {}",
                "step", "time", "node time", "WMI", "OS", "what happened"
            );
            writeln!(out, "{}", form.paint(BOLD, &heads))?;
        }
        Ok(Self {
            form,
            out,
            width,
            planned: names.len(),
            steps: 0,
            failed: 0,
            left_out: 0,
            total: Cost::default(),
        })
    }

    /// Adds a step.
    pub(crate) fn step(&mut self, step: &Step<'_>) -> std::io::Result<()> {
        self.steps += 1;
        self.failed += usize::from(step.outcome.is_failure());
        self.left_out += usize::from(matches!(step.outcome, Outcome::LeftOut(_)));
        self.total.add(step.cost);
        match self.form {
            Form::Json => self.json(&JsonStep::new(step)),
            Form::Plain | Form::Coloured => self.row(step),
        }
    }

    /// Whether a step has failed or was not done.
    pub(crate) fn lacks_something(&self) -> bool {
        self.failed > 0 || self.steps < self.planned
    }

    /// Ends with the sum of all steps. `faults_left` names the faults that should have happened
    /// and did not. Answers whether all steps were done, none failed, and no fault is left.
    pub(crate) fn end(mut self, faults_left: Vec<String>) -> std::io::Result<bool> {
        let Self { steps, failed, .. } = self;
        let not_run = self.planned.saturating_sub(steps);
        let summary = Summary {
            ok: failed == 0 && not_run == 0 && faults_left.is_empty(),
            steps,
            failed,
            left_out: self.left_out,
            not_run,
            faults_left,
            cost: self.total,
        };
        match self.form {
            Form::Json => self.json(&JsonSummary { summary: &summary })?,
            Form::Plain | Form::Coloured => self.sum(&summary)?,
        }
        Ok(summary.ok)
    }

    fn row(&mut self, step: &Step<'_>) -> std::io::Result<()> {
        let numbers = columns(step.cost);
        let name = format!("{:<width$}", step.name, width = self.width);
        let (name, text) = match &step.outcome {
            Outcome::Passed(detail) => (self.form.paint(GREEN, &name), detail.clone()),
            Outcome::LeftOut(reason) => (
                self.form.paint(YELLOW, &name),
                self.form.paint(YELLOW, &format!("left out: {reason}")),
            ),
            Outcome::Failed(failure) => (
                self.form.paint(RED, &name),
                self.form.paint(RED, &format!("FAILED: {failure}")),
            ),
        };
        writeln!(self.out, "{name}{numbers}  {text}")?;
        self.out.flush()
    }

    fn sum(&mut self, summary: &Summary) -> std::io::Result<()> {
        let numbers = columns(summary.cost);
        let passed = summary.steps - summary.failed - summary.left_out;
        let mut text = format!("{passed} steps passed, {} failed", summary.failed);
        if summary.left_out > 0 {
            text += &format!(", {} left out", summary.left_out);
        }
        if summary.not_run > 0 {
            text += &format!(", {} not run", summary.not_run);
        }
        let colour = if summary.ok { GREEN } else { RED };
        let text = self.form.paint(colour, &text);
        let width = self.width;
        writeln!(self.out, "\n{:<width$}{numbers}  {text}", "total")?;
        for fault in &summary.faults_left {
            let text = format!("fault left: {fault}");
            writeln!(self.out, "{}", self.form.paint(RED, &text))?;
        }
        Ok(())
    }

    fn json(&mut self, line: &impl Serialize) -> std::io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        writeln!(self.out)?;
        self.out.flush()
    }
}

fn columns(cost: Cost) -> String {
    let time = shown(cost.time);
    let node_time = shown(cost.node_time);
    format!("{time:>10}{node_time:>11}{:>6}{:>6}", cost.cim, cost.os)
}

fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.1 {
        format!("{:.1} ms", seconds * 1000.0)
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else {
        format!("{seconds:.1} s")
    }
}

#[derive(Serialize)]
struct JsonStep<'a> {
    step: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    cost: Cost,
}

impl<'a> JsonStep<'a> {
    fn new(step: &'a Step<'_>) -> Self {
        let mut line = Self {
            step: step.name,
            ok: !step.outcome.is_failure(),
            detail: None,
            left_out: None,
            error: None,
            cost: step.cost,
        };
        match &step.outcome {
            Outcome::Passed(detail) => line.detail = Some(detail),
            Outcome::LeftOut(reason) => line.left_out = Some(reason),
            Outcome::Failed(failure) => line.error = Some(failure.to_string()),
        }
        line
    }
}

#[derive(Serialize)]
struct JsonSummary<'a> {
    summary: &'a Summary,
}

#[derive(Serialize)]
struct Summary {
    ok: bool,
    steps: usize,
    failed: usize,
    left_out: usize,
    not_run: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults_left: Vec<String>,
    #[serde(flatten)]
    cost: Cost,
}

fn milliseconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result2<S> {
    // Microseconds are exact enough, and short.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 microseconds")]
    let micros = time.as_micros() as f64;
    serializer.serialize_f64(micros / 1000.0)
}

type Result2<S> =
    std::result::Result<<S as serde::Serializer>::Ok, <S as serde::Serializer>::Error>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    fn printed(form: Form, second: Result<String>) -> String {
        let mut out = Vec::new();
        let names = ["probe", "stage", "delete"];
        let mut report = Report::begin(form, &mut out, "a title", &names).unwrap();
        let cost = Cost {
            time: Duration::from_micros(1234),
            node_time: Duration::from_millis(1500),
            cim: 7,
            os: 12,
        };
        for (name, outcome) in [("probe", Ok("ready".to_owned())), ("stage", second)] {
            report
                .step(&Step {
                    name,
                    outcome: outcome.into(),
                    cost,
                })
                .unwrap();
        }
        assert!(!report.end(Vec::new()).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_table_has_its_columns_in_line() {
        let text = printed(Form::Plain, Ok("mounted".to_owned()));
        let expected = "\
a title

step              time  node time   WMI    OS  what happened
probe           1.2 ms      1.5 s     7    12  ready
stage           1.2 ms      1.5 s     7    12  mounted

total           2.5 ms      3.0 s    14    24  2 steps passed, 0 failed, 1 not run
";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_a_machine_cannot_do_is_told_and_fails_nothing() {
        for form in [Form::Plain, Form::Json] {
            let mut out = Vec::new();
            let mut report = Report::begin(form, &mut out, "a title", &["socket"]).unwrap();
            let step = Step {
                name: "socket",
                outcome: Outcome::LeftOut("no sockets".to_owned()),
                cost: Cost::default(),
            };
            report.step(&step).unwrap();
            assert!(report.end(Vec::new()).unwrap());
            let text = String::from_utf8(out).unwrap();
            let expected = match form {
                Form::Json => [r#""left_out":"no sockets""#, r#""left_out":1"#],
                _ => [
                    "left out: no sockets",
                    "0 steps passed, 0 failed, 1 left out",
                ],
            };
            for part in expected {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let plain = printed(Form::Plain, Err(Failure::new("no")));
        let coloured = printed(Form::Coloured, Err(Failure::new("no")));
        assert!(coloured.contains("\x1b[31m"), "{coloured}");
        let mut bare = coloured;
        for code in ["\x1b[32m", "\x1b[31m", "\x1b[1m", "\x1b[0m"] {
            bare = bare.replace(code, "");
        }
        assert_eq!(bare, plain);
    }

    #[test]
    fn json_has_a_line_per_step_and_a_summary() {
        let text = printed(Form::Json, Err(Failure::new("no")));
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let cost = |mut line: serde_json::Value, ms: f64, node_ms: f64, wmi: u64, os: u64| {
            line["milliseconds"] = ms.into();
            line["node_milliseconds"] = node_ms.into();
            line["wmi_calls"] = wmi.into();
            line["os_calls"] = os.into();
            line
        };
        let probe = serde_json::json!({"step": "probe", "ok": true, "detail": "ready"});
        let stage = serde_json::json!({"step": "stage", "ok": false, "error": "no"});
        let summary = serde_json::json!({
            "ok": false, "steps": 2, "failed": 1, "left_out": 0, "not_run": 1,
        });
        assert_eq!(lines[0], cost(probe, 1.234, 1500.0, 7, 12));
        assert_eq!(lines[1], cost(stage, 1.234, 1500.0, 7, 12));
        assert_eq!(lines[2]["summary"], cost(summary, 2.468, 3000.0, 14, 24));
        assert_eq!(lines.len(), 3);
    }
}
