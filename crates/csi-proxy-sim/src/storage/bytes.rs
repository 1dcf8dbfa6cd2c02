//! The bytes of a medium, of which most were never written.

use std::collections::BTreeMap;

use csi_proxy::os::Bytes;
use serde::{Deserialize, Serialize};

/// The bytes are kept in blocks of this size.
const BLOCK: u64 = 4096;
const BLOCK_LENGTH: usize = 4096;

/// Zeros between other bytes that are not worth a piece of their own in a file.
const GAP: usize = 32;

/// Bytes of any range; what was never written is 0x00.
///
/// In a file they are the pieces that are not 0x00, by their offset: most of a block is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<u64, Bytes>", into = "BTreeMap<u64, Bytes>")]
pub struct SparseBytes(BTreeMap<u64, Bytes>);

impl From<BTreeMap<u64, Bytes>> for SparseBytes {
    fn from(pieces: BTreeMap<u64, Bytes>) -> Self {
        let mut bytes = Self::default();
        for (offset, piece) in pieces {
            bytes.write(offset, &piece.0);
        }
        bytes
    }
}

impl From<SparseBytes> for BTreeMap<u64, Bytes> {
    fn from(bytes: SparseBytes) -> Self {
        let mut pieces = Self::new();
        for (block, bytes) in bytes.0 {
            let mut last: Option<(usize, Vec<u8>)> = None;
            for (at, byte) in bytes.0.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                match &mut last {
                    Some((start, piece)) if at < *start + piece.len() + GAP => {
                        piece.resize(at - *start, 0);
                        piece.push(*byte);
                    }
                    _ => {
                        let ended = last.replace((at, vec![*byte]));
                        pieces.extend(ended.map(|(start, piece)| in_block(block, start, piece)));
                    }
                }
            }
            pieces.extend(last.map(|(start, piece)| in_block(block, start, piece)));
        }
        pieces
    }
}

impl SparseBytes {
    /// The bytes from `offset` on.
    pub fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        for (at, slice) in pieces(offset, &mut bytes) {
            if let Some(block) = self.0.get(&at.block) {
                slice.copy_from_slice(&block.0[at.within..at.within + slice.len()]);
            }
        }
        bytes
    }

    /// Writes bytes at `offset`.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        for (at, slice) in pieces(offset, &mut bytes) {
            let block = self
                .0
                .entry(at.block)
                .or_insert_with(|| Bytes(vec![0; BLOCK_LENGTH]));
            block.0[at.within..at.within + slice.len()].copy_from_slice(slice);
            if block.0.iter().all(|byte| *byte == 0) {
                self.0.remove(&at.block);
            }
        }
    }

    /// Makes a range 0x00 again.
    pub fn clear(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        let (first_whole, last_whole) = (offset.div_ceil(BLOCK), end / BLOCK);
        if first_whole <= last_whole {
            self.0
                .retain(|block, _| !(first_whole..last_whole).contains(block));
        }
        for edge in [offset / BLOCK, last_whole] {
            let from = offset.max(edge * BLOCK);
            let to = end.min((edge + 1) * BLOCK);
            let zeros = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
            if zeros > 0 && self.0.contains_key(&edge) {
                self.write(from, &vec![0; zeros]);
            }
        }
    }

    /// How many chunks of `chunk` bytes hold anything but 0x00.
    pub(crate) fn chunks_in_use(&self, chunk: u64) -> u64 {
        let mut count = 0;
        let mut last = None;
        for block in self.0.keys() {
            let this = Some(block * BLOCK / chunk);
            if this != last {
                count += 1;
                last = this;
            }
        }
        count
    }
}

/// A piece with its offset.
fn in_block(block: u64, start: usize, piece: Vec<u8>) -> (u64, Bytes) {
    (block * BLOCK + start as u64, Bytes(piece))
}

/// A place in a block.
struct Place {
    block: u64,
    within: usize,
}

/// The bytes in pieces that each lie in one block.
fn pieces(offset: u64, bytes: &mut [u8]) -> impl Iterator<Item = (Place, &mut [u8])> {
    let mut rest = bytes;
    let mut offset = offset;
    std::iter::from_fn(move || {
        let within = usize::try_from(offset % BLOCK).unwrap_or(0);
        let length = rest.len().min(BLOCK_LENGTH - within);
        let (piece, left) = std::mem::take(&mut rest).split_at_mut(length);
        let block = offset / BLOCK;
        rest = left;
        offset += length as u64;
        (length > 0).then_some((Place { block, within }, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back_across_blocks() {
        let mut bytes = SparseBytes::default();
        let text: Vec<u8> = (1..=200).cycle().take(9000).collect();
        bytes.write(4000, &text);
        assert_eq!(bytes.read(4000, 9000), text);
        assert_eq!(bytes.read(0, 4000), vec![0; 4000]);
        assert_eq!(bytes.read(13_000, 10), vec![0; 10]);
    }

    #[test]
    fn a_cleared_range_is_zero_and_its_surroundings_stay() {
        for (offset, length) in [
            (1000, 100),
            (4096, 4096),
            (1000, 10_000),
            (0, 20_000),
            (5, 0),
        ] {
            let mut bytes = SparseBytes::default();
            bytes.write(0, &[7; 20_000]);
            bytes.clear(offset, length);
            let end = offset + length;
            let expected: Vec<u8> = (0..20_000u64)
                .map(|at| if (offset..end).contains(&at) { 0 } else { 7 })
                .collect();
            assert_eq!(bytes.read(0, 20_000), expected, "{offset} {length}");
        }
    }

    #[test]
    fn a_file_holds_what_is_not_zero_and_gives_the_same_bytes_back() {
        let mut bytes = SparseBytes::default();
        bytes.write(4090, &[1; 12]);
        bytes.write(8192, &[2, 0, 2]);
        bytes.write(8192 + 512, &[3]);
        let text = serde_json::to_string(&bytes).unwrap();
        let pieces = r#"{"4090":"AQEBAQEB","4096":"AQEBAQEB","8192":"AgAC","8704":"Aw=="}"#;
        assert_eq!(text, pieces);
        assert_eq!(serde_json::from_str::<SparseBytes>(&text).unwrap(), bytes);
    }

    #[test]
    fn zeros_take_no_space_and_equal_what_was_never_written() {
        let mut bytes = SparseBytes::default();
        bytes.write(100, &[1]);
        bytes.write(100, &[0]);
        assert_eq!(bytes, SparseBytes::default());
    }
}
