//! The deadline that a client names.

use std::time::Duration;

use tonic::Status;
use tonic::metadata::MetadataMap;

/// The time that a client gives its call (`grpc-timeout`); nothing when it names none.
///
/// Source: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>, "Timeout".
pub(crate) fn of(metadata: &MetadataMap) -> Result<Option<Duration>, Status> {
    let Some(value) = metadata.get("grpc-timeout") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    read(text).map(Some).ok_or_else(|| {
        Status::invalid_argument(format!(
            "grpc-timeout {text:?}: expected up to 8 digits and one of H, M, S, m, u, n"
        ))
    })
}

fn read(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let right = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| right)?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_digits_and_a_unit() {
        for (text, time) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("99999999m", Duration::from_millis(99_999_999)),
            ("5u", Duration::from_micros(5)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(read(text), Some(time), "{text}");
        }
        for text in ["", "S", "1", "1s", "+1S", "-1S", "123456789S", "1é", "é"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
