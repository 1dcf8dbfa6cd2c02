//! `MSFT_Disk`: properties, and the methods that do not change partitions.
//!
//! Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-disk>

use csi_proxy::cim::Namespace;
use csi_proxy::port::PortResult;

use super::disk_layout::{CLEAR, CONVERT_STYLE, CREATE_PARTITION, INITIALIZE};
use super::medium::{Medium, Style};
use super::{Disk, DiskId, Found, Storage, partition_class};
use crate::cim::{
    Association, Class, Hint, Method, MethodCall, Reply, Row, done, properties, wide,
};
use crate::state::State;

pub(super) const CLASS: Class = Class {
    namespace: Namespace::Storage,
    name: "MSFT_Disk",
    properties: PROPERTIES,
    rows,
    methods: &[
        INITIALIZE,
        CREATE_PARTITION,
        CLEAR,
        CONVERT_STYLE,
        Method {
            name: "Online",
            is_static: false,
            parameters: &[],
            run: online,
        },
        Method {
            name: "Offline",
            is_static: false,
            parameters: &[],
            run: offline,
        },
        Method {
            name: "Refresh",
            is_static: false,
            parameters: &[],
            run: refresh,
        },
        Method {
            name: "SetAttributes",
            is_static: false,
            parameters: &["IsReadOnly", "Signature", "Guid"],
            run: set_attributes,
        },
    ],
};

pub(super) const DISK_TO_PARTITION: Association = Association {
    name: "MSFT_DiskToPartition",
    ends: ["MSFT_Disk", "MSFT_Partition"],
    roles: ["Disk", "Partition"],
    follow: |state, from, key| match from {
        0 => {
            let disk = find(&state.storage, key);
            disk.map(partition_class::keys).unwrap_or_default()
        }
        _ => partition_class::find(&state.storage, key)
            .map(|(disk, _)| vec![key_of(disk.id)])
            .unwrap_or_default(),
    },
};

properties! {
    const PROPERTIES;
    fn make(found: Found<'_>);
    ObjectId: format!(r"{{1}}\\NODE\root/Microsoft/Windows/Storage/Providers_v2\WSP_Disk.ObjectId={}", key_of(found.id)),
    UniqueId: found.disk.unique_id.as_str(),
    // 3: FC-PH name, an NAA identifier; 0: vendor specific.
    UniqueIdFormat: if found.disk.unique_id.bytes().all(|b| b.is_ascii_hexdigit()) { 3u16 } else { 0 },
    Path: found.disk.path(found.id),
    Number: found.disk.number,
    Location: found.disk.location.clone(),
    FriendlyName: found.disk.friendly_name.as_str(),
    Manufacturer: "Msft",
    Model: "Virtual Disk",
    FirmwareVersion: "1.0",
    SerialNumber: found.disk.serial.clone(),
    Size: wide(found.medium.size),
    AllocatedSize: wide(found.medium.allocated()),
    LargestFreeExtent: wide(found.medium.largest_free_extent()),
    LogicalSectorSize: 512u32,
    PhysicalSectorSize: 4096u32,
    NumberOfPartitions: u32::try_from(found.medium.partitions.len()).unwrap_or(u32::MAX),
    PartitionStyle: style_number(&found.medium.style),
    Signature: signature(&found.medium.style),
    Guid: guid(&found.medium.style),
    BusType: found.disk.bus_type.number(),
    // 0: healthy.
    HealthStatus: 0u16,
    // 0xD010: online; 0xD013: offline.
    OperationalStatus: vec![if found.disk.offline.is_some() { 0xd013u16 } else { 0xd010 }],
    ProvisioningType: 1u16,
    IsOffline: found.disk.offline.is_some(),
    OfflineReason: found.disk.offline,
    IsReadOnly: found.disk.read_only,
    IsBoot: found.disk.boot,
    IsSystem: found.disk.system,
    BootFromDisk: found.disk.boot,
    IsClustered: false,
}

fn style_number(style: &Style) -> u16 {
    match style {
        Style::Raw => 0,
        Style::Mbr { .. } => 1,
        Style::Gpt { .. } => 2,
    }
}

fn signature(style: &Style) -> Option<u32> {
    match style {
        Style::Mbr { signature } => Some(*signature),
        _ => None,
    }
}

fn guid(style: &Style) -> Option<String> {
    match style {
        Style::Gpt { guid } => Some(format!("{{{guid}}}")),
        _ => None,
    }
}

/// The key of a disk in its object path: its place, which is never used again.
pub(crate) fn key_of(id: DiskId) -> String {
    format!("disk {}", id.0)
}

pub(super) fn find<'a>(storage: &'a Storage, key: &str) -> Option<Found<'a>> {
    storage.found(id_of(key)?)
}

