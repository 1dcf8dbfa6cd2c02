//! Sizes in bytes, as users write them and as they are shown.

use crate::failure::{Failure, Result};

const UNITS: [(&str, u32); 5] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50)];

/// Reads bytes: a number alone, or one with `Ki`, `Mi`, `Gi`, `Ti` or `Pi`, with or without
/// a `B` after it.
pub(crate) fn parse(text: &str) -> Result<u64> {
    let wrong = || {
        Failure::new(format!(
            "size {text:?}: expected bytes, as 1073741824, 512MiB or 10GiB"
        ))
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let shift = match unit.strip_suffix('B').unwrap_or(unit) {
        "" => 0,
        name => UNITS
            .iter()
            .find(|(unit, _)| *unit == name)
            .map(|(_, shift)| *shift)
            .ok_or_else(wrong)?,
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// Shows bytes with one decimal at most, in the largest unit that leaves at least one.
pub(crate) fn show(bytes: u64) -> String {
    for (unit, shift) in UNITS.iter().rev() {
        let one = 1u64 << shift;
        if bytes >= one {
            let tenths = u128::from(bytes) * 10 / u128::from(one);
            return match tenths % 10 {
                0 => format!("{} {unit}B", tenths / 10),
                tenth => format!("{}.{tenth} {unit}B", tenths / 10),
            };
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("1073741824"), Ok(1 << 30));
        assert_eq!(parse("512MiB"), Ok(512 << 20));
        assert_eq!(parse("10Gi"), Ok(10 << 30));
        assert_eq!(parse("1PiB"), Ok(1 << 50));
    }

    #[test]
    fn what_is_no_size_is_refused_by_name() {
        for text in [
            "",
            "GiB",
            "-1",
            "1.5GiB",
            "10GB",
            "10 GiB",
            "99999999PiB",
            "1é",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit() {
        assert_eq!(show(0), "0 B");
        assert_eq!(show(1023), "1023 B");
        assert_eq!(show(1 << 30), "1 GiB");
        assert_eq!(show((1 << 30) + (1 << 29)), "1.5 GiB");
        assert_eq!(show(u64::MAX), "16383.9 PiB");
    }
}
