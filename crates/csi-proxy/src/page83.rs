//! The identifiers of a disk (SCSI vital product data page 83).
//!
//! Source: `STORAGE_DEVICE_ID_DESCRIPTOR` and `STORAGE_IDENTIFIER`,
//! <https://learn.microsoft.com/windows-hardware/drivers/ddi/storduid/>. All numbers are
//! little-endian. The buffer comes from a driver: nothing in it is taken for granted.

use std::fmt::Write as _;

/// Bytes before the first identifier: version, size, number of identifiers.
const DESCRIPTOR_HEADER: usize = 12;

/// Bytes before an identifier's own: code set, type, size, offset of the next, association.
const IDENTIFIER_HEADER: usize = 16;

/// One identifier of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identifier {
    /// How its bytes are to be read.
    pub code_set: CodeSet,
    /// `STORAGE_IDENTIFIER_TYPE`: 0 vendor specific, 1 T10 vendor id, 2 EUI-64, 3 NAA, 8
    /// SCSI name.
    pub identifier_type: u32,
    /// What it names.
    pub association: Association,
    /// The identifier itself.
    pub bytes: Vec<u8>,
}

/// `STORAGE_IDENTIFIER_CODE_SET`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeSet {
    /// Bytes (1).
    Binary,
    /// ASCII text (2).
    Ascii,
    /// UTF-8 text (3).
    Utf8,
    /// Any other.
    Other(u32),
}

/// `STORAGE_ASSOCIATION_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Association {
    /// The disk (0).
    Device,
    /// The port it is reached by (1).
    Port,
    /// The target that holds it (2).
    Target,
    /// Any other.
    Other(u32),
}

/// A buffer that breaks the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the device identifiers (page 83) are malformed: {reason} at byte {offset}")]
pub struct Malformed {
    /// Where.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

impl Identifier {
    /// The identifier as CSI Proxy shows it: ASCII as text without the blanks and NULs
    /// around it, binary as lower-case hexadecimal digits. Nothing for other code sets and
    /// for an identifier that is empty.
    pub fn text(&self) -> Option<String> {
        let text = match self.code_set {
            CodeSet::Ascii => String::from_utf8_lossy(&self.bytes)
                .trim_matches(['\0', ' '])
                .to_owned(),
            CodeSet::Binary => hex(&self.bytes),
            CodeSet::Utf8 | CodeSet::Other(_) => return None,
        };
        (!text.is_empty()).then_some(text)
    }
}

/// The disk's page 83 id: the first identifier associated with the device whose code set is
/// ASCII or binary. Nothing when there is none.
///
/// # Errors
/// The buffer is malformed before such an identifier was found.
pub fn device_id(descriptor: &[u8]) -> Result<Option<String>, Malformed> {
    for identifier in Identifiers::new(descriptor)? {
        let identifier = identifier?;
        if identifier.association == Association::Device
            && let Some(text) = identifier.text()
        {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// All identifiers in the order of the device.
///
/// # Errors
/// The buffer is malformed.
pub fn identifiers(descriptor: &[u8]) -> Result<Vec<Identifier>, Malformed> {
    Identifiers::new(descriptor)?.collect()
}

/// Walks over the identifiers of a descriptor.
struct Identifiers<'a> {
    bytes: &'a [u8],
    offset: usize,
    left: u32,
}

impl<'a> Identifiers<'a> {
    fn new(descriptor: &'a [u8]) -> Result<Self, Malformed> {
        let size = usize::try_from(u32_at(descriptor, 4)?).unwrap_or(usize::MAX);
        // The driver's buffer may be longer than what it filled; shorter is cut off.
        let bytes = descriptor.get(..size).ok_or(Malformed {
            offset: 4,
            reason: "the size is larger than the buffer",
        })?;
        Ok(Self {
            bytes,
            offset: DESCRIPTOR_HEADER,
            left: u32_at(bytes, 8)?,
        })
    }

    fn read(&mut self) -> Result<Identifier, Malformed> {
        let start = self.offset;
        let size = usize::from(u16_at(self.bytes, start + 8)?);
        let next = usize::from(u16_at(self.bytes, start + 10)?);
        let first = start + IDENTIFIER_HEADER;
        let bytes = self.bytes.get(first..first + size).ok_or(Malformed {
            offset: start,
            reason: "an identifier runs over the end",
        })?;
        let identifier = Identifier {
            code_set: code_set(u32_at(self.bytes, start)?),
            identifier_type: u32_at(self.bytes, start + 4)?,
            association: association(u32_at(self.bytes, start + 12)?),
            bytes: bytes.to_vec(),
        };
        self.left -= 1;
        if self.left > 0 {
            if next < IDENTIFIER_HEADER {
                return Err(Malformed {
                    offset: start + 10,
                    reason: "the next identifier is said to begin inside this one",
                });
            }
            self.offset = start + next;
        }
        Ok(identifier)
    }
}

impl Iterator for Identifiers<'_> {
    type Item = Result<Identifier, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.left = 0;
        }
        Some(read)
    }
}

fn code_set(number: u32) -> CodeSet {
    match number {
        1 => CodeSet::Binary,
        2 => CodeSet::Ascii,
        3 => CodeSet::Utf8,
        other => CodeSet::Other(other),
    }
}

