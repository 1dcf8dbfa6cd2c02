//! The ports of a node as far as the self-test may use them: whatever it looks at, it changes
//! nothing outside its folder and no disk but those whose files are there.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use csi_proxy::cim::Value;
use csi_proxy::cim::{Associators, CimCall, Invoke, Namespace, Object, ObjectPath, Query, Target};
use csi_proxy::clock::{Clock, Deadline, Moment};
use csi_proxy::os::{At, DevicesCall, FilesCall, MountPointsCall, VirtualDisksCall};
use csi_proxy::port::{Answer, Call, PortError, PortResult, Transport};
use csi_proxy::{DevicePath, DiskNumber, Host, HostPath, VolumeId};

use crate::meter::{Calls, FORMAT, Meter};

/// `MSFT_Disk.BusType` of a disk that is a file.
const FILE_BACKED_VIRTUAL: u64 = 15;

/// A node that refuses what is not the self-test's own. Its own looks are not counted.
pub(super) struct Guard {
    node: Host,
    folder: HostPath,
    calls: Mutex<Calls>,
    /// The unique id of each disk by its file, as it was when the file was attached.
    identities: Mutex<BTreeMap<String, String>>,
    refused: Mutex<Option<String>>,
}

/// A disk that the self-test has made.
struct OwnDisk {
    number: DiskNumber,
    path: ObjectPath,
}

