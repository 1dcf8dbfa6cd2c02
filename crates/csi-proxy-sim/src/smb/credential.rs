//! The text in which `MSFT_SmbGlobalMapping.Create` takes a credential.

/// Reads `user:password`. In the user, `\` and `:` have a `\` before them; the password is
/// what follows the first `:` that has none. Nothing if there is no such `:` or the user is
/// not escaped right.
pub(crate) fn parse(text: &str) -> Option<(String, String)> {
    let mut user = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            ':' => return Some((user, chars.collect())),
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ':')) => user.push(escaped),
                _ => return None,
            },
            char => user.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_unescaped_and_the_password_is_taken_as_it_is() {
        let read = |text| parse(text).unwrap();
        let pair = |user: &str, password: &str| (user.to_owned(), password.to_owned());
        assert_eq!(read("u:p"), pair("u", "p"));
        assert_eq!(read(r"DOMAIN\\u:p:q\r"), pair(r"DOMAIN\u", r"p:q\r"));
        assert_eq!(read(r"a\:b:"), pair("a:b", ""));
    }

    #[test]
    fn what_is_not_escaped_right_is_no_credential() {
        for text in ["", "u", r"DOMAIN\u:p", r"u\"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
