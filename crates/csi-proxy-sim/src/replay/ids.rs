//! Ids that cannot be equal on two nodes, and which of them name the same thing.

use std::collections::HashMap;

use csi_proxy::cim::{Argument, Associators, CimCall, Invoke, ObjectPath, Query, Target};
use csi_proxy::os::{DevicesCall, FilesCall, LockName, LockToken, LocksCall};
use csi_proxy::port::{Call, CallId};
use csi_proxy::{DevicePath, DiskNumber};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// A partition or volume.
    Guid,
    /// `MSFT_Disk.UniqueId`.
    Disk,
    /// An object path.
    Object,
    /// A disk as a device.
    Device,
    /// A disk's number.
    Number,
    /// A lock that is held.
    Lock,
    /// A call that was given up.
    Call,
    /// An iSCSI session or connection.
    Session,
}

impl Kind {
    /// Whether such an id names the same thing for as long as that exists. Others are given
    /// to the next one when a disk goes or a process ends: what they named last counts.
    fn is_lasting(self) -> bool {
        matches!(self, Self::Guid | Self::Disk)
    }
}

/// The recorded ids, each with the one that the simulated node has in its place.
#[derive(Debug, Default)]
pub(super) struct Ids {
    simulated: HashMap<(Kind, String), String>,
    recorded: HashMap<(Kind, String), String>,
}

impl Ids {
    /// Both stand in the same place. Answers false when they are known to name two things.
    pub(super) fn bind(&mut self, kind: Kind, recorded: &str, simulated: &str) -> bool {
        let key = |text: &str| (kind, text.to_lowercase());
        let (from, to) = (key(recorded), key(simulated));
        let known = self.simulated.get(&from);
        match (known, self.recorded.get(&to)) {
            (Some(known), _) if kind.is_lasting() => return *known == to.1,
            (None, Some(_)) if kind.is_lasting() => return false,
            _ => {}
        }
        self.recorded.insert(to, from.1.clone());
        // As it is spelt, since it is put into calls.
        let simulated = match kind.is_lasting() {
            true => simulated.to_lowercase(),
            false => simulated.to_owned(),
        };
        self.simulated.insert(from, simulated);
        true
    }

    /// The simulated node's id for a recorded one, if there is one.
    pub(super) fn get(&self, kind: Kind, recorded: &str) -> Option<&str> {
        let key = (kind, recorded.to_lowercase());
        self.simulated.get(&key).map(String::as_str)
    }

    /// The same for a disk's number.
    pub(super) fn number(&self, recorded: u64) -> u64 {
        let number = self.get(Kind::Number, &recorded.to_string());
        number
            .and_then(|text| text.parse().ok())
            .unwrap_or(recorded)
    }

    /// A text with the simulated node's ids in the place of the recorded ones.
    pub(super) fn text(&self, text: &str) -> String {
        let whole = [Kind::Object, Kind::Device, Kind::Disk, Kind::Session];
        if let Some(id) = whole.iter().find_map(|kind| self.get(*kind, text)) {
            return id.to_owned();
        }
        if let Some(number) = drive_number(text) {
            let number = u32::try_from(self.number(number)).unwrap_or(u32::MAX);
            return DevicePath::disk(DiskNumber(number)).0;
        }
        let mut translated = text.to_owned();
        for (start, guid) in guids(text) {
            if let Some(simulated) = self.get(Kind::Guid, guid) {
                translated.replace_range(start..start + guid.len(), simulated);
            }
        }
        translated
    }

    /// A call with the simulated node's ids in the place of the recorded ones.
    pub(super) fn call(&self, call: &Call) -> Call {
        match call {
            Call::Cim(CimCall::Query(query)) => {
                let mut query = query.clone();
                self.conditions(&mut query);
                CimCall::Query(query).into()
            }
            Call::Cim(CimCall::Associators(request)) => {
                let of = self.path(&request.of);
                CimCall::Associators(Associators {
                    of,
                    ..request.clone()
                })
                .into()
            }
            Call::Cim(CimCall::Invoke(invoke)) => CimCall::Invoke(self.invoke(invoke)).into(),
            Call::Cim(CimCall::IsRunning(CallId(id))) => {
                CimCall::IsRunning(CallId(self.integer(Kind::Call, *id))).into()
            }
            Call::Locks(LocksCall::TryLock(LockName(name))) => {
                LocksCall::TryLock(LockName(self.lock_name(name))).into()
            }
            Call::Locks(LocksCall::Unlock(LockToken(token))) => {
                LocksCall::Unlock(LockToken(self.integer(Kind::Lock, *token))).into()
            }
            // Their bytes are long, and only a record of a format has ids in it.
            Call::Files(FilesCall::WriteFile(request)) => {
                let mut request = request.clone();
                request.at = self.plain(&request.at);
                if let Ok(text) = std::str::from_utf8(&request.contents.0)
                    && let Ok(record) = serde_json::from_str::<Value>(text)
                {
                    request.contents.0 = self.value(record).to_string().into_bytes();
                }
                FilesCall::WriteFile(request).into()
            }
            Call::Files(call) => self.plain(call).into(),
            Call::MountPoints(call) => self.plain(call).into(),
            Call::Devices(DevicesCall::ReadRange(request)) => {
                let mut request = request.clone();
                request.device = self.plain(&request.device);
                DevicesCall::ReadRange(request).into()
            }
            Call::Devices(call) => self.plain(call).into(),
            Call::VirtualDisks(call) => self.plain(call).into(),
        }
    }

