//! Changes of the node that have a name, for faults and the control endpoint.

use serde::{Deserialize, Serialize};

use crate::state::State;
use crate::storage::{self, SimDisk};

/// What someone else changes on the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeChange {
    /// A disk is attached.
    AttachDisk(Box<SimDisk>),
    /// A disk is taken away.
    DetachDisk {
        /// Its number.
        number: u32,
    },
    /// A disk is taken away, and another one gets its number.
    ReplaceDisk {
        /// The number.
        number: u32,
        /// The other disk.
        with: Box<SimDisk>,
    },
    /// A disk goes offline or comes online.
    SetOffline {
        /// Its number.
        number: u32,
        /// Whether it goes offline.
        offline: bool,
    },
    /// A disk's read-only flag is set or cleared.
    SetReadOnly {
        /// Its number.
        number: u32,
        /// Whether it is set.
        read_only: bool,
    },
    /// A directory is made, with its parents.
    MakeDirectory {
        /// Its path.
        path: String,
    },
    /// A file is written.
    MakeFile {
        /// Its path.
        path: String,
        /// What is in it.
        contents: String,
    },
    /// Whatever stands at a path is removed, with all below it.
    Remove {
        /// The path.
        path: String,
    },
    /// A directory link takes the place of what stands at a path.
    MakeLink {
        /// The path.
        path: String,
        /// What it leads to.
        target: String,
    },
}

/// A change that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotChanged(String);

impl NodeChange {
    /// Makes the change.
    pub fn apply(&self, state: &mut State) -> Result<(), NotChanged> {
        match self {
            Self::AttachDisk(disk) => attach(state, disk),
            Self::DetachDisk { number } => detach(state, *number),
            Self::ReplaceDisk { number, with } => {
                detach(state, *number)?;
                let with = SimDisk {
                    number: Some(*number),
                    ..SimDisk::clone(with)
                };
                attach(state, &with)
            }
            Self::SetOffline { number, offline } => {
                let offline = offline.then_some(1);
                change_disk(state, *number, |disk| disk.offline = offline)
            }
            Self::SetReadOnly { number, read_only } => {
                change_disk(state, *number, |disk| disk.read_only = *read_only)
            }
            Self::MakeDirectory { path } => on_files(state.put_directory(path)),
            Self::MakeFile { path, contents } => {
                on_files(state.put_file(path, contents.as_bytes()))
            }
            Self::Remove { path } => on_files(state.erase(path)),
            Self::MakeLink { path, target } => {
                let target = target.clone();
                let link = csi_proxy::os::Reparse::SymbolicLink { target };
                on_files(state.put_link(path, link))
            }
        }
    }
}

fn on_files(result: csi_proxy::port::PortResult<()>) -> Result<(), NotChanged> {
    result.map_err(|error| NotChanged(error.to_string()))
}

fn no_disk(number: u32) -> NotChanged {
    NotChanged(format!("there is no disk {number}"))
}

fn attach(state: &mut State, disk: &SimDisk) -> Result<(), NotChanged> {
    disk.check()
        .map_err(|error| NotChanged(error.to_string()))?;
    storage::attach(state, disk);
    Ok(())
}

fn detach(state: &mut State, number: u32) -> Result<(), NotChanged> {
    let found = state.storage.disk_by_number(number);
    let (id, _) = found.ok_or_else(|| no_disk(number))?;
    storage::detach(state, id);
    Ok(())
}

fn change_disk(
    state: &mut State,
    number: u32,
    change: impl FnOnce(&mut storage::Disk),
) -> Result<(), NotChanged> {
    let found = state.storage.disk_by_number(number);
    let (id, _) = found.ok_or_else(|| no_disk(number))?;
    let disk = state.storage.disks.get_mut(&id);
    change(disk.ok_or_else(|| no_disk(number))?);
    Ok(())
}
