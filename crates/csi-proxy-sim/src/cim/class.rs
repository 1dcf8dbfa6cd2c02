//! What a module writes to have a WMI class.

use std::collections::BTreeMap;

use csi_proxy::cim::{Argument, Condition, Namespace, Output, Value};
use csi_proxy::clock::Moment;
use csi_proxy::port::{CallId, PortResult};

use crate::latency::Latency;
use crate::state::State;
use crate::win32::{WBEM_E_INVALID_METHOD_PARAMETERS, hresult};

/// A WMI class.
pub(crate) struct Class {
    pub(crate) namespace: Namespace,
    pub(crate) name: &'static str,
    /// Every property that an instance has.
    pub(crate) properties: &'static [&'static str],
    /// The instances, or with a [`Hint`] only those that can match it.
    pub(crate) rows: fn(&State, &Hint<'_>) -> Vec<Row>,
    pub(crate) methods: &'static [Method],
}

/// What is known of the instances that are wanted, so that a class need not make all.
/// A class may take it or leave it: the conditions are checked again on the rows.
#[derive(Default)]
pub(crate) struct Hint<'a> {
    /// Only the instance with this key.
    pub(crate) key: Option<&'a str>,
    /// Only instances that meet these conditions.
    pub(crate) conditions: &'a [Condition],
    /// The properties that will be looked at.
    pub(crate) properties: &'a [String],
}

impl<'a> Hint<'a> {
    pub(crate) fn key(key: &'a str) -> Self {
        Self {
            key: Some(key),
            ..Self::default()
        }
    }

    /// Whether a property will be looked at.
    pub(crate) fn wants(&self, property: &str) -> bool {
        let mut named = self.properties.iter();
        named.any(|one| one.eq_ignore_ascii_case(property)) || self.has_condition(property)
    }

    fn has_condition(&self, property: &str) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|one| one.property.eq_ignore_ascii_case(property))
    }

    /// The value that a property must have, if a condition says so.
    pub(crate) fn integer(&self, property: &str) -> Option<u64> {
        self.conditions
            .iter()
            .find(|condition| condition.property.eq_ignore_ascii_case(property))
            .and_then(|condition| match &condition.value {
                Argument::Integer(value) => Some(*value),
                Argument::Text(text) => text.parse().ok(),
                _ => None,
            })
    }

    /// The same for text.
    pub(crate) fn text(&self, property: &str) -> Option<&'a str> {
        self.conditions
            .iter()
            .find(|condition| condition.property.eq_ignore_ascii_case(property))
            .and_then(|condition| match &condition.value {
                Argument::Text(text) => Some(text.as_str()),
                _ => None,
            })
    }
}

/// One instance.
pub(crate) struct Row {
    /// What tells it from the other instances of its class for as long as it exists; it
    /// ends up in the object path.
    pub(crate) key: String,
    /// Those of its properties that the hint wants.
    pub(crate) properties: Vec<(&'static str, Value)>,
}

/// Writes down the properties of a class: a constant with all their names, and the function
/// that makes the wanted ones for an instance.
macro_rules! properties {
    (
        const $names:ident;
        fn $make:ident($view:ident: $type:ty);
        $($name:ident: $value:expr,)+
    ) => {
        const $names: &[&str] = &[$(stringify!($name)),+];

        fn $make(
            $view: $type,
            hint: &$crate::cim::Hint<'_>,
        ) -> Vec<(&'static str, csi_proxy::cim::Value)> {
            let mut made = Vec::new();
            $(if hint.wants(stringify!($name)) {
                made.push((stringify!($name), csi_proxy::cim::Value::from($value)));
            })+
            made
        }
    };
}
pub(crate) use properties;

/// A 64-bit integer as WMI sends it.
pub(crate) fn wide(value: u64) -> Value {
    Value::Text(value.to_string())
}

/// A method of a class.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// Called on the class and not on an instance.
    pub(crate) is_static: bool,
    /// Its input parameters.
    pub(crate) parameters: &'static [&'static str],
    pub(crate) run: fn(&mut MethodCall<'_>) -> PortResult<Reply>,
}

impl Method {
    /// A method that is called on an instance.
    pub(crate) const fn of_instance(
        name: &'static str,
        parameters: &'static [&'static str],
        run: fn(&mut MethodCall<'_>) -> PortResult<Reply>,
    ) -> Self {
        Self {
            name,
            is_static: false,
            parameters,
            run,
        }
    }
}

/// A method call that reached its class. The instance exists and the parameters are known.
pub(crate) struct MethodCall<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now: Moment,
    pub(crate) call: CallId,
    pub(crate) latency: Latency,
    /// The key of the instance; empty for a static method.
    pub(crate) key: &'a str,
    pub(crate) api: String,
    pub(crate) arguments: &'a BTreeMap<String, Argument>,
}

/// What a method answers.
pub(crate) enum Reply {
    Done(Output),
    /// It runs until then; afterwards [`crate::storage::Storage::finished`] has its output.
    Until(Moment),
}

/// The answer that is a return value alone.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the tail of methods that may fail"
)]
pub(crate) fn done(return_value: u32) -> PortResult<Reply> {
    Ok(Reply::Done(Output {
        return_value,
        properties: BTreeMap::new(),
    }))
}

impl MethodCall<'_> {
    pub(crate) fn integer(&self, parameter: &str) -> PortResult<Option<u64>> {
        match self.arguments.get(parameter) {
            None => Ok(None),
            Some(Argument::Integer(value)) => Ok(Some(*value)),
            // WMI takes 64-bit integers as text.
            Some(Argument::Text(text)) => match text.parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => self.wrong_parameter(),
            },
            Some(_) => self.wrong_parameter(),
        }
    }

    pub(crate) fn boolean(&self, parameter: &str) -> PortResult<Option<bool>> {
        match self.arguments.get(parameter) {
            None => Ok(None),
            Some(Argument::Boolean(value)) => Ok(Some(*value)),
            Some(_) => self.wrong_parameter(),
        }
    }

    /// A text, secret or not.
    pub(crate) fn text(&self, parameter: &str) -> PortResult<Option<String>> {
        match self.arguments.get(parameter) {
            None => Ok(None),
            Some(Argument::Text(text)) => Ok(Some(text.clone())),
            Some(Argument::Secret { secret }) => Ok(Some(secret.expose().to_owned())),
            Some(_) => self.wrong_parameter(),
        }
    }

    fn wrong_parameter<T>(&self) -> PortResult<T> {
        Err(hresult(&self.api, WBEM_E_INVALID_METHOD_PARAMETERS))
    }
}

/// An association between classes.
pub(crate) struct Association {
    pub(crate) name: &'static str,
    /// The two classes it connects.
    pub(crate) ends: [&'static str; 2],
    /// Its references to the two, the roles in which their instances stand.
    pub(crate) roles: [&'static str; 2],
    /// From the instance with this key of the class at one end (0 or 1) to the keys of the
    /// instances at the other.
    pub(crate) follow: fn(&State, from: usize, key: &str) -> Vec<String>,
}
