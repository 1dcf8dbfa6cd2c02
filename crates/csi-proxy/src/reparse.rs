//! What a reparse point holds (`REPARSE_DATA_BUFFER`), read from bytes of any quality.
//!
//! Source: "Reparse Point Data Structures" of \[MS-FSCC\], 2.1.2,
//! <https://learn.microsoft.com/openspecs/windows_protocols/ms-fscc/>.

use crate::ids::VolumeId;
use crate::os::Reparse;

/// `IO_REPARSE_TAG_MOUNT_POINT`: junctions and volume mount points.
pub const TAG_MOUNT_POINT: u32 = 0xA000_0003;
/// `IO_REPARSE_TAG_SYMLINK`.
pub const TAG_SYMLINK: u32 = 0xA000_000C;

/// Bytes before the part that depends on the tag: tag, length, reserved.
const HEADER: usize = 8;
/// Where the names begin in that part: after four 16-bit numbers, and the flags of a
/// symbolic link.
const MOUNT_POINT_NAMES: usize = 8;
const SYMLINK_NAMES: usize = 12;

/// A buffer that is not a reparse point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reparse data {0}")]
pub struct Malformed(&'static str);

/// Reads what `FSCTL_GET_REPARSE_POINT` answered.
///
/// The target is the name that Windows follows (the substitute name), not the one that it
/// shows (the print name): the two need not agree.
pub fn parse(buffer: &[u8]) -> Result<Reparse, Malformed> {
    let tag = u32::from_le_bytes(*array(buffer, 0)?);
    let length = usize::from(number(buffer, 4)?);
    let data = buffer
        .get(HEADER..)
        .and_then(|data| data.get(..length))
        .ok_or(Malformed("ends early"))?;
    match tag {
        TAG_SYMLINK => Ok(Reparse::SymbolicLink {
            target: win32_form(&substitute_name(data, SYMLINK_NAMES)?),
        }),
        TAG_MOUNT_POINT => Ok(mounted(win32_form(&substitute_name(
            data,
            MOUNT_POINT_NAMES,
        )?))),
        tag => Ok(Reparse::Other { tag }),
    }
}

fn mounted(target: String) -> Reparse {
    match VolumeId::new(&target) {
        Ok(volume) => Reparse::MountPoint { volume },
        Err(_) => Reparse::Junction { target },
    }
}

/// The substitute name: its offset and length in bytes come first, the names at `names`.
fn substitute_name(data: &[u8], names: usize) -> Result<String, Malformed> {
    let offset = usize::from(number(data, 0)?);
    let length = usize::from(number(data, 2)?);
    let bytes = data
        .get(names..)
        .and_then(|names| names.get(offset..))
        .and_then(|name| name.get(..length))
        .ok_or(Malformed("has a name outside itself"))?;
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Malformed("has half a character"));
    }
    char::decode_utf16(units.iter().map(|unit| u16::from_le_bytes(*unit)))
        .collect::<Result<_, _>>()
        .map_err(|_| Malformed("has a name that is not Unicode"))
}

/// A name of the NT namespace as Win32 writes it; a relative name stays as it is.
fn win32_form(name: &str) -> String {
    let Some(rest) = name.strip_prefix(r"\??\") else {
        return name.to_owned();
    };
    let has_drive = rest.as_bytes().get(1) == Some(&b':');
    match rest.strip_prefix(r"UNC\") {
        Some(share) => format!(r"\\{share}"),
        None if has_drive => rest.to_owned(),
        None => format!(r"\\?\{rest}"),
    }
}

