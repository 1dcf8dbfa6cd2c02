//! How a node stands, as far as its ports tell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::format::NodeKind;
use crate::cim::{Cim, Namespace, Object, Query};
use crate::clock::Deadline;
use crate::disk::DiskInfo;
use crate::ids::{DevicePath, VolumeId};
use crate::os::{Bytes, Os};
use crate::port::PortResult;

const PARTITION: &[&str] = &[
    "DiskNumber",
    "PartitionNumber",
    "Offset",
    "Size",
    "Guid",
    "GptType",
    "MbrType",
    "IsOffline",
    "IsReadOnly",
    "DriveLetter",
    "AccessPaths",
];
const VOLUME: &[&str] = &[
    "Path",
    "FileSystemType",
    "AllocationUnitSize",
    "HealthStatus",
];
const SERVICE: &[&str] = &["Name", "DisplayName", "State", "StartMode", "ExitCode"];
/// The services that the library itself knows.
const SERVICES: &[&str] = &["MSiSCSI", "LanmanWorkstation"];

/// What a node answers at the start of a trace. What it does not answer is left out and
/// named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// `MSFT_Disk`.
    pub disks: Vec<Object>,
    /// `MSFT_Partition`.
    pub partitions: Vec<Object>,
    /// `MSFT_Volume`.
    pub volumes: Vec<Object>,
    /// Of each disk's device that answers it, the page 83 descriptor.
    pub device_ids: BTreeMap<DevicePath, Bytes>,
    /// Where each volume is mounted: drive roots and directories.
    pub mount_points: BTreeMap<VolumeId, Vec<String>>,
    /// `Win32_Service`, of those that the library knows.
    pub services: Vec<Object>,
    /// `CIM_BIOSElement`.
    pub bios: Vec<Object>,
    /// `MSFT_SmbGlobalMapping`.
    pub smb_mappings: Vec<Object>,
    /// What was not answered, and why.
    pub not_answered: Vec<String>,
}

impl Snapshot {
    /// Asks a node. Nothing is changed on it.
    pub fn take(cim: &dyn Cim, os: &dyn Os, deadline: Deadline) -> Self {
        let mut snapshot = Self::default();
        let mut asking = Asking {
            cim,
            deadline,
            not_answered: Vec::new(),
        };
        let storage = Namespace::Storage;
        snapshot.disks = asking.rows(&DiskInfo::query());
        snapshot.partitions = asking.rows(&Query::new(storage, "MSFT_Partition", PARTITION));
        snapshot.volumes = asking.rows(&Query::new(storage, "MSFT_Volume", VOLUME));
        for name in SERVICES {
            let query = Query::new(Namespace::Cimv2, "Win32_Service", SERVICE).with("Name", *name);
            snapshot.services.extend(asking.rows(&query));
        }
        let bios = Query::new(Namespace::Cimv2, "CIM_BIOSElement", &["SerialNumber"]);
        snapshot.bios = asking.rows(&bios);
        let mapping = ["RemotePath", "LocalPath", "Status"];
        let mappings = Query::new(Namespace::Smb, "MSFT_SmbGlobalMapping", &mapping);
        snapshot.smb_mappings = asking.rows(&mappings);
        for device in texts(&snapshot.disks, "Path").map(DevicePath) {
            let answer = os.device_ids(&device, deadline);
            if let Some(bytes) = asking.noted(&format!("device_ids {device}"), answer) {
                snapshot.device_ids.insert(device, bytes);
            }
        }
        for volume in texts(&snapshot.volumes, "Path").filter_map(|text| VolumeId::new(&text).ok())
        {
            let answer = os.mount_points_of(&volume, deadline);
            if let Some(paths) = asking.noted(&format!("mount_points_of {volume}"), answer) {
                snapshot.mount_points.insert(volume, paths);
            }
        }
        snapshot.not_answered = asking.not_answered;
        snapshot
    }
}

struct Asking<'a> {
    cim: &'a dyn Cim,
    deadline: Deadline,
    not_answered: Vec<String>,
}

impl Asking<'_> {
    fn rows(&mut self, query: &Query) -> Vec<Object> {
        let answer = self.cim.query(query, self.deadline);
        let what = format!("query {}", query.class);
        self.noted(&what, answer).unwrap_or_default()
    }

    fn noted<T>(&mut self, what: &str, answer: PortResult<T>) -> Option<T> {
        answer
            .map_err(|error| self.not_answered.push(format!("{what}: {error}")))
            .ok()
    }
}

fn texts<'a>(rows: &'a [Object], property: &'a str) -> impl Iterator<Item = String> + 'a {
    let values = rows.iter().map(move |row| row.properties.get(property));
    values.filter_map(|value| value?.as_str().map(str::to_owned))
}

impl NodeKind {
    /// Windows, with the version that it tells.
    pub fn windows(cim: &dyn Cim, deadline: Deadline) -> Self {
        let names = ["Caption", "Version"];
        let query = Query::new(Namespace::Cimv2, "Win32_OperatingSystem", &names);
        let row = cim
            .query(&query, deadline)
            .ok()
            .and_then(|rows| rows.into_iter().next());
        let version = row.map(|row| {
            let texts = names
                .iter()
                .filter_map(|name| row.properties.get(*name)?.as_str());
            texts.collect::<Vec<_>>().join(" ")
        });
        Self::Windows { version }
    }
}
