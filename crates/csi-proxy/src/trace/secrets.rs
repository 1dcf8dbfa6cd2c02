//! What stands in the place of secrets.

use crate::secret::Secret;

/// Gives each secret of a trace a placeholder.
///
/// The same secret has the same one, so that a replay can tell a right password from a wrong
/// one. A placeholder is as long as a CHAP secret must be (12 to 16 bytes), and says nothing
/// of the secret.
#[derive(Debug, Default)]
pub struct Secrets(Vec<Secret>);

impl Secrets {
    /// The placeholder of a secret.
    pub fn hide(&mut self, text: &str) -> String {
        let known = self.0.iter().position(|secret| secret.expose() == text);
        let index = known.unwrap_or_else(|| {
            self.0.push(Secret::new(text));
            self.0.len() - 1
        });
        format!("(hidden {:05})", index + 1)
    }

    /// The placeholder of an argument of a method. Where it joins a user and a password
    /// (`Credential` of `MSFT_SmbGlobalMapping`), the user stays.
    pub(super) fn hide_argument(&mut self, name: &str, secret: &Secret) -> String {
        let text = secret.expose();
        match (name, user_end(text)) {
            ("Credential", Some(end)) => {
                let (user, password) = text.split_at(end);
                format!("{user}:{}", self.hide(&password[1..]))
            }
            _ => self.hide(text),
        }
    }
}

/// Where the first `:` is that has no `\` before it.
fn user_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b':' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_secrets_have_one_placeholder_and_others_another() {
        let mut secrets = Secrets::default();
        let first = secrets.hide("hunter2");
        assert_ne!(secrets.hide("hunter3"), first);
        assert_eq!(secrets.hide("hunter2"), first);
        assert!((12..=16).contains(&first.len()), "{first}");
    }

    #[test]
    fn the_user_of_a_credential_stays() {
        let mut secrets = Secrets::default();
        let mut hide = |text: &str| secrets.hide_argument("Credential", &Secret::new(text));
        assert_eq!(hide("user:hunter2"), "user:(hidden 00001)");
        assert_eq!(hide(r"DOM\\a\:b:hunter:2"), r"DOM\\a\:b:(hidden 00002)");
        assert_eq!(hide("no user"), "(hidden 00003)");
        assert_eq!(hide("ü:hunter2"), "ü:(hidden 00001)");
    }
}
