//! Disks as tests, machine files and the control endpoint describe them.

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::disk::{BusType, Disk, DiskId, Hidden};
use super::medium::{
    ALIGNMENT, FileSystem, Medium, MediumId, Partition, PartitionKind, Style, gpt_type, mbr_type,
};
use super::{Identifier, Storage, ids};
use crate::state::State;

/// A disk to attach.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimDisk {
    /// Its size in bytes.
    #[serde(with = "crate::size")]
    pub size: u64,
    /// Its number; the lowest that is free if it is not given or taken.
    pub number: Option<u32>,
    /// `MSFT_Disk.UniqueId`; one of its own if it is not given.
    pub unique_id: Option<String>,
    /// `MSFT_Disk.SerialNumber`.
    pub serial: Option<String>,
    /// `MSFT_Disk.Location`.
    pub location: Option<String>,
    /// `MSFT_Disk.FriendlyName`.
    pub friendly_name: Option<String>,
    /// `MSFT_Disk.BusType`.
    pub bus_type: BusType,
    /// How it is partitioned.
    pub style: SimStyle,
    /// Its partitions. A GPT disk has Microsoft's reserved partition without being told.
    pub partitions: Vec<SimPartition>,
    /// What is on the whole disk when it has no partition table.
    pub content: Content,
    /// Offline, by the policy for SAN disks.
    pub offline: bool,
    /// `MSFT_Disk.IsReadOnly`.
    pub read_only: bool,
    /// The read-only flag comes back with the next refresh or rescan.
    pub write_protected: bool,
    /// `MSFT_Disk.IsBoot`.
    pub boot: bool,
    /// `MSFT_Disk.IsSystem`.
    pub system: bool,
    /// `Online` answers 0 and the disk stays offline for so many queries of `MSFT_Disk`.
    pub slow_online: u32,
    /// It is found later.
    pub hidden: Option<Hidden>,
    /// The page 83 identifiers; one made of the unique id if they are not given.
    pub page83: Option<Vec<Identifier>>,
    /// The device answers no page 83 identifiers.
    pub no_page83: bool,
}

/// The partition style of a [`SimDisk`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimStyle {
    /// Not initialised.
    #[default]
    Raw,
    /// MBR.
    Mbr,
    /// GPT.
    Gpt,
}

/// A partition of a [`SimDisk`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimPartition {
    /// Its type.
    pub kind: SimKind,
    /// Its first byte; behind the one before, on the next MiB, if it is not given.
    #[serde(with = "crate::size::optional")]
    pub offset: Option<u64>,
    /// Its size in bytes; all that is left if it is not given.
    #[serde(with = "crate::size::optional")]
    pub size: Option<u64>,
    /// What is on it.
    pub content: Content,
    /// `MSFT_Volume.FileSystemLabel`.
    pub label: String,
    /// `MSFT_Volume.AllocationUnitSize`; 4096 if it is not given.
    pub allocation_unit: Option<u32>,
    /// `C` for drive `C:`.
    pub drive_letter: Option<char>,
    /// The partition's GUID, or on an MBR disk the volume's, without braces.
    pub guid: Option<String>,
    /// `MSFT_Partition.IsReadOnly`.
    pub read_only: bool,
    /// `MSFT_Partition.IsOffline`.
    pub offline: bool,
    /// `MSFT_Volume.HealthStatus`: 0 healthy, 1 scan needed, 2 spot fix needed, 3 full
    /// repair needed.
    pub health: u16,
    /// How long a format of it takes, in seconds.
    pub format_seconds: Option<u64>,
}

/// The type of a [`SimPartition`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimKind {
    /// Data.
    #[default]
    Data,
    /// Microsoft's reserved partition.
    Reserved,
    /// The EFI system partition.
    Efi,
    /// Recovery tools.
    Recovery,
    /// Data of a dynamic disk.
    Dynamic,
    /// Linux.
    Linux,
}

impl SimKind {
    fn on(self, style: SimStyle) -> PartitionKind {
        match style {
            SimStyle::Mbr => PartitionKind::Mbr(match self {
                Self::Data | Self::Recovery | Self::Reserved => mbr_type::IFS,
                Self::Efi => 0xef,
                Self::Dynamic => mbr_type::LDM,
                Self::Linux => mbr_type::LINUX,
            }),
            SimStyle::Gpt | SimStyle::Raw => PartitionKind::Gpt(
                match self {
                    Self::Data => gpt_type::BASIC_DATA,
                    Self::Reserved => gpt_type::RESERVED,
                    Self::Efi => gpt_type::EFI,
                    Self::Recovery => gpt_type::RECOVERY,
                    Self::Dynamic => gpt_type::LDM_DATA,
                    Self::Linux => gpt_type::LINUX,
                }
                .to_owned(),
            ),
        }
    }
}

impl SimDisk {
    /// A disk that was never initialised.
    pub fn raw(size: u64) -> Self {
        Self {
            size,
            ..Self::default()
        }
    }

