//! What a snapshot does not tell and the calls do: what stood at a path, which services and
//! SMB servers there are.

use std::collections::{BTreeMap, BTreeSet};

use csi_proxy::cim::{Argument, CimAnswer, CimCall};
use csi_proxy::clock::Deadline;
use csi_proxy::os::{
    At, CreateVirtualDisk, DevicesAnswer, DevicesCall, FilesAnswer, FilesCall, Stat,
    VirtualDisksAnswer, VirtualDisksCall,
};
use csi_proxy::port::{Answer, Call, PortError, SystemCode};
use csi_proxy::trace::{Entry, Snapshot, Trace};
use csi_proxy::{DevicePath, HostPath, VolumeId};

use serde_json::Value;

use super::ids::Ids;
use super::start::service;
use crate::node::SimNode;
use crate::process::Process;
use crate::smb::{Server, Share, parse_credential, share_of};
use crate::state::State;
use crate::win32::{ERROR_ALREADY_EXISTS, ERROR_FILE_NOT_FOUND};

/// What was already put on the node.
#[derive(Default)]
pub(super) struct Seeds {
    /// The devices of the start, in lower case.
    devices: BTreeSet<String>,
    /// What of them was read.
    read: BTreeSet<(String, u64)>,
    /// The paths that calls have named, in lower case.
    named: BTreeSet<String>,
    /// Those of them at which calls have removed something.
    removed: BTreeSet<String>,
    /// Files that were put there, of which only the length is known.
    files: BTreeSet<String>,
}

/// When something is put there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Before its call: only what no earlier call can have made or removed, so that the node
    /// has it as the recorded one had it at the start.
    Before,
    /// After a call whose answer differed, so that those that follow do not differ because of
    /// it.
    AfterDifference,
}

/// SMB servers have whatever share is mapped with success, of this size.
const SHARE: u64 = 1 << 40;

/// Before the first call: services as calls first show them, with those that depend on them.
pub(super) fn services(trace: &Trace, node: &SimNode) {
    let mut services = BTreeMap::new();
    let mut names = BTreeMap::new();
    for entry in trace.entries() {
        let (rows, of) = match (&entry.call, &entry.answer) {
            (Call::Cim(CimCall::Query(query)), Ok(Answer::Cim(CimAnswer::Query(rows))))
                if query.class == "Win32_Service" =>
            {
                (rows, None)
            }
            (
                Call::Cim(CimCall::Associators(request)),
                Ok(Answer::Cim(CimAnswer::Associators(rows))),
            ) if request.role.as_deref() == Some("Antecedent") => {
                (rows, names.get(&request.of).cloned())
            }
            _ => continue,
        };
        for (row, seen) in rows.iter().filter_map(|row| Some((row, service(row)?))) {
            names.insert(row.path.clone(), seen.name.clone());
            let name = seen.name.clone();
            let service = services.entry(name).or_insert(seen);
            let is_new = |name: &String| !service.depends_on.contains(name);
            let depends_on = of.clone().filter(is_new);
            service.depends_on.extend(depends_on);
        }
    }
    node.change(|state| {
        for service in services.into_values() {
            state.services.put(service);
        }
    });
}

