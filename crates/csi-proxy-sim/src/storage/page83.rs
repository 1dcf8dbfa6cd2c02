//! The identifiers that a disk answers (SCSI vital product data page 83).

use serde::{Deserialize, Serialize};

/// One identifier of a `STORAGE_DEVICE_ID_DESCRIPTOR`.
///
/// Source: `STORAGE_IDENTIFIER`,
/// <https://learn.microsoft.com/windows-hardware/drivers/ddi/storport/ns-storport-_storage_device_id_descriptor>
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identifier {
    /// 1 is binary, 2 ASCII, 3 UTF-8.
    pub code_set: u32,
    /// 0 vendor specific, 1 vendor id, 2 EUI-64, 3 NAA, 8 SCSI name.
    pub kind: u32,
    /// 0 the device, 1 the port, 2 the target.
    pub association: u32,
    /// The identifier itself.
    pub value: Vec<u8>,
}

impl Identifier {
    /// The binary NAA identifier that a unique id of hexadecimal digits stands for, or the
    /// text itself as a vendor's identifier.
    pub(super) fn of_unique_id(unique_id: &str) -> Self {
        let digits = unique_id.as_bytes();
        let is_hex = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
        let bytes: Option<Vec<u8>> = (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(unique_id.get(2 * at..2 * at + 2)?, 16).ok())
            .collect();
        match bytes.filter(|bytes| is_hex && !bytes.is_empty()) {
            Some(value) => Self {
                code_set: 1,
                kind: 3,
                association: 0,
                value,
            },
            None => Self {
                code_set: 2,
                kind: 0,
                association: 0,
                value: digits.to_vec(),
            },
        }
    }
}

/// The raw descriptor with these identifiers: a header of version, size and their number,
/// then each identifier with its length and the offset of the next.
pub(super) fn descriptor(identifiers: &[Identifier]) -> Vec<u8> {
    const HEADER: usize = 12;
    const IDENTIFIER: usize = 16;
    let mut body = Vec::new();
    for identifier in identifiers {
        let length = identifier.value.len();
        let next = (IDENTIFIER + length).next_multiple_of(4);
        let start = body.len();
        put_u32(&mut body, identifier.code_set);
        put_u32(&mut body, identifier.kind);
        put_u16(&mut body, length);
        put_u16(&mut body, next);
        put_u32(&mut body, identifier.association);
        body.extend_from_slice(&identifier.value);
        body.resize(start + next, 0);
    }
    let mut descriptor = Vec::new();
    let size = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    put_u32(&mut descriptor, 12);
    put_u32(&mut descriptor, size);
    put_u32(
        &mut descriptor,
        u32::try_from(identifiers.len()).unwrap_or(0),
    );
    descriptor.extend(body);
    descriptor
}

fn put_u32(to: &mut Vec<u8>, value: u32) {
    to.extend_from_slice(&value.to_le_bytes());
}

fn put_u16(to: &mut Vec<u8>, value: usize) {
    to.extend_from_slice(&u16::try_from(value).unwrap_or(u16::MAX).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_holds_each_identifier_at_a_multiple_of_four() {
        let identifier = |value: &[u8]| Identifier {
            code_set: 2,
            kind: 1,
            association: 0,
            value: value.to_vec(),
        };
        let bytes = descriptor(&[identifier(b"abcde"), identifier(b"x")]);
        assert_eq!(usize::from(bytes[4]), bytes.len());
        assert_eq!(bytes[8], 2);
        assert_eq!(bytes[12..14], [2, 0]);
        assert_eq!(bytes[20..24], [5, 0, 24, 0]);
        assert_eq!(&bytes[28..33], b"abcde");
        assert_eq!(bytes[36..38], [2, 0]);
        assert_eq!(&bytes[52..53], b"x");
    }
}
