//! Names and numbers of disks and volumes, as types.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};

/// The number of a disk (`MSFT_Disk.Number`). Windows gives numbers of removed disks to new
/// ones: it names a disk only as long as that disk is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiskNumber(pub u32);

impl fmt::Display for DiskNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for DiskNumber {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse()
            .ok()
            .filter(|_| digits)
            .map(Self)
            .ok_or_else(|| NotAnId::new("a disk number (decimal digits)", text))
    }
}

/// The path of a disk or volume as a device: `\\.\PhysicalDrive3`, `\\?\scsi#disk…` or
/// `\\?\Volume{guid}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DevicePath(pub String);

impl DevicePath {
    /// The device of a disk.
    pub fn disk(number: DiskNumber) -> Self {
        Self(format!(r"\\.\PhysicalDrive{number}"))
    }
}

impl fmt::Display for DevicePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a volume, `\\?\Volume{guid}\`, with the GUID in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VolumeId(String);

const VOLUME_PREFIX: &str = r"\\?\Volume{";
const VOLUME_SUFFIX: &str = r"}\";

impl VolumeId {
    /// Reads a volume id. The case does not matter; the trailing `\` may be missing.
    pub fn new(text: &str) -> Result<Self, NotAnId> {
        Self::guid_in(text)
            .map(Self::from_guid)
            .ok_or_else(|| NotAnId::new(r"a volume id (\\?\Volume{guid}\)", text))
    }

    fn guid_in(text: &str) -> Option<&str> {
        let prefix = text.get(..VOLUME_PREFIX.len())?;
        let rest = &text[VOLUME_PREFIX.len()..];
        let guid = rest
            .strip_suffix(VOLUME_SUFFIX)
            .or_else(|| rest.strip_suffix('}'))?;
        let ok = prefix.eq_ignore_ascii_case(VOLUME_PREFIX) && is_guid(guid);
        ok.then_some(guid)
    }

    fn from_guid(guid: &str) -> Self {
        let guid = guid.to_ascii_lowercase();
        Self(format!("{VOLUME_PREFIX}{guid}{VOLUME_SUFFIX}"))
    }

    /// The id with its trailing `\`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The GUID alone, in lower case, without braces.
    pub fn guid(&self) -> &str {
        &self.0[VOLUME_PREFIX.len()..self.0.len() - VOLUME_SUFFIX.len()]
    }

    /// The volume as a device: the id without its trailing `\`.
    pub fn device(&self) -> DevicePath {
        DevicePath(self.0[..self.0.len() - 1].to_owned())
    }
}

/// Whether the text is `8-4-4-4-12` hexadecimal digits.
fn is_guid(text: &str) -> bool {
    let mut groups = text.split('-');
    let right = [8, 4, 4, 4, 12].iter().all(|length| {
        groups.next().is_some_and(|group| {
            group.len() == *length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    });
    right && groups.next().is_none()
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for VolumeId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        Self::new(text)
    }
}

impl TryFrom<String> for VolumeId {
    type Error = NotAnId;

    fn try_from(text: String) -> Result<Self, NotAnId> {
        Self::new(&text)
    }
}

impl From<VolumeId> for String {
    fn from(id: VolumeId) -> Self {
        id.0
    }
}

/// A text that is not the id it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {got:?}")]
pub struct NotAnId {
    expected: &'static str,
    got: String,
}

impl NotAnId {
    fn new(expected: &'static str, got: &str) -> Self {
        Self {
            expected,
            got: got.to_owned(),
        }
    }

    /// The error of an operation that was given this text in the field of its request.
    pub fn in_field(&self, operation: &'static str, field: &str) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            operation,
            format_args!("{field} {:?}", self.got),
            format_args!("expected {}", self.expected),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: &str = "6e6fb07c-1a2b-4c3d-8e9f-0123456789ab";

    #[test]
    fn a_volume_id_is_one_whatever_its_case_and_end() {
        let id = VolumeId::new(&format!(r"\\?\Volume{{{GUID}}}\")).unwrap();
        let shouted = format!(r"\\?\VOLUME{{{}}}", GUID.to_uppercase());
        assert_eq!(VolumeId::new(&shouted).unwrap(), id);
        assert_eq!(id.guid(), GUID);
        assert_eq!(id.device().0, format!(r"\\?\Volume{{{GUID}}}"));
    }

    #[test]
    fn other_text_is_not_a_volume_id() {
        for text in [
            "",
            "C:",
            r"\\?\Volume{}\",
            r"\\?\Volume{6e6fb07c}\",
            r"\\?\Volume{6e6fb07c-1a2b-4c3d-8e9f-0123456789ab' OR '1'='1}\",
            r"\\?\Volume{6e6fb07c-1a2b-4c3d-8e9f-0123456789ab}\dir",
            "ööööööö",
        ] {
            assert!(VolumeId::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_disk_number_is_digits_only() {
        assert_eq!("12".parse(), Ok(DiskNumber(12)));
        for text in ["", "+1", "-1", " 1", "1a", "4294967296"] {
            assert!(text.parse::<DiskNumber>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_wrong_id_names_its_field_and_what_was_expected() {
        let error = "1a".parse::<DiskNumber>().unwrap_err();
        let error = error.in_field("disk state", "disk_number");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let shown = error.to_string();
        for part in ["disk state", "disk_number \"1a\"", "decimal digits"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
}
