//! The fields of requests: each is checked once, here, and an error names it.

use std::collections::BTreeMap;
use std::fmt;

use csi_proxy::volume::FileSystem;
use csi_proxy::{Error, ErrorKind, HostPath, Result, Secret};

use crate::driver::{Access, Capability, SizeRange};
use crate::proto::volume_capability::AccessType;
use crate::proto::volume_capability::access_mode::Mode;
use crate::proto::{CapacityRange, Topology, VolumeCapability};

/// CSI's limit for text, in bytes.
const TEXT_LIMIT: usize = 128;
/// CSI's limit for all keys and values of a map together, in bytes.
const MAP_LIMIT: usize = 4096;

/// The most characters of a value that an error shows.
const SHOWN: usize = 200;

/// The request whose fields are read.
#[derive(Clone, Copy)]
pub(crate) struct Fields(pub(crate) &'static str);

impl Fields {
    /// A field that is wrong: its name, what it holds and what was expected.
    pub(crate) fn wrong(self, field: &str, detail: impl fmt::Display) -> Error {
        let object = format!("field {field}");
        Error::new(ErrorKind::InvalidArgument, self.0, object, detail)
    }

    /// A name or an id: there, not too long, without control characters.
    pub(crate) fn text(self, field: &str, text: &str) -> Result<String> {
        if text.is_empty() {
            return Err(self.wrong(field, "is missing"));
        }
        if text.len() > TEXT_LIMIT {
            let detail = format!("has {} bytes, expected at most {TEXT_LIMIT}", text.len());
            return Err(self.wrong(field, detail));
        }
        if let Some(found) = text.chars().find(|char| char.is_control()) {
            let detail = format!("{text:?} has the control character {found:?}");
            return Err(self.wrong(field, detail));
        }
        Ok(text.to_owned())
    }

    /// A path of the host, below a drive.
    pub(crate) fn path(self, field: &str, text: &str) -> Result<HostPath> {
        if text.is_empty() {
            return Err(self.wrong(field, "is missing"));
        }
        let path = HostPath::from_kubelet(text).map_err(|error| {
            let (path, reason) = (shown(text), error.reason);
            self.wrong(field, format!("the path {path} {reason}"))
        })?;
        match path.file_name() {
            Some(_) => Ok(path),
            None => Err(self.wrong(field, format!("{path} is a whole drive"))),
        }
    }

    /// A map of text within CSI's limit. Its values are not shown.
    pub(crate) fn map(
        self,
        field: &str,
        map: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>> {
        let bytes: usize = map.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes > MAP_LIMIT {
            let detail = format!("has {bytes} bytes, expected at most {MAP_LIMIT}");
            return Err(self.wrong(field, detail));
        }
        Ok(map.clone())
    }

    /// Secrets, from here on never shown.
    pub(crate) fn secrets(
        self,
        secrets: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, Secret>> {
        let secrets = self.map("secrets", secrets)?;
        let hide = |(key, value)| (key, Secret::new(value));
        Ok(secrets.into_iter().map(hide).collect())
    }

    /// The capability that a volume is staged or published with.
    pub(crate) fn capability(self, capability: Option<&VolumeCapability>) -> Result<Capability> {
        match capability {
            Some(capability) => self.one_capability("volume_capability", capability),
            None => Err(self.wrong("volume_capability", "is missing")),
        }
    }

    /// All the capabilities that a volume must have; at least one.
    pub(crate) fn capabilities(self, capabilities: &[VolumeCapability]) -> Result<Vec<Capability>> {
        let field = "volume_capabilities";
        if capabilities.is_empty() {
            return Err(self.wrong(field, "is missing"));
        }
        capabilities
            .iter()
            .enumerate()
            .map(|(index, capability)| {
                self.one_capability(&format!("{field}[{index}]"), capability)
            })
            .collect()
    }

    fn one_capability(self, field: &str, capability: &VolumeCapability) -> Result<Capability> {
        let access = self.access(field, capability)?;
        let mount = match &capability.access_type {
            Some(AccessType::Mount(mount)) => mount,
            Some(AccessType::Block(_)) => {
                let detail = "raw block volumes are not offered to Windows containers, \
                              expected mount";
                return Err(self.wrong(&format!("{field}.access_type"), detail));
            }
            None => {
                let detail = "is missing, expected mount";
                return Err(self.wrong(&format!("{field}.access_type"), detail));
            }
        };
        if !mount.mount_flags.is_empty() {
            let flags: Vec<_> = mount.mount_flags.iter().map(String::as_str).collect();
            let flags = shown(&flags.join(","));
            let detail = format!("{flags}: Windows has no mount flags");
            return Err(self.wrong(&format!("{field}.mount.mount_flags"), detail));
        }
        if !mount.volume_mount_group.is_empty() {
            let detail = "volumes have no mount group on Windows";
            return Err(self.wrong(&format!("{field}.mount.volume_mount_group"), detail));
        }
        let file_system = match mount.fs_type.is_empty() {
            true => None,
            false => Some(self.fs_type(&format!("{field}.mount.fs_type"), &mount.fs_type)?),
        };
        Ok(Capability {
            access,
            file_system,
        })
    }

    fn access(self, field: &str, capability: &VolumeCapability) -> Result<Access> {
        let mode = capability.access_mode.unwrap_or_default().mode;
        let problem = match Mode::try_from(mode) {
            Ok(Mode::SingleNodeWriter) => return Ok(Access::ReadWrite),
            Ok(Mode::SingleNodeReaderOnly) => return Ok(Access::ReadOnly),
            Ok(Mode::Unknown) => "is missing".to_owned(),
            Ok(mode) => format!("{} is not supported", mode.as_str_name()),
            Err(_) => format!("{mode} is no access mode of CSI 1.12"),
        };
        let detail = format!("{problem}, expected SINGLE_NODE_WRITER or SINGLE_NODE_READER_ONLY");
        Err(self.wrong(&format!("{field}.access_mode"), detail))
    }

    /// A file system by its name, in any case.
    pub(crate) fn fs_type(self, field: &str, name: &str) -> Result<FileSystem> {
        FileSystem::named(name)
            .ok_or_else(|| self.wrong(field, format!("{}, expected ntfs or refs", shown(name))))
    }

    /// A size; without a range there is no wish.
    pub(crate) fn range(self, range: Option<&CapacityRange>) -> Result<SizeRange> {
        let Some(range) = range else {
            return Ok(SizeRange::default());
        };
        let required = self.bytes("capacity_range.required_bytes", range.required_bytes)?;
        let limit = self.bytes("capacity_range.limit_bytes", range.limit_bytes)?;
        match (required, limit) {
            (Some(required), Some(limit)) if required > limit => {
                let detail = format!("limit_bytes {limit} is less than required_bytes {required}");
                Err(self.wrong("capacity_range", detail))
            }
            _ => Ok(SizeRange { required, limit }),
        }
    }

    fn bytes(self, field: &str, bytes: i64) -> Result<Option<u64>> {
        match u64::try_from(bytes) {
            Ok(0) => Ok(None),
            Ok(bytes) => Ok(Some(bytes)),
            Err(_) => Err(self.wrong(field, format!("{bytes}, expected a number of bytes"))),
        }
    }
}

/// A value as an error shows it, quoted.
pub(crate) fn shown(value: &str) -> String {
    format!("\"{}\"", cut(value))
}

/// A text as an error shows it: without control characters, and cut where it is long, so that
/// what was expected instead is told in any case.
pub(crate) fn cut(text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    let more = match start.len() == text.len() {
        true => String::new(),
        false => format!("… ({} bytes)", text.len()),
    };
    format!("{}{more}", start.escape_debug())
}

/// Whether one of the places is where `here` is; no places at all are everywhere.
pub(crate) fn reachable(places: &[Topology], here: &BTreeMap<String, String>) -> bool {
    let matches = |place: &Topology| {
        place
            .segments
            .iter()
            .all(|(key, value)| here.get(key) == Some(value))
    };
    places.is_empty() || places.iter().any(matches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::volume_capability::{AccessMode, BlockVolume, MountVolume};

    const FIELDS: Fields = Fields("NodeStageVolume");

    fn capability(mode: i32, mount: MountVolume) -> VolumeCapability {
        VolumeCapability {
            access_mode: Some(AccessMode { mode }),
            access_type: Some(AccessType::Mount(mount)),
        }
    }

    /// The error is InvalidArgument and its text has all the parts.
    #[track_caller]
    fn refused<T: fmt::Debug>(result: Result<T>, parts: &[&str]) {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        for part in parts {
            assert!(error.to_string().contains(part), "{part:?} in {error}");
        }
    }

    #[test]
    fn a_text_has_1_to_128_bytes_and_no_control_character() {
        assert_eq!(FIELDS.text("name", "pvc-1 é'\\").unwrap(), "pvc-1 é'\\");
        assert!(FIELDS.text("name", &"a".repeat(128)).is_ok());
        refused(
            FIELDS.text("name", ""),
            &["NodeStageVolume", "field name", "missing"],
        );
        refused(FIELDS.text("name", &"é".repeat(65)), &["130 bytes", "128"]);
        for text in ["a\0", "a\nb", "\u{7f}", "\u{85}"] {
            refused(FIELDS.text("volume_id", text), &["volume_id", "control"]);
        }
    }

    #[test]
    fn a_path_is_below_a_drive() {
        let path = FIELDS.path("target_path", "/var/lib/kubelet/x").unwrap();
        assert_eq!(path.as_str(), r"C:\var\lib\kubelet\x");
        for text in [
            "",
            "/",
            "C:\\",
            "x",
            r"\\h\s\x",
            r"C:\a\..\b",
            "C:\\a\nb",
            "C:\\a\0",
        ] {
            refused(FIELDS.path("target_path", text), &["field target_path"]);
        }
    }

    #[test]
    fn a_capability_is_a_mount_by_one_node() {
        let writer = capability(Mode::SingleNodeWriter.into(), MountVolume::default());
        let expected = Capability {
            access: Access::ReadWrite,
            file_system: None,
        };
        assert_eq!(FIELDS.capability(Some(&writer)).unwrap(), expected);
        let mount = MountVolume {
            fs_type: "NTFS".to_owned(),
            ..Default::default()
        };
        let reader = capability(Mode::SingleNodeReaderOnly.into(), mount);
        let expected = Capability {
            access: Access::ReadOnly,
            file_system: Some(FileSystem::Ntfs),
        };
        assert_eq!(FIELDS.capability(Some(&reader)).unwrap(), expected);
    }

    #[test]
    fn other_capabilities_are_refused_by_name() {
        refused(FIELDS.capability(None), &["volume_capability", "missing"]);
        refused(
            FIELDS.capabilities(&[]),
            &["volume_capabilities", "missing"],
        );
        let empty = VolumeCapability::default();
        refused(FIELDS.capability(Some(&empty)), &["access_mode", "missing"]);
        for mode in [0, 3, 4, 5, 6, 7, 99] {
            let wrong = capability(mode, MountVolume::default());
            refused(
                FIELDS.capability(Some(&wrong)),
                &["volume_capability.access_mode"],
            );
        }
        let block = VolumeCapability {
            access_type: Some(AccessType::Block(BlockVolume {})),
            ..capability(1, MountVolume::default())
        };
        let good = capability(1, MountVolume::default());
        refused(
            FIELDS.capabilities(&[good, block]),
            &["volume_capabilities[1]", "block"],
        );
        let ext4 = MountVolume {
            fs_type: "ext4".to_owned(),
            ..Default::default()
        };
        refused(
            FIELDS.capability(Some(&capability(1, ext4))),
            &["mount.fs_type", "ext4", "ntfs or refs"],
        );
        let flags = MountVolume {
            mount_flags: vec!["noatime".to_owned()],
            ..Default::default()
        };
        refused(
            FIELDS.capability(Some(&capability(1, flags))),
            &["mount_flags", "noatime"],
        );
    }

    #[test]
    fn a_range_has_no_negative_sizes_and_its_ends_in_order() {
        let range = |required_bytes, limit_bytes| {
            FIELDS.range(Some(&CapacityRange {
                required_bytes,
                limit_bytes,
            }))
        };
        assert_eq!(FIELDS.range(None).unwrap(), SizeRange::default());
        let expected = SizeRange {
            required: Some(1),
            limit: Some(2),
        };
        assert_eq!(range(1, 2).unwrap(), expected);
        assert_eq!(range(0, 0).unwrap(), SizeRange::default());
        refused(range(-1, 0), &["required_bytes", "-1"]);
        refused(range(0, -5), &["limit_bytes", "-5"]);
        refused(range(3, 2), &["capacity_range", "3", "2"]);
    }

    #[test]
    fn a_map_is_at_most_4_kib_and_its_values_are_not_shown() {
        let map = |bytes| [("key".to_owned(), "s".repeat(bytes))].into();
        assert!(FIELDS.map("parameters", &map(4093)).is_ok());
        let error = FIELDS.secrets(&map(4094)).unwrap_err().to_string();
        assert!(error.contains("4097") && !error.contains("sss"), "{error}");
    }

    #[test]
    fn a_place_is_reachable_when_all_its_labels_are_here() {
        let place = |pairs: &[(&str, &str)]| Topology {
            segments: pairs
                .iter()
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect(),
        };
        let here = place(&[("node", "n1"), ("zone", "z")]).segments;
        assert!(reachable(&[], &here));
        assert!(reachable(
            &[place(&[("node", "n2")]), place(&[("node", "n1")])],
            &here
        ));
        assert!(!reachable(
            &[place(&[("node", "n1"), ("zone", "y")])],
            &here
        ));
        assert!(!reachable(&[place(&[("rack", "r")])], &here));
    }
}
