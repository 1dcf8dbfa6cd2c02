//! Growing a volume.

use super::info::{Placed, VolumeInfo};
use crate::cim::{Invoke, Namespace};
use crate::disk::info::PartitionInfo;
use crate::disk::steps;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::VolumeId;
use crate::lock::Lock;
use crate::operation::Operation;

/// A gain below this is success without a change.
const SMALLEST_GAIN: u64 = 1 << 20;

/// To which size a volume is grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewSize {
    /// All that its disk has behind it.
    Largest,
    /// So many bytes of the partition, or as little more as the disk's sectors need.
    Bytes(u64),
}

impl NewSize {
    /// Reads a size as requests carry it: 0 is the largest.
    ///
    /// # Errors
    /// `InvalidArgument` for a negative one.
    pub fn from_request(operation: &'static str, bytes: i64) -> Result<Self> {
        match u64::try_from(bytes) {
            Ok(0) => Ok(Self::Largest),
            Ok(bytes) => Ok(Self::Bytes(bytes)),
            Err(_) => Err(Error::new(
                ErrorKind::InvalidArgument,
                operation,
                format_args!("size {bytes}"),
                "it is negative; expected bytes, or 0 for the largest",
            )),
        }
    }
}

/// What growing a volume has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResizeOutcome {
    /// The partition's size in bytes, as it is now.
    pub size: u64,
    /// Whether this call has changed it.
    pub resized: bool,
}

/// The sizes that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    current: u64,
    largest: u64,
    sector: u64,
}

pub(super) fn resize(
    operation: &Operation<'_>,
    id: &VolumeId,
    wanted: NewSize,
) -> Result<ResizeOutcome> {
    let first = Placed::of(operation, id)?;
    let lock = Lock::of_disk(operation, &first.disk.unique_id)?;
    let operation = &operation.under(&lock);
    let placed = Placed::of(operation, id)?;
    if placed.disk.unique_id != first.disk.unique_id {
        let detail = "the volume has moved to another disk during the operation";
        return Err(operation.error(ErrorKind::Aborted, placed.volume.name(), detail));
    }
    grow(operation, &placed, wanted)
}

/// Grows a volume, under its disk's lock.
pub(crate) fn grow(
    operation: &Operation<'_>,
    placed: &Placed,
    wanted: NewSize,
) -> Result<ResizeOutcome> {
    let current = placed.partition.size;
    if wanted_gain(wanted, current).is_some_and(|gain| gain < SMALLEST_GAIN) {
        return Ok(unchanged(current));
    }
    placed.disk.check_not_the_nodes_own(operation)?;
    // The disk itself may have grown since Windows last looked.
    steps::refresh(operation, &placed.disk)?;
    let sizes = Sizes {
        current,
        largest: largest(operation, placed)?,
        sector: placed.disk.sector_size.max(1).into(),
    };
    let Some(target) = target(wanted, sizes)
        .map_err(|reason| operation.error(ErrorKind::OutOfRange, placed.volume.name(), reason))?
    else {
        return Ok(unchanged(current));
    };
    invoke(operation, placed, target)?;
    let reached = wait_for(operation, &placed.volume, target)?;
    steps::refresh(operation, &placed.disk)?;
    Ok(ResizeOutcome {
        size: reached,
        resized: true,
    })
}

fn unchanged(size: u64) -> ResizeOutcome {
    ResizeOutcome {
        size,
        resized: false,
    }
}

fn wanted_gain(wanted: NewSize, current: u64) -> Option<u64> {
    match wanted {
        NewSize::Largest => None,
        NewSize::Bytes(bytes) => Some(bytes.saturating_sub(current)),
    }
}

/// The size to ask Windows for; nothing when it stays as it is. It never shrinks.
///
/// # Errors
/// Both sizes when more is wanted than there is.
fn target(wanted: NewSize, sizes: Sizes) -> Result<Option<u64>, String> {
    let target = match wanted {
        NewSize::Largest => sizes.largest,
        NewSize::Bytes(bytes) if bytes.saturating_sub(sizes.current) < SMALLEST_GAIN => {
            return Ok(None);
        }
        NewSize::Bytes(bytes) if bytes > sizes.largest => {
            return Err(format!(
                "{bytes} bytes are wanted, and at most {} are possible",
                sizes.largest
            ));
        }
        NewSize::Bytes(bytes) => bytes
            .checked_next_multiple_of(sizes.sector)
            .map_or(sizes.largest, |size| size.min(sizes.largest)),
    };
    Ok((target.saturating_sub(sizes.current) >= SMALLEST_GAIN).then_some(target))
}

