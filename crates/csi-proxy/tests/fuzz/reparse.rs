//! `REPARSE_DATA_BUFFER`.

use csi_proxy::os::Reparse;
use csi_proxy::reparse::{TAG_MOUNT_POINT, TAG_SYMLINK, parse};

use crate::mutate::{Field, Format, read};

pub(crate) const FORMAT: Format = Format {
    fields,
    repair,
    words: &[
        // In UTF-16: \??\  UNC\  C:\  \\?\  and halves of a surrogate pair.
        b"\\\0?\0?\0\\\0",
        b"U\0N\0C\0\\\0",
        b"C\0:\0\\\0",
        b"\\\0\\\0?\0\\\0",
        b"\x00\xD8",
        b"\x00\xDC",
        b"\x3D\xD8\x00\xDE",
        b"\0\0",
        &TAG_SYMLINK.to_le_bytes(),
        &TAG_MOUNT_POINT.to_le_bytes(),
    ],
    // MAXIMUM_REPARSE_DATA_BUFFER_SIZE.
    limit: 16 * 1024,
};

const HEADER: usize = 8;

fn fields(input: &[u8]) -> Vec<Field> {
    let mut fields = vec![Field { at: 0, width: 4 }];
    fields.extend([4, 6, 8, 10, 12, 14].map(|at| Field { at, width: 2 }));
    fields.push(Field { at: 16, width: 4 });
    fields.retain(|field| field.at + field.width <= input.len());
    fields
}

fn repair(input: &mut [u8]) {
    let length = u16::try_from(input.len().saturating_sub(HEADER)).unwrap();
    if let Some(size) = input.get_mut(4..6) {
        size.copy_from_slice(&length.to_le_bytes());
    }
}

/// A buffer with a name as it is.
fn write(tag: u32, name: &str) -> Vec<u8> {
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut buffer = tag.to_le_bytes().to_vec();
    buffer.extend([0; 4]);
    let length = u16::try_from(name.len()).unwrap();
    for number in [0, length, length, 0] {
        buffer.extend(number.to_le_bytes());
    }
    if tag == TAG_SYMLINK {
        buffer.extend([0; 4]);
    }
    buffer.extend(name);
    repair(&mut buffer);
    buffer
}

/// Answers whether the input could be read.
pub(crate) fn check(input: &[u8]) -> bool {
    let Ok(found) = parse(input) else {
        return false;
    };
    let tag = u32::try_from(read(input, Field { at: 0, width: 4 })).unwrap();
    let length = usize::try_from(read(input, Field { at: 4, width: 2 })).unwrap();
    let end = HEADER + length;
    assert_eq!(
        parse(&input[..end]).as_ref(),
        Ok(&found),
        "what is behind the end counts"
    );
    assert!(parse(&input[..end - 1]).is_err(), "cut off and still whole");
    let (name, right_tag) = match &found {
        Reparse::SymbolicLink { target } => (target.as_str(), TAG_SYMLINK),
        Reparse::Junction { target } => (target.as_str(), TAG_MOUNT_POINT),
        Reparse::MountPoint { volume } => (volume.as_str(), TAG_MOUNT_POINT),
        Reparse::Other { tag: other } => {
            assert_eq!(*other, tag);
            assert!(![TAG_SYMLINK, TAG_MOUNT_POINT].contains(&tag));
            return true;
        }
    };
    assert_eq!(tag, right_tag);
    // A volume's name gets its last backslash where it is missing.
    let units = name.encode_utf16().count();
    assert!(2 * units <= length + 2, "a name longer than the buffer");
    assert!(
        !name.starts_with(r"\??\"),
        "a name of the NT namespace: {name:?}"
    );
    // Written as Win32 has it, it is the same.
    assert_eq!(
        parse(&write(tag, name)),
        Ok(found.clone()),
        "written and read again"
    );
    // The names that people are shown do not count.
    let mut other = input.to_vec();
    if let Some(print) = other.get_mut(12..16) {
        print.fill(0);
    }
    if end >= 16 {
        assert_eq!(parse(&other), Ok(found), "the print name counts");
    }
    true
}
