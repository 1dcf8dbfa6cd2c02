//! `MSFT_Partition`, and its volume.
//!
//! Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-partition>

use std::collections::BTreeMap;

use csi_proxy::HostPath;
use csi_proxy::cim::{Namespace, Output};
use csi_proxy::os::{At, SetMountPoint};
use csi_proxy::port::PortResult;

use super::medium::{FileSystemKind, Partition, PartitionKind, SECTOR};
use super::{DiskId, Found, Storage, volume_class};
use crate::cim::{
    Association, Class, Hint, Method, MethodCall, Reply, Row, done, properties, wide,
};
use crate::state::State;

pub(super) const CLASS: Class = Class {
    namespace: Namespace::Storage,
    name: "MSFT_Partition",
    properties: PROPERTIES,
    rows,
    methods: &[
        Method::of_instance(
            "AddAccessPath",
            &["AccessPath", "AssignDriveLetter"],
            add_access_path,
        ),
        Method::of_instance("RemoveAccessPath", &["AccessPath"], remove_access_path),
        Method::of_instance("DeleteObject", &[], delete_object),
        Method::of_instance("GetSupportedSize", &[], get_supported_size),
        Method::of_instance("Resize", &["Size"], resize),
        Method::of_instance("Online", &[], |call| set_offline(call, false)),
        Method::of_instance("Offline", &[], |call| set_offline(call, true)),
        Method::of_instance(
            "SetAttributes",
            &[
                "IsReadOnly",
                "NoDefaultDriveLetter",
                "IsActive",
                "IsHidden",
                "MbrType",
                "GptType",
            ],
            set_attributes,
        ),
    ],
};

pub(super) const PARTITION_TO_VOLUME: Association = Association {
    name: "MSFT_PartitionToVolume",
    ends: ["MSFT_Partition", "MSFT_Volume"],
    roles: ["Partition", "Volume"],
    follow: |state, from, key| match from {
        0 => {
            let Some((disk, partition)) = find(&state.storage, key) else {
                return Vec::new();
            };
            let volume = state.storage.volume_at(disk.id, partition.offset);
            volume
                .map(|volume| vec![volume.id.as_str().to_owned()])
                .unwrap_or_default()
        }
        _ => volume_class::find(&state.storage, key)
            .map(|volume| vec![key_of(volume.disk_id, volume.partition)])
            .unwrap_or_default(),
    },
};

/// A partition, and what was found out for it.
struct View<'a> {
    state: &'a State,
    disk: Found<'a>,
    partition: &'a Partition,
}

