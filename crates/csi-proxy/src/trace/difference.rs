//! Where two calls or answers differ.

use serde::Serialize;
use serde_json::Value;

/// The first place at which two values differ, as `files.stat.path: "a" instead of "b"`;
/// nothing when they are equal.
pub fn difference(value: &impl Serialize, expected: &impl Serialize) -> Option<String> {
    let plain = |value: Result<Value, _>| value.unwrap_or(Value::Null);
    find(
        &plain(serde_json::to_value(value)),
        &plain(serde_json::to_value(expected)),
        "",
    )
}

fn find(value: &Value, expected: &Value, place: &str) -> Option<String> {
    let below = |name: &str| match place {
        "" => name.to_owned(),
        _ => format!("{place}.{name}"),
    };
    match (value, expected) {
        (Value::Object(fields), Value::Object(others)) => {
            let names = others.keys().chain(fields.keys());
            names.into_iter().find_map(|name| {
                let absent = Value::Null;
                let of = |fields: &serde_json::Map<String, Value>| {
                    fields.get(name).cloned().unwrap_or(absent.clone())
                };
                find(&of(fields), &of(others), &below(name))
            })
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => items
            .iter()
            .zip(others)
            .enumerate()
            .find_map(|(index, (item, other))| find(item, other, &below(&index.to_string()))),
        _ if value == expected => None,
        _ => {
            let place = if place.is_empty() { "value" } else { place };
            Some(format!(
                "{place}: {} instead of {}",
                shown(value),
                shown(expected)
            ))
        }
    }
}

/// A value in a message, cut off where it gets long.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 120;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named_with_its_place() {
        let expected = json!({"a": {"b": [1, 2]}});
        assert_eq!(difference(&expected, &expected), None);
        for (value, told) in [
            (json!({"a": {"b": [1, 3]}}), "a.b.1: 3 instead of 2"),
            (json!({"a": {"b": [1]}}), "a.b: [1] instead of [1,2]"),
            (json!({"a": {}}), "a.b: null instead of [1,2]"),
            (
                json!({"a": {"b": [1, 2], "c": true}}),
                "a.c: true instead of null",
            ),
            (json!(7), r#"value: 7 instead of {"a":{"b":[1,2]}}"#),
        ] {
            assert_eq!(difference(&value, &expected).as_deref(), Some(told));
        }
    }
}
