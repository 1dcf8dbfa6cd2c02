//! What a trace keeps of bytes.

use std::hash::{BuildHasher as _, RandomState};

use serde::{Deserialize, Serialize};

use crate::content::{marks, other_byte};
use crate::format_record::is_record;
use crate::os::{At, Bytes};
use crate::os::{DevicesAnswer, DevicesCall, FilesAnswer, FilesCall};
use crate::port::{Answer, Call};

/// More than any call reads or writes. A trace that claims more is refused.
pub(super) const LIMIT: u32 = 64 << 20;

/// Stands where a disk holds a byte that an empty one would not: the byte itself is not kept.
const FOREIGN: u8 = 0x5a;

/// What is kept of the contents of a file, or of a range of a disk: as much as decides what
/// the library does with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Contents {
    /// A record of a format, all of it.
    Record(String),
    /// Any other file.
    File {
        /// Its length in bytes.
        length: u32,
        /// Equal contents have equal digests within one trace.
        digest: String,
    },
    /// A range of a disk or volume.
    Range {
        /// Its length in bytes.
        length: u32,
        /// 0x00 or 0xff: what the range is taken to be filled with.
        fill: u8,
        /// The first byte that is another one, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        foreign: Option<u32>,
        /// The signatures of known content that stand in it: where, and their bytes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        marks: Vec<(u32, Bytes)>,
        /// Equal ranges have equal digests within one trace. None for a uniform one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
}

impl Contents {
    fn of_file(at: &At, bytes: &[u8], key: &RandomState) -> Self {
        let name = at.path.file_name().unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) if is_record(name, bytes) => Self::Record(text.to_owned()),
            _ => Self::File {
                length: length(bytes.len()),
                digest: digest(bytes, key),
            },
        }
    }

    /// What is kept of a range of a disk or volume, without a digest.
    pub fn of_range(bytes: &[u8]) -> Self {
        let fill = match bytes.first() {
            Some(0xff) => 0xff,
            _ => 0x00,
        };
        let marks = marks(bytes).into_iter();
        Self::Range {
            length: length(bytes.len()),
            fill,
            foreign: other_byte(bytes).map(length),
            marks: marks
                .map(|(at, mark)| (length(at), Bytes(mark.to_vec())))
                .collect(),
            digest: None,
        }
    }

    /// Bytes of which the same would be kept.
    pub(super) fn stand_in(&self) -> Option<Bytes> {
        let size = match self {
            Self::Record(text) => return Some(Bytes(text.as_bytes().to_vec())),
            Self::File { length, .. } | Self::Range { length, .. } if *length > LIMIT => {
                return None;
            }
            Self::File { length, .. } | Self::Range { length, .. } => {
                usize::try_from(*length).ok()?
            }
        };
        let bytes = match self {
            Self::Record(_) => return None,
            Self::File { digest, .. } => digest.bytes().chain([b'.']).cycle().take(size).collect(),
            Self::Range {
                fill,
                foreign,
                marks,
                ..
            } => {
                let mut bytes = vec![*fill; size];
                if let Some(at) = foreign {
                    *bytes.get_mut(usize::try_from(*at).ok()?)? = FOREIGN;
                }
                for (at, mark) in marks {
                    let at = usize::try_from(*at).ok()?;
                    let end = at.checked_add(mark.0.len())?;
                    bytes.get_mut(at..end)?.copy_from_slice(&mark.0);
                }
                bytes
            }
        };
        Some(Bytes(bytes))
    }
}

/// Takes the bytes out of a call. Answers what is kept of them.
pub(super) fn take_from_call(call: &mut Call, key: &RandomState) -> Option<Contents> {
    let Call::Files(FilesCall::WriteFile(request)) = call else {
        return None;
    };
    let contents = Contents::of_file(&request.at, &request.contents.0, key);
    request.contents.0.clear();
    Some(contents)
}

/// Takes the bytes out of the answer to a call. Answers what is kept of them.
pub(super) fn take_from_answer(
    call: &Call,
    answer: &mut Answer,
    key: &RandomState,
) -> Option<Contents> {
    match (call, answer) {
        (
            Call::Files(FilesCall::ReadFile(request)),
            Answer::Files(FilesAnswer::ReadFile(bytes)),
        ) => {
            let contents = Contents::of_file(&request.at, &bytes.0, key);
            bytes.0.clear();
            Some(contents)
        }
        (
            Call::Devices(DevicesCall::ReadRange(_)),
            Answer::Devices(DevicesAnswer::ReadRange(bytes)),
        ) => {
            let mut contents = Contents::of_range(&bytes.0);
            if let Contents::Range {
                foreign: Some(_),
                digest: place,
                ..
            } = &mut contents
            {
                *place = Some(digest(&bytes.0, key));
            }
            bytes.0.clear();
            Some(contents)
        }
        _ => None,
    }
}

