//! The part `windows`: the program for Windows, built on Linux.

mod imports;
mod toolchain;

use std::fs;
use std::path::PathBuf;

use crate::command::run;
use crate::report::{Outcome, Report};
use crate::target;

pub(crate) use toolchain::{TARGET, Toolchain, mingw};

/// What the program may take on disk.
const MAX_SIZE: u64 = 10_000_000;

/// Where builds for Windows go: not where those for Linux do, so that neither waits for the
/// other.
pub(crate) fn directory() -> PathBuf {
    target().join("windows")
}

/// Runs the part.
pub(crate) fn run_part(report: &mut Report) {
    let mut found = None;
    report.step("toolchain", || {
        let toolchain = Toolchain::find()?;
        found = Some(toolchain);
        Ok(toolchain.to_string())
    });
    report.step("clippy", || clippy(found.ok_or("there is no toolchain")?));
    report.step("build", || build(found.ok_or("there is no toolchain")?));
    report.step("imports", || imports::check(&program()));
}

/// The program that is built.
pub(crate) fn program() -> PathBuf {
    directory().join(TARGET).join("release/csi-proxy.exe")
}

fn clippy(toolchain: Toolchain) -> Outcome {
    run(toolchain.cargo("clippy").args([
        "--workspace",
        "--exclude",
        "xtask",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(String::new())
}

/// Builds it.
pub(crate) fn build(toolchain: Toolchain) -> Outcome {
    run(toolchain
        .cargo("build")
        .args(["--release", "--package", "csi-proxy-cli"]))?;
    let size = fs::metadata(program())?.len();
    if size > MAX_SIZE {
        return Err(format!("csi-proxy.exe has {size} bytes, more than {MAX_SIZE}").into());
    }
    let tenths = size.div_ceil(100_000);
    Ok(format!("csi-proxy.exe, {}.{} MB", tenths / 10, tenths % 10))
}