impl Guard {
    /// The node, for a self-test in a folder.
    pub(super) fn new(node: Host, folder: HostPath) -> Self {
        Self {
            node,
            folder,
            calls: Mutex::default(),
            identities: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// What was refused first, if anything was.
    pub(super) fn refused(&self) -> Option<String> {
        locked(&self.refused).clone()
    }

    /// The files in the folder that WMI shows as disks.
    pub(super) fn attached_files(&self, deadline: Deadline) -> PortResult<Vec<HostPath>> {
        let disks = self.disks(deadline)?;
        let files = disks.iter().filter_map(|disk| self.file_behind(disk));
        Ok(files.collect())
    }

    fn permit(&self, call: &Call, deadline: Deadline) -> PortResult<()> {
        match call {
            Call::Cim(CimCall::Invoke(invoke)) => self.permit_method(invoke, deadline),
            Call::Files(files) => match files {
                FilesCall::Stat(_)
                | FilesCall::List(_)
                | FilesCall::ReadFile(_)
                | FilesCall::Reach(_) => Ok(()),
                FilesCall::CreateDirectories(at)
                | FilesCall::RemoveDirectory(at)
                | FilesCall::RemoveFile(at) => self.permit_path(call, &at.path),
                FilesCall::RemoveTree(tree) => self.permit_path(call, &tree.at.path),
                FilesCall::WriteFile(file) => self.permit_path(call, &file.at.path),
                FilesCall::CreateLink(link) => self.permit_path(call, &link.at.path),
                FilesCall::Rename(rename) => {
                    self.permit_path(call, &rename.at.path)?;
                    self.permit_path(call, &rename.to)
                }
            },
            Call::MountPoints(MountPointsCall::SetMountPoint(mount)) => {
                self.permit_path(call, &mount.at.path)?;
                self.permit_volume(call, &mount.volume, deadline)
            }
            Call::MountPoints(MountPointsCall::DeleteMountPoint(at)) => {
                self.permit_path(call, &at.path)
            }
            Call::VirtualDisks(disks) => match disks {
                VirtualDisksCall::VirtualDiskInfo(_) | VirtualDisksCall::VirtualDiskPath(_) => {
                    Ok(())
                }
                VirtualDisksCall::CreateVirtualDisk(create) => {
                    self.permit_path(call, &create.at.path)
                }
                VirtualDisksCall::AttachVirtualDisk(attach) => {
                    self.permit_path(call, &attach.at.path)?;
                    // Its identity is taken anew.
                    locked(&self.identities).remove(&key(&attach.at.path));
                    Ok(())
                }
                VirtualDisksCall::DetachVirtualDisk(at) => self.permit_path(call, &at.path),
                VirtualDisksCall::ExpandVirtualDisk(expand) => {
                    self.permit_path(call, &expand.at.path)
                }
            },
            Call::Devices(DevicesCall::ReadRange(range)) => {
                self.permit_device(call, &range.device, deadline)
            }
            Call::Cim(_) | Call::MountPoints(_) | Call::Devices(_) | Call::Locks(_) => Ok(()),
        }
    }

    /// Methods may be called on the own disks, their partitions and volumes.
    fn permit_method(&self, invoke: &Invoke, deadline: Deadline) -> PortResult<()> {
        let object = match &invoke.target {
            // Windows looks for disks; nothing is changed.
            Target::Class(class) if class == "MSFT_StorageSetting" => return Ok(()),
            Target::Class(_) => None,
            Target::Instance { class, path } => {
                let own = match class.as_str() {
                    "MSFT_Disk" => self
                        .own_disks(deadline)?
                        .into_iter()
                        .map(|d| d.path)
                        .collect(),
                    "MSFT_Partition" => self.own_partitions(deadline)?,
                    "MSFT_Volume" => {
                        let volumes = self.own_volumes(deadline)?;
                        volumes.into_iter().map(|volume| volume.path).collect()
                    }
                    _ => Vec::new(),
                };
                match own.iter().any(|own| same_object(class, own, path)) {
                    true => return Ok(()),
                    false => Some(path),
                }
            }
        };
        let name = format!("{}.{}", invoke.target.class(), invoke.method);
        Err(match object {
            Some(object) => self.refuse(format!("{name} of {object}, which it has not made")),
            None => self.refuse(name),
        })
    }

    fn permit_path(&self, call: &Call, path: &HostPath) -> PortResult<()> {
        match path.is_within(&self.folder) {
            true => Ok(()),
            false => Err(self.refuse(format!("{} at {path}", call.operation()))),
        }
    }

    fn permit_volume(&self, call: &Call, id: &VolumeId, deadline: Deadline) -> PortResult<()> {
        let is_it = |volume: &Object| {
            let path = volume.properties.get("Path").and_then(Value::as_str);
            path.and_then(|path| VolumeId::new(path).ok()).as_ref() == Some(id)
        };
        match self.own_volumes(deadline)?.iter().any(is_it) {
            true => Ok(()),
            false => Err(self.refuse(format!("{} of {id}", call.operation()))),
        }
    }

    /// What is on other disks is not read either.
    fn permit_device(
        &self,
        call: &Call,
        device: &DevicePath,
        deadline: Deadline,
    ) -> PortResult<()> {
        if let Ok(volume) = VolumeId::new(&device.0) {
            return self.permit_volume(call, &volume, deadline);
        }
        let number = self.node.os().device_number(device, deadline)?.number;
        let own = self.own_disks(deadline)?;
        match own.iter().any(|disk| disk.number.0 == number) {
            true => Ok(()),
            false => Err(self.refuse(format!("{} of {device}", call.operation()))),
        }
    }

    fn refuse(&self, what: String) -> PortError {
        let reason = format!("the self-test does not do this, it is not its own: {what}");
        locked(&self.refused).get_or_insert_with(|| reason.clone());
        PortError::Unavailable { reason }
    }

    fn own_disks(&self, deadline: Deadline) -> PortResult<Vec<OwnDisk>> {
        let mut own = Vec::new();
        for disk in self.disks(deadline)? {
            own.extend(self.own_disk(&disk, deadline)?);
        }
        Ok(own)
    }

    /// A disk as the self-test's own: it is a file in the folder, which Windows says from both
    /// sides, and it is the disk that it was when the file was attached.
    fn own_disk(&self, disk: &Object, deadline: Deadline) -> PortResult<Option<OwnDisk>> {
        let Some(file) = self.file_behind(disk) else {
            return Ok(None);
        };
        let value = |name: &str| disk.properties.get(name);
        let is = |name| value(name).and_then(Value::as_bool) == Some(true);
        let bus_type = value("BusType").and_then(Value::as_u64);
        let (Some(number), Some(unique_id)) = (
            value("Number").and_then(Value::as_u32).map(DiskNumber),
            value("UniqueId").and_then(Value::as_str),
        ) else {
            return Ok(None);
        };
        if bus_type != Some(FILE_BACKED_VIRTUAL) || is("IsBoot") || is("IsSystem") {
            return Ok(None);
        }
        match self.node.os().virtual_disk_path(&At::path(&file), deadline) {
            Ok(device) if device.0.eq_ignore_ascii_case(&DevicePath::disk(number).0) => {}
            // Another disk, or the file is attached no more.
            Ok(_) | Err(PortError::System { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut identities = locked(&self.identities);
        let known = identities
            .entry(key(&file))
            .or_insert_with(|| unique_id.to_owned());
        Ok((known == unique_id).then(|| OwnDisk {
            number,
            path: disk.path.clone(),
        }))
    }

    fn disks(&self, deadline: Deadline) -> PortResult<Vec<Object>> {
        let properties = [
            "Number", "UniqueId", "Location", "BusType", "IsBoot", "IsSystem",
        ];
        let query = Query::new(Namespace::Storage, "MSFT_Disk", &properties);
        self.node.cim().query(&query, deadline)
    }

    /// The file in the folder that a disk says it is.
    fn file_behind(&self, disk: &Object) -> Option<HostPath> {
        let location = disk.properties.get("Location")?.as_str()?;
        let file = HostPath::from_kubelet(location).ok()?;
        file.is_within(&self.folder).then_some(file)
    }

    fn own_partitions(&self, deadline: Deadline) -> PortResult<Vec<ObjectPath>> {
        let mut own = Vec::new();
        for disk in self.own_disks(deadline)? {
            let query = Query::new(Namespace::Storage, "MSFT_Partition", &["DiskNumber"]);
            let query = query.with("DiskNumber", disk.number.0);
            let partitions = self.node.cim().query(&query, deadline)?;
            own.extend(partitions.into_iter().map(|partition| partition.path));
        }
        Ok(own)
    }

    fn own_volumes(&self, deadline: Deadline) -> PortResult<Vec<Object>> {
        let mut own = Vec::new();
        for partition in self.own_partitions(deadline)? {
            let volumes = Associators::new(
                Namespace::Storage,
                &partition,
                "MSFT_PartitionToVolume",
                "MSFT_Volume",
                &["Path"],
            );
            own.extend(self.node.cim().associators(&volumes, deadline)?);
        }
        Ok(own)
    }
}

impl Transport for Guard {
    fn carry(&self, call: &Call, deadline: Deadline) -> PortResult<Answer> {
        {
            let mut calls = locked(&self.calls);
            match call {
                Call::Cim(_) => calls.cim += 1,
                _ => calls.os += 1,
            }
            calls.formats += u64::from(call.operation() == FORMAT);
        }
        self.permit(call, deadline)?;
        call.perform(self.node.cim(), self.node.os(), deadline)
    }

    fn clock(&self) -> &dyn Clock {
        self.node.os()
    }
}

impl Meter for Guard {
    fn calls(&self) -> Calls {
        *locked(&self.calls)
    }

    fn now(&self) -> Moment {
        self.clock().now()
    }
}

/// Whether two paths of WMI name the same object. A query and an association may spell the
/// machine and the namespace before the class differently.
fn same_object(class: &str, one: &ObjectPath, other: &ObjectPath) -> bool {
    let key = |path: &ObjectPath| {
        let text = path.0.to_ascii_lowercase();
        let class = format!("{}.", class.to_ascii_lowercase());
        text.find(&class).map(|start| text[start..].to_owned())
    };
    match (key(one), key(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

fn key(file: &HostPath) -> String {
    file.as_str().to_lowercase()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