    /// A GPT disk with Microsoft's reserved partition alone.
    pub fn gpt(size: u64) -> Self {
        Self {
            style: SimStyle::Gpt,
            ..Self::raw(size)
        }
    }

    /// An MBR disk without partitions.
    pub fn mbr(size: u64) -> Self {
        Self {
            style: SimStyle::Mbr,
            ..Self::raw(size)
        }
    }

    /// A GPT disk with one NTFS volume over all of it.
    pub fn ntfs(size: u64) -> Self {
        Self::gpt(size).partition(SimPartition::of(Content::Ntfs))
    }

    /// Adds a partition.
    #[must_use]
    pub fn partition(mut self, partition: SimPartition) -> Self {
        self.partitions.push(partition);
        self
    }

    /// Puts something on the whole disk.
    #[must_use]
    pub fn content(mut self, content: Content) -> Self {
        self.content = content;
        self
    }

    /// Wants a number.
    #[must_use]
    pub fn number(mut self, number: u32) -> Self {
        self.number = Some(number);
        self
    }

    /// Sets the unique id.
    #[must_use]
    pub fn unique_id(mut self, unique_id: &str) -> Self {
        self.unique_id = Some(unique_id.to_owned());
        self
    }

    /// Sets the serial number, as the device gives it.
    #[must_use]
    pub fn serial(mut self, serial: &str) -> Self {
        self.serial = Some(serial.to_owned());
        self
    }

    /// Sets the location.
    #[must_use]
    pub fn location(mut self, location: &str) -> Self {
        self.location = Some(location.to_owned());
        self
    }

    /// The letters of the drives on it.
    pub(crate) fn drive_letters(&self) -> impl Iterator<Item = char> + '_ {
        let partitions = self.partitions.iter();
        partitions.filter_map(|partition| partition.drive_letter)
    }

    /// Makes it offline.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.offline = true;
        self
    }

    /// Stays offline for so many queries of `MSFT_Disk` after `Online` has answered.
    #[must_use]
    pub fn slow_online(mut self, queries: u32) -> Self {
        self.slow_online = queries;
        self
    }

    /// Sets its read-only flag.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Its read-only flag is set and comes back when it is cleared.
    #[must_use]
    pub fn write_protected(mut self) -> Self {
        self.read_only = true;
        self.write_protected = true;
        self
    }

    /// It is found after so many rescans.
    #[must_use]
    pub fn after_rescans(mut self, rescans: u32) -> Self {
        self.hidden.get_or_insert_default().rescans = Some(rescans);
        self
    }

    /// It is found at this time of the node's clock, in whole seconds.
    #[must_use]
    pub fn after(mut self, time: std::time::Duration) -> Self {
        self.hidden.get_or_insert_default().seconds = Some(time.as_secs());
        self
    }

    /// Sets its page 83 identifiers.
    #[must_use]
    pub fn page83(mut self, identifiers: Vec<Identifier>) -> Self {
        self.page83 = Some(identifiers);
        self
    }
}

impl SimPartition {
    /// A data partition over all that is left.
    pub fn of(content: Content) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// Sets its size.
    #[must_use]
    pub fn size(mut self, size: u64) -> Self {
        self.size = Some(size);
        self
    }

    /// Sets its first byte.
    #[must_use]
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Sets its type.
    #[must_use]
    pub fn kind(mut self, kind: SimKind) -> Self {
        self.kind = kind;
        self
    }

    /// Gives it a drive letter.
    #[must_use]
    pub fn drive_letter(mut self, letter: char) -> Self {
        self.drive_letter = Some(letter.to_ascii_uppercase());
        self
    }

    /// Sets its GUID.
    #[must_use]
    pub fn guid(mut self, guid: &str) -> Self {
        self.guid = Some(guid.to_ascii_lowercase());
        self
    }

    /// Sets how long a format takes.
    #[must_use]
    pub fn format_seconds(mut self, seconds: u64) -> Self {
        self.format_seconds = Some(seconds);
        self
    }
}

/// Attaches a disk. Its number is the one that it asks for, if that is free.
pub(crate) fn attach(state: &mut State, disk: &SimDisk) -> DiskId {
    let medium = park(state, disk);
    let id = attach_parked(state, medium).unwrap_or(DiskId(medium.0));
    if let Some(hidden) = disk.hidden {
        state.storage.hidden.insert(id, hidden);
    }
    id
}

