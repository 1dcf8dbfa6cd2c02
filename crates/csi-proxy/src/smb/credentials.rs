//! Who logs on to a share.

use crate::invalid::InvalidValue;
use crate::secret::Secret;

const EXPECTED_USER: &str = "a user name without control characters";

/// A user and a password for a share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    username: String,
    password: Secret,
}

impl Credentials {
    /// A user, `user`, `DOMAIN\user` or `user@domain`, and the password.
    ///
    /// # Errors
    /// The user is empty or has a control character; the password has a NUL. The password
    /// is not shown.
    pub fn new(username: &str, password: Secret) -> Result<Self, InvalidValue> {
        if username.is_empty() {
            return Err(InvalidValue::new(username, "is empty", EXPECTED_USER));
        }
        if username.contains(char::is_control) {
            let reason = "has a control character";
            return Err(InvalidValue::new(username, reason, EXPECTED_USER));
        }
        if password.expose().contains('\0') {
            return Err(InvalidValue::secret("has a NUL", "a password without NUL"));
        }
        Ok(Self {
            username: username.to_owned(),
            password,
        })
    }

    /// The user.
    pub fn username(&self) -> &str {
        &self.username
    }

    /// Whether both name the same user: Windows does not look at the case.
    pub fn is_user(&self, username: &str) -> bool {
        self.username.to_lowercase() == username.to_lowercase()
    }

    /// The `Credential` parameter of WMI: `user:password`, in the user `\` before `\` and
    /// `:`.
    pub(super) fn parameter(&self) -> Secret {
        let user = self.username.replace('\\', r"\\").replace(':', r"\:");
        Secret::new(format!("{user}:{}", self.password.expose()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(username: &str, password: &str) -> String {
        let credentials = Credentials::new(username, Secret::new(password)).unwrap();
        credentials.parameter().expose().to_owned()
    }

    #[test]
    fn backslash_and_colon_are_escaped_in_the_user_only() {
        assert_eq!(parameter("user", "pass"), "user:pass");
        assert_eq!(parameter(r"DOM\user", r"p\a:s"), r"DOM\\user:p\a:s");
        assert_eq!(parameter("a:b", ""), r"a\:b:");
        assert_eq!(parameter(r"\:", "x"), r"\\\::x");
    }

    #[test]
    fn wrong_credentials_are_told_without_the_password() {
        for (username, password) in [("", "hunter2"), ("a\nb", "hunter2"), ("user", "hunter2\0")] {
            let error = Credentials::new(username, Secret::new(password)).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
            let error = error.in_field("smb", "credentials");
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn debug_does_not_show_the_password() {
        let credentials = Credentials::new("user", Secret::new("hunter2")).unwrap();
        assert!(!format!("{credentials:?}").contains("hunter2"));
    }

    #[test]
    fn a_user_is_compared_without_case() {
        let credentials = Credentials::new(r"Dom\User", Secret::new("x")).unwrap();
        assert!(credentials.is_user(r"DOM\USER"));
        assert!(!credentials.is_user("User"));
    }
}