/// Where the bytes of a call stand.
pub(super) fn bytes_of_call(call: &mut Call) -> Option<&mut Bytes> {
    match call {
        Call::Files(FilesCall::WriteFile(request)) => Some(&mut request.contents),
        _ => None,
    }
}

/// Where the bytes of an answer stand.
pub(super) fn bytes_of_answer(answer: &mut Answer) -> Option<&mut Bytes> {
    match answer {
        Answer::Files(FilesAnswer::ReadFile(bytes))
        | Answer::Devices(DevicesAnswer::ReadRange(bytes)) => Some(bytes),
        _ => None,
    }
}

fn digest(bytes: &[u8], key: &RandomState) -> String {
    format!("{:016x}", key.hash_one(bytes))
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::HostPath;

    const MIB: usize = 1 << 20;

    fn kept(bytes: &[u8]) -> Contents {
        let contents = Contents::of_range(bytes);
        let stand_in = contents.stand_in().unwrap();
        assert_eq!(Contents::of_range(&stand_in.0), contents);
        contents
    }

    #[test]
    fn a_uniform_range_is_its_fill_and_length() {
        for fill in [0x00, 0xff] {
            let text = serde_json::to_string(&kept(&vec![fill; MIB])).unwrap();
            let expected = format!(r#"{{"range":{{"length":1048576,"fill":{fill}}}}}"#);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn of_other_bytes_the_place_of_the_first_is_kept_and_no_byte() {
        let mut bytes = vec![0; MIB];
        bytes[4711..4721].copy_from_slice(b"my diary: ");
        let text = serde_json::to_string(&kept(&bytes)).unwrap();
        assert!(text.contains(r#""foreign":4711"#), "{text}");
        assert!(text.len() < 100, "{text}");
    }

    #[test]
    fn known_signatures_are_kept_where_they_stand() {
        let mut bytes = vec![0xff; MIB];
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        bytes[3..11].copy_from_slice(b"NTFS    ");
        let end = MIB - 512;
        bytes[end..end + 8].copy_from_slice(b"EFI PART");
        let Contents::Range { marks, foreign, .. } = kept(&bytes) else {
            panic!("it is a range");
        };
        let places: Vec<_> = marks.iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [3, 510, 1_048_064]);
        assert_eq!(foreign, Some(3));
    }

    #[test]
    fn of_files_only_records_of_formats_are_kept() {
        let key = RandomState::new();
        let of = |name: &str, text: &str| {
            let path = HostPath::from_kubelet(&format!(r"C:\state\{name}")).unwrap();
            Contents::of_file(&At::path(&path), text.as_bytes(), &key)
        };
        let name = "format-6e6fb07c-1a2b-4c3d-8e9f-0123456789ab.json";
        let record = r#"{"disk":"one","partition":null,"offset":1,"began":2,"ended":false}"#;
        assert_eq!(of(name, record), Contents::Record(record.to_owned()));
        let more = record.replace("}", r#","diary":"dear"}"#);
        for (name, text) in [
            (name, more.as_str()),
            ("other.json", record),
            (name, "dear"),
        ] {
            let contents = of(name, text);
            assert!(matches!(contents, Contents::File { .. }), "{contents:?}");
            assert_eq!(contents.stand_in().unwrap().0.len(), text.len());
        }
        assert_ne!(of("a", "x"), of("a", "y"));
        assert_eq!(of("a", "x"), of("b", "x"));
    }

    #[test]
    fn claims_that_cannot_be_are_refused() {
        for text in [
            r#"{"file":{"length":4294967295,"digest":"x"}}"#,
            r#"{"range":{"length":10,"fill":0,"foreign":10}}"#,
            r#"{"range":{"length":10,"fill":0,"marks":[[9,"AAAA"]]}}"#,
        ] {
            let contents: Contents = serde_json::from_str(text).unwrap();
            assert_eq!(contents.stand_in(), None, "{text}");
        }
    }
}
