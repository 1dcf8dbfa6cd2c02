//! The folder of a self-test: taken, and left as if nothing had been.

use std::sync::Arc;
use std::time::Duration;

use csi_proxy::clock::{Clock, Deadline};
use csi_proxy::os::{At, Bytes, LockName, LockToken, RemoveTree, Reparse, Stat, WriteFile};
use csi_proxy::port::{Answer, Call, Carried, PortError, PortResult, SystemCode, Transport};
use csi_proxy::{Host, HostPath};

use super::guard::Guard;
use crate::failure::{Failure, Result};
use crate::life::join;
use crate::meter::Meter;

/// The folder's name below the temporary directory. It is always the same, so that a run finds
/// what one that was killed has left.
pub(super) const NAME: &str = "csi-proxy-selftest";
/// The file that says whose the folder is.
const MARKER: &str = "csi-proxy-selftest.txt";
const MARKED: &[u8] = b"csi-proxy selftest makes and removes this folder.\r\n";
const VHDX: &str = ".vhdx";
/// How long a disk may be shown after its file was detached.
const DETACH_LIMIT: Duration = Duration::from_secs(60);
/// How often the folder is cleared until that is given up, and the time between.
const CLEAR_ATTEMPTS: u32 = 5;
const CLEAR_PAUSE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(250);
/// `ERROR_FILE_NOT_FOUND` and `ERROR_PATH_NOT_FOUND`.
const NOT_FOUND: [SystemCode; 2] = [SystemCode::Win32(2), SystemCode::Win32(3)];

/// The folder, while this run has it. Whatever ends the run, it is cleared.
pub(crate) struct Area {
    pub(super) host: Host,
    pub(super) guard: Arc<Guard>,
    pub(super) folder: HostPath,
    lock: Option<LockToken>,
}

impl Area {
    /// The folder on a node. Nothing is touched yet.
    pub(crate) fn new(node: Host, folder: HostPath) -> Self {
        let guard = Arc::new(Guard::new(node, folder.clone()));
        let ports = Arc::new(Carried(Shared(guard.clone())));
        Self {
            host: Host::new(ports.clone(), ports),
            guard,
            folder,
            lock: None,
        }
    }