fn id_of(key: &str) -> Option<DiskId> {
    key.strip_prefix("disk ")?.parse().ok().map(DiskId)
}

fn rows(state: &State, hint: &Hint<'_>) -> Vec<Row> {
    let storage = &state.storage;
    let row = |found: Found<'_>| Row {
        key: key_of(found.id),
        properties: make(found, hint),
    };
    if let Some(key) = hint.key {
        return find(storage, key).map(row).into_iter().collect();
    }
    if let Some(number) = hint.integer("Number") {
        let number = u32::try_from(number).ok();
        let id = number.and_then(|number| storage.disk_by_number(number));
        let found = id.and_then(|(id, _)| storage.found(id));
        return found.map(row).into_iter().collect();
    }
    if let Some(unique_id) = hint.text("UniqueId") {
        let same = |disk: &Disk| disk.unique_id.eq_ignore_ascii_case(unique_id);
        let ids = (storage.disks.iter()).filter(|(_, disk)| same(disk));
        let found = ids.filter_map(|(id, _)| storage.found(*id));
        return found.map(row).collect();
    }
    storage.all_found().map(row).collect()
}

/// What a method of a disk works on. The disk was there when the call began, and the model
/// was locked since.
pub(super) fn target<'a>(
    call: &'a mut MethodCall<'_>,
) -> Option<(DiskId, &'a mut Disk, &'a mut Medium)> {
    let id = id_of(call.key)?;
    let (disk, medium) = call.state.storage.found_mut(id)?;
    Some((id, disk, medium))
}

/// Source: `msft-disk-online`.
fn online(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let Some((id, disk, _)) = target(call) else {
        return done(4);
    };
    match disk.slow_online {
        0 => disk.offline = None,
        queries if disk.offline.is_some() => {
            call.state.storage.coming_online.insert(id, queries);
        }
        _ => {}
    }
    done(0)
}

/// Source: `msft-disk-offline`.
fn offline(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let Some((id, disk, _)) = target(call) else {
        return done(4);
    };
    if disk.boot || disk.system {
        return done(41009);
    }
    // 1: by policy.
    disk.offline.get_or_insert(1);
    call.state.storage.coming_online.remove(&id);
    call.state.storage.cut_off_jobs_on(id);
    done(0)
}

/// Source: `msft-disk-refresh`.
fn refresh(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let Some((_, disk, medium)) = target(call) else {
        return done(4);
    };
    if medium.style == Style::Raw {
        return done(41000);
    }
    if disk.offline.is_some() {
        return done(41003);
    }
    disk.read_only |= disk.write_protected;
    medium.look_again();
    done(0)
}

/// Source: `msft-disk-setattributes`.
fn set_attributes(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let read_only = call.boolean("IsReadOnly")?;
    let signature = call.integer("Signature")?;
    let guid = call.text("Guid")?;
    let Some((_, disk, medium)) = target(call) else {
        return done(4);
    };
    if disk.boot || disk.system {
        return done(41009);
    }
    if disk.offline.is_some() {
        return done(41003);
    }
    if let Some(read_only) = read_only {
        disk.read_only = read_only;
    }
    match (&mut medium.style, signature, guid) {
        (_, None, None) => done(0),
        (Style::Raw, ..) => done(41000),
        (Style::Mbr { signature }, Some(new), None) => match u32::try_from(new) {
            Ok(new) => {
                *signature = new;
                medium.write_tables();
                done(0)
            }
            Err(_) => done(5),
        },
        (Style::Gpt { guid }, None, Some(new)) => {
            *guid = new.trim_matches(['{', '}']).to_ascii_lowercase();
            medium.write_tables();
            done(0)
        }
        _ => done(41006),
    }
}
