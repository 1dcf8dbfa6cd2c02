//! A running `csi-proxy node` or `csi-proxy serve`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::program::{Directory, csi_proxy, stderr, stdout};

/// Far more than anything here takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// The process; it is killed when it is dropped.
pub(crate) struct Node {
    child: Child,
    lines: Receiver<String>,
    /// Reads its standard error as it comes: a program whose log nobody reads stands still
    /// once the pipe is full.
    told: Option<JoinHandle<String>>,
    unread: Arc<AtomicBool>,
    control: String,
}

impl Node {
    /// Starts it on a simulated node and waits until it listens. What `more` says goes
    /// before the settings of the test.
    pub(crate) fn start(directory: &Directory, more: &[&str]) -> Self {
        let control = directory.socket("sim.sock");
        let simulated = [
            "--simulate".to_owned(),
            format!("--sim-control={control}"),
            format!("--endpoint={}", directory.socket("csi.sock")),
        ];
        let name = |setting: &str| setting.split('=').next().unwrap_or_default().to_owned();
        let mut given: Vec<String> = more.iter().map(|setting| name(setting)).collect();
        if given.iter().any(|name| name == "--simulate-at") {
            given.extend(["--simulate".to_owned(), "--sim-control".to_owned()]);
        }
        let settings = simulated.iter().filter(|one| !given.contains(&name(one)));
        let mut command = csi_proxy();
        command
            .args(["node", "--driver", "local"])
            .args(settings)
            .args(more);
        Self::spawn(command, control, "listening on ")
    }

    /// Starts the program with flags of CSI Proxy 1.x on a simulated node, with its sockets in
    /// a directory, and waits until it serves.
    pub(crate) fn serve(directory: &Directory, flags: &[&str]) -> Self {
        let control = directory.socket("sim.sock");
        let mut command = csi_proxy();
        command
            .args(flags)
            .arg("-simulate")
            .arg(format!("-sim-control={control}"))
            .arg(format!("-socket-dir={}", directory.join("").display()));
        Self::spawn(command, control, "serving ")
    }

    /// Closes our end of its standard error, with the next line that it tells.
    pub(crate) fn leave_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// Starts a program and waits until it prints a line that begins so.
    pub(crate) fn spawn(mut command: Command, control: String, line: &str) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (sender, lines) = channel();
        let stdout = child.stdout.take().expect("its output is piped");
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stderr = child.stderr.take().expect("its errors are piped");
        let unread = Arc::<AtomicBool>::default();
        let told = thread::spawn({
            let unread = Arc::clone(&unread);
            move || read(stderr, &unread)
        });
        let mut node = Self {
            child,
            lines,
            told: Some(told),
            unread,
            control,
        };
        node.wait_for_line(line);
        node
    }

    fn wait_for_line(&mut self, start: &str) {
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) if line.starts_with(start) => return,
                Ok(_) => {}
                Err(error) => panic!("{error} before {start:?}: {}", self.told()),
            }
        }
    }

    /// Where its simulated node is controlled.
    pub(crate) fn control(&self) -> &str {
        &self.control
    }

    /// Runs a verb of `csi-proxy sim` against it.
    pub(crate) fn sim(&self, arguments: &[&str]) -> Output {
        csi_proxy()
            .arg("sim")
            .args(arguments)
            .env("CSI_PROXY_SIM", &self.control)
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    }

    /// The output of a verb that must go well.
    #[track_caller]
    pub(crate) fn sim_ok(&self, arguments: &[&str]) -> String {
        let output = self.sim(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    }

    /// Sends it SIGTERM.
    pub(crate) fn signal(&self) {
        let sent = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        assert!(sent.expect("kill runs").success());
    }

    /// Sends it SIGTERM and waits for its end. Answers its exit code and what it told.
    pub(crate) fn terminate(mut self) -> (Option<i32>, String) {
        self.signal();
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return (status.code(), self.told());
            }
            assert!(Instant::now() < end, "it did not end");
            thread::yield_now();
        }
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// What it told on standard error, once it has ended.
    fn told(&mut self) -> String {
        let _ = self.child.kill();
        let told = self.told.take().map(JoinHandle::join);
        told.and_then(Result::ok).unwrap_or_default()
    }
}

/// What it tells until it ends, or until nobody is to read it any more.
fn read(stderr: ChildStderr, unread: &AtomicBool) -> String {
    BufReader::new(stderr)
        .lines()
        .map_while(Result::ok)
        .take_while(|_| !unread.load(Ordering::Relaxed))
        .fold(String::new(), |told, line| told + &line + "\n")
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether something is at a path of this machine.
pub(crate) fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}
