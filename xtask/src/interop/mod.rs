//! The part `interop`: the Go clients that CSI Proxy has published against `csi-proxy serve`,
//! both built for Windows, under Wine.

mod trace;

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{run, run_watched};
use crate::report::{Outcome, Report};
use crate::sanity::go::build_for_windows;
use crate::windows::{TARGET, Toolchain, directory};
use crate::wine::{Wine, on_windows};
use crate::{root, target};

/// Runs the part.
pub(crate) fn run_part(report: &mut Report) {
    let mut wine = None;
    report.step("wine", || {
        let ready = Wine::set_up()?;
        let version = ready.version()?;
        wine = Some(ready);
        Ok(version)
    });
    let built = report.step("program", program);
    let client_built = report.step("client", client);
    let mut step = |name, run: fn(&Wine) -> Outcome| {
        report.step(name, || match &wine {
            Some(wine) if built && client_built => run(wine),
            _ => Err("not run: the steps before failed".into()),
        });
    };
    step("methods", |wine| clients(wine, "methods"));
    step("pipes", |wine| clients(wine, "pipes"));
    step("load", |wine| clients(wine, "load"));
    step("service", |wine| clients(wine, "service"));
    step("trace", |wine| {
        let serve = [
            on_windows(&program_path())?,
            "serve".into(),
            "--simulate".into(),
        ];
        let mut server = wine.command(&serve.map(OsString::from));
        trace::check(&mut server, &logs()?.join("trace.log"))
    });
}

fn program() -> Outcome {
    let mut build = Toolchain::find()?.cargo("build");
    run(build.args(["--package", "csi-proxy-cli"]))?;
    Ok(String::new())
}

fn client() -> Outcome {
    build_for_windows(&sources(), ".", &client_path())?;
    Ok(String::new())
}

/// Has the clients do one of the things they can with the program, and answers the last line
/// they print.
fn clients(wine: &Wine, part: &str) -> Outcome {
    let machine = sources().join("machine.toml");
    go_program(wine, part, &program_path(), &machine)
}

fn go_program(wine: &Wine, part: &str, program: &Path, other: &Path) -> Outcome {
    let log = logs()?.join(format!("{part}.log"));
    let mut command = wine.command(&[
        client_path().into(),
        part.into(),
        on_windows(program)?.into(),
        on_windows(other)?.into(),
    ]);
    let mut last = String::new();
    let ran = run_watched(command.stderr(fs::File::create(&log)?), |line| {
        line.clone_into(&mut last);
    });
    match ran {
        Ok(()) => Ok(last),
        Err(error) => Err(format!("{error}: {last} (log in {})", log.display()).into()),
    }
}

/// Measures the released program, and CSI Proxy 1.x beside it.
pub(crate) fn bench() -> Result<(), Box<dyn Error>> {
    let wine = Wine::set_up()?;
    println!("{}", wine.version()?);
    run(Toolchain::find()?
        .cargo("build")
        .args(["--release", "--package", "csi-proxy-cli"]))?;
    client()?;
    let published = logs()?.join("csi-proxy-1.x.exe");
    build_for_windows(
        &sources(),
        "github.com/kubernetes-csi/csi-proxy/cmd/csi-proxy",
        &published,
    )?;
    let program = directory().join(TARGET).join("release/csi-proxy.exe");
    go_program(&wine, "bench", &program, &published)?;
    Ok(())
}

fn sources() -> PathBuf {
    root().join("tests/interop")
}

fn program_path() -> PathBuf {
    directory().join(TARGET).join("debug/csi-proxy.exe")
}

fn client_path() -> PathBuf {
    target().join("interop/interop.exe")
}

fn logs() -> std::io::Result<PathBuf> {
    let logs = target().join("interop");
    fs::create_dir_all(&logs)?;
    Ok(logs)
}
