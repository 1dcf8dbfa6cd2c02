//! What ends the program: one line that says what is wrong and what was expected.

use std::error::Error;
use std::fmt;

/// The result of everything that a user asked for.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// One line for the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(String);

impl Failure {
    /// The line, without a newline or a final period.
    pub(crate) fn new(line: impl Into<String>) -> Self {
        Self(line.into())
    }

    /// What was tried, and why it failed: the error and its causes.
    pub(crate) fn from_error(what: impl fmt::Display, error: &dyn Error) -> Self {
        let mut line = format!("{what}: {error}");
        let mut said = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Some libraries repeat their cause.
            if !said.contains(&text) {
                line += &format!(": {text}");
            }
            said = text;
            cause = error.source();
        }
        Self(line)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.replace('\n', " "))
    }
}

impl Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(std::io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("transport error")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_failure_names_the_causes_on_one_line() {
        let error = Outer(std::io::Error::other("no\nsocket"));
        let failure = Failure::from_error("cannot connect", &error);
        assert_eq!(
            failure.to_string(),
            "cannot connect: transport error: no socket"
        );
    }
}
