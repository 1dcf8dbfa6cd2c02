//! The part `sanity`: the CSI project's own test client against the node plugin.

pub(crate) mod go;
mod plugin;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::command::{cargo, output, run};
use crate::report::{Outcome, Report};
use crate::{root, target};
pub(crate) use plugin::{Plugin, Under};

/// Where the paths of the test lie on the simulated node.
const MOUNT_DIR: &str = r"C:\var\lib\kubelet\pods\csi-sanity\volumes\mount";
const STAGING_DIR: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\csi-sanity\globalmount";

/// What the kubelet makes, and the plugin for all its volumes: it is there before the tests
/// and stays after them.
const LASTING: [&str; 3] = [
    r"C:\var\lib\kubelet\pods\csi-sanity\volumes",
    r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\csi-sanity",
    r"C:\csi-volumes\state",
];

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
    let program_built = report.step("build", build);
    match client {
        Some(client) if built && program_built => {
            report.step("specs", || {
                let logs = target().join("sanity");
                specs(&client, Command::new(program()), Under::Linux, &logs)
            });
        }
        _ => {
            report.step("specs", || Err("not run: the steps before failed".into()));
        }
    }
}

/// Builds the program for this machine, with which the hooks of the client change and look at
/// the simulated node.
pub(crate) fn build() -> Outcome {
    run(&mut cargo(["build", "--package", "csi-proxy-cli"]))?;
    Ok(String::new())
}

/// The program for this machine.
pub(crate) fn program() -> PathBuf {
    target().join("debug").join("csi-proxy")
}

/// Runs the client against a fresh plugin of `program`, and compares the node before and after.
pub(crate) fn specs(client: &Path, program: Command, under: Under, logs: &Path) -> Outcome {
    fs::create_dir_all(logs)?;
    let mut plugin = Plugin::start(program, under, logs)?;
    for directory in LASTING {
        run(&mut sim(&plugin, &["mkdir", directory]))?;
    }
    let before = machine(&plugin)?;
    let json = logs.join("report.json");
    let ran = run(&mut sanity(client, &plugin, &json));
    let after = machine(&plugin);
    plugin.stop(Duration::from_secs(30))?;

    // The failed specs say more than the client's exit code.
    let counts = report::judge(&json, &root().join("docs/csi-sanity.md"))?;
    ran?;
    let left = differences(&before, &after?);
    if left.is_empty() {
        Ok(format!("{counts}; nothing left on the node"))
    } else {
        Err(format!("the node is not as before:\n  {}", left.join("\n  ")).into())
    }
}

/// The simulated machine as text, its files among it.
fn machine(plugin: &Plugin) -> Result<String, Box<dyn std::error::Error>> {
    output(&mut sim(plugin, &["show", "--files"]))
}

/// The lines that only one of the two has.
fn differences(before: &str, after: &str) -> Vec<String> {
    let only = |one: &str, other: &str, mark: char| -> Vec<String> {
        let lines = one
            .lines()
            .filter(|line| !other.lines().any(|l| l == *line));
        lines.map(|line| format!("{mark} {line}")).collect()
    };
    [only(before, after, '-'), only(after, before, '+')].concat()
}

/// `csi-proxy sim` for the node of a plugin.
pub(crate) fn sim(plugin: &Plugin, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .arg("sim")
        .args(arguments)
        .env("CSI_PROXY_SIM", plugin.control());
    command
}

fn sanity(client: &Path, plugin: &Plugin, json: &Path) -> Command {
    let hook = |name: &str| -> PathBuf { root().join("tests/sanity").join(name) };
    // csi-sanity knows TCP by the address alone.
    let endpoint = plugin.endpoint();
    let endpoint = endpoint.strip_prefix("tcp://").unwrap_or(endpoint);
    let mut command = Command::new(client);
    command
        .env("CSI_PROXY", program())
        .env("CSI_PROXY_SIM", plugin.control())
        .arg(format!("--csi.endpoint={endpoint}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_what_went_is_told() {
        assert_eq!(differences("a\nb\n", "a\nc\n"), ["- b", "+ c"]);
        assert!(differences("a\nb\n", "a\nb\n").is_empty());
    }
}