/// Makes a disk that is not attached yet, such as a LUN that a session will bring.
pub(crate) fn park(state: &mut State, disk: &SimDisk) -> MediumId {
    let medium = medium_of(&mut state.storage, disk);
    let volumes: Vec<_> = (medium.partitions.iter())
        .filter(|partition| partition.file_system.is_some())
        .filter_map(|partition| {
            let is_system = disk.boot && partition.drive_letter == Some('C');
            Some((partition.volume.clone()?, is_system))
        })
        .collect();
    let seed = state.storage.next_id();
    let id = MediumId(seed);
    let unique_id = (disk.unique_id.clone()).unwrap_or_else(|| ids::guid(seed).replace('-', ""));
    let page83 = (disk.page83.clone()).or_else(|| Some(vec![Identifier::of_unique_id(&unique_id)]));
    let parked = Disk {
        number: disk.number.unwrap_or(u32::MAX),
        medium: id,
        unique_id,
        serial: disk.serial.clone(),
        location: disk.location.clone(),
        friendly_name: (disk.friendly_name.clone())
            .unwrap_or_else(|| "Msft Virtual Disk".to_owned()),
        bus_type: disk.bus_type,
        // 1: by policy.
        offline: disk.offline.then_some(1),
        read_only: disk.read_only || disk.write_protected,
        write_protected: disk.write_protected,
        boot: disk.boot,
        system: disk.system,
        slow_online: disk.slow_online,
        page83: page83.filter(|_| !disk.no_page83),
    };
    state.storage.media.insert(id, medium);
    state.storage.parked.insert(id, parked);
    for (volume, is_system) in &volumes {
        match is_system {
            true => crate::fs::make_system_tree(state, volume),
            false => crate::fs::make_tree(state, volume),
        }
    }
    id
}

/// Attaches a disk that is parked, under its old number if that is free.
pub(crate) fn attach_parked(state: &mut State, medium: MediumId) -> Option<DiskId> {
    let mut disk = state.storage.parked.remove(&medium)?;
    if disk.number == u32::MAX || state.storage.has_number(disk.number) {
        disk.number = state.storage.free_number();
    }
    if let Some(medium) = state.storage.media.get_mut(&medium) {
        medium.look_again();
    }
    let id = DiskId(state.storage.next_id());
    state.storage.add_disk(id, disk);
    Some(id)
}

fn medium_of(storage: &mut Storage, disk: &SimDisk) -> Medium {
    let mut medium = without_partitions(storage, disk);
    for partition in &disk.partitions {
        let seed = storage.next_id();
        add_partition(&mut medium, disk.style, partition, seed);
    }
    if disk.style != SimStyle::Raw {
        medium.write_tables();
    }
    put(&mut medium, 0, disk.content, disk.size);
    medium
}

/// What is on a disk before its own partitions are.
pub(super) fn without_partitions(storage: &mut Storage, disk: &SimDisk) -> Medium {
    let mut medium = Medium::empty(disk.size);
    match disk.style {
        SimStyle::Raw => {}
        SimStyle::Mbr => {
            let seed = storage.next_id();
            medium.style = Style::Mbr {
                signature: ids::signature(seed),
            };
        }
        SimStyle::Gpt => {
            let guid = ids::guid(storage.next_id());
            medium.initialize(Style::Gpt { guid }, storage.next_id());
            if (disk.partitions.iter()).any(|partition| partition.kind == SimKind::Reserved) {
                medium.partitions.clear();
            }
        }
    }
    medium
}

/// Where a partition lies on a medium that has those before it.
pub(super) fn place(medium: &Medium, partition: &SimPartition) -> std::ops::Range<u64> {
    let usable = medium.usable();
    let end_of_last = medium.partitions.iter().map(Partition::end).max();
    let offset = partition.offset.unwrap_or_else(|| {
        end_of_last
            .unwrap_or(usable.start)
            .next_multiple_of(ALIGNMENT)
    });
    let rest = (usable.end / ALIGNMENT * ALIGNMENT).saturating_sub(offset);
    let size = partition.size.unwrap_or(rest);
    offset..offset.saturating_add(size)
}

/// Adds a partition that has been checked.
pub(super) fn add_partition(
    medium: &mut Medium,
    style: SimStyle,
    partition: &SimPartition,
    seed: u64,
) {
    let place = place(medium, partition);
    let (offset, size) = (place.start, place.end - place.start);
    let guid = (partition.guid.clone()).unwrap_or_else(|| ids::guid(seed));
    let file_system = partition.content.file_system().map(|kind| FileSystem {
        label: partition.label.clone(),
        allocation_unit: partition.allocation_unit.unwrap_or(4096),
        health: partition.health,
        ..FileSystem::new(kind)
    });
    let number = medium.next_partition_number();
    let made = Partition {
        file_system,
        drive_letter: partition.drive_letter,
        read_only: partition.read_only,
        offline: partition.offline,
        format_seconds: partition.format_seconds,
        ..Partition::new(number, partition.kind.on(style), place)
    };
    medium.partitions.push(made.with_ids(guid));
    put(medium, offset, partition.content, size);
}

/// Puts a content's bytes on a part of a medium; what lies behind its end is left out.
fn put(medium: &mut Medium, offset: u64, content: Content, size: u64) {
    for (at, bytes) in content.bytes(size) {
        let left = usize::try_from(size.saturating_sub(at)).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(left)];
        medium.bytes.write(offset + at, fits);
    }
}
