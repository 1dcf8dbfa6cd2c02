//! Which size a volume gets.

use csi_proxy::volume::{FileSystem, SMALLEST_REFS_DISK};
use csi_proxy::{Error, ErrorKind, Result};

use crate::driver::SizeRange;

/// Sizes of VHDX files are multiples of it.
pub(super) const MIB: u64 = 1 << 20;
/// A GPT disk has a Microsoft-reserved partition of 16 MiB; below this size little is left
/// for files.
pub(super) const MINIMUM: u64 = 64 * MIB;
/// The largest VHDX,
/// <https://learn.microsoft.com/windows-server/storage/disk-management/manage-virtual-hard-disks>.
pub(super) const MAXIMUM: u64 = 64 << 40;
/// The size of a volume for which none was asked.
const DEFAULT: u64 = 1 << 30;

/// The size of a new volume: what is required, rounded up to what a VHDX can have. A size
/// that is asked for and too small for ReFS is refused, because it is too far from the least.
pub(super) fn choose(
    operation: &'static str,
    range: SizeRange,
    file_system: FileSystem,
) -> Result<u64> {
    let minimum = minimum(file_system);
    if let (FileSystem::Refs, Some(bytes)) = (file_system, range.required.or(range.limit))
        && bytes < minimum
    {
        let detail = format!("{bytes} bytes, expected at least {minimum} for ReFS");
        let object = "field capacity_range";
        return Err(Error::new(ErrorKind::OutOfRange, operation, object, detail));
    }
    let wish = match (range.required, range.limit) {
        (Some(required), _) => required,
        (None, Some(limit)) => DEFAULT.min(limit),
        (None, None) => DEFAULT,
    };
    within(operation, range, round_up(wish.max(minimum)))
}

/// The size of the smallest volume.
pub(super) fn minimum(file_system: FileSystem) -> u64 {
    match file_system {
        FileSystem::Ntfs => MINIMUM,
        FileSystem::Refs => SMALLEST_REFS_DISK,
    }
}

/// The size that a volume of `size` bytes has to be grown to; its own if that is enough.
pub(super) fn grown(operation: &'static str, range: SizeRange, size: u64) -> Result<u64> {
    let wish = range.required.unwrap_or(0);
    let grown = if wish > size { round_up(wish) } else { size };
    within(operation, range, grown)
}

/// Whether a volume of `size` bytes is what was asked for.
pub(super) fn fits(range: SizeRange, size: u64) -> bool {
    range.required.is_none_or(|required| size >= required)
        && range.limit.is_none_or(|limit| size <= limit)
}

fn within(operation: &'static str, range: SizeRange, size: u64) -> Result<u64> {
    let limit = range.limit.unwrap_or(MAXIMUM).min(MAXIMUM);
    if size <= limit {
        return Ok(size);
    }
    let detail = format!(
        "a volume of {size} bytes would be needed and at most {limit} are allowed; \
         volumes have {MINIMUM} to {MAXIMUM} bytes, in steps of {MIB}"
    );
    let object = "field capacity_range";
    Err(Error::new(ErrorKind::OutOfRange, operation, object, detail))
}

fn round_up(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(MIB).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(required: u64, limit: u64) -> SizeRange {
        let given = |bytes| (bytes > 0).then_some(bytes);
        SizeRange {
            required: given(required),
            limit: given(limit),
        }
    }

    #[test]
    fn a_new_volume_has_the_size_required_rounded_up() {
        let gib = 1 << 30;
        for (required, limit, size) in [
            (0, 0, gib),
            (1, 0, MINIMUM),
            (gib, 0, gib),
            (gib + 1, 0, gib + MIB),
            (gib + 1, gib + MIB, gib + MIB),
            (0, 100 * MIB, 100 * MIB),
            (MAXIMUM, 0, MAXIMUM),
        ] {
            assert_eq!(
                choose("x", range(required, limit), FileSystem::Ntfs).unwrap(),
                size
            );
        }
    }

    #[test]
    fn a_size_that_no_volume_has_is_out_of_range() {
        for (required, limit) in [
            (MAXIMUM + 1, 0),
            (1, MIB),
            (0, MINIMUM - 1),
            (65 * MIB + 1, 65 * MIB + 2),
            (i64::MAX.cast_unsigned(), 0),
        ] {
            let error = choose("x", range(required, limit), FileSystem::Ntfs).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfRange, "{required} {limit}");
        }
    }

    #[test]
    fn a_volume_is_grown_and_never_made_smaller() {
        let size = 100 * MIB;
        assert_eq!(grown("x", range(1, 0), size).unwrap(), size);
        assert_eq!(grown("x", range(0, 2 * size), size).unwrap(), size);
        assert_eq!(grown("x", range(size + 1, 0), size).unwrap(), size + MIB);
        for range in [
            range(1, size - 1),
            range(size + 1, size + 2),
            range(MAXIMUM + 1, 0),
        ] {
            assert_eq!(
                grown("x", range, size).unwrap_err().kind(),
                ErrorKind::OutOfRange
            );
        }
    }

    #[test]
    fn an_existing_volume_fits_between_required_and_limit() {
        assert!(fits(range(0, 0), MIB) && fits(range(MIB, MIB), MIB));
        assert!(!fits(range(MIB + 1, 0), MIB) && !fits(range(0, MIB - 1), MIB));
    }
}
