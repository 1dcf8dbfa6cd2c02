//! A Rust that builds for Windows, and the linker that it needs.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::process::Command;

use super::directory;
use crate::command::{cargo, output, succeeds};
use crate::{packages, root};

/// What is built for.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";

/// Names the toolchain to take (`rustup` or `debian`), where both could be had.
const CHOICE: &str = "CSI_PROXY_WINDOWS_TOOLCHAIN";

/// Debian's Rust for building browsers: recent, and with the sources of the standard
/// library, which Debian does not have for Windows.
const DEBIAN: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "rust-web-clippy"];

/// Where the standard library for Windows comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// The target of rustup, for the toolchain in use.
    Rustup,
    /// Debian's packages, which compile the standard library.
    Debian,
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rustup => write!(f, "rustup's target {TARGET}"),
            Self::Debian => write!(f, "Debian's rustc, standard library compiled for {TARGET}"),
        }
    }
}

impl Toolchain {
    /// Finds or installs one, and the linker.
    pub(crate) fn find() -> Result<Self, Box<dyn Error>> {
        mingw()?;
        let choice = std::env::var(CHOICE).unwrap_or_default();
        if choice != "debian" && rustup() {
            return Ok(Self::Rustup);
        }
        if choice != "rustup" {
            debian()?;
            return Ok(Self::Debian);
        }
        Err(format!("rustup cannot add the target {TARGET}").into())
    }

    /// A command of cargo for Windows.
    pub(crate) fn cargo(self, subcommand: &str) -> Command {
        let mut command = match self {
            Self::Rustup => cargo([subcommand]),
            Self::Debian => {
                let mut command = Command::new("/usr/bin/cargo");
                command
                    .current_dir(root())
                    .args([subcommand, "-Zbuild-std=std,panic_unwind,test"])
                    // An unstable option of a stable compiler; and programs that cargo and
                    // clippy must not look for on the PATH, where rustup's may be.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("RUSTC", "/usr/bin/rustc")
                    .env("CARGO", "/usr/bin/cargo")
                    .env("PATH", "/usr/bin:/bin");
                command
            }
        };
        command
            .args(["--target", TARGET, "--target-dir"])
            .arg(directory());
        command
    }
}

/// Whether rustup has the target, or can get it within two minutes.
fn rustup() -> bool {
    let installed = output(Command::new("rustup").args(["target", "list", "--installed"]));
    if installed.is_ok_and(|targets| targets.lines().any(|line| line == TARGET)) {
        return true;
    }
    succeeds(Command::new("timeout").args(["120", "rustup", "target", "add", TARGET]))
}

fn debian() -> Result<(), Box<dyn Error>> {
    let sources = Path::new("/usr/lib/rustlib/src/rust/library/std");
    let clippy = Path::new("/usr/bin/clippy-driver");
    let rustc = succeeds(Command::new("/usr/bin/rustc").arg("--version"));
    if rustc && sources.exists() && clippy.exists() {
        return Ok(());
    }
    let missing = format!(
        "there is no Rust that builds for Windows: `rustup target add {TARGET}`, or the \
         packages {} of Debian 12",
        DEBIAN.join(", ")
    );
    packages::install(&DEBIAN, &missing)
}

/// The C compiler and linker for Windows.
pub(crate) fn mingw() -> Result<(), Box<dyn Error>> {
    if succeeds(Command::new("x86_64-w64-mingw32-gcc").arg("--version")) {
        return Ok(());
    }
    let missing = "there is no linker for Windows: install the package gcc-mingw-w64-x86-64";
    packages::install(&["gcc-mingw-w64-x86-64"], missing)
}
