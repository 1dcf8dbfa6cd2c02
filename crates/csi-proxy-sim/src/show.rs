//! The node as a tree for people.

use std::fmt::Write as _;

use csi_proxy::os::Reparse;

use crate::node::SimNode;
use crate::state::State;
use crate::storage::{Disk, DiskId, Partition, PartitionKind, Style};

impl SimNode {
    /// The node as text: disks, partitions, volumes, where they are mounted, and links.
    pub fn show(&self) -> String {
        let state = self.snapshot();
        let mut text = String::new();
        for (id, disk) in &state.storage.disks {
            show_disk(&mut text, &state, *id, disk);
        }
        text
    }
}

/// Writing to a string does not fail.
macro_rules! line {
    ($to:expr, $($what:tt)*) => {
        let _ = writeln!($to, $($what)*);
    };
}

fn show_disk(text: &mut String, state: &State, id: DiskId, disk: &Disk) {
    let Some(medium) = state.storage.media.get(&disk.medium) else {
        return;
    };
    let style = match medium.style {
        Style::Raw => "RAW",
        Style::Mbr { .. } => "MBR",
        Style::Gpt { .. } => "GPT",
    };
    let flags = [
        (disk.offline.is_some(), ", offline"),
        (disk.read_only, ", read-only"),
        (disk.boot, ", boot"),
        (state.storage.hidden.contains_key(&id), ", not found yet"),
    ];
    let flags: String = flags.iter().filter(|one| one.0).map(|one| one.1).collect();
    let size = size(medium.size);
    line!(text, "disk {}: {size}, {style}{flags}", disk.number);
    if let Some(location) = &disk.location {
        line!(text, "  at {location}");
    }
    if let Some(serial) = &disk.serial {
        line!(text, "  serial number {serial}");
    }
    for partition in &medium.partitions {
        show_partition(text, state, partition);
    }
}

fn show_partition(text: &mut String, state: &State, partition: &Partition) {
    let number = partition.number;
    let size = size(partition.size);
    let what = match (&partition.file_system, &partition.volume, &partition.kind) {
        (Some(one), ..) => format!("{:?} {:?}", one.kind, one.label),
        (None, Some(_), _) => "RAW".to_owned(),
        (None, None, PartitionKind::Gpt(kind)) => kind.clone(),
        (None, None, PartitionKind::Mbr(kind)) => format!("type {kind:#04x}"),
    };
    line!(
        text,
        "  partition {number}: {size} at {}, {what}",
        partition.offset
    );
    let Some(volume) = &partition.volume else {
        return;
    };
    line!(text, "    volume {volume}");
    if let Some(letter) = partition.drive_letter {
        line!(text, "    drive {letter}:");
    }
    for path in crate::fs::access_paths(state, volume) {
        line!(text, "    mounted at {path}");
    }
    for (path, reparse) in state.paths_of(volume) {
        match reparse {
            Some(Reparse::SymbolicLink { target } | Reparse::Junction { target }) => {
                line!(text, "    link {path} to {target}");
            }
            Some(Reparse::MountPoint { volume }) => {
                line!(text, "    mount point {path} of {volume}");
            }
            _ => {}
        }
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::SimDisk;

    #[test]
    fn disks_partitions_volumes_and_links_are_shown() {
        let node = SimNode::builder()
            .disk(SimDisk::ntfs(10 << 30).serial("abc").offline())
            .with(|state| {
                let target = r"C:\ProgramData".to_owned();
                let link = Reparse::SymbolicLink { target };
                state.put_link(r"C:\link", link).unwrap();
            })
            .build();
        let shown = node.show();
        for part in [
            "disk 0: 127 GiB, GPT, boot",
            "drive C:",
            r"link \link to C:\ProgramData",
            "disk 1: 10 GiB, GPT, offline",
            "serial number abc",
            "Ntfs",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
    }
}
