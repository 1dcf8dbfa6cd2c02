//! `cargo xtask figures`: how soon the program answers under Wine, and what it holds.

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use super::Wine;
use crate::command::run;
use crate::sanity::{Plugin, Under};
use crate::target;
use crate::windows::{self, Toolchain};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How often each time is taken; the one in the middle is told.
const TIMES: usize = 9;

/// How long an idle program is left alone before its memory is looked at.
const IDLE: Duration = Duration::from_secs(2);

/// Prints the figures.
pub(crate) fn exec() -> ExitCode {
    match figures() {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn figures() -> Result<String> {
    let wine = Wine::set_up()?;
    windows::build(Toolchain::find()?)?;
    let nothing = || wine.command(&["cmd".into(), "/c".into(), "exit".into()]);
    let demo = || wine.command(&[windows::program().into(), "demo".into(), "--json".into()]);
    // Wine's server starts with the first program and stays for those that follow.
    run(&mut nothing())?;
    let start = median(|| {
        let begun = Instant::now();
        run_quietly(&mut nothing())?;
        Ok(begun.elapsed())
    })?;
    let answer = median(|| first_line(&mut demo()))?;
    let memory = idle_memory(&wine)?;
    let milliseconds = |time: Duration| time.as_millis();
    Ok(format!(
        "{}, medians of {TIMES}\n\
         a program that does nothing    {} ms from start to end\n\
         csi-proxy.exe demo             {} ms from start to the answers of its first step\n\
         csi-proxy.exe node, idle       {} kB of its own, {} kB with the pages of libraries",
        wine.version()?,
        milliseconds(start),
        milliseconds(answer),
        memory.own,
        memory.all,
    ))
}

fn run_quietly(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{}: {status}", command.get_program().display()).into()),
    }
}

fn median(mut measure: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let mut times: Vec<_> = (0..TIMES).map(|_| measure()).collect::<Result<_>>()?;
    times.sort();
    Ok(times[TIMES / 2])
}

/// From the start of a program to its first line.
fn first_line(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = BufReader::new(child.stdout.take().ok_or("there is no output")?);
    let mut text = String::new();
    output.read_line(&mut text)?;
    let time = begun.elapsed();
    output.read_to_string(&mut text)?;
    match child.wait()?.success() {
        true => Ok(time),
        false => Err(format!("the program failed:\n{text}").into()),
    }
}

/// What a process holds, in kB.
struct Memory {
    /// What no other process could share.
    own: u64,
    all: u64,
}

/// That of a plugin that has nothing to do.
fn idle_memory(wine: &Wine) -> Result<Memory> {
    let logs = target().join("figures");
    fs::create_dir_all(&logs)?;
    let program = wine.command(&[windows::program().into()]);
    let mut plugin = Plugin::start(program, Under::Wine, &logs)?;
    std::thread::sleep(IDLE);
    let status = fs::read_to_string(format!("/proc/{}/status", plugin.process()))?;
    plugin.stop(Duration::from_secs(30))?;
    Ok(Memory {
        own: kilobytes(&status, "RssAnon")?,
        all: kilobytes(&status, "VmRSS")?,
    })
}

/// The value in a line such as `VmRSS:     1234 kB`.
fn kilobytes(status: &str, name: &str) -> Result<u64> {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok());
    value.ok_or_else(|| format!("no {name} in kB in {status:?}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_linux_tells_it() {
        let status = "VmHWM:\t   300 kB\nVmRSS:\t   200 kB\nRssAnon:\t   100 kB\n";
        assert_eq!(kilobytes(status, "VmRSS").unwrap(), 200);
        assert_eq!(kilobytes(status, "RssAnon").unwrap(), 100);
        assert!(kilobytes(status, "RssFile").is_err());
    }

    #[test]
    fn the_time_in_the_middle_is_told() {
        let mut next = 0;
        let middle = median(|| {
            next = (next + 5) % 9;
            Ok(Duration::from_millis(next))
        });
        assert_eq!(middle.unwrap(), Duration::from_millis(4));
    }
}
