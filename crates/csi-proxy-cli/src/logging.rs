//! What the program does, told on standard error.

use std::fs::File;
use std::io::IsTerminal;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt as _};

/// How much is told, and in which form.
#[derive(Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct Logging {
    /// Tells more on standard error: -v for every request, -vv for every port call. The
    /// variable RUST_LOG has the last word
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,

    /// The form of the lines on standard error
    #[arg(long, value_enum, default_value_t = Format::Text, global = true, value_name = "FORMAT")]
    log_format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A line for people
    Text,
    /// A JSON object per line
    Json,
}

/// Where it is told.
pub(crate) enum Output {
    StandardError,
    File(File),
    Both(File),
}

impl Output {
    fn writer(self) -> BoxMakeWriter {
        match self {
            Self::StandardError => BoxMakeWriter::new(std::io::stderr),
            Self::File(file) => BoxMakeWriter::new(Arc::new(file)),
            Self::Both(file) => BoxMakeWriter::new(std::io::stderr.and(Arc::new(file))),
        }
    }
}

impl Logging {
    /// These options, or where they are as without any the others.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            verbose: self.verbose.max(other.verbose),
            log_format: match self.log_format {
                Format::Text => other.log_format,
                Format::Json => Format::Json,
            },
        }
    }

    /// Starts it. Without options a long-running command tells `quiet`.
    pub(crate) fn start(&self, quiet: LevelFilter, output: Output) {
        let level = match self.verbose {
            0 => quiet,
            1 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        };
        // Others' crates are of interest only to those who name them in RUST_LOG.
        let directives = format!("warn,csi_proxy={level},csi_node={level},csi_proxy_sim={level}");
        let filter =
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives));
        let colours = matches!(output, Output::StandardError) && std::io::stderr().is_terminal();
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(colours)
            // Without it a standard error that nobody reads any more would be a panic.
            .log_internal_errors(false)
            .with_writer(output.writer());
        match self.log_format {
            Format::Text => lines.init(),
            Format::Json => lines.json().init(),
        }
    }
}
