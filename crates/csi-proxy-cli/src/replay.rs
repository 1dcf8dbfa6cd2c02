//! `csi-proxy replay`: a trace, made again on a simulated node.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use csi_proxy::trace::{NodeKind, Trace};
use csi_proxy_sim::replay::{Difference, Replay, replay};
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::output::Output;

/// What `csi-proxy replay` is told.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// The trace
    file: PathBuf,

    /// Prints a JSON object per note and difference, and one for the summary
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = "Examples:
  csi-proxy replay node.jsonl
  csi-proxy replay --json node.jsonl | jq 'select(.difference)'";

/// Checks the trace, and makes its calls on a simulated node. A difference is exit code 1.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let told = |error: &dyn std::error::Error| Failure::from_error(args.file.display(), error);
    let trace = Trace::load(&args.file).map_err(|error| match error {
        // It names the file itself.
        csi_proxy::trace::TraceError::Io { .. } => Failure::from_error("replay", &error),
        _ => told(&error),
    })?;
    trace.check().map_err(|mismatch| told(&mismatch))?;
    let replay = replay(&trace).map_err(|error| told(&error))?;
    let text = match args.json {
        true => as_json(&replay),
        false => as_text(&trace, &replay),
    };
    Output::standard()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::from_error("cannot write to standard output", &error))?;
    Ok(match replay.differences.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn as_json(replay: &Replay) -> String {
    let notes = replay.notes.iter().map(|note| json!({"note": note}));
    let differences = replay.differences.iter();
    let differences = differences.map(|difference| json!({"difference": difference}));
    let summary = json!({"summary": {
        "calls": replay.calls,
        "left_out": replay.left_out,
        "differences": replay.differences.len(),
    }});
    let lines = notes.chain(differences).chain([summary]);
    lines.map(|line| format!("{line}\n")).collect()
}

fn as_text(trace: &Trace, replay: &Replay) -> String {
    let mut text = format!(
        "A trace of {}, written by csi-proxy {}, of {} calls, replayed on a simulated node\n",
        node(&trace.header.node),
        plain(&trace.header.program),
        trace.len()
    );
    for note in &replay.notes {
        text += &format!("note: {}\n", plain(note));
    }
    for (reason, calls) in &replay.left_out {
        text += &format!("note: {calls} calls are left out: {reason}\n");
    }
    for difference in &replay.differences {
        text += &line(difference);
    }
    let (calls, count) = (replay.calls, replay.differences.len());
    text + &format!("{calls} calls made, {count} differences\n")
}

fn line(difference: &Difference) -> String {
    format!(
        "line {} {}: {}: recorded {}, simulated {}\n",
        difference.line,
        plain(&difference.operation),
        plain(&difference.place),
        plain(&difference.recorded),
        plain(&difference.simulated)
    )
}

fn node(kind: &NodeKind) -> String {
    match kind {
        NodeKind::Windows {
            version: Some(version),
        } => plain(version),
        NodeKind::Windows { version: None } => "Windows".to_owned(),
        NodeKind::ComFace => "a simulated node through COM".to_owned(),
        NodeKind::Simulated => "a simulated node".to_owned(),
    }
}

/// A trace comes from anywhere: nothing in it moves the cursor.
fn plain(text: &str) -> String {
    let shown = |char: char| if char.is_control() { '\u{fffd}' } else { char };
    text.chars().map(shown).collect()
}
