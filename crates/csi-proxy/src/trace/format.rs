//! The lines of a trace.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contents::{Contents, bytes_of_answer, bytes_of_call};
use super::snapshot::Snapshot;
use crate::os::Bytes;
use crate::port::{Answer, Call, PortError, PortResult};

/// The version of the format that is written and read.
pub const FORMAT: u32 = 1;

/// The first line of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the program that wrote it.
    pub program: String,
    /// The kind of node.
    pub node: NodeKind,
    /// How the node stood at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
}

impl Header {
    /// The header of a trace that this version of the library writes.
    pub fn new(node: NodeKind, start: Option<Start>) -> Self {
        Self {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            node,
            start,
        }
    }
}

/// What kind of node a trace is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NodeKind {
    /// Windows itself.
    Windows {
        /// `Caption` and `Version` of `Win32_OperatingSystem`, as far as they could be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    /// A simulated node, through COM.
    ComFace,
    /// A simulated node.
    Simulated,
}

/// How a node stood when its trace began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// What was asked of a node through its ports.
    Snapshot(Box<Snapshot>),
    /// A simulated node, in the words of the simulation.
    Simulated(Box<serde_json::Value>),
}

/// A line as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) seq: u64,
    pub(super) at_us: u64,
    pub(super) took_us: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout_us: Option<u64>,
    pub(super) call: Call,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sent: Option<Contents>,
    pub(super) answer: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) got: Option<Contents>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Ok(Answer),
    Error(PortError),
}

/// A port call of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its line in the file; the header is line 1.
    pub line: usize,
    /// Its number in the order in which calls began. Lines are in the order of the answers.
    pub sequence: u64,
    /// When it began, from the start of the trace.
    pub at: Duration,
    /// How long it took.
    pub took: Duration,
    /// How much time it was given; nothing without a deadline.
    pub timeout: Option<Duration>,
    /// The call. Where bytes were not kept, others stand for them, see [`Contents`].
    pub call: Call,
    /// Its answer.
    pub answer: PortResult<Answer>,
}

/// A trace that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Its first line.
    pub header: Header,
    /// Its calls with their lines. The bytes that stand for those that were not kept are made
    /// when an entry is asked for: together they would not fit into the memory.
    calls: Vec<(usize, Line)>,
    /// The last line is not whole: its writer died, or the disk was full. It is left out.
    pub cut_off: bool,
}

/// A trace that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file itself.
    #[error("{}", path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// A line.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number; the header is line 1.
        line: usize,
        /// What is wrong with it, and what was expected.
        reason: String,
    },
}

impl Trace {
    /// Reads a trace in a file.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is wrong.
    pub fn load(path: &Path) -> Result<Self, TraceError> {
        let text = std::fs::read_to_string(path).map_err(|source| TraceError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text)
    }

    /// Reads a trace.
    ///
    /// # Errors
    /// A line of it is wrong.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let header = header(first)?;
        let mut trace = Self {
            header,
            calls: Vec::new(),
            cut_off: false,
        };
        let mut lines = rest.split_inclusive('\n').zip(2..).peekable();
        while let Some((text, line)) = lines.next() {
            match read(line, text) {
                Ok(read) => trace.calls.push((line, read)),
                Err(_) if !text.ends_with('\n') && lines.peek().is_none() => trace.cut_off = true,
                Err(error) => return Err(error),
            }
        }
        Ok(trace)
    }

    /// How many calls it has.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether it has no calls.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Its calls, in the order of their lines.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        (0..self.len()).filter_map(|index| self.entry(index))
    }

    /// One of its calls; nothing behind the last one.
    pub(super) fn entry(&self, index: usize) -> Option<Entry> {
        let (line, read) = self.calls.get(index)?;
        // That there is an entry was found out when it was read.
        entry(*line, read.clone()).ok()
    }

    /// The last line that has a call, or the header's.
    pub(super) fn last_line(&self) -> usize {
        self.calls.last().map_or(1, |(line, _)| *line)
    }
}

