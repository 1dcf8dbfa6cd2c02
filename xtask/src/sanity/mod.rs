//! The part `sanity`: the CSI project's own test client against the node plugin.

mod go;
mod plugin;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::command::{cargo, output, run};
use crate::report::{Outcome, Report};
use crate::{root, target};
use plugin::Plugin;

/// Where the paths of the test lie on the simulated node.
const MOUNT_DIR: &str = r"C:\var\lib\kubelet\pods\csi-sanity\volumes\mount";
const STAGING_DIR: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\csi-sanity\globalmount";

/// Sizes of the volumes before and after they are grown, in bytes.
const VOLUME_SIZE: u64 = 1 << 30;
const EXPANDED_SIZE: u64 = 2 << 30;

/// Runs the part.
pub(crate) fn run_part(report: &mut Report) {
    let mut client = None;
    let built = report.step("csi-sanity", || {
        let path = go::csi_sanity()?;
        let remark = path
            .strip_prefix(root())
            .unwrap_or(&path)
            .display()
            .to_string();
        client = Some(path);
        Ok(remark)
    });
    let program_built = report.step("build", || {
        run(&mut cargo(["build", "--package", "csi-proxy-cli"]))?;
        Ok(String::new())
    });
    match client {
        Some(client) if built && program_built => {
            report.step("specs", || specs(&client));
        }
        _ => {
            report.step("specs", || Err("not run: the steps before failed".into()));
        }
    }
}

/// Runs the client against a fresh plugin, and compares the node before and after.
fn specs(client: &Path) -> Outcome {
    let logs = target().join("sanity");
    fs::create_dir_all(&logs)?;
    let program = target().join("debug").join("csi-proxy");
    let mut plugin = Plugin::start(&program, &logs)?;
    let before = machine(&program, &plugin)?;
    let json = logs.join("report.json");
    let ran = run(&mut sanity(client, &program, &plugin, &json));
    let after = machine(&program, &plugin);
    plugin.stop(Duration::from_secs(30))?;

    let counts = report::judge(&json, &root().join("docs/csi-sanity.md"));
    // The failed specs say more than the client's exit code.
    let counts = counts?;
    ran?;
    if after? != before {
        return Err("the tests left something on the node: compare `csi-proxy sim show`".into());
    }
    Ok(format!("{counts}; nothing left on the node"))
}

/// The simulated machine as text.
fn machine(program: &Path, plugin: &Plugin) -> Result<String, Box<dyn std::error::Error>> {
    let mut command = Command::new(program);
    command
        .args(["sim", "show"])
        .env("CSI_PROXY_SIM", plugin.control());
    output(&mut command)
}

fn sanity(client: &Path, program: &Path, plugin: &Plugin, json: &Path) -> Command {
    let hook = |name: &str| -> PathBuf { root().join("tests/sanity").join(name) };
    let mut command = Command::new(client);
    command
        .env("CSI_PROXY", program)
        .env("CSI_PROXY_SIM", plugin.control())
        .arg(format!("--csi.endpoint={}", plugin.endpoint()))
        .arg(format!("--csi.mountdir={MOUNT_DIR}"))
        .arg(format!("--csi.stagingdir={STAGING_DIR}"))
        .arg(format!("--csi.testvolumesize={VOLUME_SIZE}"))
        .arg(format!("--csi.testvolumeexpandsize={EXPANDED_SIZE}"))
        .arg(format!("--ginkgo.json-report={}", json.display()))
        .arg("--ginkgo.no-color")
        .arg("--ginkgo.timeout=8m");
    for (flag, name) in [
        ("createmountpathcmd", "create-path"),
        ("createstagingpathcmd", "create-path"),
        ("removemountpathcmd", "remove-path"),
        ("removestagingpathcmd", "remove-path"),
        ("checkpathcmd", "check-path"),
    ] {
        command.arg(format!("--csi.{flag}={}", hook(name).display()));
    }
    command
}
