//! Sizes in bytes, which people may write with a unit.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

/// The units, largest first.
const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

/// Reads a number of bytes, or text such as `10 GiB`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    from.deserialize_any(Size)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(crate) fn serialize<S: Serializer>(size: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(*size)
}

/// The same for a size that may be missing.
pub(crate) mod optional {
    use super::{Deserializer, Serializer};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        #[derive(serde::Deserialize)]
        struct Sized(#[serde(with = "super")] u64);

        let size: Option<Sized> = serde::Deserialize::deserialize(from)?;
        Ok(size.map(|size| size.0))
    }

    #[expect(clippy::ref_option, reason = "serde gives a reference")]
    pub(crate) fn serialize<S: Serializer>(size: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        serde::Serialize::serialize(size, to)
    }
}

struct Size;

impl Visitor<'_> for Size {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of bytes, or text such as \"10 GiB\" (KiB, MiB, GiB, TiB)")
    }

    fn visit_u64<E>(self, size: u64) -> Result<u64, E> {
        Ok(size)
    }

    fn visit_i64<E: Error>(self, size: i64) -> Result<u64, E> {
        u64::try_from(size)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(size), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        parse(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

fn parse(text: &str) -> Option<u64> {
    let (number, shift) = UNITS
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .unwrap_or((text, 0));
    let number: u64 = number.trim().parse().ok()?;
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        assert_eq!(parse("10 GiB"), Some(10 << 30));
        assert_eq!(parse("1TiB"), Some(1 << 40));
        assert_eq!(parse("512"), Some(512));
        for text in ["", "GiB", "10 GB", "-1 MiB", "1.5 GiB", "99999999999 TiB"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
