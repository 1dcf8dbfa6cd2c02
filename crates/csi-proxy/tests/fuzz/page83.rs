//! `STORAGE_DEVICE_ID_DESCRIPTOR`.

use csi_proxy::page83::{Association, CodeSet, Identifier, device_id, identifiers};

use crate::mutate::{Field, Format, read};

pub(crate) const FORMAT: Format = Format {
    fields,
    repair,
    words: &[b" \0", b"\0\0\0\0", b"\xC3\xA4", b"\xFF", b"iqn.", b"naa."],
    limit: 4096,
};

const HEADER: usize = 12;
const IDENTIFIER: usize = 16;

fn fields(input: &[u8]) -> Vec<Field> {
    let mut fields: Vec<_> = [0, 4, 8].map(|at| Field { at, width: 4 }).into();
    let mut start = HEADER;
    // Also behind the end that the input names itself.
    while fields.len() < 200 && start + IDENTIFIER <= input.len() {
        fields.extend([0, 4, 12].map(|at| Field {
            at: start + at,
            width: 4,
        }));
        fields.extend([8, 10].map(|at| Field {
            at: start + at,
            width: 2,
        }));
        let next = read(
            input,
            Field {
                at: start + 10,
                width: 2,
            },
        );
        start += usize::try_from(next).unwrap().max(IDENTIFIER);
    }
    fields.retain(|field| field.at + field.width <= input.len());
    fields
}

fn repair(input: &mut [u8]) {
    let length = u32::try_from(input.len()).unwrap();
    if let Some(size) = input.get_mut(4..8) {
        size.copy_from_slice(&length.to_le_bytes());
    }
}

/// A driver's buffer with these identifiers.
fn write(found: &[Identifier]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    for (index, identifier) in found.iter().enumerate() {
        let length = IDENTIFIER + identifier.bytes.len();
        let code_set = match identifier.code_set {
            CodeSet::Binary => 1,
            CodeSet::Ascii => 2,
            CodeSet::Utf8 => 3,
            CodeSet::Other(other) => other,
        };
        let association = match identifier.association {
            Association::Device => 0,
            Association::Port => 1,
            Association::Target => 2,
            Association::Other(other) => other,
        };
        // An identifier is never longer than its own 16-bit number says; the last has no next.
        let next = match index + 1 == found.len() {
            true => 0,
            false => u16::try_from(length).unwrap(),
        };
        bytes.extend(u32::to_le_bytes(code_set));
        bytes.extend(identifier.identifier_type.to_le_bytes());
        bytes.extend(u16::try_from(identifier.bytes.len()).unwrap().to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes.extend(u32::to_le_bytes(association));
        bytes.extend(&identifier.bytes);
    }
    bytes[0..4].copy_from_slice(&12_u32.to_le_bytes());
    bytes[8..12].copy_from_slice(&u32::try_from(found.len()).unwrap().to_le_bytes());
    repair(&mut bytes);
    bytes
}

/// Answers whether the input could be read.
pub(crate) fn check(input: &[u8]) -> bool {
    let all = identifiers(input);
    let id = device_id(input);
    let Ok(found) = all else {
        // What comes before the damage still counts, and is not made up.
        if let Ok(Some(id)) = id {
            assert!(id.len() <= 3 * input.len(), "an id longer than the buffer");
        }
        let offset = all.unwrap_err().offset;
        assert!(offset <= input.len() + usize::from(u16::MAX), "{offset}");
        return false;
    };
    let size = usize::try_from(read(input, Field { at: 4, width: 4 })).unwrap();
    let most = size.saturating_sub(HEADER) / IDENTIFIER;
    assert!(
        found.len() <= most,
        "more identifiers than the buffer can hold"
    );
    for identifier in &found {
        let bytes = &identifier.bytes;
        assert!(
            bytes.len() + HEADER + IDENTIFIER <= size,
            "longer than the buffer"
        );
        let is_there = bytes.is_empty() || input.windows(bytes.len()).any(|part| part == bytes);
        assert!(is_there, "bytes that are not in the buffer");
        check_text(identifier);
    }
    let first = found
        .iter()
        .filter(|one| one.association == Association::Device)
        .find_map(Identifier::text);
    assert_eq!(id, Ok(first), "the id is not the first of the device");
    assert_eq!(
        identifiers(&input[..size]).as_ref(),
        Ok(&found),
        "what is behind the end counts"
    );
    if !found.is_empty() {
        assert!(
            identifiers(&input[..size - 1]).is_err(),
            "cut off and still whole"
        );
    }
    assert_eq!(
        identifiers(&write(&found)),
        Ok(found),
        "written and read again"
    );
    true
}

fn check_text(identifier: &Identifier) {
    let Some(text) = identifier.text() else {
        return;
    };
    assert!(!text.is_empty());
    match identifier.code_set {
        CodeSet::Ascii => {
            assert!(!text.starts_with(['\0', ' ']) && !text.ends_with(['\0', ' ']));
        }
        CodeSet::Binary => {
            assert_eq!(text.len(), 2 * identifier.bytes.len());
            assert!(
                text.bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            );
        }
        other => panic!("{other:?} has a text"),
    }
}
