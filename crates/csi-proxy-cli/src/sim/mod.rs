//! `csi-proxy sim`: looks at and changes the simulated node of a running program.

use std::io::{Read, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use csi_proxy::HostPath;
use csi_proxy_sim::control::{CSI_PROXY_SIM, ControlClient, ControlError, Request};
use csi_proxy_sim::storage::{Content, SimDisk};
use csi_proxy_sim::{Counts, State};
use serde::de::DeserializeOwned;

use crate::failure::{Failure, Result};
use crate::fault::{FaultArg, GRAMMAR};
use crate::machine::Speed;
use crate::onlooker::Onlooker;
use crate::output::Output;
use crate::size;

/// What `csi-proxy sim` is told.
#[derive(Args)]
pub(crate) struct SimArgs {
    /// The control endpoint of the simulated node: unix:///path, unix:path or
    /// tcp://127.0.0.1:port, as given to `csi-proxy node --sim-control`
    #[arg(long, value_name = "URL", env = CSI_PROXY_SIM, global = true)]
    control: Option<String>,
    #[command(subcommand)]
    verb: Verb,
}

/// How the verbs are used together.
pub(crate) const EXAMPLES: &str = "\
Examples:
  csi-proxy node --driver local --simulate --endpoint unix:csi.sock --sim-control unix:sim.sock &
  export CSI_PROXY_SIM=unix:sim.sock
  csi-proxy sim attach-disk 10GiB --serial vol0123
  csi-proxy sim fault 'MSFT_Volume.Format=returns:43006'
  csi-proxy sim show";

#[derive(Subcommand)]
enum Verb {
    /// Prints a machine file with comments, for `csi-proxy node --simulate=FILE`
    #[command(after_help = "Example:\n  csi-proxy sim example > machine.toml")]
    Example,
    /// Prints the node as a tree: disks, partitions, volumes, mounts and links
    #[command(after_help = "Example:\n  csi-proxy sim show --files")]
    Show {
        /// All files on drive C: too
        #[arg(long)]
        files: bool,
    },
    /// Makes a directory with its parents; one that exists is fine
    #[command(after_help = r"Example:
  csi-proxy sim mkdir 'C:\var\lib\kubelet\pods'")]
    Mkdir {
        /// A path on the node, as C:\dir or /dir
        path: String,
    },
    /// Removes what stands at a path with all below it, a link itself; nothing there is fine
    #[command(after_help = "Example:\n  csi-proxy sim rm /var/lib/kubelet/pods")]
    Rm {
        /// A path on the node
        path: String,
    },
    /// Prints what stands at a path, links followed: file, directory, not_found or other
    #[command(after_help = "Example:\n  csi-proxy sim check /var/lib/kubelet")]
    Check {
        /// A path on the node
        path: String,
    },
    /// Writes a file from standard input; its directory must exist
    #[command(after_help = r"Examples:
  csi-proxy sim write 'C:\data.bin' < data.bin
  csi-proxy sim write /ProgramData/x.txt --text hello")]
    Write {
        /// A path on the node
        #[arg(value_parser = crate::path)]
        path: HostPath,
        /// Writes this text instead
        #[arg(long)]
        text: Option<String>,
    },
    /// Copies a file to standard output
    #[command(after_help = "Example:\n  csi-proxy sim read /ProgramData/x.txt")]
    Read {
        /// A path on the node
        #[arg(value_parser = crate::path)]
        path: HostPath,
    },
    /// Attaches a disk and prints its number
    #[command(after_help = "Examples:
  csi-proxy sim attach-disk 10GiB --serial vol0123
  csi-proxy sim attach-disk 10GiB --kind ntfs --offline")]
    AttachDisk(DiskArgs),
    /// Takes a disk away, as a cloud does; not the one that Windows started from
    #[command(after_help = "Example:\n  csi-proxy sim detach-disk 1")]
    DetachDisk {
        /// The disk's number
        number: u32,
    },
    /// Makes port calls fail
    #[command(after_help = GRAMMAR)]
    Fault {
        /// What goes wrong, and at which call
        #[arg(required = true)]
        fault: Vec<FaultArg>,
    },
    /// Prints how many port calls there were, by operation, as JSON
    #[command(after_help = "Example:\n  csi-proxy sim counts --reset")]
    Counts {
        /// Starts counting anew afterwards
        #[arg(long)]
        reset: bool,
    },
    /// Prints the whole state of the node as JSON; it holds the passwords of simulated servers
    #[command(after_help = "Example:\n  csi-proxy sim state > state.json")]
    State,
    /// Sets how long the node takes to answer
    #[command(after_help = "Example:\n  csi-proxy sim speed busy")]
    Speed {
        /// From now on
        #[arg(value_enum)]
        speed: Speed,
    },
    /// Reboots the node: running work, attached VHDX files and sessions are gone, files, links
    /// and mount points stay. All processes on it end; `csi-proxy node` starts its plugin anew
    #[command(after_help = "Example:\n  csi-proxy sim reboot")]
    Reboot,
}

#[derive(Args)]
struct DiskArgs {
    /// Its size, in bytes or with a unit as in 10GiB
    #[arg(value_parser = size::parse)]
    size: u64,
    /// Its number [default: the lowest that is free]
    #[arg(long)]
    number: Option<u32>,
    /// Its serial number [default: none]
    #[arg(long)]
    serial: Option<String>,
    /// Its location, as Windows writes it: "... : Adapter 0 : Port 0 : Target 0 : LUN 1"
    /// [default: none]
    #[arg(long)]
    location: Option<String>,
    /// Its unique id [default: one of its own]
    #[arg(long)]
    unique_id: Option<String>,
    /// It is offline, by the policy for SAN disks
    #[arg(long)]
    offline: bool,
    /// Its read-only flag is set
    #[arg(long)]
    read_only: bool,
    /// What is on the disk
    #[arg(long, value_enum, default_value_t = Kind::Raw)]
    kind: Kind,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// Nothing: it was never initialised
    Raw,
    /// A GPT without a volume
    Gpt,
    /// A GPT with one NTFS volume
    Ntfs,
    /// An ext4 without a partition table, which Windows takes for empty
    Ext4,
}

impl DiskArgs {
    fn disk(&self) -> SimDisk {
        let disk = match self.kind {
            Kind::Raw => SimDisk::raw(self.size),
            Kind::Gpt => SimDisk::gpt(self.size),
            Kind::Ntfs => SimDisk::ntfs(self.size),
            Kind::Ext4 => SimDisk::raw(self.size).content(Content::Ext4),
        };
        SimDisk {
            number: self.number,
            serial: self.serial.clone(),
            location: self.location.clone(),
            unique_id: self.unique_id.clone(),
            offline: self.offline,
            read_only: self.read_only,
            ..disk
        }
    }
}

/// Does one verb.
pub(crate) fn run(args: &SimArgs) -> Result<ExitCode> {
    let output = match &args.verb {
        Verb::Example => csi_proxy_sim::example_machine().as_bytes().to_vec(),
        verb => perform(&Node::connect(args.control.as_deref())?, verb)?,
    };
    let mut out = Output::standard();
    out.write_all(&output)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::from_error("cannot write to standard output", &error))?;
    Ok(ExitCode::SUCCESS)
}

