//! Changes of the node that have a name, for faults and the control endpoint.

use csi_proxy::VolumeId;
use serde::{Deserialize, Serialize};

use crate::fs::FileChange;
use crate::password::Password;
use crate::services::Service;
use crate::smb::Server;
use crate::state::State;
use crate::storage::{self, SimDisk};

/// What someone else changes on the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeChange {
    /// A disk is attached.
    AttachDisk(Box<SimDisk>),
    /// A disk is taken away, not the one that Windows started from.
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
    /// A disk grows, as a cloud does it. Windows sees it when it looks again: after
    /// `MSFT_Disk.Refresh`, a rescan or a reboot.
    GrowDisk {
        /// Its number.
        number: u32,
        /// Its new size in bytes.
        size: u64,
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
    /// Windows finds a file system damaged, or whole again.
    SetVolumeHealth {
        /// The volume, as `\\?\Volume{...}\`.
        volume: VolumeId,
        /// `MSFT_Volume.HealthStatus`: 0 healthy, 1 scan needed, 2 spot fix needed, 3 full
        /// repair needed.
        health: u16,
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
    /// A file or directory is opened, closed, or loses its access.
    ChangeFile {
        /// Its path.
        path: String,
        /// How it changes.
        how: FileChange,
    },
    /// An SMB server goes away or comes back.
    SetSmbServerOnline {
        /// Its name.
        server: String,
        /// Whether it can be reached.
        online: bool,
    },
    /// An account of an SMB server gets another password.
    SetSmbPassword {
        /// The server's name.
        server: String,
        /// The account.
        user: String,
        /// Its new password.
        password: Password,
    },
    /// The mapping of a share is disconnected until it is made anew.
    BreakSmbMapping {
        /// The server's name.
        server: String,
        /// The share's name.
        share: String,
    },
    /// An iSCSI target goes away or comes back. Its sessions stay.
    SetIscsiTargetOnline {
        /// Its node address.
        target: String,
        /// Whether it can be reached.
        online: bool,
    },
    /// A service is added, or takes the place of the one of that name.
    PutService(Box<Service>),
}

/// A change that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotChanged(String);

impl NodeChange {
    /// Makes the change.
    pub fn apply(&self, state: &mut State) -> Result<(), NotChanged> {
        match self {
            Self::AttachDisk(disk) => attach(state, disk).map(drop),
            Self::DetachDisk { number } => detach(state, *number),
            Self::ReplaceDisk { number, with } => {
                let with = SimDisk {
                    number: Some(*number),
                    ..SimDisk::clone(with)
                };
                let mut replaced = state.clone();
                detach(&mut replaced, *number)?;
                attach(&mut replaced, &with)?;
                *state = replaced;
                Ok(())
            }
            Self::GrowDisk { number, size } => grow(state, *number, *size),
            Self::SetOffline { number, offline } => {
                let offline = offline.then_some(1);
                if offline.is_some() {
                    removable(state, *number)?;
                }
                change_disk(state, *number, |disk| disk.offline = offline)
            }
            Self::SetReadOnly { number, read_only } => {
                change_disk(state, *number, |disk| disk.read_only = *read_only)
            }
            Self::SetVolumeHealth { volume, health } => set_health(state, volume, *health),
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
            Self::ChangeFile { path, how } => on_files(state.change_file(path, *how)),
            Self::SetSmbServerOnline { server, online } => {
                smb_server(state, server)?.online = *online;
                Ok(())
            }
            Self::SetSmbPassword {
                server,
                user,
                password,
            } => {
                smb_server(state, server)?.set_password(user, password.clone());
                Ok(())
            }
            Self::BreakSmbMapping { server, share } => {
                if !state.smb.is_mapped(server, share) {
                    return Err(NotChanged(format!(r"\\{server}\{share} is not mapped")));
                }
                state.smb.break_mapping(server, share);
                Ok(())
            }
            Self::SetIscsiTargetOnline { target, online } => {
                let found = state.iscsi.targets.get_mut(&target.to_lowercase());
                let missing = || NotChanged(format!("there is no iSCSI target {target}"));
                found.ok_or_else(missing)?.online = *online;
                Ok(())
            }
            Self::PutService(service) => {
                state.services.put(Service::clone(service));
                Ok(())
            }
        }
    }
}

fn on_files(result: csi_proxy::port::PortResult<()>) -> Result<(), NotChanged> {
    result.map_err(|error| NotChanged(error.to_string()))
}

fn smb_server<'a>(state: &'a mut State, name: &str) -> Result<&'a mut Server, NotChanged> {
    let server = state.smb.server_mut(name);
    server.ok_or_else(|| NotChanged(format!("there is no SMB server {name}")))
}

