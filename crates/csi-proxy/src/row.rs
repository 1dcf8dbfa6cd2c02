//! A row that WMI answered, read with types. An error names the class and the property.

use std::fmt::Display;

use crate::cim::{Object, ObjectPath, Value};
use crate::error::{Error, ErrorKind, Result};

/// One object of a class, or the output parameters of a method.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    operation: &'static str,
    class: String,
    object: Object,
}

impl Row {
    /// A row of `class` that `operation` asked for.
    pub(crate) fn new(operation: &'static str, class: &str, object: Object) -> Self {
        Self {
            operation,
            class: class.to_owned(),
            object,
        }
    }

    /// The object's path, for its methods and associations.
    pub(crate) fn path(&self) -> &ObjectPath {
        &self.object.path
    }

    /// A text that must be there.
    pub(crate) fn text(&self, property: &str) -> Result<&str> {
        self.required(property, "a string", Value::as_str)
    }

    /// A text that must be there and not be blank.
    pub(crate) fn filled_text(&self, property: &str) -> Result<&str> {
        match self.text(property)? {
            text if text.trim().is_empty() => Err(self.error(property, "it is blank")),
            text => Ok(text),
        }
    }

    /// A text, or nothing when it is null or absent.
    pub(crate) fn optional_text(&self, property: &str) -> Result<Option<&str>> {
        self.optional(property, "a string", Value::as_str)
    }

    /// A boolean that must be there.
    pub(crate) fn boolean(&self, property: &str) -> Result<bool> {
        self.required(property, "a boolean", Value::as_bool)
    }

    /// A boolean, or nothing when it is null or absent.
    pub(crate) fn optional_boolean(&self, property: &str) -> Result<Option<bool>> {
        self.optional(property, "a boolean", Value::as_bool)
    }

    /// An integer of at most 32 bits that must be there.
    pub(crate) fn u32(&self, property: &str) -> Result<u32> {
        self.required(property, "an unsigned 32-bit integer", Value::as_u32)
    }

    /// The same, or nothing when it is null or absent.
    pub(crate) fn optional_u32(&self, property: &str) -> Result<Option<u32>> {
        self.optional(property, "an unsigned 32-bit integer", Value::as_u32)
    }

    /// An integer of at most 64 bits that must be there.
    pub(crate) fn u64(&self, property: &str) -> Result<u64> {
        self.required(property, "an unsigned 64-bit integer", Value::as_u64)
    }

    /// The texts of an array; null and absent are the empty one.
    pub(crate) fn texts(&self, property: &str) -> Result<Vec<String>> {
        self.elements(property, "an array of strings", |value| {
            value.as_str().map(str::to_owned)
        })
    }

    /// The integers of an array; null and absent are the empty one.
    pub(crate) fn integers(&self, property: &str) -> Result<Vec<u64>> {
        self.elements(property, "an array of unsigned integers", Value::as_u64)
    }

    fn elements<T>(
        &self,
        property: &str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<T>> {
        let all =
            |value: &Value| -> Option<Vec<T>> { value.as_array()?.iter().map(&read).collect() };
        match self.value(property) {
            None => Ok(Vec::new()),
            Some(value) => all(value).ok_or_else(|| self.wrong(property, expected)),
        }
    }

    fn required<'a, T>(
        &'a self,
        property: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T> {
        self.optional(property, expected, read)?
            .ok_or_else(|| self.wrong(property, expected))
    }

    fn optional<'a, T>(
        &'a self,
        property: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.value(property) {
            None => Ok(None),
            Some(value) => match read(value) {
                Some(value) => Ok(Some(value)),
                None => Err(self.wrong(property, expected)),
            },
        }
    }

    fn value(&self, property: &str) -> Option<&Value> {
        match self.object.properties.get(property) {
            None | Some(Value::Null) => None,
            Some(value) => Some(value),
        }
    }

    /// Windows answered nonsense.
    fn wrong(&self, property: &str, expected: &str) -> Error {
        let got = match self.object.properties.get(property) {
            None => "it is absent".to_owned(),
            Some(Value::Null) => "it is null".to_owned(),
            Some(value) => format!("got {value:?}"),
        };
        self.error(property, format_args!("expected {expected}, {got}"))
    }

    /// What Windows answered in a property cannot be.
    pub(crate) fn error(&self, property: &str, detail: impl Display) -> Error {
        let object = format!("{}.{property}", self.class);
        Error::new(ErrorKind::Internal, self.operation, object, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(property: &str, value: impl Into<Value>) -> Row {
        let object = Object {
            path: ObjectPath("x".to_owned()),
            properties: [(property.to_owned(), value.into())].into(),
        };
        Row::new("disk stats", "MSFT_Disk", object)
    }

    #[test]
    fn an_integer_is_read_from_a_number_and_from_text() {
        assert_eq!(row("Size", 7_u64).u64("Size").unwrap(), 7);
        assert_eq!(
            row("Size", "18446744073709551615").u64("Size").unwrap(),
            u64::MAX
        );
    }

    #[test]
    fn null_and_absent_are_nothing() {
        let null = row("Location", Value::Null);
        assert_eq!(null.optional_text("Location").unwrap(), None);
        assert_eq!(null.optional_text("SerialNumber").unwrap(), None);
        assert!(null.texts("Location").unwrap().is_empty());
    }

    #[test]
    fn an_error_names_class_property_and_what_came() {
        for (row, property, got) in [
            (row("Number", -1_i32), "Number", "-1"),
            (row("Number", "one"), "Number", "one"),
            (row("Number", u64::MAX), "Number", "18446744073709551615"),
            (row("Number", Value::Null), "Number", "null"),
            (row("Number", 1_u32), "Path", "absent"),
        ] {
            let error = row.u32(property).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
            let shown = error.to_string();
            assert!(shown.contains(&format!("MSFT_Disk.{property}")), "{shown}");
            assert!(shown.contains(got), "{shown}");
        }
    }

    #[test]
    fn an_array_with_another_type_in_it_is_refused() {
        let mixed = row(
            "AccessPaths",
            Value::Array(vec!["E:\\".into(), 1_u32.into()]),
        );
        assert!(mixed.texts("AccessPaths").is_err());
        assert_eq!(
            row("Sizes", vec![1_u64, 2]).integers("Sizes").unwrap(),
            [1, 2]
        );
    }
}
