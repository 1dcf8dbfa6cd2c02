//! Programs that the tests need and that Debian and Ubuntu have as packages.

use std::error::Error;
use std::process::Command;

use crate::command::{output, run, succeeds};

/// Installs packages with apt as root; otherwise fails with `missing`, which says what to
/// install by hand.
pub(crate) fn install(packages: &[&str], missing: &str) -> Result<(), Box<dyn Error>> {
    let root = output(Command::new("id").arg("-u"))?.trim() == "0";
    if !root || !succeeds(Command::new("apt-get").arg("--version")) {
        return Err(missing.into());
    }
    run(Command::new("apt-get").arg("update"))?;
    run(Command::new("apt-get")
        .args(["install", "--yes", "--no-install-recommends"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive"))
}
