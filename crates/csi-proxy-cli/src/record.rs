//! `csi-proxy record`, and `--record` of the commands that make port calls.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Args;
use csi_proxy::Host;
use csi_proxy::clock::{Clock as _, Moment};
use csi_proxy::trace::{Header, NodeKind, Output, Secrets, Snapshot, Start};
use csi_proxy_sim::SimNode;

use crate::failure::{Failure, Result};

/// What `csi-proxy record` is told.
#[derive(Args)]
pub(crate) struct RecordArgs {
    /// The trace. A file that is there is kept as FILE.old
    #[arg(long, value_name = "FILE", default_value = "csi-proxy.trace.jsonl")]
    output: PathBuf,

    /// The command with its arguments, as it is started without `record`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl RecordArgs {
    /// The trace, and the arguments of the program without `record`.
    pub(crate) fn parts(self) -> (PathBuf, Vec<OsString>) {
        let program = OsString::from(env!("CARGO_BIN_NAME"));
        (
            self.output,
            [program].into_iter().chain(self.command).collect(),
        )
    }
}

pub(crate) const EXAMPLES: &str = "Examples:
  csi-proxy record --output selftest.jsonl -- selftest --yes
  csi-proxy record --output node.jsonl -- node --driver local --endpoint unix:///csi/csi.sock
  csi-proxy replay selftest.jsonl";

/// Whether and where port calls are recorded.
#[derive(Args)]
pub(crate) struct Recording {
    /// Writes every port call with its answer to this file, without secrets and contents, for
    /// `csi-proxy replay`. A file that is there is kept as FILE.old
    #[arg(long = "record", value_name = "FILE")]
    file: Option<PathBuf>,

    /// The trace, once it has begun.
    #[arg(skip)]
    output: OnceLock<Arc<Output>>,
}

impl Recording {
    /// Records there, as `--record` says it.
    ///
    /// # Errors
    /// Another file is given with `--record`.
    pub(crate) fn set(&mut self, file: PathBuf) -> Result<()> {
        match self.file.replace(file) {
            None => Ok(()),
            Some(other) => Err(Failure::new(format!(
                "record: the command has --record {} too; expected one of both",
                other.display()
            ))),
        }
    }

    /// Begins the trace of a simulated node of our own, with the node itself in its header.
    pub(crate) fn begin_on(&self, node: &SimNode) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let kind = match cfg!(windows) {
            true => NodeKind::ComFace,
            false => NodeKind::Simulated,
        };
        let mut secrets = Secrets::default();
        let start = node.trace_start(&mut secrets);
        self.begin(
            file,
            &Header::new(kind, Some(start)),
            node.clock().now(),
            secrets,
        )
    }

    /// The host, with its calls recorded if that is asked for. A trace that has not begun
    /// begins with what the node answers about itself.
    pub(crate) fn of(&self, host: Host, node: Of) -> Result<Host> {
        let Some(file) = &self.file else {
            return Ok(host);
        };
        if self.output.get().is_none() {
            /// A provider that hangs must not keep the node from its work.
            const PATIENCE: Duration = Duration::from_secs(60);
            let deadline = host.os().deadline_in(PATIENCE);
            let kind = match node {
                Of::ThisMachine => NodeKind::windows(host.cim(), deadline),
                Of::OurOwn | Of::OtherProgram => NodeKind::Simulated,
            };
            let snapshot = Snapshot::take(host.cim(), host.os(), deadline);
            let start = Start::Snapshot(Box::new(snapshot));
            let now = host.os().now();
            self.begin(
                file,
                &Header::new(kind, Some(start)),
                now,
                Secrets::default(),
            )?;
        }
        Ok(match self.output.get() {
            Some(output) => host.recorded(output),
            None => host,
        })
    }

    fn begin(&self, path: &Path, header: &Header, now: Moment, secrets: Secrets) -> Result<()> {
        let what = format!("the trace {}", path.display());
        let told = what.clone();
        let on_failure = move |error: &io::Error| {
            let line = format!("{told} ends here and the calls go on: {error}");
            match tracing::enabled!(tracing::Level::WARN) {
                true => tracing::warn!("{line}"),
                // The demo has no log.
                false => {
                    // Nobody may read it any more.
                    let _ = writeln!(io::stderr(), "csi-proxy: {line}");
                }
            }
        };
        let output = create(path)
            .and_then(|file| Output::begin(file, header, now, secrets, on_failure))
            .map_err(|error| Failure::from_error(&what, &error))?;
        tracing::info!("port calls are written to {}", path.display());
        // Begun twice, the first one counts.
        let _ = self.output.set(output);
        Ok(())
    }
}

/// Whose host it is.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    /// That of a simulated node on which [`Recording::begin_on`] has begun the trace.
    OurOwn,
    /// The machine's.
    ThisMachine,
    /// That of a simulated node in another program.
    OtherProgram,
}

/// A new file that others cannot read. One that is there gets `.old` at its end.
fn create(path: &Path) -> io::Result<File> {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    match std::fs::rename(path, old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