fn method(placed: &Placed, name: &str) -> Invoke {
    let object = &placed.partition.object;
    Invoke::on(Namespace::Storage, PartitionInfo::CLASS, object, name)
}

fn largest(operation: &Operation<'_>, placed: &Placed) -> Result<u64> {
    operation
        .invoke(placed.volume.name(), &method(placed, "GetSupportedSize"))
        .map_err(|error| undocumented(placed, error))?
        .output
        .u64("SizeMax")
}

fn invoke(operation: &Operation<'_>, placed: &Placed, size: u64) -> Result<()> {
    operation
        .invoke(
            placed.volume.name(),
            &method(placed, "Resize").with("Size", size),
        )
        .map(drop)
        .map_err(|error| undocumented(placed, error))
}

/// Windows documents growth for NTFS and for volumes without a file system. What it answers
/// for others is no fault of it.
fn undocumented(placed: &Placed, error: Error) -> Error {
    let answered = error.code().is_some();
    match placed.volume.is_documented_to_grow() || !answered {
        true => error,
        false => error
            .with_kind(ErrorKind::FailedPrecondition)
            .with_detail(format_args!(
                "Windows documents no growth of {}",
                placed.volume.file_system
            )),
    }
}

/// The partition's size once it has grown; the answer may have come before it.
fn wait_for(operation: &Operation<'_>, volume: &VolumeInfo, target: u64) -> Result<u64> {
    loop {
        let partition = PartitionInfo::of_volume(operation, &volume.object)?;
        match partition.map(|partition| partition.size) {
            // Windows may round down to whole sectors or allocation units.
            Some(size) if size.saturating_add(SMALLEST_GAIN) > target => return Ok(size),
            _ => operation.pause(steps::POLL, volume.name(), "the new size")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn sizes(current: u64, largest: u64) -> Sizes {
        Sizes {
            current,
            largest,
            sector: 512,
        }
    }

    #[test]
    fn c13_a_gain_from_one_mib_on_is_done() {
        let current = 1000 * MIB;
        for (gain, done) in [
            (0, false),
            (48_640, false),
            (MIB - 1, false),
            (MIB, true),
            (50 * MIB, true),
            (100 * MIB - 1, true),
        ] {
            let wanted = NewSize::Bytes(current + gain);
            let target = target(wanted, sizes(current, 2000 * MIB)).unwrap();
            assert_eq!(target.is_some(), done, "{gain}");
            if let Some(target) = target {
                assert!(target >= current + gain, "{gain}");
                assert!(target < current + gain + 512, "{gain}");
                assert_eq!(target % 512, 0);
            }
        }
    }

    #[test]
    fn c13_more_than_the_disk_has_names_both_sizes() {
        let error = target(NewSize::Bytes(301 * MIB), sizes(100 * MIB, 300 * MIB)).unwrap_err();
        for size in [301 * MIB, 300 * MIB] {
            assert!(error.contains(&size.to_string()), "{error}");
        }
    }

    #[test]
    fn c13_a_negative_size_is_refused() {
        let error = NewSize::from_request("volume resize", -1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(NewSize::from_request("x", 0).unwrap(), NewSize::Largest);
        assert_eq!(NewSize::from_request("x", 7).unwrap(), NewSize::Bytes(7));
    }

    #[test]
    fn a_volume_never_shrinks() {
        for wanted in [NewSize::Bytes(1), NewSize::Bytes(99 * MIB)] {
            assert_eq!(target(wanted, sizes(100 * MIB, 300 * MIB)), Ok(None));
        }
        // `SizeMax` may be below the size that is, by rounding.
        assert_eq!(
            target(NewSize::Largest, sizes(100 * MIB, 99 * MIB)),
            Ok(None)
        );
    }

    #[test]
    fn the_last_bytes_of_a_disk_are_not_rounded_over_its_end() {
        let largest = 300 * MIB + 100;
        let target = target(NewSize::Bytes(largest - 1), sizes(100 * MIB, largest));
        assert_eq!(target, Ok(Some(largest)));
    }
}