properties! {
    const PROPERTIES;
    fn make(view: &View<'_>);
    ObjectId: format!(r"{{1}}\\NODE\root/Microsoft/Windows/Storage/Providers_v2\WSP_Partition.ObjectId={}", key_of(view.disk.id, view.partition)),
    UniqueId: unique_id(view),
    DiskId: view.disk.disk.path(view.disk.id),
    DiskNumber: view.disk.disk.number,
    PartitionNumber: view.partition.number,
    Guid: view.partition.guid.as_ref().map(|guid| format!("{{{guid}}}")),
    GptType: match &view.partition.kind { PartitionKind::Gpt(kind) => Some(kind.as_str()), PartitionKind::Mbr(_) => None },
    MbrType: match view.partition.kind { PartitionKind::Mbr(kind) => Some(kind), PartitionKind::Gpt(_) => None },
    Offset: wide(view.partition.offset),
    Size: wide(view.partition.size),
    AccessPaths: access_paths(view),
    // WMI has a Char16 here; NUL is "no letter".
    DriveLetter: view.partition.drive_letter.map_or(0, u32::from),
    // 1: online; 4: offline.
    OperationalStatus: if view.partition.offline || view.disk.disk.offline.is_some() { 4u16 } else { 1 },
    TransitionState: 1u16,
    IsOffline: view.partition.offline || view.disk.disk.offline.is_some(),
    IsReadOnly: view.partition.read_only,
    IsHidden: view.partition.hidden,
    IsActive: view.partition.active,
    IsBoot: view.disk.disk.boot && view.partition.drive_letter.is_some(),
    IsSystem: view.disk.disk.system && is_efi(view.partition),
    IsShadowCopy: false,
    NoDefaultDriveLetter: view.partition.no_default_drive_letter,
}

fn is_efi(partition: &Partition) -> bool {
    matches!(&partition.kind, PartitionKind::Gpt(kind) if kind == super::medium::gpt_type::EFI)
}

fn unique_id(view: &View<'_>) -> String {
    let own = match &view.partition.guid {
        Some(guid) => format!("{{{guid}}}"),
        None => format!("{:016x}", view.partition.offset),
    };
    format!("{own}{}", view.disk.disk.unique_id)
}

fn access_paths(view: &View<'_>) -> Vec<String> {
    let Some(volume) = view
        .state
        .storage
        .volume_at(view.disk.id, view.partition.offset)
    else {
        return Vec::new();
    };
    let letter = view
        .partition
        .drive_letter
        .map(|letter| format!(r"{letter}:\"));
    let mounts = crate::fs::access_paths(view.state, volume.id);
    let own = volume.id.as_str().to_owned();
    letter.into_iter().chain(mounts).chain([own]).collect()
}

/// The key of a partition in its object path: its disk's place and its offset.
fn key_of(disk: DiskId, partition: &Partition) -> String {
    let id = partition.guid.as_deref().unwrap_or("");
    format!("partition {} {} {id}", disk.0, partition.offset)
}

pub(super) fn keys(disk: Found<'_>) -> Vec<String> {
    let partitions = disk.medium.partitions.iter();
    partitions
        .map(|partition| key_of(disk.id, partition))
        .collect()
}

pub(super) fn find<'a>(storage: &'a Storage, key: &str) -> Option<(Found<'a>, &'a Partition)> {
    let mut parts = key.strip_prefix("partition ")?.split(' ');
    let disk = storage.found(DiskId(parts.next()?.parse().ok()?))?;
    let partition = disk.medium.partition(parts.next()?.parse().ok()?)?;
    (key_of(disk.id, partition) == key).then_some((disk, partition))
}

fn rows(state: &State, hint: &Hint<'_>) -> Vec<Row> {
    let row = |disk: Found<'_>, partition: &Partition| {
        let view = View {
            state,
            disk,
            partition,
        };
        Row {
            key: key_of(disk.id, partition),
            properties: make(&view, hint),
        }
    };
    let rows = |disk: Found<'_>| -> Vec<Row> {
        disk.medium
            .partitions
            .iter()
            .map(|one| row(disk, one))
            .collect()
    };
    if let Some(key) = hint.key {
        let found = find(&state.storage, key);
        return found
            .map(|(disk, one)| row(disk, one))
            .into_iter()
            .collect();
    }
    if let Some(number) = hint.integer("DiskNumber") {
        let number = u32::try_from(number).ok();
        let id = number.and_then(|number| state.storage.disk_by_number(number));
        let found = id.and_then(|(id, _)| state.storage.found(id));
        return found.map(rows).unwrap_or_default();
    }
    state.storage.all_found().flat_map(rows).collect()
}

/// What a method works on: the disk, the offset, and copies of what decides.
struct Target {
    id: DiskId,
    offset: u64,
    partition: Partition,
    is_boot: bool,
    is_read_only: bool,
    is_disk_offline: bool,
    largest: u64,
}

fn target(call: &MethodCall<'_>) -> Option<Target> {
    let (disk, partition) = find(&call.state.storage, call.key)?;
    Some(Target {
        id: disk.id,
        offset: partition.offset,
        partition: partition.clone(),
        is_boot: disk.disk.boot || disk.disk.system,
        is_read_only: disk.disk.read_only || partition.read_only,
        is_disk_offline: disk.disk.offline.is_some(),
        largest: disk.medium.largest_size_of(partition),
    })
}

