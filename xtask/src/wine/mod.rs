//! The part `wine`: the tests compiled for Windows, run on Linux.

mod prefix;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::linux::counted;
use crate::report::{Outcome, Report};
use crate::windows::{TARGET, Toolchain};
pub(crate) use prefix::Wine;

/// Runs the part.
pub(crate) fn run_part(report: &mut Report) {
    let mut ready = false;
    report.step("wine", || {
        let version = Wine::set_up()?.version()?;
        ready = true;
        Ok(version)
    });
    let mut step = |name, what: &[&str]| {
        report.step(name, || match ready {
            true => tests(what),
            false => Err("not run: there is no Wine".into()),
        });
    };
    step("library", &["--package", "csi-proxy", "--tests"]);
    step("api", &["--package", "csi-proxy-api", "--tests"]);
    step("server", &["--package", "csi-proxy-server", "--tests"]);
    step("com", &["--package", "csi-proxy-sim", "--test", "com"]);
}

/// Runs tests of the workspace, each program through `cargo xtask wine`.
fn tests(what: &[&str]) -> Outcome {
    let runner = std::env::current_exe()?;
    let mut command = Toolchain::find()?.cargo("test");
    let variable = format!(
        "CARGO_TARGET_{}_RUNNER",
        TARGET.to_uppercase().replace('-', "_")
    );
    command
        .args(what)
        .arg("--no-fail-fast")
        .env(variable, format!("{} wine", runner.display()));
    counted(&mut command)
}

/// Runs a program in place of this one.
pub(crate) fn exec(command: &[OsString]) -> ExitCode {
    match Wine::set_up().and_then(|wine| Ok(wine.command(command).status()?)) {
        Ok(status) => match status.code().map(u8::try_from) {
            Some(Ok(code)) => code.into(),
            _ => ExitCode::FAILURE,
        },
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
