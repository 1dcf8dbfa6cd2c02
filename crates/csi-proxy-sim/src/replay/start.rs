//! The simulated node that a trace begins on.

use std::sync::Arc;

use csi_proxy::VolumeId;
use csi_proxy::cim::{Object, Value};
use csi_proxy::clock::{Clock as _, Moment};
use csi_proxy::os::Reparse;
use csi_proxy::page83::{self, Association, CodeSet};
use csi_proxy::trace::{Header, Secrets, Snapshot, Start};
use serde::{Deserialize, Serialize};

use super::ReplayError;
use crate::builder::Builder;
use crate::clock::SimClock;
use crate::latency::Latency;
use crate::node::SimNode;
use crate::services::{Service, ServiceState, StartMode};
use crate::state::State;
use crate::storage::{BusType, Content, Identifier, SimDisk, SimKind, SimPartition, SimStyle};

/// A simulated node in a trace.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    clock: Moment,
    latency: Latency,
    state: State,
}

impl SimNode {
    /// How the node stands, for the header of a trace. In the place of each password stands
    /// what `secrets` gives for it.
    pub fn trace_start(&self, secrets: &mut Secrets) -> Start {
        let model = self.model();
        let mut saved = Saved {
            clock: self.sim_clock().now(),
            latency: model.runtime.latency,
            state: model.state.clone(),
        };
        drop(model);
        saved.state.hide_passwords(secrets);
        let value = serde_json::to_value(&saved).unwrap_or_default();
        Start::Simulated(Box::new(value))
    }
}

/// A node to replay a trace on.
pub(super) struct Begun {
    pub(super) node: SimNode,
    /// Whether it stands exactly as the recorded one did.
    pub(super) is_same: bool,
    /// What of the recorded node it cannot have.
    pub(super) notes: Vec<String>,
}

/// Builds the node that a trace began on.
pub(super) fn begin(header: &Header) -> Result<Begun, ReplayError> {
    match &header.start {
        None => Err(ReplayError::NoStart),
        Some(Start::Simulated(value)) => {
            let Saved {
                clock: at,
                latency,
                mut state,
            } = Saved::deserialize(&**value).map_err(ReplayError::Start)?;
            state.locks.release_all();
            let clock = SimClock::auto();
            clock.advance_to(at);
            Ok(Begun {
                node: SimNode::new(state, Arc::new(clock), latency),
                is_same: true,
                notes: Vec::new(),
            })
        }
        Some(Start::Snapshot(snapshot)) => {
            let mut notes = snapshot.not_answered.clone();
            for note in &mut notes {
                *note = format!("not known of the start: {note}");
            }
            let node = of_snapshot(snapshot, &mut notes);
            Ok(Begun {
                node,
                is_same: false,
                notes,
            })
        }
    }
}

fn of_snapshot(snapshot: &Snapshot, notes: &mut Vec<String>) -> SimNode {
    let mut builder = Builder::without_disks();
    for row in &snapshot.disks {
        match described(row, snapshot, notes) {
            Ok(disk) => {
                let number = disk.number;
                builder = builder
                    .disk(disk)
                    .with(|state| correct(state, number, snapshot));
            }
            Err(reason) => notes.push(format!("disk {} is left out: {reason}", name_of(row))),
        }
    }
    for (volume, paths) in &snapshot.mount_points {
        for path in paths.iter().filter(|path| !is_drive_root(path)) {
            let mut made = Ok(());
            builder = builder.with(|state| made = mount(state, path, volume));
            if let Err(error) = made {
                notes.push(format!("mount point {path} is left out: {error}"));
            }
        }
    }
    for row in &snapshot.services {
        if let Some(service) = service(row) {
            builder = builder.service(service);
        }
    }
    if let Some(row) = snapshot.bios.first() {
        builder = builder.bios_serial_number(text(row, "SerialNumber"));
    }
    for row in &snapshot.smb_mappings {
        notes.push(format!(
            "the SMB mapping {} of the start is left out: its server is not known",
            text(row, "RemotePath").unwrap_or("?")
        ));
    }
    builder.build()
}

