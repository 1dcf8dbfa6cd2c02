//! The node plugin as a process beside the test.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::command::run;

/// How long the plugin may take until it says that it listens.
const START_TIME: Duration = Duration::from_secs(30);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A running `csi-proxy node`; killed when it is dropped.
pub(crate) struct Plugin {
    child: Child,
    under: Under,
    /// Where its sockets are.
    directory: PathBuf,
    log: PathBuf,
    endpoint: String,
    control: String,
}

/// What a plugin runs under.
#[derive(Clone, Copy)]
pub(crate) enum Under {
    /// It listens at Unix sockets and ends with SIGTERM.
    Linux,
    /// It listens at free ports of the loopback interface, since there are no Unix sockets, and
    /// ends with SIGINT, of which Wine makes the console's Ctrl-C.
    Wine,
}

impl Plugin {
    /// Starts `program` with a fresh simulated node and returns when it listens. Its log
    /// goes to `logs`.
    pub(crate) fn start(mut program: Command, under: Under, logs: &Path) -> Result<Self> {
        // Not below target: the path of a socket has at most 107 bytes.
        let name = format!("csi-proxy-sanity-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory)?;
        let address = |name: &str| match under {
            Under::Linux => format!("unix://{}", directory.join(name).display()),
            Under::Wine => "tcp://127.0.0.1:0".to_owned(),
        };
        let log = logs.join("plugin.log");
        let child = program
            .args(["node", "--driver", "local", "--simulate"])
            .args(["--endpoint", &address("csi.sock")])
            .args(["--sim-control", &address("sim.sock")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut plugin = Self {
            child,
            under,
            directory,
            log,
            endpoint: String::new(),
            control: String::new(),
        };
        plugin.wait_until_it_listens()?;
        Ok(plugin)
    }

    /// The address of the CSI services.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The address of the simulated node.
    pub(crate) fn control(&self) -> &str {
        &self.control
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Asks the plugin to end, and fails when it does not end well in time.
    pub(crate) fn stop(&mut self, within: Duration) -> Result<()> {
        let signal = match self.under {
            Under::Linux => "TERM",
            Under::Wine => "INT",
        };
        let process = self.child.id().to_string();
        run(Command::new("kill").args(["-s", signal, &process]))?;
        let end = Instant::now() + within;
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(self.failed(&format!("the plugin ended: {status}"))),
                None if Instant::now() < end => thread::sleep(Duration::from_millis(20)),
                None => {
                    let seconds = within.as_secs();
                    let text = format!("the plugin did not end {seconds} s after SIG{signal}");
                    return Err(self.failed(&text));
                }
            }
        }
    }

    /// The plugin prints one line for each endpoint that it listens on; the last is that
    /// of the CSI services.
    fn wait_until_it_listens(&mut self) -> Result<()> {
        let Some(stdout) = self.child.stdout.take() else {
            return Err("the plugin has no output".into());
        };
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(|line| line.ok()) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let end = Instant::now() + START_TIME;
        while self.endpoint.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = lines.recv_timeout(left) else {
                return Err(self.failed("the plugin did not say that it listens"));
            };
            if let Some(address) = line.strip_prefix("simulated node at ") {
                self.control = address.trim_end().to_owned();
            } else if let Some(address) = line.strip_prefix("listening on ") {
                self.endpoint = address.trim_end().to_owned();
            }
        }
        Ok(())
    }

    fn failed(&self, what: &str) -> Box<dyn Error> {
        format!("{what}; its log is {}", self.log.display()).into()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        // Both fail only for a plugin that has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