fn header(text: &str) -> Result<Header, TraceError> {
    /// The one field that every version has.
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let wrong = |reason: String| TraceError::Line { line: 1, reason };
    let is_no_header = |error: serde_json::Error| {
        wrong(format!(
            "expected the header of a trace of csi-proxy: {error}"
        ))
    };
    let Version { format } = serde_json::from_str(text).map_err(is_no_header)?;
    if format != FORMAT {
        return Err(wrong(format!("the format is {format}, expected {FORMAT}")));
    }
    serde_json::from_str(text).map_err(is_no_header)
}

fn read(line: usize, text: &str) -> Result<Line, TraceError> {
    let read: Line = serde_json::from_str(text).map_err(|error| TraceError::Line {
        line,
        reason: format!("expected a port call and its answer: {error}"),
    })?;
    entry(line, read.clone())?;
    Ok(read)
}

fn entry(line: usize, read: Line) -> Result<Entry, TraceError> {
    let wrong = |reason: String| TraceError::Line { line, reason };
    let mut call = read.call;
    fill_in(bytes_of_call(&mut call), read.sent.as_ref())
        .map_err(|reason| wrong(format!("sent: {reason}")))?;
    let mut answer = match read.answer {
        Outcome::Ok(answer) => Ok(answer),
        Outcome::Error(error) => Err(error),
    };
    let bytes = answer.as_mut().ok().and_then(bytes_of_answer);
    fill_in(bytes, read.got.as_ref()).map_err(|reason| wrong(format!("got: {reason}")))?;
    Ok(Entry {
        line,
        sequence: read.seq,
        at: Duration::from_micros(read.at_us),
        took: Duration::from_micros(read.took_us),
        timeout: read.timeout_us.map(Duration::from_micros),
        call,
        answer,
    })
}

/// Puts bytes where the call or answer has some.
fn fill_in(bytes: Option<&mut Bytes>, kept: Option<&Contents>) -> Result<(), String> {
    match (bytes, kept) {
        (Some(bytes), Some(kept)) => {
            let stand_in = kept.stand_in();
            *bytes = stand_in.ok_or("a length or a place in it is too large")?;
            Ok(())
        }
        (None, None) => Ok(()),
        (Some(_), None) => Err("expected what is kept of the bytes, got nothing".to_owned()),
        (None, Some(_)) => Err("there are no bytes in such a call".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"format":1,"program":"0.1.0","node":{"kind":"simulated"}}"#;
    const LINE: &str = r#"{"seq":1,"at_us":5,"took_us":6,"call":{"files":{"remove_file":{"path":"C:\\a"}}},"answer":{"ok":{"files":{"remove_file":null}}}}"#;

    fn error(text: &str) -> String {
        Trace::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_line_that_was_cut_off_at_the_end_is_left_out_and_told() {
        let text = format!("{HEADER}\n{LINE}\n{}", &LINE[..50]);
        let trace = Trace::parse(&text).unwrap();
        assert_eq!((trace.len(), trace.cut_off), (1, true));
        let whole = Trace::parse(&format!("{HEADER}\n{LINE}\n")).unwrap();
        assert_eq!((whole.len(), whole.cut_off), (1, false));
    }

    #[test]
    fn a_wrong_line_is_named_with_what_was_expected() {
        let text = format!("{HEADER}\n{LINE}\n{}\n{LINE}\n", &LINE[..50]);
        assert!(
            error(&text).starts_with("line 3: expected a port call"),
            "{}",
            error(&text)
        );
        for text in ["", "{}", "diary\n"] {
            assert!(
                error(text).starts_with("line 1: expected the header"),
                "{text}"
            );
        }
        let newer = HEADER.replace("\"format\":1", "\"format\":7");
        assert_eq!(error(&newer), "line 1: the format is 7, expected 1");
    }

    #[test]
    fn bytes_must_be_told_where_there_are_some_and_nowhere_else() {
        let read = r#"{"seq":1,"at_us":5,"took_us":6,"call":{"files":{"read_file":{"at":{"path":"C:\\a"},"limit":9}}},"answer":{"ok":{"files":{"read_file":""}}}}"#;
        let text = format!("{HEADER}\n{read}\n");
        assert!(
            error(&text).starts_with("line 2: got: expected"),
            "{}",
            error(&text)
        );
        let line = LINE.replace("}}}}", r#"}}},"got":{"record":"x"}}"#);
        let text = format!("{HEADER}\n{line}\n");
        assert!(error(&text).contains("no bytes"), "{}", error(&text));
    }
}