/// A disk as the simulation describes it, or why it cannot.
fn described(
    row: &Object,
    snapshot: &Snapshot,
    notes: &mut Vec<String>,
) -> Result<SimDisk, String> {
    let number = integer(row, "Number").ok_or("it has no number")?;
    if integer(row, "LogicalSectorSize").is_some_and(|size| size != 512) {
        notes.push(format!("disk {number} has sectors of 512 bytes here"));
    }
    let device = text(row, "Path").unwrap_or_default();
    let page83 = snapshot
        .device_ids
        .iter()
        .find(|(path, _)| path.0 == device)
        .and_then(|(_, bytes)| identifiers(&bytes.0));
    let style = match integer(row, "PartitionStyle") {
        Some(1) => SimStyle::Mbr,
        Some(2) => SimStyle::Gpt,
        _ => SimStyle::Raw,
    };
    let mut disk = SimDisk {
        size: integer(row, "Size").ok_or("it has no size")?,
        number: u32::try_from(number).ok(),
        unique_id: text(row, "UniqueId").map(str::to_owned),
        serial: text(row, "SerialNumber").map(str::to_owned),
        location: text(row, "Location").map(str::to_owned),
        bus_type: bus_type(row),
        style,
        offline: boolean(row, "IsOffline"),
        read_only: boolean(row, "IsReadOnly"),
        boot: boolean(row, "IsBoot"),
        system: boolean(row, "IsSystem"),
        no_page83: page83.is_none(),
        page83,
        ..SimDisk::default()
    };
    if disk.bus_type == BusType::FileBackedVirtual {
        notes.push(format!("disk {number} has no VHDX file here"));
    }
    for partition in partitions_of(snapshot, number) {
        match described_partition(partition, snapshot) {
            Ok(partition) => disk.partitions.push(partition),
            Err(reason) => notes.push(format!(
                "partition {} of disk {number} is left out: {reason}",
                integer(partition, "PartitionNumber").unwrap_or_default()
            )),
        }
    }
    disk.partitions.sort_by_key(|partition| partition.offset);
    disk.check().map_err(|error| error.to_string())?;
    Ok(disk)
}

fn described_partition(row: &Object, snapshot: &Snapshot) -> Result<SimPartition, String> {
    let kind = kind(row)?;
    let volume = volume_of(row);
    let content = match volume.as_ref().and_then(|id| volume_row(snapshot, id)) {
        None => Content::Empty,
        Some(volume) => match integer(volume, "FileSystemType") {
            Some(14) => Content::Ntfs,
            Some(15) => Content::Refs,
            Some(6) => Content::Fat32,
            _ => Content::Empty,
        },
    };
    let guid = text(row, "Guid").map(|guid| guid.trim_matches(['{', '}']).to_lowercase());
    let letter = volume.as_ref().and_then(|id| drive_letter(snapshot, id));
    let volume = volume.as_ref().and_then(|id| volume_row(snapshot, id));
    let of_volume = |name| volume.and_then(|volume| integer(volume, name));
    Ok(SimPartition {
        kind,
        offset: integer(row, "Offset"),
        size: integer(row, "Size"),
        content,
        allocation_unit: of_volume("AllocationUnitSize")
            .and_then(|size| u32::try_from(size).ok())
            .filter(|size| *size > 0),
        health: of_volume("HealthStatus")
            .and_then(|health| u16::try_from(health).ok())
            .unwrap_or_default(),
        drive_letter: letter,
        guid: guid.or_else(|| volume_of(row).map(|id| id.guid().to_owned())),
        read_only: boolean(row, "IsReadOnly"),
        ..SimPartition::default()
    })
}

fn kind(row: &Object) -> Result<SimKind, String> {
    if let Some(kind) = text(row, "GptType") {
        return match kind.to_lowercase().as_str() {
            "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}" => Ok(SimKind::Data),
            "{e3c9e316-0b5c-4db8-817d-f92df00215ae}" => Ok(SimKind::Reserved),
            "{c12a7328-f81f-11d2-ba4b-00a0c93ec93b}" => Ok(SimKind::Efi),
            "{de94bba4-06d1-4d40-a16a-bfd50179d6ac}" => Ok(SimKind::Recovery),
            "{af9b60a0-1431-4f62-bc68-3311714a69ad}" => Ok(SimKind::Dynamic),
            "{0fc63daf-8483-4772-8e79-3d69d8477de4}" => Ok(SimKind::Linux),
            other => Err(format!("its type {other} is not known")),
        };
    }
    match integer(row, "MbrType") {
        Some(0x07) => Ok(SimKind::Data),
        Some(0xef) => Ok(SimKind::Efi),
        Some(0x42) => Ok(SimKind::Dynamic),
        Some(0x83) => Ok(SimKind::Linux),
        other => Err(format!("its MBR type {other:?} is not known")),
    }
}

