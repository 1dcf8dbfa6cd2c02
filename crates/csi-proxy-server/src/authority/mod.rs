//! Clients whose requests name the pipe as their authority.
//!
//! The published Go clients connect to the path of the pipe, so `:authority` of their requests is
//! `\\.\\pipe\\csi-proxy-disk-v1`, with `%5C` for each `\` in newer versions of gRPC. Neither is
//! an authority of a URI, and the HTTP/2 library refuses such a request before anybody sees it.
//! Nobody here asks for the authority. So in the bytes that come in, characters that must not be
//! in one are made into others. The length stays the same, and with it the size of the entry in
//! the table that both ends of the connection keep (HPACK): both throw out the same entries.

mod hpack;
mod huffman;

/// The bytes in front of each frame: length (3), type, flags, stream (4).
///
/// Source of this and of what follows: RFC 9113, sections 4.1 and 6.2.
const FRAME_HEADER: usize = 9;

/// The longest frame that a client may send to a server that has not asked for longer ones.
const LONGEST_FRAME: usize = 16_384;

const HEADERS: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The bytes of a connection on their way in.
pub(crate) struct Authorities {
    state: State,
    /// The start of a frame that has not wholly come yet.
    held: Vec<u8>,
}

enum State {
    /// So many bytes go through as they are.
    Through(usize),
    /// The next bytes are the header of a frame.
    Header,
    /// The next bytes belong to a frame with headers that has so many.
    Headers(usize),
}

impl Authorities {
    /// At the start of a connection, which begins with so many bytes that are no frame.
    pub(crate) fn behind(preface: usize) -> Self {
        Self {
            state: State::Through(preface),
            held: Vec::new(),
        }
    }

    /// Takes bytes that have come in, and gives what the HTTP/2 library is to read.
    pub(crate) fn pass(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            match self.state {
                State::Through(left) => {
                    let (now, later) = bytes.split_at(left.min(bytes.len()));
                    out.extend_from_slice(now);
                    bytes = later;
                    self.go_on_with(left - now.len());
                }
                State::Header => {
                    bytes = self.hold(bytes, FRAME_HEADER);
                    if self.held.len() == FRAME_HEADER {
                        self.begin(out);
                    }
                }
                State::Headers(size) => {
                    bytes = self.hold(bytes, size);
                    if self.held.len() == size {
                        self.state = State::Header;
                        match changed(&self.held) {
                            Some(frame) => out.extend_from_slice(&frame),
                            None => out.extend_from_slice(&self.held),
                        }
                        self.held.clear();
                    }
                }
            }
        }
    }

    fn go_on_with(&mut self, left: usize) {
        self.state = match left {
            0 => State::Header,
            left => State::Through(left),
        };
    }

    /// Holds bytes until there are `size` of them, and answers those behind.
    fn hold<'a>(&mut self, bytes: &'a [u8], size: usize) -> &'a [u8] {
        let missing = size - self.held.len();
        let (now, later) = bytes.split_at(missing.min(bytes.len()));
        self.held.extend_from_slice(now);
        later
    }

    /// Decides about a frame by its header. Headers that go on in a second frame are far longer
    /// than those of any client of this API; they are left as they are.
    fn begin(&mut self, out: &mut Vec<u8>) {
        let [high, middle, low, kind, flags, ..] = self.held[..] else {
            return;
        };
        let size = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        if kind == HEADERS && flags & END_HEADERS != 0 && size <= LONGEST_FRAME {
            self.state = State::Headers(FRAME_HEADER + size);
            return;
        }
        out.append(&mut self.held);
        self.go_on_with(size);
    }
}

