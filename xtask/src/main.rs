//! `cargo xtask`: what developers and CI run. Installs what it can, names what it cannot.

mod command;
mod fuzz;
mod interop;
mod lints;
mod linux;
mod packages;
mod report;
mod sanity;
mod windows;
mod wine;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::report::Report;

/// Runs the project's tests with everything that they need
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs the named parts of the tests, or those that CI runs
    Test {
        /// The parts to run, in this order [default: linux sanity windows wine]
        #[arg(value_enum)]
        parts: Vec<Part>,
    },
    /// Runs the parsers against damaged inputs, with a seed that is printed
    Fuzz(fuzz::FuzzArgs),
    /// Measures the server for CSI Proxy 1.x clients under Wine, beside CSI Proxy 1.x itself
    Bench,
    /// Measures under Wine how soon the program answers, and what it holds when it is idle
    Figures,
    /// Runs a Windows program under Wine, in the prefix that the tests use
    Wine {
        /// The program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// Format, lints, documentation, unit, integration and documentation tests
    Linux,
    /// csi-sanity against the node plugin on a simulated node (needs Go, which root gets
    /// from apt where it is missing)
    Sanity,
    /// The Windows program: lints, release build, what it imports (needs a mingw linker, which
    /// root gets from apt, and rustup's target or, for root, Debian's packages)
    Windows,
    /// The tests compiled for Windows, the demo and csi-sanity with the plugin, under Wine
    /// (needs Wine, which root gets from apt, and Go)
    Wine,
    /// The Go clients of CSI Proxy 1.x against the server, under Wine (needs Go)
    Interop,
}

impl Part {
    /// What runs without a name. Wine 8 now and then does not start a program that `interop`
    /// asks for; it joins when that no longer fails a run.
    const DEFAULT: [Self; 4] = [Self::Linux, Self::Sanity, Self::Windows, Self::Wine];

    fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Sanity => "sanity",
            Self::Windows => "windows",
            Self::Wine => "wine",
            Self::Interop => "interop",
        }
    }

    fn run(self, report: &mut Report) {
        report.begin(self.name());
        match self {
            Self::Linux => linux::run_part(report),
            Self::Sanity => sanity::run_part(report),
            Self::Windows => windows::run_part(report),
            Self::Wine => wine::run_part(report),
            Self::Interop => interop::run_part(report),
        }
    }
}

fn main() -> ExitCode {
    match Arguments::parse().task {
        Task::Test { parts } => test(parts),
        Task::Fuzz(args) => fuzz::exec(&args),
        Task::Bench => match interop::bench() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        Task::Figures => wine::figures::exec(),
        Task::Wine { command } => wine::exec(&command),
    }
}

fn test(parts: Vec<Part>) -> ExitCode {
    let parts = if parts.is_empty() {
        Part::DEFAULT.to_vec()
    } else {
        parts
    };
    let mut report = Report::default();
    for part in &parts {
        part.run(&mut report);
    }
    print!("{report}");
    let ran: Vec<_> = parts.iter().map(|part| part.name()).collect();
    for part in Part::value_variants() {
        if !ran.contains(&part.name()) {
            let name = part.name();
            println!("{name} was not run: cargo xtask test {name}");
        }
    }
    if report.failed() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The root of the repository, wherever xtask was called.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where builds go.
fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}