fn no_disk(number: u32) -> NotChanged {
    NotChanged(format!("there is no disk {number}"))
}

/// Attaches a disk and answers its number.
pub(crate) fn attach(state: &mut State, disk: &SimDisk) -> Result<u32, NotChanged> {
    disk.check()
        .map_err(|error| NotChanged(error.to_string()))?;
    let taken = |letter: &char| state.storage.drive(*letter).is_some();
    if let Some(letter) = disk.drive_letters().find(taken) {
        return Err(NotChanged(format!("there is a drive {letter}: already")));
    }
    let id = storage::attach(state, disk);
    let attached = state.storage.disks.get(&id);
    Ok(attached.map_or(u32::MAX, |disk| disk.number))
}

/// A disk that may go. Without the one that it started from Windows does not run on.
fn removable(state: &State, number: u32) -> Result<storage::DiskId, NotChanged> {
    let found = state.storage.disk_by_number(number);
    let (id, disk) = found.ok_or_else(|| no_disk(number))?;
    match disk.boot {
        true => Err(NotChanged(format!(
            "disk {number} is the one that Windows started from and runs on; expected another one"
        ))),
        false => Ok(id),
    }
}

fn detach(state: &mut State, number: u32) -> Result<(), NotChanged> {
    let id = removable(state, number)?;
    storage::detach(state, id);
    Ok(())
}

