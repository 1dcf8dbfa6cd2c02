//! csi-sanity, built from its Go module; Go itself where it is missing.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{output, run, succeeds};
use crate::{packages, target};

const MODULE: &str = "github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity";
const VERSION: &str = "v5.4.0";

/// The first Go that fetches a newer toolchain by itself when a module asks for one.
const SELF_UPDATING: (u32, u32) = (1, 21);

/// What an older Go fetches, as the module that Go publishes its toolchains as. The
/// version is the one that csi-sanity names in its go.mod.
const TOOLCHAIN: &str = "go1.24.7";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The path of the program, built at the first call.
pub(crate) fn csi_sanity() -> Result<PathBuf> {
    let directory = target().join("tools").join(format!("csi-sanity-{VERSION}"));
    let program = directory.join("csi-sanity");
    if program.exists() {
        return Ok(program);
    }
    let mut go = Command::new(usable_go()?);
    go.args(["install", &format!("{MODULE}@{VERSION}")])
        .env("GOBIN", &directory)
        .env("GOTOOLCHAIN", "auto");
    run(&mut go)?;
    Ok(program)
}

/// Builds a package for Windows, by the `go.mod` in a directory.
pub(crate) fn build_for_windows(directory: &Path, package: &str, to: &Path) -> Result<()> {
    let mut go = Command::new(usable_go()?);
    run(go
        .args(["build", "-trimpath", "-o"])
        .arg(to)
        .arg(package)
        .current_dir(directory)
        .env("GOOS", "windows")
        .env("GOARCH", "amd64")
        .env("GOTOOLCHAIN", "auto"))
}

/// A Go that can build the Go programs of the tests: the one on the PATH, Debian's, or a newer one that
/// these can fetch.
fn usable_go() -> Result<PathBuf> {
    let go = PathBuf::from("go");
    if !succeeds(Command::new(&go).arg("version")) {
        install_go()?;
    }
    let text = output(Command::new(&go).arg("version"))?;
    let version = version(&text).ok_or_else(|| format!("cannot read Go's version in {text:?}"))?;
    if version >= SELF_UPDATING {
        Ok(go)
    } else {
        newer_go(&go)
    }
}

fn install_go() -> Result<()> {
    let missing = format!(
        "Go is missing, and only root on Debian or Ubuntu gets it by itself: install Go \
         {}.{} or later (package golang-go, or go.dev/dl) and put it on the PATH",
        SELF_UPDATING.0, SELF_UPDATING.1,
    );
    packages::install(&["golang-go"], &missing)
}

/// `go version go1.24.7 linux/amd64` → (1, 24)
fn version(text: &str) -> Option<(u32, u32)> {
    let number = text.split_whitespace().nth(2)?.strip_prefix("go")?;
    let mut parts = number.split(['.', 'r', '-']);
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    Some((major, minor))
}

/// Fetches a newer toolchain with an old one.
fn newer_go(old: &Path) -> Result<PathBuf> {
    let cache = target().join("tools").join("go");
    let platform = output(Command::new(old).args(["env", "GOOS", "GOARCH"]))?;
    let platform: Vec<&str> = platform.split_whitespace().collect();
    let module = format!(
        "golang.org/toolchain@v0.0.1-{TOOLCHAIN}.{}",
        platform.join("-")
    );
    fs::create_dir_all(&cache)?;
    run(Command::new(old)
        .args(["mod", "download", "-modcacherw", &module])
        .current_dir(&cache)
        .env("GOMODCACHE", &cache))?;
    let toolchain = cache.join(module);
    // Modules carry no modes.
    run(Command::new("chmod")
        .args(["-R", "+x"])
        .arg(toolchain.join("bin"))
        .arg(toolchain.join("pkg/tool")))?;
    Ok(toolchain.join("bin/go"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_go_prints_them() {
        assert_eq!(version("go version go1.19.8 linux/amd64"), Some((1, 19)));
        assert_eq!(version("go version go1.24rc1 linux/amd64"), Some((1, 24)));
        assert_eq!(
            version("go version go1.26.8-X:nodwarf5 linux/arm64"),
            Some((1, 26))
        );
        assert_eq!(version("go version devel linux/amd64"), None);
    }
}