/// Partition numbers as they were, and no reserved partition that was not there.
fn correct(state: &mut State, number: Option<u32>, snapshot: &Snapshot) {
    let Some(number) = number else { return };
    let rows: Vec<_> = partitions_of(snapshot, number.into()).collect();
    let Some(id) = state
        .storage
        .disk_by_number(number)
        .map(|(_, disk)| disk.medium)
    else {
        return;
    };
    let Some(medium) = state.storage.media.get_mut(&id) else {
        return;
    };
    let row_at = |offset: u64| {
        let mut rows = rows.iter();
        rows.find(|row| integer(row, "Offset") == Some(offset))
    };
    medium
        .partitions
        .retain(|partition| row_at(partition.offset).is_some());
    for partition in &mut medium.partitions {
        let number = row_at(partition.offset).and_then(|row| integer(row, "PartitionNumber"));
        if let Some(number) = number.and_then(|number| u32::try_from(number).ok()) {
            partition.number = number;
        }
    }
    if medium.style != crate::storage::Style::Raw {
        medium.write_tables();
    }
}

fn mount(state: &mut State, path: &str, volume: &VolumeId) -> Result<(), String> {
    let path = path.trim_end_matches('\\');
    state
        .put_directory(path)
        .and_then(|()| {
            let volume = volume.clone();
            state.put_link(path, Reparse::MountPoint { volume })
        })
        .map_err(|error| error.to_string())
}

/// A service as a row of `Win32_Service` shows it.
pub(super) fn service(row: &Object) -> Option<Service> {
    let name = text(row, "Name")?;
    let state = match text(row, "State")? {
        "Running" => ServiceState::Running,
        "Paused" => ServiceState::Paused,
        _ => ServiceState::Stopped,
    };
    let start_mode = match text(row, "StartMode")? {
        "Auto" => StartMode::Auto,
        "Disabled" => StartMode::Disabled,
        _ => StartMode::Manual,
    };
    let exit_code = integer(row, "ExitCode").and_then(|code| u32::try_from(code).ok());
    Some(Service {
        state,
        start_mode,
        exit_code: exit_code.unwrap_or_default(),
        ..Service::new(name, text(row, "DisplayName").unwrap_or(name))
    })
}

fn bus_type(row: &Object) -> BusType {
    match integer(row, "BusType") {
        Some(1) => BusType::Scsi,
        Some(3) => BusType::Ata,
        Some(9) => BusType::Iscsi,
        Some(11) => BusType::Sata,
        Some(15) => BusType::FileBackedVirtual,
        Some(17) => BusType::Nvme,
        _ => BusType::Sas,
    }
}

fn identifiers(descriptor: &[u8]) -> Option<Vec<Identifier>> {
    let identifiers = page83::identifiers(descriptor).ok()?;
    let plain = identifiers.into_iter().map(|identifier| Identifier {
        code_set: match identifier.code_set {
            CodeSet::Binary => 1,
            CodeSet::Ascii => 2,
            CodeSet::Utf8 => 3,
            CodeSet::Other(other) => other,
        },
        kind: identifier.identifier_type,
        association: match identifier.association {
            Association::Device => 0,
            Association::Port => 1,
            Association::Target => 2,
            Association::Other(other) => other,
        },
        value: identifier.bytes,
    });
    Some(plain.collect())
}

fn partitions_of(snapshot: &Snapshot, disk: u64) -> impl Iterator<Item = &Object> {
    let partitions = snapshot.partitions.iter();
    partitions.filter(move |row| integer(row, "DiskNumber") == Some(disk))
}

/// The volume of a partition is among its access paths.
fn volume_of(partition: &Object) -> Option<VolumeId> {
    let paths = partition.properties.get("AccessPaths")?.as_array()?;
    let mut texts = paths.iter().filter_map(Value::as_str);
    texts.find_map(|text| VolumeId::new(text).ok())
}

fn volume_row<'a>(snapshot: &'a Snapshot, id: &VolumeId) -> Option<&'a Object> {
    let mut volumes = snapshot.volumes.iter();
    volumes.find(|row| {
        text(row, "Path")
            .and_then(|path| VolumeId::new(path).ok())
            .as_ref()
            == Some(id)
    })
}

fn drive_letter(snapshot: &Snapshot, id: &VolumeId) -> Option<char> {
    let paths = snapshot.mount_points.get(id)?;
    paths
        .iter()
        .find(|path| is_drive_root(path))?
        .chars()
        .next()
}

fn is_drive_root(path: &str) -> bool {
    path.len() == 3 && path.ends_with(r":\")
}

fn name_of(row: &Object) -> String {
    integer(row, "Number").map_or_else(|| "?".to_owned(), |number| number.to_string())
}

fn text<'a>(row: &'a Object, property: &str) -> Option<&'a str> {
    row.properties.get(property)?.as_str()
}

fn integer(row: &Object, property: &str) -> Option<u64> {
    row.properties.get(property)?.as_u64()
}

fn boolean(row: &Object, property: &str) -> bool {
    let value = row.properties.get(property).and_then(Value::as_bool);
    value.unwrap_or_default()
}