fn number(bytes: &[u8], at: usize) -> Result<u16, Malformed> {
    array(bytes, at).copied().map(u16::from_le_bytes)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<&[u8; N], Malformed> {
    bytes
        .get(at..)
        .and_then(|bytes| bytes.first_chunk())
        .ok_or(Malformed("ends early"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A buffer as Windows makes it.
    fn buffer(tag: u32, substitute: &str, print: &str) -> Vec<u8> {
        let wide =
            |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
        let (substitute, print) = (wide(substitute), wide(print));
        let mut data = Vec::new();
        let numbers = [0, substitute.len(), substitute.len() + 2, print.len()];
        for number in numbers {
            data.extend(u16::try_from(number).unwrap().to_le_bytes());
        }
        if tag == TAG_SYMLINK {
            data.extend([0; 4]);
        }
        data.extend(substitute);
        data.extend([0; 2]);
        data.extend(print);
        data.extend([0; 2]);
        let mut buffer = tag.to_le_bytes().to_vec();
        buffer.extend(u16::try_from(data.len()).unwrap().to_le_bytes());
        buffer.extend([0; 2]);
        buffer.extend(data);
        buffer
    }

    fn link(substitute: &str) -> Reparse {
        parse(&buffer(TAG_SYMLINK, substitute, "shown")).unwrap()
    }

    fn junction(substitute: &str) -> Reparse {
        parse(&buffer(TAG_MOUNT_POINT, substitute, "shown")).unwrap()
    }

    #[test]
    fn a_link_leads_where_windows_follows_it() {
        for (substitute, expected) in [
            (r"\??\C:\var\lib", r"C:\var\lib"),
            (r"..\x", r"..\x"),
            (r"\??\UNC\server\share\dir", r"\\server\share\dir"),
            (
                r"\??\Volume{6e6fb07c-1a2b-4c3d-8e9f-0123456789ab}\",
                r"\\?\Volume{6e6fb07c-1a2b-4c3d-8e9f-0123456789ab}\",
            ),
            ("", ""),
        ] {
            let target = expected.to_owned();
            assert_eq!(link(substitute), Reparse::SymbolicLink { target });
        }
    }

    #[test]
    fn a_mount_point_names_a_volume_and_nothing_below_it() {
        let volume = r"\??\Volume{6E6FB07C-1a2b-4c3d-8e9f-0123456789ab}\";
        let expected = r"\\?\Volume{6e6fb07c-1a2b-4c3d-8e9f-0123456789ab}\";
        assert_eq!(
            junction(volume),
            Reparse::MountPoint {
                volume: VolumeId::new(expected).unwrap()
            }
        );
        assert!(matches!(
            junction(&format!("{volume}dir")),
            Reparse::Junction { .. }
        ));
    }

    #[test]
    fn a_junction_is_not_a_mount_point() {
        let target = r"C:\x".to_owned();
        assert_eq!(junction(r"\??\C:\x"), Reparse::Junction { target });
    }

    #[test]
    fn other_tags_are_told_by_their_number() {
        // IO_REPARSE_TAG_DEDUP
        let tag = 0x8000_0013;
        let other = parse(&buffer(tag, "a", "b")).unwrap();
        assert_eq!(other, Reparse::Other { tag });
    }

    #[test]
    fn a_name_that_is_not_unicode_is_not_guessed_at() {
        let mut bytes = buffer(TAG_SYMLINK, "ab", "");
        bytes[HEADER + SYMLINK_NAMES..][..2].copy_from_slice(&0xD800_u16.to_le_bytes());
        assert!(parse(&bytes).is_err());
    }

    #[test]
    fn a_buffer_that_ends_anywhere_is_refused() {
        for tag in [TAG_SYMLINK, TAG_MOUNT_POINT] {
            let whole = buffer(tag, r"\??\C:\var", "shown");
            for end in 0..whole.len() {
                assert!(parse(&whole[..end]).is_err(), "{tag:#x} cut at {end}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn any_damage_to_a_link_gives_an_answer(
            mount_point in any::<bool>(),
            name in ".{0,40}",
            damage in prop::collection::vec((0..64_usize, any::<u8>()), 0..6),
        ) {
            let tag = if mount_point { TAG_MOUNT_POINT } else { TAG_SYMLINK };
            let mut bytes = buffer(tag, &name, &name);
            for (at, byte) in damage {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            let _ = parse(&bytes);
        }

        #[test]
        fn any_relative_target_comes_back_as_it_was_written(name in "[^\\\\].{0,40}") {
            prop_assert_eq!(link(&name), Reparse::SymbolicLink { target: name });
        }
    }
}