/// Changes the partition that a method works on.
fn change(call: &mut MethodCall<'_>, target: &Target, change: impl FnOnce(&mut Partition)) {
    let medium = call.state.storage.found_mut(target.id);
    if let Some((_, medium)) = medium
        && let Some(partition) = medium.partition_mut(target.offset)
    {
        change(partition);
        medium.write_tables();
    }
}

/// Source: `addaccesspath-msft-partition`.
fn add_access_path(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let path = call.text("AccessPath")?;
    let assign = call.boolean("AssignDriveLetter")?.unwrap_or(false);
    let Some(target) = target(call) else {
        return done(4);
    };
    let storage = &call.state.storage;
    let letter = match (&path, assign) {
        (Some(path), false) => drive_letter(path),
        (None, true) => ('D'..='Z').find(|letter| storage.drive(*letter).is_none()),
        _ => return done(5),
    };
    let volume = (storage.volume_at(target.id, target.offset)).map(|volume| volume.id.clone());
    match (letter, path, volume) {
        _ if target.partition.hidden => done(42004),
        (Some(letter), ..) if storage.drive(letter).is_some() => done(42002),
        (Some(letter), ..) => {
            change(call, &target, |partition| {
                partition.drive_letter = Some(letter);
            });
            done(0)
        }
        (None, Some(path), Some(volume)) => {
            let Ok(path) = HostPath::from_kubelet(&path) else {
                return done(42007);
            };
            let at = At::path(&path);
            match crate::fs::add_mount_point(call.state, &SetMountPoint { at, volume }) {
                Ok(()) => done(0),
                Err(_) => done(42007),
            }
        }
        _ => done(42007),
    }
}

fn drive_letter(path: &str) -> Option<char> {
    let mut chars = path.trim_end_matches('\\').chars();
    match (chars.next(), chars.next(), chars.next()) {
        (Some(letter), Some(':'), None) if letter.is_ascii_alphabetic() => {
            Some(letter.to_ascii_uppercase())
        }
        _ => None,
    }
}

/// Source: `removeaccesspath-msft-partition`.
fn remove_access_path(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let path = call.text("AccessPath")?.unwrap_or_default();
    let Some(target) = target(call) else {
        return done(4);
    };
    if path.starts_with(r"\\?\") {
        return done(42005);
    }
    let letter = drive_letter(&path);
    if letter.is_some() {
        if letter != target.partition.drive_letter {
            return done(42007);
        }
        if target.is_boot {
            return done(42006);
        }
        change(call, &target, |partition| partition.drive_letter = None);
        return done(0);
    }
    let removed = HostPath::from_kubelet(&path)
        .map(|path| crate::fs::remove_mount_point(call.state, &At::path(&path)));
    match removed {
        Ok(Ok(())) => done(0),
        _ => done(42007),
    }
}

/// Source: `msft-partition-deleteobject`.
fn delete_object(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let Some(target) = target(call) else {
        return done(4);
    };
    // 6, in use. The page has no value for a read-only disk: 4 is assumed.
    match () {
        () if target.is_boot || call.state.storage.formats(target.id, target.offset) => {
            return done(6);
        }
        () if target.is_read_only => return done(4),
        () => {}
    }
    if let Some((_, medium)) = call.state.storage.found_mut(target.id) {
        medium.partitions.retain(|one| one.offset != target.offset);
        medium.write_tables();
    }
    if let Some(volume) = &target.partition.volume {
        call.state.storage.notes.volumes.remove(volume);
        crate::fs::drop_tree(call.state, volume);
    }
    done(0)
}

/// Whether Windows resizes it, and from which size on: RAW and NTFS are documented; ReFS
/// grows but does not shrink.
fn smallest_size(call: &MethodCall<'_>, target: &Target) -> Result<u64, u32> {
    let content = target.partition.file_system.as_ref();
    match content.map(|one| (one.kind, one.health)) {
        None => Ok(SECTOR),
        Some((FileSystemKind::Fat32, _)) => Err(42009),
        Some((FileSystemKind::Refs, _)) => Ok(target.partition.size),
        Some((FileSystemKind::Ntfs, 0)) => {
            let volume = target.partition.volume.as_ref();
            let used = volume.map_or(0, |volume| crate::fs::used_bytes(call.state, volume));
            Ok((used + (8 << 20)).min(target.partition.size))
        }
        Some((FileSystemKind::Ntfs, _)) => Ok(target.partition.size),
    }
}

