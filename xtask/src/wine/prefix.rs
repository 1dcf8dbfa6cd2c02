//! Wine with a prefix of the project's own: nothing of the user's is touched.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{output, run, succeeds};
use crate::windows::mingw;
use crate::{packages, root, target};

/// The names of Wine's 64-bit loader. Debian's `wine64` package puts it beside its libraries
/// only.
const LOADERS: [&str; 4] = ["wine64", "/usr/lib/wine/wine64", "wine", "wine-stable"];

/// The library that current Rust and Go need and Wine has from version 9 on.
const SHIM: &str = "bcryptprimitives";

/// A Wine that is ready to run programs.
pub(crate) struct Wine {
    loader: &'static str,
    prefix: PathBuf,
}

impl Wine {
    /// Finds or installs Wine, and makes the prefix at the first call.
    pub(crate) fn set_up() -> Result<Self, Box<dyn Error>> {
        Self::set_up_in("wine")
    }

    /// The same with another prefix, for what would disturb other tests.
    pub(crate) fn set_up_in(prefix: &str) -> Result<Self, Box<dyn Error>> {
        let wine = Self {
            loader: loader()?,
            prefix: target().join(prefix),
        };
        let system = wine.prefix.join("drive_c/windows/system32");
        if !wine.prefix.join("system.reg").exists() {
            fs::create_dir_all(&wine.prefix)?;
            let boot = ["wineboot".into(), "--init".into()];
            let log = fs::File::create(wine.prefix.join("wineboot.log"))?;
            run(wine.command(&boot).stdout(log.try_clone()?).stderr(log))?;
            // The registry is written when Wine's server ends.
            run(wine.server().arg("-w"))?;
        }
        let shim = system.join(SHIM).with_extension("dll");
        if !shim.exists() {
            build_shim(&shim)?;
        }
        Ok(wine)
    }

    /// A Windows program with its arguments.
    pub(crate) fn command(&self, program: &[OsString]) -> Command {
        let mut command = Command::new(self.loader);
        self.environment(&mut command);
        command.args(program);
        command
    }

    /// What it calls itself.
    pub(crate) fn version(&self) -> Result<String, Box<dyn Error>> {
        let version = output(Command::new(self.loader).arg("--version"))?;
        Ok(version.trim().to_owned())
    }

    fn server(&self) -> Command {
        let beside = PathBuf::from("/usr/lib/wine/wineserver64");
        let mut command = match beside.exists() {
            true => Command::new(beside),
            false => Command::new("wineserver"),
        };
        self.environment(&mut command);
        command
    }

    fn environment(&self, command: &mut Command) {
        command
            .env("WINEPREFIX", &self.prefix)
            .env("WINEDEBUG", "-all")
            // No window, no question about Mono and Gecko.
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .env_remove("DISPLAY");
    }
}

fn loader() -> Result<&'static str, Box<dyn Error>> {
    if let Some(loader) = find_loader() {
        return Ok(loader);
    }
    let missing =
        "there is no Wine: install the package wine64 (Debian, Ubuntu) or Wine 8 or later";
    packages::install(&["wine64"], missing)?;
    find_loader().ok_or_else(|| "wine64 was installed but does not run".into())
}

fn find_loader() -> Option<&'static str> {
    LOADERS.into_iter().find(|loader| {
        let mut version = Command::new(loader);
        succeeds(version.arg("--version").stdin(Stdio::null()))
    })
}

fn build_shim(library: &Path) -> Result<(), Box<dyn Error>> {
    mingw()?;
    run(Command::new("x86_64-w64-mingw32-gcc")
        .args(["-O2", "-Wall", "-Werror", "-shared", "-s", "-o"])
        .arg(library)
        .arg(root().join("xtask/src/wine/bcryptprimitives.c"))
        .arg("-ladvapi32"))
}

/// A path of this machine as programs under Wine see it, where drive Z: is the root.
pub(crate) fn on_windows(path: &Path) -> Result<String, Box<dyn Error>> {
    let text = path
        .to_str()
        .ok_or("the path of the repository is no UTF-8")?;
    Ok(format!("Z:{}", text.replace('/', r"\")))
}
