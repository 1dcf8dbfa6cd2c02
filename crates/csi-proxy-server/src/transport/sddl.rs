//! Who may open the pipes, in the security descriptor definition language.
//!
//! Source: <https://learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format>.

/// What a client needs: `FILE_GENERIC_READ` and `FILE_GENERIC_WRITE` without
/// `FILE_CREATE_PIPE_INSTANCE` (4). Windows does not ask for that one when a client opens a pipe
/// with `GENERIC_WRITE`, and whoever has it could answer in our place.
///
/// Source: <https://learn.microsoft.com/windows/win32/ipc/named-pipe-security-and-access-rights>.
const CLIENT: &str = "0x12019b";

/// What the service itself needs, to make further instances.
const SERVICE: &str = "0x12019f";

/// LocalSystem, administrators, and `ContainerAdministrator` of process-isolated containers.
const DEFAULT_CLIENTS: [&str; 3] = ["SY", "BA", "S-1-5-93-2-1"];

/// The descriptor of the pipes: what was asked for or the default, and the service's own right.
///
/// # Errors
/// A text without an access control list: everybody could open the pipes.
pub(crate) fn of_pipes(asked: Option<&str>, service: &str) -> Result<String, String> {
    let own = format!("(A;;{SERVICE};;;{service})");
    let Some(asked) = asked else {
        let clients = DEFAULT_CLIENTS.map(|client| format!("(A;;{CLIENT};;;{client})"));
        return Ok(format!("D:P{}{own}", clients.concat()));
    };
    let (start, end) = list(asked)
        .ok_or_else(|| format!("{asked:?} has no access control list; expected D:(A;;…;;;…)"))?;
    if !asked[start..end].contains('(') {
        return Err(format!(
            "{asked:?} has an empty access control list; expected D:(A;;…;;;…)"
        ));
    }
    Ok(format!("{}{own}{}", &asked[..end], &asked[end..]))
}

/// Where the discretionary list (`D:`) begins and ends.
fn list(text: &str) -> Option<(usize, usize)> {
    let start = outside_parentheses(text, 0, "D:")?;
    let end = outside_parentheses(text, start, "S:").unwrap_or(text.len());
    Some((start, end))
}

fn outside_parentheses(text: &str, from: usize, what: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if at >= from && depth == 0 && text[at..].starts_with(what) => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_nobody_but_the_service_may_make_instances() {
        let sddl = of_pipes(None, "S-1-5-18").unwrap();
        assert_eq!(
            sddl,
            "D:P(A;;0x12019b;;;SY)(A;;0x12019b;;;BA)(A;;0x12019b;;;S-1-5-93-2-1)\
             (A;;0x12019f;;;S-1-5-18)"
        );
        assert!(!sddl.contains("WD"), "nothing for everyone");
    }

    #[test]
    fn the_right_of_the_service_is_added_to_what_was_asked_for() {
        for (asked, sddl) in [
            ("D:(A;;GA;;;BA)", "D:(A;;GA;;;BA)(A;;0x12019f;;;X)"),
            (
                "O:SYG:SYD:P(A;;FA;;;BA)S:(ML;;NW;;;LW)",
                "O:SYG:SYD:P(A;;FA;;;BA)(A;;0x12019f;;;X)S:(ML;;NW;;;LW)",
            ),
        ] {
            assert_eq!(of_pipes(Some(asked), "X").as_deref(), Ok(sddl));
        }
    }

    #[test]
    fn a_descriptor_that_lets_everybody_in_is_refused() {
        for asked in [
            "",
            "O:SY",
            "S:(ML;;NW;;;LW)",
            "D:",
            "D:NO_ACCESS_CONTROL",
            "(D:)",
        ] {
            assert!(of_pipes(Some(asked), "X").is_err(), "{asked}");
        }
    }
}
