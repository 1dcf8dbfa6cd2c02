//! Where there is no service manager.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::failure::{Failure, Result};
use crate::serve::ServeArgs;

pub(crate) fn run(_: ServeArgs) -> Result<ExitCode> {
    Err(only_on_windows())
}

pub(super) fn install(_: Vec<OsString>) -> Result<()> {
    Err(only_on_windows())
}

pub(super) fn uninstall() -> Result<()> {
    Err(only_on_windows())
}

pub(super) fn status() -> Result<()> {
    Err(only_on_windows())
}

fn only_on_windows() -> Failure {
    Failure::new("services are there on Windows only")
}
