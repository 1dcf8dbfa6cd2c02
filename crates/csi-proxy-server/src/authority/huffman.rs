//! The Huffman code of HPACK, RFC 7541, appendix B.

use std::sync::LazyLock;

/// The bits of each byte's code. The codes follow from that: shorter ones come first, and those
/// of the same length in the order of the bytes.
#[rustfmt::skip]
const BITS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The longest code.
const MOST_BITS: usize = 30;

static CODES: LazyLock<Codes> = LazyLock::new(|| {
    let mut bytes: Vec<u8> = (0..=u8::MAX).collect();
    bytes.sort_by_key(|byte| BITS[usize::from(*byte)]);
    let mut of_length = [0; MOST_BITS + 1];
    for bits in BITS {
        of_length[usize::from(bits)] += 1;
    }
    Codes { bytes, of_length }
});

struct Codes {
    /// The bytes in the order of their codes.
    bytes: Vec<u8>,
    /// How many have a code of each length.
    of_length: [u32; MOST_BITS + 1],
}

/// Decodes a text; nothing when it is none.
pub(super) fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bits = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| u32::from(byte >> bit & 1)));
    let mut text = Vec::new();
    loop {
        match next(&mut bits) {
            Ok(byte) => text.push(byte),
            // The last byte is filled up with ones.
            Err((padding, ones)) => return (padding < 8 && ones).then_some(text),
        }
    }
}

/// Reads the code of one byte. Without one: how many bits were left, and whether all were one.
fn next(bits: &mut impl Iterator<Item = u32>) -> Result<u8, (usize, bool)> {
    let Codes { bytes, of_length } = &*CODES;
    // The first code of the length, and how many codes are shorter.
    let (mut code, mut first, mut shorter) = (0, 0, 0);
    for (read, count) in of_length.iter().skip(1).enumerate() {
        let Some(bit) = bits.next() else {
            return Err((read, code == (1 << read) - 1));
        };
        code = code << 1 | bit;
        first <<= 1;
        if code - first < *count {
            return Ok(bytes[(shorter + code - first) as usize]);
        }
        shorter += count;
        first += count;
    }
    // That is the end of a text (EOS), which must not be sent.
    Err((usize::MAX, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541, C.4 and C.6.
    #[test]
    fn the_examples_of_the_standard_are_read() {
        for (code, text) in [
            (&b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..], "www.example.com"),
            (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
            (b"\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f", "custom-key"),
            (b"\x64\x02", "302"),
            (b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff",
             "Mon, 21 Oct 2013 20:13:21 GMT"),
            (b"\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
             "https://www.example.com"),
        ] {
            assert_eq!(decoded(code).as_deref(), Some(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        // Padding of more than seven bits, padding with a zero, the end of a text.
        for code in [&[0xff][..], &[0x07, 0xff, 0xff], &[0xf1, 0xe0], &[0xff; 4]] {
            assert_eq!(decoded(code), None, "{code:x?}");
        }
        assert_eq!(decoded(&[]), Some(Vec::new()));
    }
}
