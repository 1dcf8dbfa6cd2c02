//! Machine files: a node described in TOML.

mod check;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::builder::{Builder, system_disk};
use crate::clock::SimClock;
use crate::iscsi::SimTarget;
use crate::latency::Latency;
use crate::node::SimNode;
use crate::services::Service;
use crate::smb::Server;
use crate::storage::SimDisk;

/// A machine file with every field and comments, as `csi-proxy sim example` prints it.
pub fn example_machine() -> &'static str {
    include_str!("machine.example.toml")
}

/// A node as a machine file describes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    clock: Clock,
    clock_scale: u32,
    latency: LatencyProfile,
    #[serde(with = "crate::size")]
    system_disk_size: u64,
    bios_serial_number: Option<String>,
    disks: Vec<SimDisk>,
    files: Vec<File>,
    smb: BTreeMap<String, Server>,
    iscsi: BTreeMap<String, SimTarget>,
    services: Vec<Service>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Clock {
    #[default]
    Real,
    Auto,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LatencyProfile {
    #[default]
    None,
    Measured,
}

/// A file, or without contents a directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    path: String,
    contents: Option<String>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            clock_scale: 1,
            latency: LatencyProfile::default(),
            system_disk_size: 127 << 30,
            bios_serial_number: None,
            disks: Vec::new(),
            files: Vec::new(),
            smb: BTreeMap::new(),
            iscsi: BTreeMap::new(),
            services: Vec::new(),
        }
    }
}

/// A machine file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The file could not be read.
    #[error("the machine file {} cannot be read", path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// It is no TOML, or has a field that is unknown or of the wrong kind.
    #[error("the machine file is wrong: {0}")]
    Format(Box<toml::de::Error>),
    /// A field has a value that cannot be.
    #[error("the machine file is wrong: {field}: {reason}")]
    Value {
        /// The field, `disks[2].partitions[0].size`.
        field: String,
        /// What is wrong with it and what was expected.
        reason: String,
    },
}

impl Machine {
    /// Reads a machine file.
    pub fn load(path: &Path) -> Result<Self, MachineError> {
        let text = std::fs::read_to_string(path).map_err(|source| MachineError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text)
    }

    /// Reads the text of a machine file.
    pub fn parse(text: &str) -> Result<Self, MachineError> {
        let machine: Self =
            toml::from_str(text).map_err(|error| MachineError::Format(Box::new(error)))?;
        machine.check()?;
        Ok(machine)
    }

    /// Starts the node.
    pub fn build(&self) -> Result<SimNode, MachineError> {
        let mut builder = Builder::without_disks()
            .disk(system_disk(self.system_disk_size))
            .clock(match self.clock {
                Clock::Real => SimClock::real(self.clock_scale),
                Clock::Auto => SimClock::auto(),
            })
            .latency(match self.latency {
                LatencyProfile::None => Latency::NONE,
                LatencyProfile::Measured => Latency::MEASURED,
            });
        if let Some(serial_number) = &self.bios_serial_number {
            builder = builder.bios_serial_number(Some(serial_number));
        }
        for disk in &self.disks {
            builder = builder.disk(disk.clone());
        }
        for (name, server) in &self.smb {
            builder = builder.smb_server(name, server.clone());
        }
        for (name, target) in &self.iscsi {
            builder = builder.iscsi_target(name, target.clone());
        }
        for service in &self.services {
            builder = builder.service(service.clone());
        }
        for (index, file) in self.files.iter().enumerate() {
            file.put(&mut builder)
                .map_err(|error| MachineError::Value {
                    field: format!("files[{index}].path"),
                    reason: format!("{}: {error}", file.path),
                })?;
        }
        Ok(builder.build())
    }
}