    fn conditions(&self, query: &mut Query) {
        for condition in &mut query.conditions {
            let is_number = is_disk_number(&query.class, &condition.property);
            match &mut condition.value {
                Argument::Integer(number) if is_number => *number = self.number(*number),
                Argument::Text(text) => *text = self.text(text),
                _ => {}
            }
        }
    }

    fn invoke(&self, invoke: &Invoke) -> Invoke {
        let mut invoke = invoke.clone();
        if let Target::Instance { path, .. } = &mut invoke.target {
            *path = self.path(path);
        }
        for argument in invoke.arguments.values_mut() {
            if let Argument::Text(text) = argument {
                *text = self.text(text);
            }
        }
        invoke
    }

    fn path(&self, path: &ObjectPath) -> ObjectPath {
        ObjectPath(self.text(&path.0))
    }

    fn integer(&self, kind: Kind, recorded: u64) -> u64 {
        let simulated = self.get(kind, &recorded.to_string());
        simulated
            .and_then(|text| text.parse().ok())
            .unwrap_or(recorded)
    }

    /// A disk's lock has the disk's unique id in its name.
    fn lock_name(&self, name: &str) -> String {
        match name.split_once(':') {
            Some((kind, id)) => format!("{kind}:{}", self.text(id)),
            None => name.to_owned(),
        }
    }

    /// A request of which only texts are ids.
    fn plain<T: Serialize + DeserializeOwned + Clone>(&self, request: &T) -> T {
        let translated = serde_json::to_value(request).map(|value| self.value(value));
        translated
            .and_then(serde_json::from_value)
            .unwrap_or_else(|_| request.clone())
    }

    /// Plain data with every text translated.
    pub(super) fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields
                .into_iter()
                .map(|(name, value)| (name, self.value(value)))
                .collect(),
            other => other,
        }
    }
}

/// Whether a property holds a disk's number.
pub(super) fn is_disk_number(class: &str, property: &str) -> bool {
    match property {
        "DiskNumber" => true,
        "Number" => class == "MSFT_Disk",
        _ => false,
    }
}

/// The disk's number in `\\.\PhysicalDrive3`.
pub(super) fn drive_number(text: &str) -> Option<u64> {
    const PREFIX: &str = r"\\.\PhysicalDrive";
    let (prefix, number) = text.split_at_checked(PREFIX.len())?;
    let is_one = prefix.eq_ignore_ascii_case(PREFIX);
    number.parse().ok().filter(|_| is_one)
}

/// The GUIDs in a text, with their places.
pub(super) fn guids(text: &str) -> Vec<(usize, &str)> {
    const LENGTH: usize = 36;
    let mut found = Vec::new();
    let mut from = 0;
    while from + LENGTH <= text.len() {
        match text.get(from..from + LENGTH).filter(|part| is_guid(part)) {
            Some(guid) => {
                found.push((from, guid));
                from += LENGTH;
            }
            None => from += 1,
        }
    }
    found
}

/// Whether a text is `8-4-4-4-12` hexadecimal digits.
fn is_guid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "11111111-2222-4333-8444-555555555555";
    const TWO: &str = "AAAAAAAA-BBBB-4CCC-8DDD-EEEEEEEEEEEE";

    #[test]
    fn a_guid_is_translated_wherever_it_stands_and_in_any_case() {
        let mut ids = Ids::default();
        assert!(ids.bind(Kind::Guid, TWO, ONE));
        let text = format!(r"\\?\Volume{{{}}}\", TWO.to_lowercase());
        assert_eq!(ids.text(&text), format!(r"\\?\Volume{{{ONE}}}\"));
        assert_eq!(ids.text("ö no guid"), "ö no guid");
    }

    #[test]
    fn a_lasting_id_names_one_thing() {
        let mut ids = Ids::default();
        assert!(ids.bind(Kind::Disk, "a", "x"));
        assert!(ids.bind(Kind::Disk, "A", "X"));
        assert!(!ids.bind(Kind::Disk, "a", "y"));
        assert!(!ids.bind(Kind::Disk, "b", "x"));
        assert!(ids.bind(Kind::Number, "1", "2"));
        assert!(ids.bind(Kind::Number, "1", "3"));
        assert_eq!(ids.text(r"\\.\PHYSICALDRIVE1"), r"\\.\PhysicalDrive3");
    }

    #[test]
    fn the_name_of_a_lock_follows_the_disk() {
        let mut ids = Ids::default();
        ids.bind(Kind::Disk, "6002AB", "6002cd");
        let call = |name: &str| Call::from(LocksCall::TryLock(LockName(name.to_owned())));
        assert_eq!(ids.call(&call("disk:6002AB")), call("disk:6002cd"));
        assert_eq!(ids.call(&call("share:x")), call("share:x"));
    }
}
