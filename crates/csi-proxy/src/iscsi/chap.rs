//! How an initiator proves who it is to a target (CHAP).

use crate::invalid::InvalidValue;
use crate::secret::Secret;

/// The bytes that a CHAP secret may have without IPsec.
///
/// Source: `SetIScsiInitiatorCHAPSharedSecret`,
/// <https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-setiscsiinitiatorchapsharedsecret>.
const LENGTHS: std::ops::RangeInclusive<usize> = 12..=16;

/// A CHAP secret of 12 to 16 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChapSecret(Secret);

/// How to log in to a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authentication {
    /// Without a user.
    #[default]
    None,
    /// The target checks the initiator.
    OneWayChap {
        /// The user.
        username: String,
        /// The user's secret.
        secret: ChapSecret,
    },
    /// Both check each other; the initiator's own secret is that of
    /// [`super::Iscsi::set_mutual_chap_secret`].
    MutualChap {
        /// The user.
        username: String,
        /// The user's secret.
        secret: ChapSecret,
    },
}

impl ChapSecret {
    /// Checks the length of a secret; the error does not show it.
    ///
    /// # Errors
    /// It has fewer than 12 or more than 16 bytes.
    pub fn new(secret: Secret) -> Result<Self, InvalidValue> {
        let length = secret.expose().len();
        match LENGTHS.contains(&length) {
            true => Ok(Self(secret)),
            false => Err(InvalidValue::secret(
                format!("has {length} bytes"),
                "a CHAP secret of 12 to 16 bytes",
            )),
        }
    }

    pub(super) fn secret(&self) -> Secret {
        self.0.clone()
    }
}

impl Authentication {
    /// The `AuthenticationType` of WMI, and the user with the secret.
    pub(super) fn parameters(&self) -> (&'static str, Option<(&str, &ChapSecret)>) {
        match self {
            Self::None => ("NONE", None),
            Self::OneWayChap { username, secret } => ("ONEWAYCHAP", Some((username, secret))),
            Self::MutualChap { username, secret } => ("MUTUALCHAP", Some((username, secret))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_chap_secret_has_12_to_16_bytes() {
        for (length, right) in [(0, false), (11, false), (12, true), (16, true), (17, false)] {
            let secret = ChapSecret::new(Secret::new("x".repeat(length)));
            assert_eq!(secret.is_ok(), right, "{length}");
        }
        // Bytes, not characters.
        assert!(ChapSecret::new(Secret::new("é".repeat(6))).is_ok());
        assert!(ChapSecret::new(Secret::new("é".repeat(9))).is_err());
    }

    #[test]
    fn a_wrong_secret_is_told_without_the_secret() {
        let error = ChapSecret::new(Secret::new("hunter2")).unwrap_err();
        let told = error.in_field("iscsi", "chap_secret");
        assert_eq!(told.kind(), ErrorKind::InvalidArgument);
        let shown = told.to_string();
        assert!(!format!("{shown} {error:?}").contains("hunter2"), "{shown}");
        assert!(shown.contains("7 bytes"), "{shown}");
    }
}