/// Before the first call: what calls anywhere in the trace show was there all the time.
pub(super) fn servers(trace: &Trace, node: &SimNode) {
    for entry in trace.entries() {
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

    /// Puts what the recorded answer of a call shows to be there, if the node has nothing in
    /// its place.
    pub(super) fn put(
        &mut self,
        when: When,
        entry: &Entry,
        ids: &Ids,
        process: &Process,
        node: &SimNode,
    ) {
        let is_free =
            |seeds: &Self, path: &HostPath| when == When::AfterDifference || !seeds.is_known(path);
        let on = &On { process, node };
        match (&entry.call, &entry.answer) {
            (Call::Files(FilesCall::Stat(at)), Ok(Answer::Files(FilesAnswer::Stat(stat))))
                if is_free(self, &at.path) =>
            {
                self.put_path(&at.path, stat, on);
            }
            (Call::Files(FilesCall::List(at)), Ok(Answer::Files(FilesAnswer::List(entries)))) => {
                for entry in entries {
                    if let Ok(path) = at.path.join(&entry.name)
                        && is_free(self, &path)
                    {
                        self.put_path(&path, &entry.stat, on);
                    }
                }
            }
            (
                Call::Files(FilesCall::CreateDirectories(at)),
                Ok(Answer::Files(FilesAnswer::CreateDirectories(false))),
            ) if is_free(self, &at.path) => on.put_directory(&at.path),
            (
                Call::Files(FilesCall::CreateDirectories(at)),
                Err(PortError::System {
                    code: SystemCode::Win32(ERROR_ALREADY_EXISTS),
                    ..
                }),
            ) if is_free(self, &at.path) => {
                let file = Stat {
                    directory: false,
                    attributes: 0,
                    size: 0,
                    reparse: None,
                };
                self.put_path(&at.path, &file, on);
            }
            (
                Call::VirtualDisks(VirtualDisksCall::VirtualDiskInfo(at)),
                Ok(Answer::VirtualDisks(VirtualDisksAnswer::VirtualDiskInfo(info))),
            ) if is_free(self, &at.path) => self.put_virtual_disk(&at.path, info.virtual_size, on),
            // Where the name alone is missing (2, not 3), the directory is there.
            (
                call,
                Err(PortError::System {
                    code: SystemCode::Win32(ERROR_FILE_NOT_FOUND),
                    ..
                }),
            ) => {
                let parent = paths_of(call).first().and_then(HostPath::parent);
                if let Some(parent) = parent.filter(|parent| is_free(self, parent)) {
                    on.put_directory(&parent);
                }
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
            _ => {}
        }
    }

    /// Notes what a call names, after it was made.
    pub(super) fn note(&mut self, call: &Call) {
        let paths = paths_of(call);
        if let Call::Files(
            FilesCall::RemoveDirectory(_)
            | FilesCall::RemoveTree(_)
            | FilesCall::RemoveFile(_)
            | FilesCall::Rename(_),
        ) = call
        {
            self.removed.extend(paths.iter().map(folded));
        }
        self.named.extend(paths.iter().map(folded));
    }

    /// Whether an earlier call can have to do with what is at a path.
    fn is_known(&self, path: &HostPath) -> bool {
        let above = std::iter::successors(Some(path.clone()), HostPath::parent);
        self.named.contains(&folded(path))
            || above
                .into_iter()
                .any(|path| self.removed.contains(&folded(&path)))
    }
}

fn folded(path: &HostPath) -> String {
    path.as_str().to_lowercase()
}

/// The paths that a call names.
fn paths_of(call: &Call) -> Vec<HostPath> {
    fn collect(value: &Value, paths: &mut Vec<HostPath>) {
        match value {
            Value::String(text) => paths.extend(HostPath::from_kubelet(text)),
            Value::Array(items) => items.iter().for_each(|item| collect(item, paths)),
            Value::Object(fields) => fields.values().for_each(|field| collect(field, paths)),
            _ => {}
        }
    }
    let mut paths = Vec::new();
    match call {
        // Its bytes are no paths.
        Call::Files(FilesCall::WriteFile(request)) => paths.push(request.at.path.clone()),
        Call::Cim(_) | Call::Devices(_) | Call::Locks(_) => {}
        call => collect(&serde_json::to_value(call).unwrap_or_default(), &mut paths),
    }
    paths
}

/// What cannot be put is left out: the call that follows differs, and says so.
struct On<'a> {
    process: &'a Process,
    node: &'a SimNode,
}

impl On<'_> {
    fn exists(&self, path: &HostPath) -> bool {
        let at = At::path(path);
        self.process.os().stat(&at, Deadline::Never).is_ok()
    }

    fn put_directory(&self, path: &HostPath) {
        if !self.exists(path) {
            self.node.change(|state| {
                let _ = state.put_directory(path.as_str());
            });
        }
    }

    /// A VHDX file, in the place of what is there.
    fn put_virtual_disk(&self, path: &HostPath, size: u64) {
        if let Some(parent) = path.parent() {
            self.put_directory(&parent);
        }
        self.node.change(|state| {
            let _ = state.erase(path.as_str());
        });
        let request = CreateVirtualDisk {
            at: At::path(path),
            size,
        };
        let _ = self
            .process
            .os()
            .create_virtual_disk(&request, Deadline::Never);
    }
}

impl Seeds {
    /// Puts something at a path at which there is nothing.
    fn put_path(&mut self, path: &HostPath, stat: &Stat, on: &On<'_>) {
        /// The contents of files are not known, and only small ones are made as long as they
        /// were.
        const LONGEST: u64 = 1 << 20;
        if on.exists(path) {
            return;
        }
        if let Some(parent) = path.parent() {
            on.put_directory(&parent);
        }
        if !stat.directory && stat.reparse.is_none() {
            self.files.insert(folded(path));
        }
        on.node.change(|state| {
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

    /// Puts a VHDX file at a path at which there is nothing, or a file that was put there
    /// before it showed what it is.
    fn put_virtual_disk(&mut self, path: &HostPath, size: u64, on: &On<'_>) {
        if self.files.remove(&folded(path)) || !on.exists(path) {
            on.put_virtual_disk(path, size);
        }
    }
}
