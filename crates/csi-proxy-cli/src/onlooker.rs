//! Another process on the node: it does what the kubelet and the pod do, and looks at what
//! the plugin has left.

use std::collections::BTreeSet;

use csi_proxy::cim::{Namespace, Query, Value};
use csi_proxy::clock::Deadline;
use csi_proxy::os::{At, Bytes, DirEntry, ReadFile, Reparse, Stat, WriteFile};
use csi_proxy::port::{PortError, PortResult, SystemCode};
use csi_proxy::{Host, HostPath};

use crate::failure::{Failure, Result};
use crate::size;

/// The files of the demo and the self-test are far smaller.
const READ_LIMIT: u32 = 64 << 20;

/// `ERROR_FILE_NOT_FOUND` and `ERROR_PATH_NOT_FOUND`.
const NOT_FOUND: [SystemCode; 2] = [SystemCode::Win32(2), SystemCode::Win32(3)];

/// A process on the node that is not the plugin.
pub(crate) struct Onlooker(Host);

/// Everything on the node that a volume could leave behind, a line for each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Traces(BTreeSet<String>);

impl Onlooker {
    /// A process with ports of its own.
    pub(crate) fn new(host: Host) -> Self {
        Self(host)
    }

    /// Makes a directory and its parents.
    pub(crate) fn make_directory(&self, path: &HostPath) -> Result<()> {
        let made = self
            .0
            .os()
            .create_directories(&At::path(path), Deadline::Never);
        told(&format!("make {path}"), made)?;
        Ok(())
    }

    /// Removes an empty directory, if it is there.
    pub(crate) fn remove(&self, path: &HostPath) -> Result<()> {
        match self
            .0
            .os()
            .remove_directory(&At::path(path), Deadline::Never)
        {
            Err(PortError::System { code, .. }) if NOT_FOUND.contains(&code) => Ok(()),
            answer => told(&format!("remove {path}"), answer),
        }
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &HostPath, contents: &[u8]) -> Result<()> {
        let request = WriteFile {
            at: At::path(path),
            contents: Bytes(contents.to_vec()),
        };
        told(
            &format!("write {path}"),
            self.0.os().write_file(&request, Deadline::Never),
        )
    }

    /// Reads a file.
    pub(crate) fn read(&self, path: &HostPath) -> Result<Vec<u8>> {
        let request = ReadFile {
            at: At::path(path),
            limit: READ_LIMIT,
        };
        let bytes = told(
            &format!("read {path}"),
            self.0.os().read_file(&request, Deadline::Never),
        )?;
        Ok(bytes.0)
    }

    /// The volume that is mounted at a path, if any.
    pub(crate) fn mounted_volume(&self, path: &HostPath) -> Result<Option<String>> {
        let stat = self.stat(path)?;
        Ok(match stat.and_then(|stat| stat.reparse) {
            Some(Reparse::MountPoint { volume }) => Some(volume.to_string()),
            _ => None,
        })
    }

    /// Where the link at a path leads, if there is one.
    pub(crate) fn link_target(&self, path: &HostPath) -> Result<Option<HostPath>> {
        let stat = self.stat(path)?;
        match stat.and_then(|stat| stat.reparse) {
            Some(Reparse::SymbolicLink { target } | Reparse::Junction { target }) => {
                host_path(&target).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Whether anything stands at a path.
    pub(crate) fn exists(&self, path: &HostPath) -> Result<bool> {
        Ok(self.stat(path)?.is_some())
    }

    /// All that is below a directory, and the disks: all of them for a whole drive, otherwise
    /// those whose files are there.
    pub(crate) fn traces(&self, root: &HostPath) -> Result<Traces> {
        let mut traces = self.entries(root)?;
        let disks = Query::new(Namespace::Storage, "MSFT_Disk", &["Number", "Location"]);
        let disks = self.0.cim().query(&disks, Deadline::Never);
        for disk in told("list the disks", disks)? {
            let location = disk.properties.get("Location").and_then(Value::as_str);
            let file = location.and_then(|text| HostPath::from_kubelet(text).ok());
            if root.parent().is_some() && !file.is_some_and(|file| file.is_within(root)) {
                continue;
            }
            traces.insert(format!("disk {:?}", disk.properties));
        }
        Ok(Traces(traces))
    }

    /// All that is on drive `C:`, a line for each, in the order of their names.
    pub(crate) fn files(&self) -> Result<String> {
        let lines: Vec<String> = self.entries(&host_path(r"C:\")?)?.into_iter().collect();
        Ok(lines.join("\n") + "\n")
    }

    fn entries(&self, root: &HostPath) -> Result<BTreeSet<String>> {
        let mut entries = BTreeSet::new();
        let mut todo = vec![root.clone()];
        while let Some(directory) = todo.pop() {
            for entry in self.list(&directory)? {
                let path = directory
                    .join(&entry.name)
                    .map_err(|error| Failure::new(error.to_string()))?;
                entries.insert(format!("{path}{}", nature(&entry.stat)));
                if entry.stat.directory && entry.stat.reparse.is_none() {
                    todo.push(path);
                }
            }
        }
        Ok(entries)
    }

    fn list(&self, directory: &HostPath) -> Result<Vec<DirEntry>> {
        let listed = self.0.os().list(&At::path(directory), Deadline::Never);
        told(&format!("list {directory}"), listed)
    }

    fn stat(&self, path: &HostPath) -> Result<Option<Stat>> {
        match self.0.os().stat(&At::path(path), Deadline::Never) {
            Err(PortError::System { code, .. }) if NOT_FOUND.contains(&code) => Ok(None),
            answer => told(&format!("look at {path}"), answer).map(Some),
        }
    }
}

impl Traces {
    /// What is here and was not there `before`, and the other way round.
    pub(crate) fn differences(&self, before: &Self) -> Vec<String> {
        let new = self
            .0
            .difference(&before.0)
            .map(|line| format!("left: {line}"));
        let gone = before
            .0
            .difference(&self.0)
            .map(|line| format!("gone: {line}"));
        new.chain(gone).collect()
    }
}

/// What a thing is, after its path.
fn nature(stat: &Stat) -> String {
    match &stat.reparse {
        Some(Reparse::SymbolicLink { target }) => format!(" -> {target}"),
        Some(Reparse::Junction { target }) => format!(" -> {target} (junction)"),
        Some(Reparse::MountPoint { volume }) => format!(" = {volume}"),
        Some(Reparse::Other { tag }) => format!(" (reparse tag {tag:#010x})"),
        None if stat.directory => r"\".to_owned(),
        None => format!(" ({})", size::show(stat.size)),
    }
}

fn host_path(text: &str) -> Result<HostPath> {
    HostPath::from_kubelet(text).map_err(|error| Failure::new(error.to_string()))
}

fn told<T>(what: &str, answer: PortResult<T>) -> Result<T> {
    answer.map_err(|error| Failure::from_error(format!("cannot {what}"), &error))
}
