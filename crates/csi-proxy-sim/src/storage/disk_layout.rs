//! The methods of `MSFT_Disk` that change partitions.

use csi_proxy::port::PortResult;

use super::disk_class::target;
use super::medium::{ALIGNMENT, Partition, PartitionKind, SECTOR, Style, gpt_type, mbr_type};
use super::{DiskId, Medium, ids};
use crate::cim::{Method, MethodCall, Reply, done};

pub(super) const INITIALIZE: Method = Method {
    name: "Initialize",
    is_static: false,
    parameters: &["PartitionStyle"],
    run: initialize,
};

pub(super) const CREATE_PARTITION: Method = Method {
    name: "CreatePartition",
    is_static: false,
    parameters: &[
        "Size",
        "UseMaximumSize",
        "Offset",
        "Alignment",
        "DriveLetter",
        "AssignDriveLetter",
        "MbrType",
        "GptType",
        "IsHidden",
        "IsActive",
    ],
    run: create_partition,
};

pub(super) const CLEAR: Method = Method {
    name: "Clear",
    is_static: false,
    parameters: &["RemoveData", "RemoveOEM", "ZeroOutEntireDisk"],
    run: clear,
};

pub(super) const CONVERT_STYLE: Method = Method {
    name: "ConvertStyle",
    is_static: false,
    parameters: &["PartitionStyle"],
    run: convert_style,
};

/// The smallest disk that takes a GPT with its reserved partition.
pub(super) const SMALLEST_GPT: u64 = 32 << 20;

/// Source: `initialize-msft-disk`.
fn initialize(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let style = call.integer("PartitionStyle")?.unwrap_or(2);
    let Some((_, disk, medium)) = target(call) else {
        return done(4);
    };
    if medium.style != Style::Raw {
        return done(41001);
    }
    if disk.offline.is_some() || disk.read_only {
        // Assumed: the page has no value for it.
        return done(4);
    }
    initialize_as(call, style)
}

fn initialize_as(call: &mut MethodCall<'_>, style: u64) -> PortResult<Reply> {
    let size = target(call).map_or(0, |(_, _, medium)| medium.size);
    let style = match style {
        1 => Style::Mbr {
            signature: ids::signature(call.state.storage.next_id()),
        },
        2 if size < SMALLEST_GPT => return done(41014),
        2 => Style::Gpt {
            guid: ids::guid(call.state.storage.next_id()),
        },
        _ => return done(5),
    };
    let reserved = call.state.storage.next_id();
    if let Some((_, _, medium)) = target(call) {
        medium.partitions.clear();
        medium.initialize(style, reserved);
    }
    done(0)
}

/// Source: `convertstyle-msft-disk`.
fn convert_style(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let style = call.integer("PartitionStyle")?.unwrap_or(0);
    let Some((_, disk, medium)) = target(call) else {
        return done(4);
    };
    let data = |one: &Partition| one.kind != PartitionKind::Gpt(gpt_type::RESERVED.to_owned());
    match medium.style {
        Style::Raw => done(41000),
        _ if disk.read_only => done(41002),
        _ if disk.offline.is_some() => done(41003),
        _ if medium.partitions.iter().any(data) => done(41013),
        _ => initialize_as(call, style),
    }
}

/// Source: `clear-msft-disk`.
fn clear(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let remove_data = call.boolean("RemoveData")?.unwrap_or(false);
    let remove_oem = call.boolean("RemoveOEM")?.unwrap_or(false);
    let zero_out = call.boolean("ZeroOutEntireDisk")?.unwrap_or(false);
    let Some((id, disk, medium)) = target(call) else {
        return done(4);
    };
    let is_recovery =
        |one: &Partition| one.kind == PartitionKind::Gpt(gpt_type::RECOVERY.to_owned());
    let code = match medium.style {
        Style::Raw => 41000,
        _ if disk.boot || disk.system => 41009,
        _ if disk.read_only => 41002,
        _ if disk.offline.is_some() => 41003,
        _ if !remove_data && medium.partitions.iter().any(|one| one.kind.is_data()) => 41008,
        _ if !remove_oem && medium.partitions.iter().any(is_recovery) => 41007,
        _ => 0,
    };
    if code != 0 {
        return done(code);
    }
    let partitions = std::mem::take(&mut medium.partitions);
    if zero_out {
        medium.bytes = super::SparseBytes::default();
    }
    medium.style = Style::Raw;
    medium.write_tables();
    call.state.storage.cut_off_jobs_on(id);
    for volume in partitions.into_iter().filter_map(|one| one.volume) {
        crate::fs::drop_tree(call.state, &volume);
    }
    done(0)
}

/// What `CreatePartition` was asked for.
struct Request {
    size: Option<u64>,
    offset: Option<u64>,
    alignment: u64,
    kind: PartitionKind,
    letter: Option<char>,
    hidden: bool,
    active: bool,
}