fn grow(state: &mut State, number: u32, size: u64) -> Result<(), NotChanged> {
    let found = state.storage.disk_by_number(number);
    let medium = found.ok_or_else(|| no_disk(number))?.1.medium;
    if state.storage.virtual_disks.contains_key(&medium) {
        let reason = format!("disk {number} is a VHDX file, which does not grow while attached");
        return Err(NotChanged(reason));
    }
    let medium = state.storage.media.get_mut(&medium);
    let medium = medium.ok_or_else(|| no_disk(number))?;
    let current = medium.grown_to.unwrap_or(medium.size);
    let sizes = current..=storage::LARGEST;
    if !sizes.contains(&size) || !size.is_multiple_of(storage::SECTOR) {
        let reason = format!(
            "size {size}: expected a multiple of 512 from {current}, which the disk has, to {}",
            storage::LARGEST
        );
        return Err(NotChanged(reason));
    }
    medium.grown_to = Some(size);
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

fn set_health(state: &mut State, volume: &VolumeId, health: u16) -> Result<(), NotChanged> {
    let media = state.storage.media.values_mut();
    let partition = media
        .flat_map(|medium| &mut medium.partitions)
        .find(|partition| partition.volume.as_ref() == Some(volume));
    let file_system = partition.and_then(|partition| partition.file_system.as_mut());
    let file_system = file_system
        .ok_or_else(|| NotChanged(format!("there is no file system on a volume {volume}")))?;
    file_system.health = health;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimNode;
    use crate::iscsi::SimTarget;

    fn apply(state: &mut State, text: &str) -> Result<(), NotChanged> {
        let change: NodeChange = serde_json::from_str(text).unwrap();
        change.apply(state)
    }

    #[test]
    fn servers_targets_and_services_are_changed_by_name() {
        let server = Server::new().account("u", "old");
        let node = SimNode::builder()
            .smb_server("Store", server)
            .iscsi_target("iqn.x", SimTarget::at("10.0.0.1", 3260))
            .build();
        let mut state = node.snapshot();
        for text in [
            r#"{"set_smb_server_online": {"server": "store", "online": false}}"#,
            r#"{"set_smb_password": {"server": "STORE", "user": "U", "password": "new"}}"#,
            r#"{"set_iscsi_target_online": {"target": "IQN.X", "online": false}}"#,
            r#"{"put_service": {"name": "x", "display_name": "X"}}"#,
            r#"{"change_file": {"path": "C:\\Windows", "how": {"denied": true}}}"#,
        ] {
            let before = state.clone();
            apply(&mut state, text).unwrap();
            assert_ne!(state, before, "{text}");
        }
        let server = state.smb.server_mut("store").unwrap();
        assert_eq!(server.accounts["U"], Password::from("new"));
        assert!(!server.online && !state.iscsi.targets["iqn.x"].online);
        assert!(state.services.get("X").is_some());
    }

    #[test]
    fn the_documentation_names_every_change() {
        let documentation = include_str!("../../../docs/sim-control.md");
        let error = serde_json::from_str::<NodeChange>(r#"{"nothing": null}"#).unwrap_err();
        let error = error.to_string();
        // The error names the changes that there are, each in a pair of accents.
        let (_, known) = error.split_once("expected one of").unwrap();
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        assert!(known.contains(&"put_service"), "{error}");
        for name in known {
            let example = format!(r#"{{"{name}": "#);
            assert!(documentation.contains(&example), "{name}");
        }
    }

    #[test]
    fn the_disk_that_windows_runs_on_stays_and_a_drive_has_one_volume() {
        let mut state = SimNode::builder()
            .disk(SimDisk::raw(1 << 30))
            .build()
            .snapshot();
        let before = state.clone();
        let disk = r#"{"size": 1073741824, "style": "gpt", "partitions":
            [{"content": "ntfs", "drive_letter": "C"}]}"#;
        for (text, told) in [
            (r#"{"detach_disk": {"number": 0}}"#.to_owned(), "disk 0"),
            (
                r#"{"set_offline": {"number": 0, "offline": true}}"#.to_owned(),
                "disk 0",
            ),
            (
                r#"{"replace_disk": {"number": 0, "with": {"size": 512}}}"#.to_owned(),
                "disk 0",
            ),
            (format!(r#"{{"attach_disk": {disk}}}"#), "drive C:"),
            (
                format!(r#"{{"replace_disk": {{"number": 1, "with": {disk}}}}}"#),
                "drive C:",
            ),
        ] {
            let error = apply(&mut state, &text).unwrap_err();
            assert!(error.to_string().contains(told), "{text}: {error}");
            assert_eq!(state, before, "{text}");
        }
        apply(&mut state, r#"{"detach_disk": {"number": 1}}"#).unwrap();
    }

    #[test]
    fn what_is_not_there_is_not_changed() {
        let mut state = SimNode::builder().build().snapshot();
        let before = state.clone();
        for text in [
            r#"{"set_smb_server_online": {"server": "s", "online": false}}"#,
            r#"{"break_smb_mapping": {"server": "s", "share": "d"}}"#,
            r#"{"set_iscsi_target_online": {"target": "t", "online": false}}"#,
            r#"{"change_file": {"path": "C:\\nothing", "how": {"open": true}}}"#,
            r#"{"set_volume_health": {"volume": "\\\\?\\Volume{00000000-0000-0000-0000-000000000001}\\", "health": 1}}"#,
        ] {
            assert!(apply(&mut state, text).is_err(), "{text}");
        }
        assert_eq!(state, before);
    }
}