/// Does a verb on a node. Answers what is printed.
fn perform(node: &Node, verb: &Verb) -> Result<Vec<u8>> {
    match verb {
        Verb::Example => Ok(Vec::new()),
        Verb::Show { files } => node.show(*files),
        Verb::Mkdir { path } => {
            let path = path.clone();
            node.quietly(&Request::MakeDirectory { path })
        }
        Verb::Rm { path } => {
            let path = path.clone();
            node.quietly(&Request::Remove { path })
        }
        Verb::Check { path } => {
            let kind = node.client.check(path).map_err(told)?;
            Ok(line(kind.as_str()))
        }
        Verb::Write { path, text } => node.write(path, text.as_deref()),
        Verb::Read { path } => node.onlooker().read(path),
        Verb::AttachDisk(disk) => {
            let number: u32 = node.ask(&Request::AttachDisk(Box::new(disk.disk())))?;
            Ok(line(&number.to_string()))
        }
        Verb::DetachDisk { number } => node.quietly(&Request::DetachDisk { number: *number }),
        Verb::Fault { fault } => {
            for fault in fault {
                node.quietly(&Request::Fault(fault.fault()))?;
            }
            Ok(Vec::new())
        }
        Verb::Counts { reset } => {
            let counts: Counts = node.ask(&Request::Counts)?;
            if *reset {
                node.quietly(&Request::ResetCounts)?;
            }
            json(&counts)
        }
        Verb::State => json(&node.ask::<State>(&Request::State)?),
        Verb::Speed { speed } => node.quietly(&Request::Latency(speed.latency())),
        Verb::Reboot => node.quietly(&Request::Reboot),
    }
}

/// A connection to the node.
struct Node {
    client: ControlClient,
}

impl Node {
    fn connect(control: Option<&str>) -> Result<Self> {
        let control = control.ok_or_else(|| {
            Failure::new(format!(
                "which simulated node? give its --control endpoint or set {CSI_PROXY_SIM}; \
                 `csi-proxy node --simulate --sim-control URL` opens one"
            ))
        })?;
        let client = ControlClient::connect(control).map_err(told)?;
        Ok(Self { client })
    }

    fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<T> {
        self.client.request(request).map_err(told)
    }

    fn quietly(&self, request: &Request) -> Result<Vec<u8>> {
        let () = self.ask(request)?;
        Ok(Vec::new())
    }

    /// Another process on the node.
    fn onlooker(&self) -> Onlooker {
        Onlooker::new(self.client.host())
    }

    fn show(&self, files: bool) -> Result<Vec<u8>> {
        let mut text: String = self.ask(&Request::Show)?;
        if files {
            text += &self.onlooker().files()?;
        }
        Ok(text.into_bytes())
    }

    fn write(&self, path: &HostPath, text: Option<&str>) -> Result<Vec<u8>> {
        let contents = match text {
            Some(text) => text.as_bytes().to_vec(),
            None => {
                let mut contents = Vec::new();
                std::io::stdin()
                    .read_to_end(&mut contents)
                    .map_err(|error| Failure::from_error("cannot read standard input", &error))?;
                contents
            }
        };
        self.onlooker().write(path, &contents)?;
        Ok(Vec::new())
    }
}

fn line(text: &str) -> Vec<u8> {
    format!("{text}\n").into_bytes()
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| Failure::from_error("cannot show it as JSON", &error))?;
    text.push(b'\n');
    Ok(text)
}

fn told(error: ControlError) -> Failure {
    Failure::from_error("simulated node", &error)
}