    /// The node, as far as the folder's holder may use it.
    pub(crate) fn host(&self) -> Host {
        self.host.clone()
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &HostPath {
        &self.folder
    }

    /// What counts the calls of [`Area::host`].
    pub(crate) fn meter(&self) -> &dyn Meter {
        &*self.guard
    }

    /// Takes the folder, clears what an earlier run has left there, and makes it anew.
    pub(crate) fn claim(&mut self) -> Result<String> {
        let deadline = self.deadline();
        let name = format!("selftest:{}", self.folder).to_lowercase();
        let lock = self.host.os().try_lock(&LockName(name), deadline);
        self.lock = told("take the lock of the self-test", lock)?;
        if self.lock.is_none() {
            let line = format!("another self-test runs in {}", self.folder);
            return Err(Failure::new(line));
        }
        let left_behind = match self.check_ownership() {
            Ok(left_behind) => left_behind,
            Err(failure) => {
                // Nothing in it is ours to clear.
                self.give_back();
                return Err(failure);
            }
        };
        if left_behind {
            self.clear()?;
        }
        let made = self
            .host
            .os()
            .create_directories(&At::path(&self.folder), deadline);
        told(&format!("make {}", self.folder), made)?;
        let marker = WriteFile {
            at: At::path(&join(&self.folder, &[MARKER])?),
            contents: Bytes(MARKED.to_vec()),
        };
        let written = self.host.os().write_file(&marker, deadline);
        told(&format!("write {}", marker.at.path), written)?;
        Ok(match left_behind {
            true => format!("{}, which an earlier run had left behind", self.folder),
            false => self.folder.to_string(),
        })
    }

    /// Whether there is a folder that an earlier run has left. Another's is refused.
    fn check_ownership(&self) -> Result<bool> {
        let at = At::path(&self.folder);
        let Some(stat) = self.stat(&self.folder)? else {
            return Ok(false);
        };
        let another = || {
            Failure::new(format!(
                "{} is there and was made by no self-test; remove it or name another directory \
                 with --directory",
                self.folder
            ))
        };
        if !stat.directory || stat.reparse.is_some() {
            return Err(another());
        }
        let entries = self.host.os().list(&at, self.deadline());
        let entries = told(&format!("list {}", self.folder), entries)?;
        // One that was killed at once has not written its marker yet.
        let is_marked = entries.iter().any(|entry| entry.name == MARKER);
        match entries.is_empty() || is_marked {
            true => Ok(true),
            false => Err(another()),
        }
    }

    /// Unmounts and detaches everything in the folder, and removes it. Other programs may have
    /// opened a file just now (scanners do), so it is tried more than once.
    fn clear(&self) -> Result<()> {
        let mut attempt = 1;
        loop {
            match self.clear_once() {
                Err(_) if attempt < CLEAR_ATTEMPTS => attempt += 1,
                cleared => return cleared,
            }
            self.host.os().pause(CLEAR_PAUSE, Deadline::Never);
        }
    }

    fn clear_once(&self) -> Result<()> {
        if self.stat(&self.folder)?.is_none() {
            return self.wait_for_detach();
        }
        // What cannot be undone is told only if the folder cannot be removed because of it.
        let undone = self.undo();
        let request = RemoveTree {
            at: At::path(&self.folder),
            keep_root: false,
        };
        let removed = self.host.os().remove_tree(&request, self.deadline());
        match (told(&format!("remove {}", self.folder), removed), undone) {
            (Ok(()), _) => self.wait_for_detach(),
            (Err(failure), Err(before)) => Err(Failure::new(format!("{failure}; {before}"))),
            (Err(failure), Ok(())) => Err(failure),
        }
    }

    /// Clears the folder and gives it back.
    pub(crate) fn end(&mut self) -> Result<()> {
        let cleared = self.clear();
        self.give_back();
        cleared
    }

    /// Unmounts and detaches what a failed check has left, as far as that goes.
    pub(super) fn release(&self) {
        // What stays is told by the clean-up.
        let _ = self.undo();
    }

    fn undo(&self) -> Result<()> {
        let mut problems = Vec::new();
        let mut todo = vec![self.folder.clone()];
        let mut files = Vec::new();
        while let Some(directory) = todo.pop() {
            let entries = self.host.os().list(&At::path(&directory), self.deadline());
            let entries = told(&format!("list {directory}"), entries)?;
            for entry in entries {
                let path = join(&directory, &[&entry.name])?;
                match entry.stat.reparse {
                    Some(Reparse::MountPoint { .. }) => problems.extend(self.unmount(&path).err()),
                    Some(_) => {}
                    None if entry.stat.directory => todo.push(path),
                    None if entry.name.to_ascii_lowercase().ends_with(VHDX) => files.push(path),
                    None => {}
                }
            }
        }
        problems.extend(files.iter().filter_map(|file| self.detach(file).err()));
        match problems.as_slice() {
            [] => Ok(()),
            problems => {
                let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
                Err(Failure::new(lines.join("; ")))
            }
        }
    }

    fn unmount(&self, path: &HostPath) -> Result<()> {
        let at = At::within(path, &self.folder);
        let deleted = self.host.os().delete_mount_point(&at, self.deadline());
        told(&format!("unmount {path}"), deleted)
    }

    fn detach(&self, file: &HostPath) -> Result<()> {
        let at = At::within(file, &self.folder);
        let info = self.host.os().virtual_disk_info(&at, self.deadline());
        match told(&format!("look at {file}"), info)?.attached {
            false => Ok(()),
            true => {
                let detached = self.host.os().detach_virtual_disk(&at, self.deadline());
                told(&format!("detach {file}"), detached)
            }
        }
    }

    /// Returns once WMI shows no disk any more whose file was in the folder.
    fn wait_for_detach(&self) -> Result<()> {
        let until = self.host.os().deadline_in(DETACH_LIMIT);
        loop {
            let files = told("list the disks", self.guard.attached_files(until))?;
            let [file, ..] = files.as_slice() else {
                return Ok(());
            };
            if !self.host.os().pause(POLL, until) {
                return Err(Failure::new(format!("{file} is still shown as a disk")));
            }
        }
    }

    fn give_back(&mut self) {
        if let Some(lock) = self.lock.take() {
            // The end of the process gives it back otherwise.
            let _ = self.host.os().unlock(&lock, Deadline::Never);
        }
    }

    /// The deadline of a call.
    pub(super) fn deadline(&self) -> Deadline {
        self.host.os().deadline_in(super::CALL_LIMIT)
    }

    fn stat(&self, path: &HostPath) -> Result<Option<Stat>> {
        match self.host.os().stat(&At::path(path), self.deadline()) {
            Err(PortError::System { code, .. }) if NOT_FOUND.contains(&code) => Ok(None),
            answer => told(&format!("look at {path}"), answer).map(Some),
        }
    }
}

impl Drop for Area {
    /// After a panic or an output that is closed too; whoever ran to the end has cleared it and
    /// was told what could not be.
    fn drop(&mut self) {
        if self.lock.is_some() {
            let _ = self.clear();
            self.give_back();
        }
    }
}

/// The guard, which is asked for its counts too.
struct Shared(Arc<Guard>);

impl Transport for Shared {
    fn carry(&self, call: &Call, deadline: Deadline) -> PortResult<Answer> {
        self.0.carry(call, deadline)
    }

    fn clock(&self) -> &dyn Clock {
        self.0.clock()
    }
}

/// A port's answer; its error says what could not be done.
pub(super) fn told<T>(what: &str, answer: PortResult<T>) -> Result<T> {
    answer.map_err(|error| Failure::from_error(format!("cannot {what}"), &error))
}
