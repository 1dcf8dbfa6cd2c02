//! Passwords and CHAP secrets of the simulated servers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A password that a simulated server or session knows. It is stored in clear with the
/// rest of the state, and not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl From<&str> for Password {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Password {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Password {
    /// The password itself, for the one place that puts another text there.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Its length in bytes.
    pub(crate) fn length(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_password() {
        let shown = format!("{:?}", Password::from("hunter2"));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