impl File {
    fn put(&self, builder: &mut Builder) -> csi_proxy::port::PortResult<()> {
        let state = &mut builder.state;
        let Some(contents) = &self.contents else {
            return state.put_directory(&self.path);
        };
        // The root of a drive is there.
        match self.path.rsplit_once('\\') {
            Some((directory, _)) if !directory.ends_with(':') => state.put_directory(directory)?,
            _ => {}
        }
        state.put_file(&self.path, contents.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let machine = Machine::parse(text).and_then(|machine| machine.build());
        machine.err().unwrap().to_string()
    }

    #[test]
    fn the_example_is_a_machine() {
        let node = Machine::parse(example_machine()).unwrap().build().unwrap();
        let state = node.snapshot();
        assert_eq!(state.storage.disks.len(), 5);
        assert_eq!(
            state.file(r"C:\ProgramData\app\settings.txt").unwrap(),
            b"text"
        );
        assert_eq!(state.smb.servers.len(), 1);
        assert_eq!(state.iscsi.targets.len(), 1);
        assert!(state.services.runs("MyAgent"));
    }

    /// The fields of what stands at `place`, as the error of one that there is not names them.
    fn fields(place: &str) -> Vec<String> {
        let error = Machine::parse(&format!("{place}no_such_field = 1\n")).unwrap_err();
        let error = error.to_string();
        let (_, known) = error.split_once("expected one of").unwrap_or_else(|| {
            let (_, both) = error.split_once("expected ").unwrap();
            ("", both)
        });
        let known: Vec<_> = known.split('`').skip(1).step_by(2).collect();
        assert!(!known.is_empty(), "{error}");
        known.into_iter().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn the_example_has_every_field_and_a_field_that_there_is_not_is_refused_with_its_line() {
        for place in [
            "",
            "[[disks]]\nsize = 512\n",
            "[[disks]]\nsize = 512\n[disks.hidden]\n",
            "[[disks]]\nsize = 512\n[[disks.page83]]\n",
            "[[disks]]\nsize = 512\n[[disks.partitions]]\n",
            "[[files]]\n",
            "[smb.s]\n",
            "[smb.s.shares.d]\n",
            "[iscsi.t]\n",
            "[iscsi.t.chap]\n",
            "[[iscsi.t.luns]]\n",
            "[[services]]\n",
            "[[services]]\n[services.start_takes]\n",
            "[[services]]\n[services.pending]\n",
        ] {
            for field in fields(place) {
                let is_set = |line: &str| {
                    line.split(['{', ',', '#', '.', '[', ']'])
                        .any(|part| part.split('=').next().unwrap_or("").trim() == field)
                };
                assert!(example_machine().lines().any(is_set), "{place}: {field}");
            }
            let line = place.lines().count() + 1;
            let shown = error(&format!("{place}no_such_field = 1\n"));
            assert!(shown.contains(&format!("line {line}")), "{shown}");
        }
    }

    #[test]
    fn an_empty_file_is_a_node_with_a_system_disk() {
        let node = Machine::parse("").unwrap().build().unwrap();
        assert_eq!(node.snapshot(), SimNode::builder().build().snapshot());
    }

    #[test]
    fn a_file_may_lie_in_the_root_of_a_drive() {
        let text = "[[files]]\npath = 'C:\\a.txt'\ncontents = 'text'\n";
        let node = Machine::parse(text).unwrap().build().unwrap();
        assert_eq!(node.snapshot().file(r"C:\a.txt").unwrap(), b"text");
    }

    #[test]
    fn errors_name_the_field_and_what_was_expected() {
        for (text, parts) in [
            ("colour = 1", &["colour", "expected"][..]),
            ("[[disks]]\nsize = \"ten\"", &["size", "10 GiB"]),
            ("[[disks]]\nserial = \"x\"", &["disks[0].size", "512"]),
            ("[[disks]]\nsize = 1000", &["disks[0].size", "512"]),
            (
                "[[disks]]\nsize = \"1 GiB\"\nstile = \"gpt\"",
                &["stile", "style"],
            ),
            ("clock = \"sun\"", &["clock", "real"]),
            (
                "[[disks]]\nsize = \"1 GiB\"\nstyle = \"gpt\"\n[[disks.partitions]]\nsize = \"2 GiB\"",
                &["disks[0].partitions[0].size", "the disk"],
            ),
            (
                "[[disks]]\nsize = \"1 GiB\"\n[[disks.partitions]]\ncontent = \"ntfs\"",
                &["disks[0].partitions", "style"],
            ),
            ("[[files]]\npath = 'Q:\\x'", &["files[0].path"]),
            ("system_disk_size = 512", &["system_disk_size"]),
            ("clock_scale = 0", &["clock_scale", "1 or more"]),
            (
                "[[disks]]\nsize = \"1 GiB\"\nstyle = \"gpt\"\n[[disks.partitions]]\n\
                 content = \"ntfs\"\ndrive_letter = \"C\"",
                &["disks[0].partitions[0].drive_letter", "already"],
            ),
            (
                "[[iscsi.t.luns]]\nsize = \"1 GiB\"\nstyle = \"gpt\"\n\
                 [[iscsi.t.luns.partitions]]\ncontent = \"ntfs\"\ndrive_letter = \"C\"",
                &["iscsi.\"t\".luns[0].partitions[0].drive_letter", "already"],
            ),
            ("[smb.\"\"]", &["smb.\"\"", "expected a name"]),
            (
                "[smb.s.shares.\" \"]\nsize = 512",
                &["smb.\"s\".shares.\" \""],
            ),
            (
                "[smb.s.accounts]\n\"\" = \"x\"",
                &["smb.\"s\".accounts.\"\""],
            ),
            ("[smb.a]\n[smb.A]", &["smb.\"a\"", "upper and lower case"]),
            ("[iscsi.\"\"]", &["iscsi.\"\"", "expected a name"]),
        ] {
            let shown = error(text);
            for part in parts {
                assert!(shown.contains(part), "{part} in {shown}");
            }
        }
    }
}
