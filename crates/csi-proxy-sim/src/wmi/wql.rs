//! The part of WQL that storage clients use: `SELECT` with conditions joined by `AND`, and
//! `ASSOCIATORS OF`. Anything else is refused.
//!
//! Source: <https://learn.microsoft.com/windows/win32/wmisdk/wql-sql-for-wmi>

use csi_proxy::cim::{Argument, Associators, Condition, Namespace, ObjectPath, Query};

/// A query that was understood.
#[derive(Debug, PartialEq)]
pub(crate) enum Statement {
    /// `SELECT`
    Select {
        /// Without properties where all are wanted.
        query: Query,
        /// `*`
        all: bool,
        /// Whether the objects have a path: it has to be asked for.
        path: bool,
    },
    /// `ASSOCIATORS OF`, which answers whole objects.
    Associators(Associators),
}

/// Reads a query; nothing when it is not one that is understood.
pub(crate) fn parse(namespace: Namespace, text: &str) -> Option<Statement> {
    let text = text.trim().trim_end_matches(';');
    match strip_word(text, "SELECT") {
        Some(rest) => select(namespace, &mut Tokens(rest)),
        None => associators(namespace, text),
    }
}

fn select(namespace: Namespace, tokens: &mut Tokens<'_>) -> Option<Statement> {
    let mut names = Vec::new();
    let all = tokens.take("*");
    if !all {
        names.push(tokens.name()?);
        while tokens.take(",") {
            names.push(tokens.name()?);
        }
    }
    tokens.word("FROM")?;
    let class = tokens.name()?;
    let mut conditions = Vec::new();
    if !tokens.is_empty() {
        tokens.word("WHERE")?;
        conditions.push(tokens.condition()?);
        while !tokens.is_empty() {
            tokens.word("AND")?;
            conditions.push(tokens.condition()?);
        }
    }
    let path = all || names.iter().any(|name| name.eq_ignore_ascii_case("__PATH"));
    names.retain(|name| !name.starts_with("__"));
    Some(Statement::Select {
        query: Query {
            namespace,
            class,
            properties: names,
            conditions,
        },
        all,
        path,
    })
}

fn associators(namespace: Namespace, text: &str) -> Option<Statement> {
    let rest = strip_word(strip_word(text, "ASSOCIATORS")?, "OF")?.strip_prefix('{')?;
    // Keys hold braces too: what counts is the last one before the conditions.
    let end = rest.rfind('}')?;
    let mut request = Associators::new(
        namespace,
        &ObjectPath(rest[..end].trim().to_owned()),
        "",
        "",
        &[],
    );
    let mut tokens = Tokens(&rest[end + 1..]);
    tokens.word("WHERE")?;
    while !tokens.is_empty() {
        let keyword = tokens.name()?;
        tokens.take("=").then_some(())?;
        let value = tokens.name()?;
        match keyword.to_ascii_lowercase().as_str() {
            "assocclass" => request.association = value,
            "resultclass" => request.result_class = value,
            "role" => request.role = Some(value),
            _ => return None,
        }
    }
    let whole = !request.association.is_empty() && !request.result_class.is_empty();
    whole.then_some(Statement::Associators(request))
}

/// What follows a word, which is compared without case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.get(word.len()..)?;
    let found = text.get(..word.len())?.eq_ignore_ascii_case(word);
    let ends = rest.starts_with([' ', '\t', '\r', '\n', '{', '*']);
    (found && (ends || rest.is_empty())).then(|| rest.trim_start())
}

/// The rest of a text, read from its start.
struct Tokens<'a>(&'a str);

