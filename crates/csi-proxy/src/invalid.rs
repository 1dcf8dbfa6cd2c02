//! A value of a request that cannot be what it should be.

use crate::error::{Error, ErrorKind};

/// A text that is not what it should be, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} {reason}; expected {expected}")]
pub struct InvalidValue {
    value: String,
    reason: String,
    expected: &'static str,
}

impl InvalidValue {
    pub(crate) fn new(value: &str, reason: impl Into<String>, expected: &'static str) -> Self {
        Self {
            value: format!("{value:?}"),
            reason: reason.into(),
            expected,
        }
    }

    /// The same for a value that must not be shown.
    pub(crate) fn secret(reason: impl Into<String>, expected: &'static str) -> Self {
        Self {
            value: "(hidden)".to_owned(),
            reason: reason.into(),
            expected,
        }
    }

    /// The error of an operation that was given this value in the field of its request.
    pub fn in_field(&self, operation: &'static str, field: &str) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            operation,
            format_args!("{field} {}", self.value),
            format_args!("{}; expected {}", self.reason, self.expected),
        )
    }
}
