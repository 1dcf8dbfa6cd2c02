//! The simulated node as a DLL for the class `WbemLocator`, and programs that do not know of it.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Wine, on_windows};
use crate::command::{output, run};
use crate::report::Outcome;
use crate::sanity::go::build_for_windows;
use crate::sanity::{self, Plugin, Under, sim};
use crate::windows::{TARGET, Toolchain, directory};
use crate::{root, target};

/// `docs/sim-com.md` says how it is registered.
const CLASS: &str =
    r"HKLM\Software\Classes\CLSID\{4590F811-1D3A-11D0-891F-00AA004B2E24}\InprocServer32";

/// The serial number of a simulated machine that is not told another one.
const SERIAL: &str = "0000-0001-2345-6789-0123-4567-89";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Builds all of it, and has each program ask for the disks of a simulated node and change one.
pub(super) fn check() -> Outcome {
    fs::create_dir_all(place())?;
    let (library, c, go) = (build_library()?, build_c()?, build_go()?);
    sanity::build()?;
    // A prefix of its own: in this one all programs reach the simulated node.
    let wine = Wine::set_up_in("wine-com")?;
    register(&wine, &library)?;

    refused(&wine, &c, None, "CoCreateInstance: 0x800700CB")?;
    let nobody = Some("tcp://127.0.0.1:1");
    refused(&wine, &c, nobody, "CoCreateInstance: 0x800706BA")?;
    refused(&wine, &c, Some("nowhere"), "CoCreateInstance: 0x80070057")?;

    let program = Command::new(sanity::program());
    // Where Wine reaches it.
    let node = Plugin::start(program, Under::Wine, &place())?;
    run(&mut sim(&node, &["attach-disk", "10GiB", "--offline"]))?;
    let ask = |program: &[&str]| answer(&wine, program, Some(node.control()));
    expect(&ask(&[&c])?, "disk 1: 10737418240 bytes, offline")?;
    expect(&ask(&[&c, "1"])?, "disk 1: 10737418240 bytes, online")?;
    expect(&shown(&node)?, "disk 1: 10 GiB, GPT\n")?;
    expect(
        &ask(&[&go, "1"])?,
        "disk 1: 10737418240 bytes, offline true",
    )?;
    expect(&shown(&node)?, "disk 1: 10 GiB, GPT, offline\n")?;
    expect(&ask(&["wmic", "bios", "get", "SerialNumber"])?, SERIAL)?;
    Ok("programs in C and Go, and Wine's wmic".to_owned())
}

fn build_library() -> Result<PathBuf> {
    let mut build = Toolchain::find()?.cargo("build");
    run(build.args(["--package", "csi-proxy-sim-com"]))?;
    let built = directory().join(TARGET).join("debug");
    Ok(built.join("csi_proxy_sim_com.dll"))
}

fn build_c() -> Result<String> {
    let program = place().join("wmi-c.exe");
    run(Command::new("x86_64-w64-mingw32-gcc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(sources().join("wmi.c"))
        .args(["-lwbemuuid", "-lole32", "-loleaut32"]))?;
    on_windows(&program)
}

fn build_go() -> Result<String> {
    let program = place().join("wmi-go.exe");
    build_for_windows(&sources(), ".", &program)?;
    on_windows(&program)
}

fn register(wine: &Wine, library: &Path) -> Result<()> {
    let library = on_windows(library)?;
    for value in [
        &["/ve", "/d", &library][..],
        &["/v", "ThreadingModel", "/d", "Both"],
    ] {
        let add = [&["reg", "add", CLASS][..], value, &["/f"]].concat();
        answer(wine, &add, None)?;
    }
    Ok(())
}

/// Without a node to reach, a program is told so at once.
fn refused(wine: &Wine, program: &str, control: Option<&str>, expected: &str) -> Result<()> {
    match answer(wine, &[program], control) {
        Ok(text) => Err(format!("{program} with the node {control:?} printed {text:?}").into()),
        Err(error) => expect(&error.to_string(), expected),
    }
}

/// What a program prints, with the control endpoint of the node to reach.
fn answer(wine: &Wine, program: &[&str], control: Option<&str>) -> Result<String> {
    let arguments: Vec<OsString> = program.iter().map(OsString::from).collect();
    let mut command = wine.command(&arguments);
    match control {
        Some(control) => command.env("CSI_PROXY_SIM", control),
        None => command.env_remove("CSI_PROXY_SIM"),
    };
    // To a file: processes of Wine that go on would keep a pipe open.
    let log = place().join("output.log");
    let ran = run(command.stdout(File::create(&log)?));
    let text = text(&fs::read(&log)?);
    match ran {
        Ok(()) => Ok(text),
        Err(error) => Err(format!("{error}: {text}").into()),
    }
}

/// Wine's wmic prints UTF-16 with a byte order mark.
fn text(bytes: &[u8]) -> String {
    match bytes.strip_prefix(&[0xFF, 0xFE]) {
        Some(wide) => {
            let pairs = wide.as_chunks().0.iter();
            String::from_utf16_lossy(
                &pairs
                    .map(|pair| u16::from_le_bytes(*pair))
                    .collect::<Vec<_>>(),
            )
        }
        None => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn shown(node: &Plugin) -> Result<String> {
    output(&mut sim(node, &["show"]))
}

fn expect(text: &str, part: &str) -> Result<()> {
    match text.contains(part) {
        true => Ok(()),
        false => Err(format!("{part:?} is not in {text:?}").into()),
    }
}

fn sources() -> PathBuf {
    root().join("tests/com")
}

/// For programs and logs.
fn place() -> PathBuf {
    target().join("com")
}