/// Source: `createpartition-msft-disk`.
fn create_partition(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    let Some((id, disk, medium)) = target(call) else {
        return done(4);
    };
    let style = medium.style.clone();
    match style {
        Style::Raw => return done(41000),
        _ if disk.read_only => return done(41002),
        _ if disk.offline.is_some() => return done(41003),
        Style::Mbr { .. } if medium.partitions.len() >= 4 => return done(41004),
        Style::Gpt { .. } if medium.partitions.len() >= 128 => return done(41004),
        _ => {}
    }
    let request = match request(call, &style)? {
        Ok(request) => request,
        Err(code) => return done(code),
    };
    let taken = (request.letter).is_some_and(|letter| call.state.storage.drive(letter).is_some());
    match add(call, id, &request) {
        Ok(()) if taken => done(42002),
        Ok(()) => done(0),
        Err(code) => done(code),
    }
}

fn request(call: &MethodCall<'_>, style: &Style) -> PortResult<Result<Request, u32>> {
    let size = call.integer("Size")?;
    let maximum = call.boolean("UseMaximumSize")?.unwrap_or(false);
    if size.is_some() == maximum {
        return Ok(Err(40005));
    }
    let alignment = call.integer("Alignment")?.unwrap_or(ALIGNMENT);
    if alignment == 0 || !alignment.is_multiple_of(SECTOR) {
        return Ok(Err(41005));
    }
    let letter = call
        .text("DriveLetter")?
        .and_then(|text| text.chars().next());
    let assign = call.boolean("AssignDriveLetter")?.unwrap_or(false);
    if letter.is_some() && assign {
        return Ok(Err(5));
    }
    let hidden = call.boolean("IsHidden")?.unwrap_or(false);
    if hidden && (letter.is_some() || assign) {
        return Ok(Err(42004));
    }
    let kind = match kind(style, call.text("GptType")?, call.integer("MbrType")?) {
        Ok(kind) => kind,
        Err(code) => return Ok(Err(code)),
    };
    let free = || ('D'..='Z').find(|letter| call.state.storage.drive(*letter).is_none());
    Ok(Ok(Request {
        size,
        offset: call.integer("Offset")?,
        alignment,
        kind,
        letter: letter
            .map(|one| one.to_ascii_uppercase())
            .or_else(|| free().filter(|_| assign)),
        hidden,
        active: call.boolean("IsActive")?.unwrap_or(false),
    }))
}

fn kind(style: &Style, gpt: Option<String>, mbr: Option<u64>) -> Result<PartitionKind, u32> {
    match (style, gpt, mbr) {
        (Style::Gpt { .. }, gpt, None) => {
            let gpt = gpt.map_or(gpt_type::BASIC_DATA.to_owned(), |one| {
                one.to_ascii_lowercase()
            });
            let guid = gpt.strip_prefix('{').and_then(|one| one.strip_suffix('}'));
            match guid.is_some_and(|guid| guid.len() == 36) {
                true => Ok(PartitionKind::Gpt(gpt)),
                false => Err(41010),
            }
        }
        (Style::Mbr { .. }, None, mbr) => {
            let mbr = mbr.unwrap_or(mbr_type::IFS.into());
            let mbr = u16::try_from(mbr)
                .ok()
                .filter(|one| (1..=255).contains(one));
            mbr.map(PartitionKind::Mbr).ok_or(41010)
        }
        _ => Err(41006),
    }
}

fn add(call: &mut MethodCall<'_>, id: DiskId, request: &Request) -> Result<(), u32> {
    let letter = request
        .letter
        .filter(|one| call.state.storage.drive(*one).is_none());
    let medium = call.state.storage.found(id).ok_or(4u32)?.medium;
    let range = place(medium, request)?;
    let seed = call.state.storage.next_id();
    let (_, medium) = call.state.storage.found_mut(id).ok_or(4u32)?;
    let number = medium.next_partition_number();
    let partition = Partition {
        drive_letter: letter,
        hidden: request.hidden,
        active: request.active,
        no_default_drive_letter: letter.is_none(),
        ..Partition::new(number, request.kind.clone(), range).with_ids(ids::guid(seed))
    };
    let seen = partition.volume.clone();
    medium.partitions.push(partition);
    medium.write_tables();
    if let Some(volume) = seen {
        call.state.storage.notes.volumes.insert(volume, id);
    }
    Ok(())
}

/// Where the partition goes: the first extent that takes it, or the largest.
fn place(medium: &Medium, request: &Request) -> Result<std::ops::Range<u64>, u32> {
    let beyond = |end: u64| matches!(medium.style, Style::Mbr { .. }) && end > (1 << 32) * SECTOR;
    if request.offset.is_some_and(beyond) {
        return Err(41011);
    }
    let extents = medium.free_extents(request.alignment);
    let length = |extent: &std::ops::Range<u64>| extent.end - extent.start;
    let from = |offset: u64| offset.next_multiple_of(request.alignment);
    let extent = match (request.offset.map(from), request.size) {
        (Some(offset), size) => {
            let around = extents
                .iter()
                .find(|one| one.contains(&offset))
                .ok_or(41012u32)?;
            let rest = offset..around.end;
            (length(&rest) >= size.unwrap_or(1)).then_some(rest)
        }
        (None, Some(size)) => extents.into_iter().find(|one| length(one) >= size),
        (None, None) => extents.into_iter().max_by_key(length),
    };
    let extent = extent.ok_or(40000u32)?;
    let size = request.size.unwrap_or(length(&extent)) / SECTOR * SECTOR;
    match size {
        0 => Err(4097),
        _ => Ok(extent.start..extent.start + size),
    }
}
