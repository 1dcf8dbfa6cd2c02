//! What the demo prints: a line per step as it ends, for people or as JSON, and a summary.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde::Serialize;

use crate::failure::Result;

/// How a step ended and what it cost.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// What happened, or what is wrong.
    pub(crate) outcome: Result<String>,
    pub(crate) cost: Cost,
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
    steps: usize,
    failed: usize,
    total: Cost,
}

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
const BOLD: &str = "1";

impl<W: Write> Report<W> {
    /// Starts with what the demo is about, and the heads of the columns.
    pub(crate) fn begin(form: Form, mut out: W, title: &str) -> std::io::Result<Self> {
        if form != Form::Json {
            writeln!(out, "{title}\n")?;
            let heads = format!(
                "{:<12}{:>10}{:>11}{:>6}{:>6}  {}",
                "step", "time", "node time", "WMI", "OS", "what happened"
            );
            writeln!(out, "{}", form.paint(BOLD, &heads))?;
        }
        Ok(Self {
            form,
            out,
            steps: 0,
            failed: 0,
            total: Cost::default(),
        })
    }

    /// Adds a step.
    pub(crate) fn step(&mut self, step: &Step) -> std::io::Result<()> {
        self.steps += 1;
        self.failed += usize::from(step.outcome.is_err());
        self.total.add(step.cost);
        match self.form {
            Form::Json => self.json(&JsonStep::new(step)),
            Form::Plain | Form::Coloured => self.row(step),
        }
    }

    /// Ends with the sum of all steps. `planned` is how many there should have been, and
    /// `faults_left` names the faults that should have happened and did not.
    pub(crate) fn end(mut self, planned: usize, faults_left: Vec<String>) -> std::io::Result<()> {
        let Self { steps, failed, .. } = self;
        let summary = Summary {
            ok: failed == 0 && steps == planned && faults_left.is_empty(),
            steps,
            failed,
            not_run: planned - steps,
            faults_left,
            cost: self.total,
        };
        match self.form {
            Form::Json => self.json(&JsonSummary { summary }),
            Form::Plain | Form::Coloured => self.sum(&summary),
        }
    }

    fn row(&mut self, step: &Step) -> std::io::Result<()> {
        let numbers = columns(step.cost);
        let name = format!("{:<12}", step.name);
        let (name, text) = match &step.outcome {
            Ok(detail) => (self.form.paint(GREEN, &name), detail.clone()),
            Err(failure) => (
                self.form.paint(RED, &name),
                self.form.paint(RED, &format!("FAILED: {failure}")),
            ),
        };
        writeln!(self.out, "{name}{numbers}  {text}")?;
        self.out.flush()
    }

    fn sum(&mut self, summary: &Summary) -> std::io::Result<()> {
        let numbers = columns(summary.cost);
        let passed = summary.steps - summary.failed;
        let mut text = format!("{passed} steps passed, {} failed", summary.failed);
        if summary.not_run > 0 {
            text += &format!(", {} not run", summary.not_run);
        }
        let colour = if summary.ok { GREEN } else { RED };
        let text = self.form.paint(colour, &text);
        writeln!(self.out, "\n{:<12}{numbers}  {text}", "total")?;
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
    error: Option<String>,
    #[serde(flatten)]
    cost: Cost,
}

impl<'a> JsonStep<'a> {
    fn new(step: &'a Step) -> Self {
        Self {
            step: step.name,
            ok: step.outcome.is_ok(),
            detail: step.outcome.as_deref().ok(),
            error: step.outcome.as_ref().err().map(ToString::to_string),
            cost: step.cost,
        }
    }
}

#[derive(Serialize)]
struct JsonSummary {
    summary: Summary,
}

#[derive(Serialize)]
struct Summary {
    ok: bool,
    steps: usize,
    failed: usize,
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
        let mut report = Report::begin(form, &mut out, "a title").unwrap();
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
                    outcome,
                    cost,
                })
                .unwrap();
        }
        report.end(3, Vec::new()).unwrap();
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
        let summary = serde_json::json!({"ok": false, "steps": 2, "failed": 1, "not_run": 1});
        assert_eq!(lines[0], cost(probe, 1.234, 1500.0, 7, 12));
        assert_eq!(lines[1], cost(stage, 1.234, 1500.0, 7, 12));
        assert_eq!(lines[2]["summary"], cost(summary, 2.468, 3000.0, 14, 24));
        assert_eq!(lines.len(), 3);
    }
}