fn association(number: u32) -> Association {
    match number {
        0 => Association::Device,
        1 => Association::Port,
        2 => Association::Target,
        other => Association::Other(other),
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> Result<u32, Malformed> {
    array_at(bytes, offset).map(u32::from_le_bytes)
}

fn u16_at(bytes: &[u8], offset: usize) -> Result<u16, Malformed> {
    array_at(bytes, offset).map(u16::from_le_bytes)
}

fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N], Malformed> {
    bytes
        .get(offset..)
        .and_then(|rest| rest.first_chunk::<N>())
        .copied()
        .ok_or(Malformed {
            offset,
            reason: "the buffer ends",
        })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Code set, type, association, bytes.
    type Given<'a> = (u32, u32, u32, &'a [u8]);

    fn descriptor(given: &[Given<'_>]) -> Vec<u8> {
        let mut bytes = vec![0; DESCRIPTOR_HEADER];
        for (code_set, identifier_type, association, own) in given {
            // Identifiers begin at multiples of four, as drivers lay them out.
            let next = (IDENTIFIER_HEADER + own.len()).next_multiple_of(4);
            let end = bytes.len() + next;
            bytes.extend(code_set.to_le_bytes());
            bytes.extend(identifier_type.to_le_bytes());
            bytes.extend(u16::try_from(own.len()).unwrap().to_le_bytes());
            bytes.extend(u16::try_from(next).unwrap().to_le_bytes());
            bytes.extend(association.to_le_bytes());
            bytes.extend(*own);
            bytes.resize(end, 0);
        }
        let size = u32::try_from(bytes.len()).unwrap();
        let count = u32::try_from(given.len()).unwrap();
        bytes[0..4].copy_from_slice(&12_u32.to_le_bytes());
        bytes[4..8].copy_from_slice(&size.to_le_bytes());
        bytes[8..12].copy_from_slice(&count.to_le_bytes());
        bytes
    }

    const NAA: &[u8] = &[0x60, 0x02, 0x24, 0x80, 0xAB, 0xCD];

    #[test]
    fn the_first_identifier_of_the_device_in_ascii_or_binary_is_the_id() {
        for (given, expected) in [
            (vec![(1, 3, 0, NAA)], Some("60022480abcd")),
            (
                vec![(2, 1, 0, b"  VENDOR disk 1 \0\0".as_slice())],
                Some("VENDOR disk 1"),
            ),
            (vec![(1, 4, 1, NAA), (2, 1, 0, b"own")], Some("own")),
            (
                vec![(3, 8, 0, b"iqn.x"), (1, 3, 0, NAA)],
                Some("60022480abcd"),
            ),
            (
                vec![(2, 1, 0, b" \0"), (1, 3, 0, NAA)],
                Some("60022480abcd"),
            ),
            (vec![(2, 0, 2, b"target")], None),
            (vec![], None),
        ] {
            let found = device_id(&descriptor(&given)).unwrap();
            assert_eq!(found.as_deref(), expected, "{given:?}");
        }
    }

    #[test]
    fn all_identifiers_are_answered_in_their_order() {
        let found = identifiers(&descriptor(&[(1, 3, 0, NAA), (3, 8, 2, b"iqn.x")])).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].code_set, CodeSet::Utf8);
        assert_eq!(found[1].association, Association::Target);
        assert_eq!(found[1].identifier_type, 8);
        assert_eq!(found[1].bytes, b"iqn.x");
    }

    #[test]
    fn a_buffer_longer_than_its_size_is_read_up_to_it() {
        let mut bytes = descriptor(&[(1, 3, 0, NAA)]);
        bytes.extend([0xFF; 500]);
        assert_eq!(identifiers(&bytes).unwrap().len(), 1);
    }

    #[test]
    fn a_size_that_leaves_no_room_for_the_header_is_malformed() {
        for size in 0..12_u32 {
            let mut bytes = descriptor(&[]);
            bytes[4..8].copy_from_slice(&size.to_le_bytes());
            assert!(identifiers(&bytes).is_err(), "{size}");
        }
    }

    #[test]
    fn a_buffer_that_is_cut_off_anywhere_is_malformed() {
        let whole = descriptor(&[(1, 3, 0, NAA), (2, 1, 0, b"name")]);
        for length in 0..whole.len() {
            assert!(identifiers(&whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn an_identifier_found_before_the_damage_still_counts() {
        let mut bytes = descriptor(&[(1, 3, 0, NAA), (2, 1, 0, b"name")]);
        // The size of the second identifier.
        let second = DESCRIPTOR_HEADER + 24;
        bytes[second + 8] = 0xFF;
        assert_eq!(device_id(&bytes).unwrap().as_deref(), Some("60022480abcd"));
        let error = identifiers(&bytes).unwrap_err();
        assert_eq!(error.offset, second);
    }

    #[test]
    fn identifiers_that_do_not_advance_are_malformed() {
        for next in [0_u16, 8] {
            let mut bytes = descriptor(&[(3, 8, 1, b"iqn."), (3, 8, 1, b"iqn.")]);
            bytes[22..24].copy_from_slice(&next.to_le_bytes());
            assert!(identifiers(&bytes).is_err(), "{next}");
        }
    }

    #[test]
    fn more_identifiers_than_there_are_is_malformed() {
        let mut bytes = descriptor(&[(3, 8, 1, b"iqn.")]);
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(device_id(&bytes).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = device_id(&bytes);
            let _ = identifiers(&bytes);
        }

        #[test]
        fn a_damaged_byte_is_an_answer_or_an_error(position in 0..64_usize, value in any::<u8>()) {
            let mut bytes = descriptor(&[(1, 3, 0, NAA), (2, 1, 0, b"name")]);
            let position = position % bytes.len();
            bytes[position] = value;
            let _ = device_id(&bytes);
            let _ = identifiers(&bytes);
        }

        #[test]
        fn what_was_written_is_read(
            own in proptest::collection::vec(any::<u8>(), 0..40),
            code_set in 0..5_u32,
            association in 0..4_u32,
        ) {
            let found = identifiers(&descriptor(&[(code_set, 7, association, &own)])).unwrap();
            prop_assert_eq!(&found[0].bytes, &own);
            prop_assert_eq!(found[0].identifier_type, 7);
        }
    }
}
