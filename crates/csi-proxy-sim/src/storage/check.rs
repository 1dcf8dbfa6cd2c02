//! Whether a described disk can be.

use super::describe::{SimDisk, SimPartition, SimStyle};
use super::disk_layout::SMALLEST_GPT;
use super::medium::{Medium, Partition, SECTOR};

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

impl SimDisk {
    /// Checks that there can be such a disk.
    pub fn check(&self) -> Result<(), NotADisk> {
        if self.size == 0 || !self.size.is_multiple_of(SECTOR) {
            let reason = format!("{} is no multiple of 512 above 0", self.size);
            return Err(NotADisk::new("size", reason));
        }
        if self.style == SimStyle::Gpt && self.size < SMALLEST_GPT {
            let reason = format!("a GPT disk has at least {SMALLEST_GPT} bytes");
            return Err(NotADisk::new("size", reason));
        }
        if self.style == SimStyle::Raw && !self.partitions.is_empty() {
            let reason = "a disk with partitions needs the style gpt or mbr";
            return Err(NotADisk::new("partitions", reason));
        }
        if self.style == SimStyle::Mbr && self.partitions.len() > 4 {
            return Err(NotADisk::new("partitions", "an MBR disk has at most 4"));
        }
        self.check_partitions()
    }

    fn check_partitions(&self) -> Result<(), NotADisk> {
        let medium = super::describe::medium_of(&mut super::Storage::default(), self);
        let reserved = medium.partitions.len() - self.partitions.len();
        for (index, partition) in self.partitions.iter().enumerate() {
            let field = |name: &str| format!("partitions[{index}].{name}");
            partition
                .check()
                .map_err(|(name, reason)| NotADisk::new(field(name), reason))?;
            let made = by_number(&medium, index + reserved);
            let usable = medium.usable();
            let fits = made.size > 0 && made.offset >= usable.start && made.end() <= usable.end;
            let overlaps = medium.partitions.iter().any(|other| {
                other.number != made.number
                    && other.offset < made.end()
                    && made.offset < other.end()
            });
            if !fits || overlaps {
                let reason = format!(
                    "{} bytes at {} do not fit: the disk has room from {} to {}, and partitions \
                     must not overlap",
                    made.size, made.offset, usable.start, usable.end
                );
                return Err(NotADisk::new(field("size"), reason));
            }
        }
        Ok(())
    }
}

/// The partition that was made as the `index`-th.
fn by_number(medium: &Medium, index: usize) -> &Partition {
    let number = index + 1;
    let mut partitions = medium.partitions.iter();
    let made = partitions.find(|one| usize::try_from(one.number) == Ok(number));
    made.unwrap_or(&medium.partitions[0])
}

impl SimPartition {
    fn check(&self) -> Result<(), (&'static str, String)> {
        if let Some(letter) = self.drive_letter
            && !letter.is_ascii_uppercase()
        {
            return Err(("drive_letter", format!("{letter:?} is not one of A to Z")));
        }
        if let Some(guid) = &self.guid
            && csi_proxy::VolumeId::new(&format!(r"\\?\Volume{{{guid}}}\")).is_err()
        {
            return Err(("guid", format!("{guid:?} is no GUID (8-4-4-4-12 digits)")));
        }
        Ok(())
    }
}
