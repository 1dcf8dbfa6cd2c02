//! Whether a described disk can be.

use super::describe::{self, SimDisk, SimPartition, SimStyle};
use super::disk_layout::SMALLEST_GPT;
use super::medium::SECTOR;

/// What is wrong with a described disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct NotADisk {
    field: String,
    reason: String,
}

impl NotADisk {
    fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn parts(self) -> (String, String) {
        (self.field, self.reason)
    }
}

/// Windows counts the bytes of a disk with a sign, in 64 bits.
///
/// Source: `GET_LENGTH_INFORMATION`,
/// <https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-get_length_information>
pub(crate) const LARGEST: u64 = (1 << 63) - SECTOR;
/// The entries of a GPT as Windows writes it, its reserved partition's among them.
const GPT_PARTITIONS: usize = 128;
/// The length of an identifier is one byte on the device.
const LONGEST_IDENTIFIER: usize = 255;
/// The allocation units of NTFS.
///
/// Source: <https://learn.microsoft.com/windows-server/storage/file-server/ntfs-overview>
const ALLOCATION_UNITS: std::ops::RangeInclusive<u32> = 512..=2 << 20;

impl SimDisk {
    /// Checks that there can be such a disk.
    pub fn check(&self) -> Result<(), NotADisk> {
        if self.size == 0 || self.size > LARGEST || !self.size.is_multiple_of(SECTOR) {
            let reason = format!(
                "{}: expected a multiple of 512 from 512 to {LARGEST}",
                self.size
            );
            return Err(NotADisk::new("size", reason));
        }
        if self.number == Some(u32::MAX) {
            let reason = format!("{}: expected 0 to {}", u32::MAX, u32::MAX - 1);
            return Err(NotADisk::new("number", reason));
        }
        if self.style == SimStyle::Gpt && self.size < SMALLEST_GPT {
            let reason = format!("a GPT disk has at least {SMALLEST_GPT} bytes");
            return Err(NotADisk::new("size", reason));
        }
        let identifiers = self.page83.iter().flatten();
        for (index, identifier) in identifiers.enumerate() {
            if identifier.value.len() > LONGEST_IDENTIFIER {
                let reason = format!("it has at most {LONGEST_IDENTIFIER} bytes");
                return Err(NotADisk::new(format!("page83[{index}].value"), reason));
            }
        }
        self.check_partitions()
    }

    fn check_partitions(&self) -> Result<(), NotADisk> {
        let mut medium = describe::without_partitions(&mut super::Storage::default(), self);
        let most = match self.style {
            SimStyle::Raw if !self.partitions.is_empty() => {
                let reason = "a disk with partitions needs the style gpt or mbr";
                return Err(NotADisk::new("partitions", reason));
            }
            SimStyle::Raw => return Ok(()),
            SimStyle::Mbr => 4,
            SimStyle::Gpt => GPT_PARTITIONS - medium.partitions.len(),
        };
        if self.partitions.len() > most {
            let reason = format!("there is room for {most}");
            return Err(NotADisk::new("partitions", reason));
        }
        for (index, partition) in self.partitions.iter().enumerate() {
            let field = |name: &str| format!("partitions[{index}].{name}");
            partition
                .check()
                .map_err(|(name, reason)| NotADisk::new(field(name), reason))?;
            let (usable, wanted) = (medium.usable(), describe::place(&medium, partition));
            let aligned = wanted.start.is_multiple_of(SECTOR) && wanted.end.is_multiple_of(SECTOR);
            let fits = wanted.start < wanted.end
                && wanted.start >= usable.start
                && wanted.end <= usable.end;
            let overlaps = medium
                .partitions
                .iter()
                .any(|other| other.offset < wanted.end && wanted.start < other.end());
            if !aligned || !fits || overlaps {
                let reason = format!(
                    "{} bytes at {} do not fit: the disk has room from {} to {}, and partitions \
                     are whole sectors of 512 bytes and do not overlap",
                    wanted.end - wanted.start,
                    wanted.start,
                    usable.start,
                    usable.end
                );
                return Err(NotADisk::new(field("size"), reason));
            }
            let seed = u64::try_from(index).unwrap_or(u64::MAX);
            describe::add_partition(&mut medium, self.style, partition, seed);
        }
        Ok(())
    }
}

impl SimPartition {
    fn check(&self) -> Result<(), (&'static str, String)> {
        if let Some(letter) = self.drive_letter
            && !letter.is_ascii_uppercase()
        {
            return Err(("drive_letter", format!("{letter:?} is not one of A to Z")));
        }
        if let Some(unit) = self.allocation_unit
            && !(unit.is_power_of_two() && ALLOCATION_UNITS.contains(&unit))
        {
            let reason = format!("{unit}: expected a power of two from 512 to 2097152");
            return Err(("allocation_unit", reason));
        }
        if let Some(guid) = &self.guid
            && csi_proxy::VolumeId::new(&format!(r"\\?\Volume{{{guid}}}\")).is_err()
        {
            return Err(("guid", format!("{guid:?} is no GUID (8-4-4-4-12 digits)")));
        }
        Ok(())
    }
}
