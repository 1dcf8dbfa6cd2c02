//! The table of all versions: what a server serves, a client finds and the documentation lists.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::transport;

/// A group of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Disks: find, prepare, online and offline.
    Disk,
    /// Directories and links.
    Filesystem,
    /// Targets of the iSCSI initiator.
    Iscsi,
    /// Global mappings of SMB shares.
    Smb,
    /// The BIOS and the services of the node.
    System,
    /// Volumes: format, mount, measure, grow.
    Volume,
}

impl Group {
    /// All groups.
    pub const ALL: [Self; 6] = [
        Self::Disk,
        Self::Filesystem,
        Self::Iscsi,
        Self::Smb,
        Self::System,
        Self::Volume,
    ];

    /// The name as in the names of pipes: `disk`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Filesystem => "filesystem",
            Self::Iscsi => "iscsi",
            Self::Smb => "smb",
            Self::System => "system",
            Self::Volume => "volume",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Group {
    type Err = UnknownGroup;

    fn from_str(text: &str) -> Result<Self, UnknownGroup> {
        Self::ALL
            .into_iter()
            .find(|group| group.name() == text)
            .ok_or_else(|| UnknownGroup(text.to_owned()))
    }
}

/// A text that names no group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no API group {0:?}: expected disk, filesystem, iscsi, smb, system or volume")]
pub struct UnknownGroup(String);

/// One version of a group: one service on one pipe.
#[derive(Debug)]
pub struct Api {
    /// The group.
    pub group: Group,
    /// The version, which is the protobuf package too: `v1beta2`.
    pub version: &'static str,
    /// The service's full name: `v1beta2.Disk`.
    pub service: &'static str,
    /// The methods in the order of the `.proto` file.
    pub methods: &'static [Method],
    descriptors: &'static [u8],
}

/// One method of a version.
#[derive(Debug)]
pub struct Method {
    /// The name: `Rescan`.
    pub name: &'static str,
    /// The path on the wire: `/v1.Disk/Rescan`.
    pub path: &'static str,
    /// The message that it takes: `RescanRequest`.
    pub request: &'static str,
    /// The message that it answers: `RescanResponse`.
    pub response: &'static str,
    /// It only asks and changes nothing on the node (`idempotency_level = NO_SIDE_EFFECTS`).
    pub read_only: bool,
}

/// All versions, sorted by group and version.
pub static API: [Api; 23] = include!(concat!(env!("OUT_DIR"), "/api.rs"));

impl Api {
    /// The version of a group, if there is one.
    pub fn find(group: Group, version: &str) -> Option<&'static Self> {
        API.iter()
            .find(|api| api.group == group && api.version == version)
    }

    /// The name that pipes and sockets carry: `csi-proxy-disk-v1`.
    pub fn name(&self) -> String {
        format!("csi-proxy-{}-{}", self.group, self.version)
    }

    /// The named pipe on Windows: `\\.\pipe\csi-proxy-disk-v1`.
    pub fn pipe(&self) -> String {
        format!(r"\\.\pipe\{}", self.name())
    }

    /// The pipe or socket of this version below a directory, as this system names it:
    /// `csi-proxy-disk-v1` on Windows, `csi-proxy-disk-v1.sock` elsewhere.
    pub fn endpoint_in(&self, directory: &Path) -> PathBuf {
        directory.join(transport::file_name(&self.name()))
    }

    /// The method with that path on the wire.
    pub fn method_at(&self, path: &str) -> Option<&'static Method> {
        self.methods.iter().find(|method| method.path == path)
    }

    /// The compiled `.proto` file, an encoded `google.protobuf.FileDescriptorSet`, as gRPC
    /// reflection wants it.
    pub fn file_descriptor_set(&self) -> &'static [u8] {
        self.descriptors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_found_by_its_group_and_name() {
        for api in &API {
            let found = Api::find(api.group, api.version).expect("in the table");
            assert_eq!(found.service, api.service);
            assert_eq!(found.group, api.group);
        }
        assert!(Api::find(Group::System, "v1").is_none());
    }

    #[test]
    fn a_group_is_read_from_its_name_and_from_nothing_else() {
        for group in Group::ALL {
            assert_eq!(group.to_string().parse(), Ok(group));
        }
        let error = "Disk".parse::<Group>().expect_err("names are lower case");
        assert!(error.to_string().contains("\"Disk\""), "{error}");
    }

    #[test]
    fn a_method_is_found_by_its_path_in_its_own_version_only() {
        let v1 = Api::find(Group::Disk, "v1").expect("disk v1");
        let rescan = v1.method_at("/v1.Disk/Rescan").expect("Rescan");
        assert_eq!((rescan.name, rescan.read_only), ("Rescan", false));
        assert!(v1.method_at("/v1beta1.Disk/Rescan").is_none());
        assert!(
            v1.method_at("/v1.Disk/ListDiskIDs")
                .is_some_and(|m| m.read_only)
        );
    }
}
