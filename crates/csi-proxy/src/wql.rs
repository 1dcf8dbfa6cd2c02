//! Queries as text in WQL.
//!
//! Sources: "WHERE Clause" and "ASSOCIATORS OF Statement" below
//! <https://learn.microsoft.com/windows/win32/wmisdk/wql-sql-for-wmi>.

use crate::cim::{Argument, Associators, Condition, Query};

/// `SELECT __PATH, … FROM … WHERE …`.
///
/// `__PATH` is named since WMI leaves it null when a list of properties does not hold it.
pub(crate) fn select(query: &Query) -> String {
    let properties: String = query
        .properties
        .iter()
        .map(|property| format!(", {property}"))
        .collect();
    select_from(&format!("__PATH{properties}"), query)
}

/// `SELECT * FROM … WHERE …`, for providers that give no path to a part of an object.
pub(crate) fn select_whole(query: &Query) -> String {
    select_from("*", query)
}

fn select_from(what: &str, query: &Query) -> String {
    let mut text = format!("SELECT {what} FROM {}", query.class);
    let conditions: Vec<String> = query.conditions.iter().map(condition).collect();
    if !conditions.is_empty() {
        text.push_str(" WHERE ");
        text.push_str(&conditions.join(" AND "));
    }
    text
}

/// `ASSOCIATORS OF {…} WHERE AssocClass = … ResultClass = …`. WQL has no way to name
/// properties there.
pub(crate) fn associators(request: &Associators) -> String {
    let role = request.role.as_ref();
    format!(
        "ASSOCIATORS OF {{{}}} WHERE AssocClass = {} ResultClass = {}{}",
        request.of,
        request.association,
        request.result_class,
        role.map(|role| format!(" Role = {role}"))
            .unwrap_or_default()
    )
}

fn condition(Condition { property, value }: &Condition) -> String {
    match value {
        Argument::Boolean(true) => format!("{property} = TRUE"),
        Argument::Boolean(false) => format!("{property} = FALSE"),
        Argument::Integer(number) => format!("{property} = {number}"),
        Argument::Text(text) => format!("{property} = {}", quoted(text)),
        Argument::Secret { secret } => format!("{property} = {}", quoted(secret.expose())),
    }
}

/// A string literal. A backslash stands before each backslash and quote in it.
fn quoted(text: &str) -> String {
    let mut literal = String::from("'");
    for char in text.chars() {
        if matches!(char, '\\' | '\'' | '"') {
            literal.push('\\');
        }
        literal.push(char);
    }
    literal.push('\'');
    literal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cim::{Namespace, ObjectPath};

    #[test]
    fn only_the_properties_that_are_asked_for_are_selected() {
        let query = Query::new(Namespace::Storage, "MSFT_Disk", &["Number", "Size"]);
        assert_eq!(select(&query), "SELECT __PATH, Number, Size FROM MSFT_Disk");
        assert_eq!(select_whole(&query), "SELECT * FROM MSFT_Disk");
    }

    #[test]
    fn conditions_are_joined_and_typed() {
        let query = Query::new(Namespace::Storage, "MSFT_Partition", &["Guid"])
            .with("DiskNumber", 3_u32)
            .with("IsBoot", false)
            .with("Guid", "{a}");
        assert_eq!(
            select(&query),
            "SELECT __PATH, Guid FROM MSFT_Partition \
             WHERE DiskNumber = 3 AND IsBoot = FALSE AND Guid = '{a}'"
        );
    }

    #[test]
    fn a_quote_or_backslash_in_a_value_changes_no_query() {
        let query = Query::new(Namespace::Storage, "MSFT_Volume", &[])
            .with("Path", r#"\\?\x' OR "1" = '1"#);
        assert_eq!(
            select(&query),
            r#"SELECT __PATH FROM MSFT_Volume WHERE Path = '\\\\?\\x\' OR \"1\" = \'1'"#
        );
    }

    #[test]
    fn associators_start_from_the_path_as_wmi_gave_it() {
        let request = Associators::new(
            Namespace::Storage,
            &ObjectPath(r#"\\N\root:MSFT_Partition.ObjectId="{1}\\\\N""#.to_owned()),
            "MSFT_PartitionToVolume",
            "MSFT_Volume",
            &["Path"],
        );
        assert_eq!(
            associators(&request),
            r#"ASSOCIATORS OF {\\N\root:MSFT_Partition.ObjectId="{1}\\\\N"} WHERE AssocClass = MSFT_PartitionToVolume ResultClass = MSFT_Volume"#
        );
    }

    #[test]
    fn a_role_tells_the_direction() {
        let path = ObjectPath("Win32_Service.Name=\"a\"".to_owned());
        let class = "Win32_Service";
        let of =
            |namespace| Associators::new(namespace, &path, "Win32_DependentService", class, &[]);
        let request = of(Namespace::Cimv2).in_role("Antecedent");
        assert!(associators(&request).ends_with("ResultClass = Win32_Service Role = Antecedent"));
    }

    /// Reads a literal as WMI does: it ends at the first quote that has no backslash before it.
    /// Answers what it holds and what follows it.
    fn read_literal(text: &str) -> (String, &str) {
        let mut chars = text.strip_prefix('\'').unwrap().char_indices();
        let mut held = String::new();
        loop {
            match chars.next().unwrap() {
                (_, '\\') => held.push(chars.next().unwrap().1),
                (at, '\'') => return (held, &text[at + 2..]),
                (_, other) => held.push(other),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn any_value_stays_in_its_literal(value in r#"[\\'" ORab=\PC]{0,40}"#) {
            let query = Query::new(Namespace::Storage, "MSFT_Volume", &[])
                .with("Path", value.as_str())
                .with("DriveLetter", 1_u32);
            let text = select(&query);
            let literal = text.split_once("Path = ").unwrap().1;
            let (held, rest) = read_literal(literal);
            prop_assert_eq!(held, value);
            prop_assert_eq!(rest, " AND DriveLetter = 1");
        }
    }
}
