//! What a snapshot does not tell and the calls do: what stood at a path, which services and
//! SMB servers there are.

use std::collections::BTreeSet;

use csi_proxy::cim::{Argument, CimAnswer, CimCall};
use csi_proxy::clock::Deadline;
use csi_proxy::os::{
    At, CreateVirtualDisk, DevicesAnswer, DevicesCall, FilesAnswer, FilesCall, Stat,
    VirtualDisksAnswer, VirtualDisksCall,
};
use csi_proxy::port::{Answer, Call};
use csi_proxy::trace::{Entry, Snapshot};
use csi_proxy::{DevicePath, HostPath, VolumeId};

use super::ids::Ids;
use super::start::service;
use crate::node::SimNode;
use crate::process::Process;
use crate::smb::{Server, Share, parse_credential, share_of};
use crate::state::State;

/// What was already put on the node.
#[derive(Default)]
pub(super) struct Seeds {
    services: BTreeSet<String>,
    /// The devices of the start, in lower case.
    devices: BTreeSet<String>,
    /// What of them was read.
    read: BTreeSet<(String, u64)>,
}

/// SMB servers have whatever share is mapped with success, of this size.
const SHARE: u64 = 1 << 40;

/// Before the first call: what calls anywhere in the trace show was there all the time.
pub(super) fn servers(entries: &[Entry], node: &SimNode) {
    for entry in entries {
        let (Call::Cim(CimCall::Invoke(invoke)), Ok(Answer::Cim(CimAnswer::Invoke(output)))) =
            (&entry.call, &entry.answer)
        else {
            continue;
        };
        let is_mapping =
            invoke.target.class() == "MSFT_SmbGlobalMapping" && invoke.method == "Create";
        let Some(Argument::Text(path)) = invoke.arguments.get("RemotePath") else {
            continue;
        };
        if is_mapping && output.return_value == 0 {
            let credential = match invoke.arguments.get("Credential") {
                Some(Argument::Text(text)) => parse_credential(text),
                _ => None,
            };
            node.change(|state| put_share(state, path, credential));
        }
    }
}

fn put_share(state: &mut State, path: &str, credential: Option<(String, String)>) {
    let Some((name, share)) = share_of(path) else {
        return;
    };
    let mut server = match state.smb.server_mut(name) {
        Some(server) => server.clone(),
        None => Server::new(),
    };
    let known = server.shares.get(&share.to_uppercase()).cloned();
    let mut made = known.unwrap_or_else(|| Share::new(SHARE));
    match credential {
        None => made.open = true,
        Some((user, password)) => {
            made = made.writer(&user);
            if !server.accounts.contains_key(&user.to_uppercase()) {
                server.set_password(&user, password);
            }
        }
    }
    state.put_smb_server(name, server.share(share, made));
}

impl Seeds {
    /// Nothing was put there yet. What is on a device of the snapshot is first seen when it is
    /// read; what is on others comes from the calls.
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        let rows = snapshot.disks.iter().chain(&snapshot.volumes);
        let paths = rows.filter_map(|row| row.properties.get("Path")?.as_str());
        let devices = paths.map(|path| match VolumeId::new(path) {
            Ok(volume) => volume.device().0,
            Err(_) => path.to_owned(),
        });
        Self {
            devices: devices.map(|device| device.to_lowercase()).collect(),
            ..Self::default()
        }
    }

    /// Before a call, and after one that differed: the node gets what its recorded answer
    /// shows to be there, if it has nothing in the place. Whoever made it did so without the
    /// recorder.
    pub(super) fn put(&mut self, entry: &Entry, ids: &Ids, process: &Process, node: &SimNode) {
        match (&entry.call, &entry.answer) {
            (Call::Files(FilesCall::Stat(at)), Ok(Answer::Files(FilesAnswer::Stat(stat)))) => {
                put_path(&at.path, stat, process, node);
            }
            (Call::Files(FilesCall::List(at)), Ok(Answer::Files(FilesAnswer::List(entries)))) => {
                for entry in entries {
                    if let Ok(path) = at.path.join(&entry.name) {
                        put_path(&path, &entry.stat, process, node);
                    }
                }
            }
            (
                Call::Files(FilesCall::CreateDirectories(at)),
                Ok(Answer::Files(FilesAnswer::CreateDirectories(false))),
            ) if !exists(&at.path, process) => {
                node.change(|state| {
                    let _ = state.put_directory(at.path.as_str());
                });
            }
            (
                Call::VirtualDisks(VirtualDisksCall::VirtualDiskInfo(at)),
                Ok(Answer::VirtualDisks(VirtualDisksAnswer::VirtualDiskInfo(info))),
            ) if !exists(&at.path, process) => {
                if let Some(parent) = at.path.parent() {
                    node.change(|state| {
                        let _ = state.put_directory(parent.as_str());
                    });
                }
                let request = CreateVirtualDisk {
                    at: At::path(&at.path),
                    size: info.virtual_size,
                };
                // Without it the call that follows differs, and says so.
                let _ = process.os().create_virtual_disk(&request, Deadline::Never);
            }
            (
                Call::Devices(DevicesCall::ReadRange(range)),
                Ok(Answer::Devices(DevicesAnswer::ReadRange(bytes))),
            ) => {
                let device = range.device.0.to_lowercase();
                let is_of_start = self.devices.contains(&device);
                if is_of_start && self.read.insert((device, range.offset)) {
                    let device = DevicePath(ids.text(&range.device.0));
                    node.change(|state| {
                        state.storage.put_bytes(&device, range.offset, &bytes.0);
                    });
                }
            }
            (Call::Cim(CimCall::Query(query)), Ok(Answer::Cim(CimAnswer::Query(rows))))
                if query.class == "Win32_Service" =>
            {
                for service in rows.iter().filter_map(service) {
                    if self.services.insert(service.name.to_lowercase()) {
                        node.change(|state| state.services.put(service));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Puts something at a path at which there is nothing. What cannot be put is left out: the
/// call that follows differs, and says so.
fn put_path(path: &HostPath, stat: &Stat, process: &Process, node: &SimNode) {
    /// The contents of files are not known, and only small ones are made as long as they were.
    const LONGEST: u64 = 1 << 20;
    if exists(path, process) {
        return;
    }
    node.change(|state| {
        if let Some(parent) = path.parent() {
            let _ = state.put_directory(parent.as_str());
        }
        let _ = match (&stat.reparse, stat.directory) {
            (Some(reparse), true) => state.put_link(path.as_str(), reparse.clone()),
            (Some(reparse), false) => state.put_file_link(path.as_str(), reparse.clone()),
            (None, true) => state.put_directory(path.as_str()),
            (None, false) => {
                let length = usize::try_from(stat.size.min(LONGEST)).unwrap_or_default();
                state.put_file(path.as_str(), &vec![0; length])
            }
        };
    });
}

fn exists(path: &HostPath, process: &Process) -> bool {
    process.os().stat(&At::path(path), Deadline::Never).is_ok()
}