impl Tokens<'_> {
    fn is_empty(&mut self) -> bool {
        self.0 = self.0.trim_start();
        self.0.is_empty()
    }

    fn take(&mut self, symbol: &str) -> bool {
        self.0 = self.0.trim_start();
        match self.0.strip_prefix(symbol) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// A name of a class or a property.
    fn name(&mut self) -> Option<String> {
        self.0 = self.0.trim_start();
        let other = |char: char| !char.is_ascii_alphanumeric() && char != '_';
        let end = self.0.find(other).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        self.0 = rest;
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.name()?.eq_ignore_ascii_case(word).then_some(())
    }

    fn condition(&mut self) -> Option<Condition> {
        let property = self.name()?;
        self.take("=").then_some(())?;
        let value = self.literal()?;
        Some(Condition { property, value })
    }

    fn literal(&mut self) -> Option<Argument> {
        self.0 = self.0.trim_start();
        match self.0.chars().next()? {
            quote @ ('\'' | '"') => self.string(quote).map(Argument::Text),
            '0'..='9' => self.name()?.parse().ok().map(Argument::Integer),
            _ => match self.name()?.to_ascii_lowercase().as_str() {
                "true" => Some(Argument::Boolean(true)),
                "false" => Some(Argument::Boolean(false)),
                _ => None,
            },
        }
    }

    /// A string in quotes; a backslash takes away what the next character means.
    fn string(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.0.char_indices().skip(1);
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' => text.push(chars.next()?.1),
                end if end == quote => {
                    self.0 = &self.0[at + end.len_utf8()..];
                    return Some(text);
                }
                other => text.push(other),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Option<Statement> {
        super::parse(Namespace::Storage, text)
    }

    fn query(text: &str) -> Query {
        match parse(text) {
            Some(Statement::Select { query, .. }) => query,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_selection_names_properties_class_and_conditions() {
        let text = r"SELECT __PATH, Number, Size FROM MSFT_Disk WHERE Number = 3 AND IsBoot = FALSE AND Path = '\\\\?\\x\''";
        let expected = Query::new(Namespace::Storage, "MSFT_Disk", &["Number", "Size"])
            .with("Number", 3_u32)
            .with("IsBoot", false)
            .with("Path", r"\\?\x'");
        let statement = Statement::Select {
            query: expected,
            all: false,
            path: true,
        };
        assert_eq!(parse(text), Some(statement));
    }

    #[test]
    fn an_object_has_a_path_when_it_is_asked_for() {
        for (text, has_path) in [
            ("select * from MSFT_Disk", true),
            ("select __path,Number from MSFT_Disk", true),
            ("SELECT Number FROM MSFT_Disk", false),
        ] {
            let statement = parse(text);
            assert!(
                matches!(&statement, Some(Statement::Select { path, .. }) if *path == has_path),
                "{text}: {statement:?}"
            );
        }
    }

    #[test]
    fn both_quotes_enclose_a_string() {
        let text = r#"SELECT Name FROM Win32_Service WHERE Name = "a'b" AND State='x"y'"#;
        let conditions = query(text).conditions;
        assert_eq!(conditions[0].value, "a'b".into());
        assert_eq!(conditions[1].value, "x\"y".into());
    }

    #[test]
    fn associators_take_the_path_as_it_is() {
        let text = r#"ASSOCIATORS OF {\\NODE\ROOT:MSFT_Partition.ObjectId="{a}\\b"} WHERE AssocClass = MSFT_PartitionToVolume ResultClass = MSFT_Volume Role=Partition"#;
        let path = r#"\\NODE\ROOT:MSFT_Partition.ObjectId="{a}\\b""#;
        let expected = Associators::new(
            Namespace::Storage,
            &ObjectPath(path.to_owned()),
            "MSFT_PartitionToVolume",
            "MSFT_Volume",
            &[],
        )
        .in_role("Partition");
        assert_eq!(parse(text), Some(Statement::Associators(expected)));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "",
            "SELECT",
            "SELECT * FROM",
            "SELECTED * FROM a",
            "SELECT a b FROM c",
            "SELECT * FROM a WHERE",
            "SELECT * FROM a WHERE b = 'c",
            "SELECT * FROM a WHERE b LIKE 'c'",
            "SELECT * FROM a WHERE b = 'c' OR d = 'e'",
            "SELECT * FROM a WHERE b = c",
            "ASSOCIATORS OF {a} WHERE ResultClass = b",
            "ASSOCIATORS OF a",
            "DELETE FROM a",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_an_answer(text in "(SELECT |ASSOCIATORS OF \\{)?.{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn any_value_comes_through_its_escapes(value in ".{0,30}") {
            let escaped: String = value
                .chars()
                .flat_map(|char| {
                    let escape = matches!(char, '\\' | '\'' | '"').then_some('\\');
                    escape.into_iter().chain([char])
                })
                .collect();
            let text = format!("SELECT a FROM b WHERE c = '{escaped}' AND d = 1");
            let conditions = query(&text).conditions;
            prop_assert_eq!(&conditions[0].value, &Argument::Text(value));
            prop_assert_eq!(conditions.len(), 2);
        }
    }
}
