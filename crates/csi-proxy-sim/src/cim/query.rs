//! Queries and associators: which rows, and which of their properties.

use csi_proxy::cim::{Argument, Associators, Condition, Namespace, Object, Query, Value};
use csi_proxy::port::PortResult;

use super::{ASSOCIATIONS, Association, CLASSES, Class, Hint, Row, path};
use crate::state::State;
use crate::win32::{
    WBEM_E_INVALID_CLASS, WBEM_E_INVALID_OBJECT_PATH, WBEM_E_INVALID_QUERY, WBEM_E_NOT_FOUND,
    hresult,
};

pub(super) fn query(state: &State, query: &Query) -> PortResult<Vec<Object>> {
    let api = format!("query {}", query.class);
    let class = class(query.namespace, &query.class, &api)?;
    let conditions = query.conditions.iter().map(|one| one.property.as_str());
    check_properties(class, query.properties.iter().map(String::as_str), &api)?;
    check_properties(class, conditions, &api)?;
    let hint = Hint {
        conditions: &query.conditions,
        properties: &query.properties,
        ..Hint::default()
    };
    Ok((class.rows)(state, &hint)
        .into_iter()
        .filter(|row| {
            query
                .conditions
                .iter()
                .all(|condition| row.meets(condition))
        })
        .map(|row| object(class, row, &query.properties))
        .collect())
}

pub(super) fn associators(state: &State, request: &Associators) -> PortResult<Vec<Object>> {
    let api = format!("associators {}", request.association);
    let (from, key) = path::read(request.namespace, &request.of)
        .ok_or_else(|| hresult(&api, WBEM_E_INVALID_OBJECT_PATH))?;
    let from = class(request.namespace, from, &api)?;
    let result = class(request.namespace, &request.result_class, &api)?;
    let names = request.properties.iter().map(String::as_str);
    check_properties(result, names, &api)?;
    if !exists(state, from, &key) {
        return Err(hresult(&api, WBEM_E_NOT_FOUND));
    }
    let association =
        association(request, from, result).ok_or_else(|| hresult(&api, WBEM_E_INVALID_CLASS))?;
    let ends = association.ends_of(from, result, request.role.as_deref());
    let keys = ends.flat_map(|end| (association.follow)(state, end, &key));
    let keys: Vec<String> = keys.collect();
    Ok(keys
        .iter()
        .filter_map(|key| find(state, result, key, &request.properties))
        .map(|row| object(result, row, &request.properties))
        .collect())
}

/// The class of that name, without case.
pub(super) fn class(namespace: Namespace, name: &str, api: &str) -> PortResult<&'static Class> {
    CLASSES
        .iter()
        .copied()
        .flatten()
        .find(|class| class.namespace == namespace && class.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| hresult(api, WBEM_E_INVALID_CLASS))
}

/// Whether the instance with that key is there.
pub(super) fn exists(state: &State, class: &Class, key: &str) -> bool {
    find(state, class, key, &[]).is_some()
}

fn find(state: &State, class: &Class, key: &str, properties: &[String]) -> Option<Row> {
    let hint = Hint {
        properties,
        ..Hint::key(key)
    };
    let rows = (class.rows)(state, &hint);
    rows.into_iter().find(|row| row.key == key)
}

/// The association that is asked for.
fn association(request: &Associators, from: &Class, to: &Class) -> Option<&'static Association> {
    ASSOCIATIONS.iter().copied().flatten().find(|one| {
        one.name.eq_ignore_ascii_case(&request.association)
            && (one.ends == [from.name, to.name] || one.ends == [to.name, from.name])
    })
}

impl Association {
    /// The ends at which `from` stands: both where an association connects instances of one
    /// class, unless a role tells which.
    fn ends_of(&self, from: &Class, to: &Class, role: Option<&str>) -> impl Iterator<Item = usize> {
        let stands = move |end: &usize| {
            let is_role = |role: &str| role.eq_ignore_ascii_case(self.roles[*end]);
            self.ends[*end] == from.name
                && self.ends[1 - *end] == to.name
                && role.is_none_or(is_role)
        };
        [0, 1].into_iter().filter(stands)
    }
}

fn check_properties<'a, I>(class: &Class, names: I, api: &str) -> PortResult<()>
where
    I: IntoIterator<Item = &'a str>,
{
    let known = |name: &str| {
        class
            .properties
            .iter()
            .any(|p| p.eq_ignore_ascii_case(name))
    };
    match names.into_iter().all(known) {
        true => Ok(()),
        false => Err(hresult(api, WBEM_E_INVALID_QUERY)),
    }
}

/// The object with the properties that were asked for, as the class spells them.
fn object(class: &Class, row: Row, wanted: &[String]) -> Object {
    let asked = |name: &str| wanted.iter().any(|one| one.eq_ignore_ascii_case(name));
    Object {
        path: path::of(class.namespace, class.name, &row.key),
        properties: row
            .properties
            .into_iter()
            .filter(|(name, _)| asked(name))
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    }
}

impl Row {
    /// WQL compares text without case, and nothing equals null.
    fn meets(&self, condition: &Condition) -> bool {
        let value = self
            .properties
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(&condition.property))
            .map_or(&Value::Null, |(_, value)| value);
        match &condition.value {
            Argument::Boolean(wanted) => value.as_bool() == Some(*wanted),
            Argument::Integer(wanted) => value.as_u64() == Some(*wanted),
            Argument::Text(wanted) => is_text(value, wanted),
            Argument::Secret { secret } => is_text(value, secret.expose()),
        }
    }
}

fn is_text(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Text(text) => text.to_lowercase() == wanted.to_lowercase(),
        Value::Integer(integer) => wanted.parse() == Ok(*integer),
        _ => false,
    }
}
