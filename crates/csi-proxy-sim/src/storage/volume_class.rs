//! `MSFT_Volume`.
//!
//! Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume>

use std::collections::BTreeMap;

use csi_proxy::VolumeId;
use csi_proxy::cim::{Namespace, Output, Value};
use csi_proxy::port::PortResult;

use super::medium::FileSystemKind;
use super::{Storage, Volume, format};
use crate::cim::{Class, Hint, Method, MethodCall, Reply, Row, done, properties, wide};
use crate::state::State;

pub(super) const CLASS: Class = Class {
    namespace: Namespace::Storage,
    name: "MSFT_Volume",
    properties: PROPERTIES,
    rows,
    methods: &[
        Method::of_instance(
            "Format",
            &[
                "FileSystem",
                "FileSystemLabel",
                "AllocationUnitSize",
                "Full",
                "Force",
                "Compress",
                "ShortFileNameSupport",
                "SetIntegrityStreams",
                "UseLargeFRS",
                "DisableHeatGathering",
            ],
            format_volume,
        ),
        Method::of_instance("Flush", &[], flush),
        Method::of_instance("GetSupportedClusterSizes", &["FileSystem"], cluster_sizes),
        Method::of_instance("GetSupportedFileSystems", &[], file_systems),
        Method::of_instance("SetFileSystemLabel", &["FileSystemLabel"], set_label),
        Method::of_instance("Repair", &["OfflineScanAndFix", "Scan", "SpotFix"], repair),
    ],
};

/// A volume with the space that its files leave.
struct View<'a> {
    volume: &'a Volume<'a>,
    used: u64,
}

impl View<'_> {
    /// A volume without a file system that Windows knows has no size.
    fn size(&self) -> u64 {
        match self.volume.partition.file_system {
            Some(_) => self.volume.partition.size,
            None => 0,
        }
    }

    fn kind(&self) -> Option<FileSystemKind> {
        let known = self.volume.partition.file_system.as_ref();
        known.map(|one| one.kind)
    }
}

properties! {
    const PROPERTIES;
    fn make(view: &View<'_>);
    ObjectId: format!(r"{{1}}\\NODE\root/Microsoft/Windows/Storage/Providers_v2\WSP_Volume.ObjectId={}", view.volume.id),
    UniqueId: view.volume.id.as_str(),
    Path: view.volume.id.as_str(),
    DriveLetter: view.volume.partition.drive_letter.map_or(0, u32::from),
    // 3: fixed.
    DriveType: 3u32,
    FileSystem: view.kind().map_or("", FileSystemKind::name),
    FileSystemType: view.kind().map_or(0, FileSystemKind::number),
    FileSystemLabel: view.volume.partition.file_system.as_ref().map_or("", |one| one.label.as_str()),
    AllocationUnitSize: view.volume.partition.file_system.as_ref().map_or(0, |one| one.allocation_unit),
    Size: wide(view.size()),
    SizeRemaining: wide(view.size().saturating_sub(view.used)),
    HealthStatus: view.volume.partition.file_system.as_ref().map_or(0, |one| one.health),
    OperationalStatus: vec![operational_status(view.volume)],
    DedupMode: 4u32,
}

/// 0: unknown; 2: OK; then scan, spot fix and full repair needed, as the class's MOF has them.
fn operational_status(volume: &Volume<'_>) -> u16 {
    match volume.partition.file_system.as_ref().map(|one| one.health) {
        None => 0,
        Some(0) => 2,
        Some(1) => 0xd00d,
        Some(2) => 0xd00e,
        Some(3) => 0xd00f,
        // 6: error.
        Some(_) => 6,
    }
}

pub(super) fn find<'a>(storage: &'a Storage, key: &str) -> Option<Volume<'a>> {
    storage.volume(&VolumeId::new(key).ok()?)
}

fn rows(state: &State, hint: &Hint<'_>) -> Vec<Row> {
    let row = |volume: Volume<'_>| {
        let used = match hint.wants("SizeRemaining") {
            true => crate::fs::used_bytes(state, volume.id),
            false => 0,
        };
        Row {
            key: volume.id.as_str().to_owned(),
            properties: make(
                &View {
                    volume: &volume,
                    used,
                },
                hint,
            ),
        }
    };
    let named = ["UniqueId", "Path"]
        .into_iter()
        .find_map(|one| hint.text(one));
    if let Some(id) = hint.key.or(named) {
        return find(&state.storage, id).map(row).into_iter().collect();
    }
    state.storage.volumes().map(row).collect()
}

fn format_volume(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let place =
        find(&call.state.storage, call.key).map(|volume| (volume.disk_id, volume.partition.offset));
    match place {
        Some((disk, offset)) => format::start(call, disk, offset),
        None => done(4),
    }
}

/// What was written to a simulated volume is on it at once, so there is nothing to flush.
/// One that is being formatted is in use: 4 is assumed.
///
/// Source: `msft-volume-flush`.
fn flush(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let volume = find(&call.state.storage, call.key);
    let busy = volume.is_none_or(|volume| {
        let offset = volume.partition.offset;
        call.state.storage.formats(volume.disk_id, offset)
    });
    done(if busy { 4 } else { 0 })
}

/// Source: `msft-volume-getsupportedclustersizes`.
fn cluster_sizes(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let name = call.text("FileSystem")?.unwrap_or_default();
    let size = find(&call.state.storage, call.key).map_or(0, |volume| volume.partition.size);
    let Some(kind) = format::kind_of(Some(&name)) else {
        return done(5);
    };
    let sizes = format::supported_units(kind, size);
    let sizes: Vec<Value> = sizes.into_iter().map(Value::from).collect();
    answer("SupportedClusterSizes", Value::Array(sizes))
}

/// Source: `msft-volume-getsupportedfilesystems`.
fn file_systems(_: &mut MethodCall<'_>) -> PortResult<Reply> {
    answer("SupportedFileSystems", vec!["NTFS", "ReFS", "FAT32"].into())
}

fn answer(name: &str, value: Value) -> PortResult<Reply> {
    Ok(Reply::Done(Output {
        return_value: 0,
        properties: BTreeMap::from([(name.to_owned(), value)]),
    }))
}

/// Source: `msft-volume-setfilesystemlabel`. On a read-only or RAW volume 4 is assumed.
fn set_label(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let label = call.text("FileSystemLabel")?.unwrap_or_default();
    done(change_file_system(call, |one| one.label = label))
}

/// Source: `msft-volume-repair`. A scan or fix makes the volume healthy.
fn repair(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    done(change_file_system(call, |one| one.health = 0))
}

fn change_file_system(
    call: &mut MethodCall<'_>,
    change: impl FnOnce(&mut super::FileSystem),
) -> u32 {
    let place = find(&call.state.storage, call.key)
        .filter(Volume::is_writable)
        .map(|volume| (volume.disk_id, volume.partition.offset));
    let file_system = place.and_then(|(disk, offset)| {
        let (_, medium) = call.state.storage.found_mut(disk)?;
        medium.partition_mut(offset)?.file_system.as_mut()
    });
    match file_system {
        Some(file_system) => {
            change(file_system);
            0
        }
        None => 4,
    }
}
