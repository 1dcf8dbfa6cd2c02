//! Whether a disk or volume is empty, by its bytes: WMI cannot tell an empty one from one
//! with content that it does not know.

mod signatures;

use std::ops::Range;

use crate::error::{ErrorKind, Result};
use crate::ids::DevicePath;
use crate::operation::Operation;
use crate::os::ReadRange;

pub(crate) use signatures::Owner;

/// How much is read at the start and at the end.
const MIB: u32 = 1 << 20;

/// What stands on a device that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The byte, from the start of the device.
    pub(crate) offset: u64,
    /// What is there, in words.
    pub(crate) what: String,
    /// Who writes such content.
    pub(crate) owner: Owner,
}

/// The first and the last MiB of a range, or all of one that is smaller.
struct Ends {
    first: Vec<u8>,
    first_offset: u64,
    last: Vec<u8>,
    last_offset: u64,
}

/// Refuses a range of a device that is not empty, unless the host allows it.
///
/// # Errors
/// `FailedPrecondition` that names the offset and what was found.
pub(crate) fn check_empty(
    operation: &Operation<'_>,
    device: &DevicePath,
    range: Range<u64>,
    object: &str,
) -> Result<()> {
    if operation.host().allows_foreign_content() {
        return Ok(());
    }
    match probe(operation, device, range, object)? {
        None => Ok(()),
        Some(found) => Err(operation.error(
            ErrorKind::FailedPrecondition,
            object,
            format_args!(
                "it is not empty: {} at byte {}; nothing was written",
                found.what, found.offset
            ),
        )),
    }
}

/// What stands in a range of a device; nothing when its ends are each all 0x00 or all 0xFF.
pub(crate) fn probe(
    operation: &Operation<'_>,
    device: &DevicePath,
    range: Range<u64>,
    object: &str,
) -> Result<Option<Found>> {
    let first_offset = range.start;
    let last_offset = range.end.saturating_sub(MIB.into()).max(first_offset);
    let first = read(operation, device, first_offset..range.end, object)?;
    let last = match last_offset == first_offset {
        true => first.clone(),
        false => read(operation, device, last_offset..range.end, object)?,
    };
    Ok(inspect(&Ends {
        first,
        first_offset,
        last,
        last_offset,
    }))
}

/// Reads the start of a device, to learn whether it can be read.
pub(crate) fn check_readable(
    operation: &Operation<'_>,
    device: &DevicePath,
    object: &str,
) -> Result<()> {
    read(operation, device, 0..MIB.into(), object).map(drop)
}

/// The first MiB of a range, or all of one that is smaller.
fn read(
    operation: &Operation<'_>,
    device: &DevicePath,
    range: Range<u64>,
    object: &str,
) -> Result<Vec<u8>> {
    let offset = range.start;
    let left = range.end.saturating_sub(offset);
    let length = u32::try_from(left).map_or(MIB, |left| left.min(MIB));
    let range = ReadRange {
        device: device.clone(),
        offset,
        length,
    };
    let bytes = operation
        .os()
        .read_range(&range, operation.deadline())
        .map_err(|error| operation.port_error(object, error))?
        .0;
    let got = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    match got == length && length > 0 {
        true => Ok(bytes),
        // What was not read is not known to be empty.
        false => Err(operation.error(
            ErrorKind::Internal,
            object,
            format_args!("reading {length} bytes at byte {offset} gave {got}"),
        )),
    }
}

fn inspect(ends: &Ends) -> Option<Found> {
    let first = other_byte(&ends.first);
    let last = other_byte(&ends.last);
    if first.is_none() && last.is_none() {
        return None;
    }
    let known = signatures::at_start(&ends.first, ends.first_offset)
        .or_else(|| signatures::at_end(&ends.last, ends.last_offset));
    known.or_else(|| {
        let (bytes, offset, place) = match (first, last) {
            (Some(place), _) => (&ends.first, ends.first_offset, place),
            (None, Some(place)) => (&ends.last, ends.last_offset, place),
            (None, None) => return None,
        };
        let shown: Vec<_> = bytes[place..]
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Some(Found {
            offset: offset + u64::try_from(place).unwrap_or(u64::MAX),
            what: format!("bytes of no known kind ({})", shown.join(" ")),
            owner: Owner::Unknown,
        })
    })
}

/// The marks of known content that stand in the bytes: where, and their bytes.
pub(crate) fn marks(bytes: &[u8]) -> Vec<(usize, &'static [u8])> {
    signatures::all(bytes)
}

/// The first byte that an empty device would not have there; nothing when there is none.
pub(crate) fn other_byte(bytes: &[u8]) -> Option<usize> {
    let fill = match bytes.first() {
        Some(0xff) => 0xff,
        _ => 0x00,
    };
    // Whole blocks are compared at once: a megabyte is read at each end.
    let empty = [fill; 4096];
    let blocks = bytes.chunks(empty.len()).enumerate();
    let (index, block) = blocks
        .into_iter()
        .find(|(_, block)| **block != empty[..block.len()])?;
    let place = block.iter().position(|byte| *byte != fill)?;
    Some(index * empty.len() + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 1 << 20;

    fn ends(first: Vec<u8>, last: Vec<u8>) -> Ends {
        Ends {
            first,
            first_offset: 0,
            last,
            last_offset: 9 << 20,
        }
    }

    #[test]
    fn uniform_ends_are_empty() {
        for (first, last) in [(0, 0), (0xff, 0xff), (0, 0xff), (0xff, 0)] {
            let ends = ends(vec![first; LENGTH], vec![last; LENGTH]);
            assert_eq!(inspect(&ends), None);
        }
    }

    #[test]
    fn one_other_byte_is_content_and_its_offset_is_named() {
        for place in [0, 1, 511, 4096, LENGTH - 1] {
            for fill in [0, 0xff] {
                let mut bytes = vec![fill; LENGTH];
                bytes[place] = 0x5a;
                let found = inspect(&ends(bytes.clone(), vec![fill; LENGTH])).unwrap();
                let expected = match (place, fill) {
                    // Then the other bytes are what an empty device would not have.
                    (0, 0xff) => 0,
                    _ => place,
                };
                assert_eq!(found.offset, expected as u64, "{fill:#x}");
                let found = inspect(&ends(vec![fill; LENGTH], bytes)).unwrap();
                assert_eq!(found.offset, (9 << 20) + expected as u64);
                assert!(found.what.contains("no known kind"), "{}", found.what);
            }
        }
    }

    #[test]
    fn other_uniform_bytes_are_content() {
        let found = inspect(&ends(vec![0x20; LENGTH], vec![0; LENGTH])).unwrap();
        assert_eq!(found.offset, 0);
        assert!(found.what.contains("20 20 20"), "{}", found.what);
    }

    #[test]
    fn a_signature_at_either_end_is_named() {
        let mut bytes = vec![0; LENGTH];
        bytes[1080..1082].copy_from_slice(&[0x53, 0xef]);
        let found = inspect(&ends(bytes, vec![0; LENGTH])).unwrap();
        assert_eq!(
            (found.offset, found.what.as_str()),
            (1080, "ext2, ext3 or ext4")
        );
        let mut bytes = vec![0; LENGTH];
        bytes[LENGTH - 512..LENGTH - 504].copy_from_slice(b"EFI PART");
        let found = inspect(&ends(vec![0; LENGTH], bytes)).unwrap();
        assert_eq!(found.offset, (10 << 20) - 512);
        assert!(found.what.contains("GPT"), "{}", found.what);
    }
}
