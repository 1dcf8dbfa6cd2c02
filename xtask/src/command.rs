//! Running other programs, so that whoever reads the output can repeat each by hand.

use std::error::Error;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::root;

/// Cargo, the one that runs xtask, at the root of the repository.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root());
    command
}

/// Whether the program can be run and ends well.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a program whose output goes to the terminal.
pub(crate) fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    show(command);
    let status = command.status().map_err(|error| failed(command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(command, &status))
    }
}

/// Runs a program and answers what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(command, &error))?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        Err(failed(command, &output.status))
    }
}

/// Runs a program whose lines go to the terminal and to `line`.
pub(crate) fn run_watched(
    command: &mut Command,
    mut line: impl FnMut(&str),
) -> Result<(), Box<dyn Error>> {
    show(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(command, &error))?;
    if let Some(stdout) = child.stdout.take() {
        for text in BufReader::new(stdout).lines() {
            let text = text?;
            println!("{text}");
            line(&text);
        }
    }
    let status = child.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(command, &status))
    }
}

/// The command as one would type it.
fn show(command: &Command) {
    let mut line = String::from("$");
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            line += &format!(" {}={}", name.display(), value.display());
        }
    }
    line += &format!(" {}", command.get_program().display());
    for argument in command.get_args() {
        line += &format!(" {}", argument.display());
    }
    println!("{line}");
}

fn failed(command: &Command, why: &dyn std::fmt::Display) -> Box<dyn Error> {
    let program = command.get_program().display();
    format!("{program}: {why}").into()
}
