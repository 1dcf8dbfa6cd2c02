//! Names as NTFS compares and shortens them.

/// A name in the form in which names are compared: each UTF-16 unit in upper case by
/// itself, so a pair of surrogates stays as it is.
///
/// Source: "Naming Files, Paths, and Namespaces",
/// <https://learn.microsoft.com/windows/win32/fileio/naming-a-file>.
pub(crate) fn upcase(name: &str) -> String {
    name.chars().map(upcase_char).collect()
}

fn upcase_char(char: char) -> char {
    let mut upper = char.to_uppercase();
    match (upper.next(), upper.next()) {
        // Windows' table never leads from another script into ASCII (U+017F, U+0131).
        (Some(upper), None) if char.len_utf16() == 1 && char.is_ascii() == upper.is_ascii() => {
            upper
        }
        _ => char,
    }
}

/// Whether two names name the same entry of a directory.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    upcase(one) == upcase(other)
}

/// Whether a name may stand in a directory. Calls use verbatim paths, so a trailing dot or
/// blank is a name like any other.
pub(crate) fn is_legal(name: &str) -> bool {
    let length = name.encode_utf16().count();
    (1..=255).contains(&length)
        && !name.contains(|char: char| r#""<>/\:?*|"#.contains(char) || char < ' ')
        && name != "."
        && name != ".."
}

/// The short (8.3) name that NTFS makes up for a name that is not one already; `taken` tells
/// which names the directory has. Nothing for a name that needs none.
pub(crate) fn short_name(name: &str, taken: impl Fn(&str) -> bool) -> Option<String> {
    let upper = upcase(name);
    if is_short(&upper) {
        return None;
    }
    let trimmed = upper.trim_start_matches(['.', ' ']);
    let (base, extension) = match trimmed.rsplit_once('.') {
        Some((base, extension)) => (base, short_part(extension, 3)),
        None => (trimmed, String::new()),
    };
    let base = short_part(base, 6);
    let ending = match extension.as_str() {
        "" => String::new(),
        _ => format!(".{extension}"),
    };
    // After four collisions Windows goes on with a hash of the name; a counter serves as
    // well, since nobody may compute these names.
    (1..=999_999)
        .map(|number: u32| {
            let number = number.to_string();
            let stem: String = base.chars().take(7 - number.len()).collect();
            format!("{stem}~{number}{ending}")
        })
        .find(|short| !taken(short))
}

/// Whether a name in upper case is an 8.3 name itself.
fn is_short(upper: &str) -> bool {
    let (base, extension) = upper.split_once('.').unwrap_or((upper, "A"));
    let fits =
        |part: &str, length| (1..=length).contains(&part.len()) && part.chars().all(is_short_char);
    fits(base, 8) && fits(extension, 3)
}

fn short_part(text: &str, length: usize) -> String {
    text.chars()
        .filter(|char| !matches!(char, '.' | ' '))
        .map(|char| if is_short_char(char) { char } else { '_' })
        .take(length)
        .collect()
}

fn is_short_char(char: char) -> bool {
    char.is_ascii_graphic() && !r#""*+,/:;<=>?[\]|."#.contains(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_by_single_utf16_units() {
        assert!(same_name("Straße", "sTRAßE"));
        assert!(!same_name("straße", "STRASSE"));
        assert!(same_name("éÿ", "ÉŸ"));
        assert!(!same_name("ſ", "S"));
        // Deseret letters have two units, and Windows has no case for those.
        assert!(!same_name("\u{10428}", "\u{10400}"));
    }

    #[test]
    fn short_names_are_made_as_windows_makes_them() {
        let free = |_: &str| false;
        assert_eq!(short_name("Program Files", free).unwrap(), "PROGRA~1");
        assert_eq!(short_name("a.longext", free).unwrap(), "A~1.LON");
        assert_eq!(short_name("two.dots.txt", free).unwrap(), "TWODOT~1.TXT");
        assert_eq!(short_name(".csi", free).unwrap(), "CSI~1");
        assert_eq!(short_name("a+b", free).unwrap(), "A_B~1");
        for name in ["Windows", "data", "README.TXT", "a.b"] {
            assert_eq!(short_name(name, free), None, "{name}");
        }
    }

    #[test]
    fn a_short_name_that_is_taken_counts_on() {
        let taken = |short: &str| short == "PROGRA~1";
        assert_eq!(
            short_name("Program Files (x86)", taken).unwrap(),
            "PROGRA~2"
        );
    }

    #[test]
    fn separators_and_wildcards_are_no_names() {
        for name in ["", ".", "..", r"a\b", "a/b", "a:b", "a*", "a\n"] {
            assert!(!is_legal(name), "{name:?}");
        }
        for name in [
            "a.",
            "[vsanDatastore] x",
            "$(x)`%VAR%'’",
            "\u{1f600}",
            "a~1",
        ] {
            assert!(is_legal(name), "{name:?}");
        }
    }
}
