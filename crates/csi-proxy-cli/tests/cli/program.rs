//! The program, run as a user runs it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The program, with nothing of the caller's settings.
pub(crate) fn csi_proxy() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_csi-proxy"));
    for name in [
        "CSI_ENDPOINT",
        "CSI_PROXY_SIM",
        "KUBE_NODE_NAME",
        "RUST_LOG",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    csi_proxy()
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

/// What it printed.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the output is UTF-8")
}

/// What it told on standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("the output is UTF-8")
}

/// What it printed as a JSON object per line.
pub(crate) fn json_lines(text: &str) -> Vec<serde_json::Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect()
}

/// The one line that a run failed with.
#[track_caller]
pub(crate) fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = stderr(output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1, "one line was expected:\n{text}");
    lines[0].to_owned()
}

/// A directory that goes with the test.
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// A fresh one, short enough for the path of a socket.
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("csi-proxy-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        Self(path)
    }

    /// A path in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The address of a socket in it.
    pub(crate) fn socket(&self, name: &str) -> String {
        format!("unix://{}", self.join(name).display())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
