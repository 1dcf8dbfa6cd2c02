//! Changes of binary inputs.

use crate::random::Random;

/// A little-endian number in an input.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) at: usize,
    pub(crate) width: usize,
}

/// What is known of a format.
pub(crate) struct Format {
    /// Where the numbers are, as far as the input can be followed.
    pub(crate) fields: fn(&[u8]) -> Vec<Field>,
    /// Makes the outermost length right again, so that the rest is looked at.
    pub(crate) repair: fn(&mut [u8]),
    /// Byte strings that mean something in it.
    pub(crate) words: &'static [&'static [u8]],
    /// Inputs are not made longer than that.
    pub(crate) limit: usize,
}

/// A new input from the pool.
pub(crate) fn mutated(random: &mut Random, pool: &[Vec<u8>], format: &Format) -> Vec<u8> {
    let mut input = random.pick(pool).clone();
    for _ in 0..1 + random.below(4) {
        change(random, &mut input, pool, format);
    }
    if random.one_in(2) {
        (format.repair)(&mut input);
    }
    // After the repair: a length that is wrong in itself.
    if random.one_in(4) {
        change_field(random, &mut input, format);
    }
    input.truncate(format.limit);
    input
}

fn change(random: &mut Random, input: &mut Vec<u8>, pool: &[Vec<u8>], format: &Format) {
    let (from, to) = range(random, input.len());
    match random.below(10) {
        0..=3 => change_field(random, input, format),
        4 => input.truncate(cut(random, input, format)),
        5 => {
            let filler = *random.pick(&[0, 0xFF, b'A', b'\\', b' ']);
            let more = 1 + random.below(40);
            input.resize(input.len() + more, filler);
        }
        6 => {
            let part = input[from..to].to_vec();
            input.splice(to..to, part);
        }
        7 => drop(input.drain(from..to)),
        8 => {
            let other = random.pick(pool);
            let (start, end) = range(random, other.len());
            let replaced = if random.one_in(2) { from..to } else { to..to };
            input.splice(replaced, other[start..end].iter().copied());
        }
        _ if random.one_in(2) && !format.words.is_empty() => {
            let word = random.pick(format.words);
            let end = (from + word.len()).min(input.len());
            let replaced = if random.one_in(2) {
                from..end
            } else {
                from..from
            };
            input.splice(replaced, word.iter().copied());
        }
        _ => {
            if let Some(byte) = input.get_mut(from) {
                *byte = random.byte();
            }
        }
    }
}

/// Where to cut off: anywhere, or right before, in or behind a number.
fn cut(random: &mut Random, input: &[u8], format: &Format) -> usize {
    let fields = (format.fields)(input);
    match fields.is_empty() || random.one_in(2) {
        true => random.below(input.len() + 1),
        false => {
            let field = random.pick(&fields);
            field.at + random.below(field.width + 1)
        }
    }
}

/// Sets a number to a value at a limit: of its width, of the input, or of another number.
fn change_field(random: &mut Random, input: &mut [u8], format: &Format) {
    let fields = (format.fields)(input);
    if fields.is_empty() {
        return;
    }
    let field = *random.pick(&fields);
    let own = read(input, field);
    let length = u64::try_from(input.len()).unwrap();
    let behind = length.saturating_sub(u64::try_from(field.at).unwrap());
    let widest = u64::MAX >> (64 - 8 * field.width);
    let base = match random.below(9) {
        0 => 0,
        1 => widest,
        2 => widest / 2,
        3 => length,
        4 => behind,
        5 => own,
        6 => own * 2,
        7 => read(input, *random.pick(&fields)),
        _ => random.next(),
    };
    let near = match random.below(5) {
        0 => base,
        1 => base.wrapping_add(1),
        2 => base.wrapping_sub(1),
        3 => base.wrapping_add(u64::from(random.byte() % 20)),
        _ => base.wrapping_sub(u64::from(random.byte() % 20)),
    };
    let bytes = near.to_le_bytes();
    input[field.at..field.at + field.width].copy_from_slice(&bytes[..field.width]);
}

pub(crate) fn read(input: &[u8], field: Field) -> u64 {
    let mut bytes = [0; 8];
    bytes[..field.width].copy_from_slice(&input[field.at..field.at + field.width]);
    u64::from_le_bytes(bytes)
}

fn range(random: &mut Random, length: usize) -> (usize, usize) {
    let from = random.below(length + 1);
    let longest = (length - from).min(64);
    (from, from + random.below(longest + 1))
}