/// A frame with headers whose authority had to be changed.
fn changed(frame: &[u8]) -> Option<Vec<u8>> {
    let (header, payload) = frame.split_at_checked(FRAME_HEADER)?;
    let flags = header[4];
    let padding = match flags & PADDED {
        0 => 0,
        _ => usize::from(*payload.first()?),
    };
    let start = usize::from(flags & PADDED != 0) + 5 * usize::from(flags & PRIORITY != 0);
    let end = payload.len().checked_sub(padding)?;
    let block = hpack::with_authority(payload.get(start..end)?)?;
    let size = start + block.len() + padding;
    if size > LONGEST_FRAME {
        return None;
    }
    let size = u32::try_from(size).ok()?.to_be_bytes();
    Some(
        [
            &size[1..],
            &header[3..],
            &payload[..start],
            &block,
            &payload[end..],
        ]
        .concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the HTTP/2 library reads of what a client says.
    fn read(said: &[u8], piece: usize) -> Vec<u8> {
        let mut authorities = Authorities::behind(3);
        let mut out = Vec::new();
        for piece in said.chunks(piece) {
            authorities.pass(piece, &mut out);
        }
        out
    }

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0, 0, u8::try_from(payload.len()).unwrap(), kind, flags];
        frame.extend([0, 0, 0, 1]);
        frame.extend(payload);
        frame
    }

    /// `:method: POST`, an authority, `te: trailers` as two texts.
    fn block(authority: &str) -> Vec<u8> {
        let length = u8::try_from(authority.len()).unwrap();
        let mut block = vec![0x83, 0x41, length];
        block.extend(authority.as_bytes());
        block.extend(b"\x40\x02te\x08trailers");
        block
    }

    #[test]
    fn the_path_of_a_pipe_becomes_an_authority_of_the_same_length() {
        let data = frame(0, 1, b"\x41\x02\\\\");
        for (authority, read_as) in [
            (
                r"\\.\\pipe\\csi-proxy-disk-v1",
                "--.--pipe--csi-proxy-disk-v1",
            ),
            ("%5C%5C.%5Cpipe%5Cx", "-5C-5C.-5Cpipe-5Cx"),
            ("localhost:1", "localhost:1"),
        ] {
            let said = [
                b"PRI".into(),
                frame(HEADERS, 4, &block(authority)),
                data.clone(),
            ];
            let expected = [
                b"PRI".into(),
                frame(HEADERS, 4, &block(read_as)),
                data.clone(),
            ];
            for piece in [1, 2, 7, 1000] {
                assert_eq!(read(&said.concat(), piece), expected.concat());
            }
        }
    }

    #[test]
    fn padding_and_priority_stay() {
        let payload = |authority| {
            let mut payload = vec![3, 0, 0, 0, 0, 9];
            payload.extend(block(authority));
            payload.extend([0, 0, 0]);
            frame(HEADERS, END_HEADERS | PADDED | PRIORITY, &payload)
        };
        let said = [b"PRI".into(), payload(r"a\b")].concat();
        let expected = [b"PRI".into(), payload("a-b")].concat();
        assert_eq!(read(&said, 1000), expected);
    }

    #[test]
    fn what_is_no_http_goes_through_as_it_is() {
        for said in [
            &b"PRI"[..],
            &[0xff; 64],
            // Padding that is longer than the frame; no headers at all.
            &[
                b"PRI".to_vec(),
                frame(HEADERS, END_HEADERS | PADDED, &[9, 0x41]),
            ]
            .concat(),
            &[b"PRI".to_vec(), frame(HEADERS, END_HEADERS, &[])].concat(),
            &[
                b"PRI".to_vec(),
                frame(HEADERS, END_HEADERS, &[0x41, 0x7f, 0xff]),
            ]
            .concat(),
        ] {
            let through = read(said, 5);
            assert!(said.starts_with(&through), "{said:?}");
        }
    }

    #[test]
    fn a_frame_that_would_grow_too_long_stays_as_it_is() {
        // 24,000 times `a` and a `\` in Huffman code: 15,003 bytes for 24,001.
        let code = [
            [0x18, 0xc6, 0x31, 0x8c, 0x63].repeat(3000),
            vec![0xff, 0xfe, 0x1f],
        ]
        .concat();
        let mut block = b"\x41\xff".to_vec();
        let length = code.len() - 127;
        block.extend([0x80 | u8::try_from(length % 128).unwrap()]);
        block.extend([u8::try_from(length / 128).unwrap()]);
        block.extend(code);
        assert!(hpack::with_authority(&block).is_some());
        let mut said = b"PRI\x00".to_vec();
        said.extend(u16::try_from(block.len()).unwrap().to_be_bytes());
        said.extend([HEADERS, END_HEADERS, 0, 0, 0, 1]);
        said.extend(block);
        assert_eq!(read(&said, 1000), said);
    }
}