/// Source: `msft-partition-getsupportedsizes`.
fn get_supported_size(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let Some(target) = target(call) else {
        return done(4);
    };
    match smallest_size(call, &target) {
        Err(code) => done(code),
        Ok(smallest) => Ok(Reply::Done(Output {
            return_value: 0,
            properties: BTreeMap::from([
                ("SizeMin".to_owned(), wide(smallest)),
                ("SizeMax".to_owned(), wide(target.largest)),
            ]),
        })),
    }
}

/// Source: `msft-partition-resize`.
fn resize(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let Some(size) = call.integer("Size")? else {
        return done(5);
    };
    let Some(target) = target(call) else {
        return done(4);
    };
    done(resize_to(call, &target, size))
}

fn resize_to(call: &mut MethodCall<'_>, target: &Target, size: u64) -> u32 {
    if target.is_disk_offline {
        // Assumed: the page has no value for it.
        return 4;
    }
    let smallest = match smallest_size(call, target) {
        Ok(smallest) => smallest,
        Err(code) => return code,
    };
    let unhealthy = |one: &super::FileSystem| one.health != 0;
    let size = size / SECTOR * SECTOR;
    if size > target.largest || size < SECTOR {
        return 4097;
    }
    if size < smallest {
        return match target.partition.file_system.as_ref().is_some_and(unhealthy) {
            true => 42008,
            false => 4097,
        };
    }
    if target.is_read_only || call.state.storage.formats(target.id, target.offset) {
        // Assumed: the page has no value for it.
        return 4;
    }
    change(call, target, |partition| partition.size = size);
    if let Some((_, medium)) = call.state.storage.found_mut(target.id) {
        super::content::rewrite(medium, target.offset);
    }
    0
}

/// Source: `msft-partition-online`, `msft-partition-offline`.
fn set_offline(call: &mut MethodCall<'_>, offline: bool) -> PortResult<Reply> {
    let Some(target) = target(call) else {
        return done(4);
    };
    if !target.partition.kind.is_data() || target.is_boot {
        return done(42011);
    }
    if target.is_disk_offline {
        // Assumed: the pages have no value for it.
        return done(4);
    }
    change(call, &target, |partition| partition.offline = offline);
    done(0)
}

/// Source: `msft-partition-setattributes`.
fn set_attributes(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let (read_only, hidden) = (call.boolean("IsReadOnly")?, call.boolean("IsHidden")?);
    let no_letter = call.boolean("NoDefaultDriveLetter")?;
    let active = call.boolean("IsActive")?;
    let kinds = (call.text("GptType")?, call.integer("MbrType")?);
    let Some(target) = target(call) else {
        return done(4);
    };
    if target.is_boot {
        return done(42010);
    }
    let kind = match (&target.partition.kind, kinds) {
        (_, (None, None)) => None,
        (PartitionKind::Gpt(_), (Some(kind), None)) => {
            Some(PartitionKind::Gpt(kind.to_ascii_lowercase()))
        }
        (PartitionKind::Mbr(_), (None, Some(kind))) => match u16::try_from(kind) {
            Ok(kind) => Some(PartitionKind::Mbr(kind)),
            Err(_) => return done(5),
        },
        _ => return done(41006),
    };
    change(call, &target, |partition| {
        partition.read_only = read_only.unwrap_or(partition.read_only);
        partition.hidden = hidden.unwrap_or(partition.hidden);
        partition.active = active.unwrap_or(partition.active);
        partition.no_default_drive_letter = no_letter.unwrap_or(partition.no_default_drive_letter);
        partition.kind = kind.unwrap_or_else(|| partition.kind.clone());
    });
    done(0)
}
