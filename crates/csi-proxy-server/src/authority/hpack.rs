//! Header blocks, as far as one must read them to find the authority. RFC 7541, section 6.

use tonic::codegen::http::uri::Authority;

use super::huffman;

/// The name `:authority` in the static table, RFC 7541, appendix A.
const AUTHORITY: usize = 1;
const AUTHORITY_NAME: &[u8] = b":authority";

/// A block in which each text that is no authority and stands for one has been made into one.
/// Nothing when there is none, or when this is no header block.
pub(super) fn with_authority(block: &[u8]) -> Option<Vec<u8>> {
    let mut changed = Vec::new();
    let mut copied = 0;
    let mut fields = Fields { block, at: 0 };
    while let Some(&first) = block.get(fields.at) {
        let name_bits = match first {
            // A field of the table, or a new size for the table: no text follows.
            0x80.. => {
                fields.integer(7)?;
                continue;
            }
            0x20..=0x3f => {
                fields.integer(5)?;
                continue;
            }
            // Texts: for the table, or not for it.
            0x40..=0x7f => 6,
            ..=0x1f => 4,
        };
        let is_authority = match fields.integer(name_bits)? {
            0 => fields.text()?.decoded()? == AUTHORITY_NAME,
            name => name == AUTHORITY,
        };
        let value_at = fields.at;
        let value = fields.text()?;
        if !is_authority {
            continue;
        }
        let value = value.decoded()?;
        if !value.is_empty() && Authority::try_from(&*value).is_err() {
            changed.extend_from_slice(&block[copied..value_at]);
            write_text(&mut changed, value.into_iter().map(fitting));
            copied = fields.at;
        }
    }
    changed.extend_from_slice(&block[copied..]);
    (copied > 0).then_some(changed)
}

/// The same character where it may be in the name of a host.
fn fitting(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' => byte,
        _ => b'-',
    }
}

struct Fields<'a> {
    block: &'a [u8],
    at: usize,
}

/// A text as it travels.
struct Text<'a> {
    bytes: &'a [u8],
    in_huffman_code: bool,
}

impl Text<'_> {
    fn decoded(&self) -> Option<Vec<u8>> {
        match self.in_huffman_code {
            true => huffman::decoded(self.bytes),
            false => Some(self.bytes.to_vec()),
        }
    }
}

impl<'a> Fields<'a> {
    /// An integer that begins in the last bits of a byte, section 5.1.
    fn integer(&mut self, bits: u32) -> Option<usize> {
        let most = (1_usize << bits) - 1;
        let mut number = usize::from(self.byte()?) & most;
        if number < most {
            return Some(number);
        }
        // Three further bytes are more than a frame holds.
        for shift in [0, 7, 14] {
            let byte = self.byte()?;
            number += usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A text, section 5.2.
    fn text(&mut self) -> Option<Text<'a>> {
        let in_huffman_code = self.block.get(self.at)? & 0x80 != 0;
        let length = self.integer(7)?;
        let bytes = self.block.get(self.at..)?.get(..length)?;
        self.at += length;
        Some(Text {
            bytes,
            in_huffman_code,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.block.get(self.at)?;
        self.at += 1;
        Some(byte)
    }
}

fn write_text(out: &mut Vec<u8>, text: impl ExactSizeIterator<Item = u8>) {
    match u8::try_from(text.len()) {
        Ok(short @ ..=0x7e) => out.push(short),
        _ => {
            out.push(0x7f);
            let mut left = text.len() - 0x7f;
            loop {
                let [low, ..] = left.to_le_bytes();
                left >>= 7;
                if left == 0 {
                    out.push(low);
                    break;
                }
                out.push(low | 0x80);
            }
        }
    }
    out.extend(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(start: &[u8], value: &[u8]) -> Vec<u8> {
        let mut field = start.to_vec();
        write_text(&mut field, value.iter().copied());
        field
    }

    #[test]
    fn the_authority_is_found_in_every_form() {
        let by_name = field(&[0x40], AUTHORITY_NAME);
        for start in [&[0x41][..], &[0x01], &[0x11], &by_name] {
            for length in [1, 126, 127, 128, 254, 255, 300] {
                let around = |value: &[u8]| {
                    [
                        &[0x3f, 0xe1, 0x1f, 0x82][..],
                        &field(start, value),
                        &field(&[0x44], b"/\\"),
                    ]
                    .concat()
                };
                let changed = with_authority(&around(&vec![b'\\'; length]));
                assert_eq!(
                    changed,
                    Some(around(&vec![b'-'; length])),
                    "{start:?} {length}"
                );
                assert_eq!(with_authority(&around(&vec![b'a'; length])), None);
            }
        }
    }

    /// RFC 7541, C.4.1, where the authority is `www.example.com`.
    #[test]
    fn an_authority_in_huffman_code_is_read() {
        let block = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        assert_eq!(with_authority(block), None);
        // Twice `\`, whose code is 111 1111 1111 1111 0000.
        let block = b"\x82\x41\x85\xff\xfe\x1f\xff\xc3";
        assert_eq!(
            with_authority(block).as_deref(),
            Some(&b"\x82\x41\x02--"[..])
        );
    }

    #[test]
    fn every_text_is_read_to_its_end_or_not_at_all() {
        let mut block = field(&[0x41], br"\\.\pipe\x");
        block.extend(field(&[0x40, 1, b'x'], b"value"));
        for end in 0..block.len() {
            // What matters is that it answers.
            drop(with_authority(&block[..end]));
        }
        assert_eq!(with_authority(&[0xff; 64]), None);
        assert_eq!(with_authority(&[0x7f; 64]), None);
    }
}
