//! Where a recorded answer and the simulated node's differ.

mod cim;

use std::collections::BTreeSet;

use csi_proxy::os::{
    DevicesAnswer, DirEntry, FilesAnswer, LocksAnswer, MountPointsAnswer, Stat, VirtualDisksAnswer,
};
use csi_proxy::page83;
use csi_proxy::port::{Answer, Call, PortError, PortResult};
use csi_proxy::trace::Contents;
use serde::Serialize;
use serde_json::Value as Json;

use super::ids::{Ids, Kind, drive_number, guids};

/// A place at which two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) place: String,
    pub(super) recorded: String,
    pub(super) simulated: String,
}

/// Compares answers, and finds out on the way which ids name the same thing.
pub(super) struct Comparison<'a> {
    pub(super) ids: &'a mut Ids,
    /// Whether the simulated node began with the same space on its volumes.
    pub(super) same_space: bool,
    pub(super) found: Vec<Found>,
}

impl Comparison<'_> {
    pub(super) fn answers(
        &mut self,
        call: &Call,
        recorded: &PortResult<Answer>,
        simulated: &PortResult<Answer>,
    ) {
        match (recorded, simulated) {
            (Ok(recorded), Ok(simulated)) => self.values(call, recorded, simulated),
            (Err(recorded), Err(simulated)) => self.errors(recorded, simulated),
            _ => self.differ("answer", shown_result(recorded), shown_result(simulated)),
        }
    }

    fn errors(&mut self, recorded: &PortError, simulated: &PortError) {
        let same = match (recorded, simulated) {
            // The message is in the language of the node.
            (PortError::System { code, .. }, PortError::System { code: other, .. }) => {
                code == other
            }
            (
                PortError::DeadlineExceeded { running },
                PortError::DeadlineExceeded { running: other },
            ) => match (running, other) {
                (Some(id), Some(other)) => {
                    self.ids
                        .bind(Kind::Call, &id.0.to_string(), &other.0.to_string())
                }
                (running, other) => running.is_some() == other.is_some(),
            },
            (PortError::Outside { .. }, PortError::Outside { .. }) => true,
            _ => false,
        };
        if !same {
            self.differ("error", recorded.to_string(), simulated.to_string());
        }
    }

    fn values(&mut self, call: &Call, recorded: &Answer, simulated: &Answer) {
        match (recorded, simulated) {
            (Answer::Cim(recorded), Answer::Cim(simulated)) => {
                self.cim(call, recorded, simulated);
            }
            (Answer::Files(recorded), Answer::Files(simulated)) => {
                self.files(recorded, simulated);
            }
            (Answer::MountPoints(recorded), Answer::MountPoints(simulated)) => {
                self.mount_points(recorded, simulated);
            }
            (Answer::Devices(recorded), Answer::Devices(simulated)) => {
                self.devices(recorded, simulated);
            }
            (Answer::VirtualDisks(recorded), Answer::VirtualDisks(simulated)) => {
                self.virtual_disks(recorded, simulated);
            }
            (Answer::Locks(recorded), Answer::Locks(simulated)) => {
                self.locks(recorded, simulated);
            }
            _ => self.plain("answer", recorded, simulated),
        }
    }

    /// Whether two texts are the same but for GUIDs that name the same thing.
    fn texts(&mut self, recorded: &str, simulated: &str) -> bool {
        let skeleton = |text: &str| {
            let mut text = text.to_owned();
            for (at, guid) in guids(&text.clone()) {
                text.replace_range(at..at + guid.len(), &"?".repeat(guid.len()));
            }
            text.to_lowercase()
        };
        let (guids, others) = (guids(recorded), guids(simulated));
        skeleton(recorded) == skeleton(simulated)
            && guids
                .iter()
                .zip(&others)
                .all(|((_, guid), (_, other))| self.ids.bind(Kind::Guid, guid, other))
    }

    /// Whether two lists hold the same texts.
    fn sets(&mut self, recorded: &[String], simulated: &[String]) -> bool {
        let mut left: Vec<&String> = simulated.iter().collect();
        let all = recorded.iter().all(|text| {
            let translated = self.ids.text(text);
            let same = left
                .iter()
                .position(|other| translated.eq_ignore_ascii_case(other));
            let at = same.or_else(|| left.iter().position(|other| self.texts(text, other)));
            at.map(|at| left.remove(at)).is_some()
        });
        all && left.is_empty()
    }

    fn files(&mut self, recorded: &FilesAnswer, simulated: &FilesAnswer) {
        match (recorded, simulated) {
            (FilesAnswer::List(recorded), FilesAnswer::List(simulated)) => {
                let sorted = |entries: &[DirEntry]| {
                    let entries = entries.iter().map(|entry| DirEntry {
                        name: entry.name.clone(),
                        stat: self.stat(&entry.stat),
                    });
                    let mut entries: Vec<_> = entries.collect();
                    entries.sort_by_key(|entry| self.ids.text(&entry.name).to_lowercase());
                    entries
                };
                let (recorded, simulated) = (sorted(recorded), sorted(simulated));
                self.plain("entries", &recorded, &simulated);
            }
            (FilesAnswer::ReadFile(recorded), FilesAnswer::ReadFile(simulated)) => {
                let text = |bytes: &csi_proxy::os::Bytes| {
                    serde_json::from_slice::<Json>(&bytes.0)
                        .unwrap_or_else(|_| serde_json::json!(bytes))
                };
                self.plain("contents", &text(recorded), &text(simulated));
            }
            (FilesAnswer::Stat(recorded), FilesAnswer::Stat(simulated)) => {
                let (recorded, simulated) = (self.stat(recorded), self.stat(simulated));
                self.plain("stat", &recorded, &simulated);
            }
            _ => self.plain("answer", recorded, simulated),
        }
    }

    /// What of it is compared.
    fn stat(&self, stat: &Stat) -> Stat {
        Stat {
            size: if self.same_space { stat.size } else { 0 },
            ..stat.clone()
        }
    }

    fn mount_points(&mut self, recorded: &MountPointsAnswer, simulated: &MountPointsAnswer) {
        use MountPointsAnswer::{MountPointsOf, Space};
        match (recorded, simulated) {
            (MountPointsOf(recorded), MountPointsOf(simulated)) => {
                if !self.sets(recorded, simulated) {
                    self.differ("paths", shown(recorded), shown(simulated));
                }
            }
            (Space(recorded), Space(simulated)) if !self.same_space => {
                self.plain("total", &recorded.total, &simulated.total);
            }
            _ => self.plain("answer", recorded, simulated),
        }
    }

    fn devices(&mut self, recorded: &DevicesAnswer, simulated: &DevicesAnswer) {
        match (recorded, simulated) {
            (DevicesAnswer::ReadRange(recorded), DevicesAnswer::ReadRange(simulated)) => {
                self.ranges(&recorded.0, &simulated.0);
            }
            (DevicesAnswer::DeviceIds(recorded), DevicesAnswer::DeviceIds(simulated)) => {
                // Which id a disk has is its own; that it has one, or none, is compared.
                let has_id = |bytes: &[u8]| page83::device_id(bytes).map(|id| id.is_some());
                let (recorded, simulated) = (has_id(&recorded.0), has_id(&simulated.0));
                if recorded != simulated {
                    self.differ(
                        "page 83 id",
                        shown_debug(&recorded),
                        shown_debug(&simulated),
                    );
                }
            }
            (DevicesAnswer::DeviceNumber(recorded), DevicesAnswer::DeviceNumber(simulated)) => {
                let number = u64::from(recorded.number);
                self.plain("device type", &recorded.device_type, &simulated.device_type);
                self.plain("partition", &recorded.partition, &simulated.partition);
                if self.ids.number(number) != u64::from(simulated.number) {
                    self.differ("number", recorded.number, simulated.number);
                }
            }
            _ => self.plain("answer", recorded, simulated),
        }
    }

    /// What the library sees in a range: whether it is empty, and known signatures.
    fn ranges(&mut self, recorded: &[u8], simulated: &[u8]) {
        let (recorded, simulated) = (Contents::of_range(recorded), Contents::of_range(simulated));
        let seen = |contents: &Contents| match contents {
            Contents::Range {
                length,
                fill,
                foreign,
                marks,
                ..
            } => {
                // Where content is known, its other bytes do not matter.
                let foreign = foreign.filter(|_| marks.is_empty());
                (*length, (*fill, foreign, marks.clone()))
            }
            _ => (0, (0, None, Vec::new())),
        };
        if seen(&recorded) != seen(&simulated) {
            self.differ("bytes", shown(&recorded), shown(&simulated));
        }
    }

    fn virtual_disks(&mut self, recorded: &VirtualDisksAnswer, simulated: &VirtualDisksAnswer) {
        use VirtualDisksAnswer::{VirtualDiskInfo, VirtualDiskPath};
        match (recorded, simulated) {
            (VirtualDiskPath(recorded), VirtualDiskPath(simulated)) => {
                match (drive_number(&recorded.0), drive_number(&simulated.0)) {
                    (Some(number), Some(other)) => {
                        self.ids
                            .bind(Kind::Number, &number.to_string(), &other.to_string());
                    }
                    _ => self.plain("path", recorded, simulated),
                }
            }
            (VirtualDiskInfo(recorded), VirtualDiskInfo(simulated)) if !self.same_space => {
                self.plain(
                    "virtual_size",
                    &recorded.virtual_size,
                    &simulated.virtual_size,
                );
                self.plain("attached", &recorded.attached, &simulated.attached);
            }
            _ => self.plain("answer", recorded, simulated),
        }
    }

    fn locks(&mut self, recorded: &LocksAnswer, simulated: &LocksAnswer) {
        let (LocksAnswer::TryLock(recorded), LocksAnswer::TryLock(simulated)) =
            (recorded, simulated)
        else {
            return self.plain("answer", recorded, simulated);
        };
        match (recorded, simulated) {
            (Some(token), Some(other)) => {
                let (token, other) = (token.0.to_string(), other.0.to_string());
                self.ids.bind(Kind::Lock, &token, &other);
            }
            (None, None) => {}
            _ => {
                let held = |token: &Option<_>| match token {
                    Some(_) => "taken",
                    None => "held by another",
                };
                self.differ("lock", held(recorded), held(simulated));
            }
        }
    }

    /// Plain data in which only texts can be ids.
    fn plain(&mut self, place: &str, recorded: &impl Serialize, simulated: &impl Serialize) {
        match (
            serde_json::to_value(recorded),
            serde_json::to_value(simulated),
        ) {
            (Ok(recorded), Ok(simulated)) => self.json(place, &recorded, &simulated),
            _ => self.differ(place, "cannot be shown", "cannot be shown"),
        }
    }

    fn json(&mut self, place: &str, recorded: &Json, simulated: &Json) {
        match (recorded, simulated) {
            (Json::Object(fields), Json::Object(others)) => {
                let names: BTreeSet<_> = fields.keys().chain(others.keys()).collect();
                for name in names {
                    let of = |fields: &serde_json::Map<String, Json>| {
                        fields.get(name).cloned().unwrap_or(Json::Null)
                    };
                    let place = match place {
                        "answer" => name.clone(),
                        _ => format!("{place}.{name}"),
                    };
                    self.json(&place, &of(fields), &of(others));
                }
            }
            (Json::Array(items), Json::Array(others)) if items.len() == others.len() => {
                for (index, (item, other)) in items.iter().zip(others).enumerate() {
                    self.json(&format!("{place}.{index}"), item, other);
                }
            }
            (Json::String(text), Json::String(other)) => {
                let same = self.ids.text(text) == *other || self.texts(text, other);
                if !same {
                    self.differ(place, text, other);
                }
            }
            _ if recorded == simulated => {}
            _ => self.differ(place, recorded, simulated),
        }
    }

    fn differ(&mut self, place: &str, recorded: impl ToString, simulated: impl ToString) {
        self.found.push(Found {
            place: place.to_owned(),
            recorded: cut(recorded.to_string()),
            simulated: cut(simulated.to_string()),
        });
    }
}

fn shown_result(result: &PortResult<Answer>) -> String {
    match result {
        Ok(Answer::Devices(DevicesAnswer::ReadRange(bytes))) => {
            shown(&Contents::of_range(&bytes.0))
        }
        Ok(Answer::Files(FilesAnswer::ReadFile(bytes))) => format!("{} bytes", bytes.0.len()),
        Ok(answer) => shown(answer),
        Err(error) => error.to_string(),
    }
}

fn shown(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn shown_debug(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

/// Long values are cut off in messages.
fn cut(text: String) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
