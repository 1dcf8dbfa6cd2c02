//! The part `wine`: the tests compiled for Windows, run on Linux.

mod dll;
pub(crate) mod figures;
mod prefix;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::command::run_watched;
use crate::linux::counted;
use crate::report::{Outcome, Report};
use crate::sanity::{self, Under, go};
use crate::target;
use crate::windows::{self, TARGET, Toolchain};
pub(crate) use prefix::{Wine, on_windows};

/// Runs the part.
pub(crate) fn run_part(report: &mut Report) {
    let mut wine = None;
    report.step("wine", || {
        let found = Wine::set_up()?;
        let version = found.version()?;
        wine = Some(found);
        Ok(version)
    });
    let wine = wine.as_ref();
    let mut step = |name, run: &dyn Fn(&Wine) -> Outcome| {
        report.step(name, || match wine {
            Some(wine) => run(wine),
            None => Err("not run: there is no Wine".into()),
        })
    };
    for (name, what) in [
        ("library", ["--package", "csi-proxy", "--tests"].as_slice()),
        ("api", &["--package", "csi-proxy-api", "--tests"]),
        ("server", &["--package", "csi-proxy-server", "--tests"]),
        ("com", &["--package", "csi-proxy-sim", "--test", "com"]),
        ("dll-tests", &["--package", "csi-proxy-sim-com"]),
    ] {
        step(name, &|_| tests(what));
    }
    step("dll", &|_| dll::check());
    if step("program", &|_| windows::build(Toolchain::find()?)) {
        step("demo", &demo);
        step("sanity", &conformance);
    }
}

/// The life of a volume, with the library's own client of WMI.
fn demo(wine: &Wine) -> Outcome {
    let mut last = String::new();
    run_watched(
        wine.command(&[windows::program().into(), "demo".into()])
            .env("NO_COLOR", "1"),
        |line| line.clone_into(&mut last),
    )?;
    let end = last.find("steps passed").and_then(|end| {
        let start = last[..end].trim_end().rfind(' ')?;
        Some(last[start..].trim().to_owned())
    });
    end.ok_or_else(|| format!("the demo ended with {last:?}").into())
}

/// csi-sanity on this side, the plugin under Wine: what it does goes through COM.
fn conformance(wine: &Wine) -> Outcome {
    let client = go::csi_sanity()?;
    sanity::build()?;
    let plugin = wine.command(&[windows::program().into()]);
    let logs = target().join("sanity-wine");
    sanity::specs(&client, plugin, Under::Wine, &logs)
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
        // Nobody debugs them there: half the bytes to write and to link.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
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
