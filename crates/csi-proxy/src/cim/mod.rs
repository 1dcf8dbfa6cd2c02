//! The port to WMI: the CIM object model as plain data.
//!
//! Reading is a [`Query`] or [`Associators`]; everything that changes the node is a method
//! ([`Invoke`]) of the object that was read, addressed by the opaque [`ObjectPath`] in its
//! row, or of a class.

mod value;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::port::{CallId, port};
use crate::secret::Secret;

pub use value::Value;

port! {
    /// What WMI can be asked.
    ///
    /// Source: `IWbemServices`,
    /// <https://learn.microsoft.com/windows/win32/api/wbemcli/nn-wbemcli-iwbemservices>.
    pub trait Cim, CimCall, CimAnswer {
        /// The instances of a class (`ExecQuery`). A query has no effect and may be
        /// repeated by the implementation on a new connection.
        Query: fn query(Query) -> Vec<Object>;

        /// The objects that an association connects with an object
        /// (`ASSOCIATORS OF`).
        Associators: fn associators(Associators) -> Vec<Object>;

        /// Invokes a method (`ExecMethod`). It is never repeated by the implementation.
        Invoke: fn invoke(Invoke) -> Output;

        /// Whether a call that its caller gave up
        /// ([`crate::port::PortError::DeadlineExceeded`]) still runs.
        IsRunning: fn is_running(CallId) -> bool;
    }
}

/// A WMI namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespace {
    /// `ROOT\Microsoft\Windows\Storage`: disks, partitions, volumes, iSCSI.
    Storage,
    /// `ROOT\Microsoft\Windows\Smb`: SMB mappings; needs packet privacy.
    Smb,
    /// `ROOT\CIMV2`: services, BIOS.
    Cimv2,
}

impl Namespace {
    /// The namespace as WMI spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Storage => r"ROOT\Microsoft\Windows\Storage",
            Self::Smb => r"ROOT\Microsoft\Windows\Smb",
            Self::Cimv2 => r"ROOT\CIMV2",
        }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The address of one object, as WMI gave it (`__PATH`). Nothing is read out of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectPath(pub String);

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `SELECT properties FROM class WHERE each condition`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Where the class lives.
    pub namespace: Namespace,
    /// The class.
    pub class: String,
    /// The properties that are wanted; no others are answered.
    pub properties: Vec<String>,
    /// All of them must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

impl Query {
    /// A query for all instances of a class.
    pub fn new(namespace: Namespace, class: &str, properties: &[&str]) -> Self {
        Self {
            namespace,
            class: class.to_owned(),
            properties: owned(properties),
            conditions: Vec::new(),
        }
    }

    /// Only instances whose property equals the value. Text is compared without case, as
    /// WQL does.
    #[must_use]
    pub fn with(mut self, property: &str, value: impl Into<Argument>) -> Self {
        self.conditions.push(Condition {
            property: property.to_owned(),
            value: value.into(),
        });
        self
    }
}

/// A property that must equal a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The property.
    pub property: String,
    /// Its value.
    pub value: Argument,
}

/// `ASSOCIATORS OF {of} WHERE AssocClass = association ResultClass = result_class`, and
/// `Role = role` if there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Associators {
    /// Where the classes live.
    pub namespace: Namespace,
    /// The object to start from.
    pub of: ObjectPath,
    /// The association's class, `MSFT_PartitionToVolume` for example.
    pub association: String,
    /// The class of the objects at its other end.
    pub result_class: String,
    /// The reference of the association that `of` must be. Where both ends are of one class
    /// (`Win32_DependentService`), WMI answers both directions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The properties that are wanted; no others are answered.
    pub properties: Vec<String>,
}

impl Associators {
    /// The objects of `result_class` that `association` connects with `of`.
    pub fn new(
        namespace: Namespace,
        of: &ObjectPath,
        association: &str,
        result_class: &str,
        properties: &[&str],
    ) -> Self {
        Self {
            namespace,
            of: of.clone(),
            association: association.to_owned(),
            result_class: result_class.to_owned(),
            role: None,
            properties: owned(properties),
        }
    }

    /// Only where the object to start from stands in this role.
    #[must_use]
    pub fn in_role(mut self, role: &str) -> Self {
        self.role = Some(role.to_owned());
        self
    }
}

/// One object: its path and the properties that were asked for. A property that the object
/// does not have is absent; one that it leaves open is [`Value::Null`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Its address, for calling its methods.
    pub path: ObjectPath,
    /// Its properties.
    pub properties: BTreeMap<String, Value>,
}

/// What a method is called on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// One object, of the class named.
    Instance {
        /// The class, for messages.
        class: String,
        /// The object.
        path: ObjectPath,
    },
    /// The class itself (a static method).
    Class(String),
}

impl Target {
    /// The class whose method it is.
    pub fn class(&self) -> &str {
        match self {
            Self::Instance { class, .. } | Self::Class(class) => class,
        }
    }
}

/// A method call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invoke {
    /// Where the class lives.
    pub namespace: Namespace,
    /// The object or the class.
    pub target: Target,
    /// The method.
    pub method: String,
    /// Its input parameters; what is absent is not sent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Argument>,
}

impl Invoke {
    /// A method of the object at `path`.
    pub fn on(namespace: Namespace, class: &str, path: &ObjectPath, method: &str) -> Self {
        Self {
            namespace,
            target: Target::Instance {
                class: class.to_owned(),
                path: path.clone(),
            },
            method: method.to_owned(),
            arguments: BTreeMap::new(),
        }
    }

    /// A static method of a class.
    pub fn on_class(namespace: Namespace, class: &str, method: &str) -> Self {
        Self {
            namespace,
            target: Target::Class(class.to_owned()),
            method: method.to_owned(),
            arguments: BTreeMap::new(),
        }
    }

    /// Adds an input parameter.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: impl Into<Argument>) -> Self {
        self.arguments.insert(parameter.to_owned(), value.into());
        self
    }
}

/// An input of a method or of a condition.
///
/// Serialising it writes a secret in clear, since a simulated node in another process needs
/// it. Whoever writes calls down for people calls [`Argument::redacted`] first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// A boolean.
    Boolean(bool),
    /// An unsigned integer of any width.
    Integer(u64),
    /// A string.
    Text(String),
    /// A string that must not be shown.
    Secret {
        /// The string.
        #[serde(with = "clear")]
        secret: Secret,
    },
}

impl Argument {
    /// The same without the secret.
    #[must_use]
    pub fn redacted(&self) -> Self {
        match self {
            Self::Secret { .. } => Self::Text("(hidden)".to_owned()),
            other => other.clone(),
        }
    }
}

impl From<bool> for Argument {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<u32> for Argument {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<u64> for Argument {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Argument {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Argument {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Secret> for Argument {
    fn from(secret: Secret) -> Self {
        Self::Secret { secret }
    }
}

/// What a method answered. Objects that a method returns are left out: the caller observes
/// the node again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// The method's `ReturnValue`. 0 is success, 4096 a job that was started; the others are
    /// in [`crate::codes`].
    pub return_value: u32,
    /// The other output parameters with plain values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Value>,
}

/// How a secret travels to the process of a simulated node.
mod clear {
    use super::Secret;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(secret.expose())
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Secret, D::Error> {
        String::deserialize(from).map(Secret::new)
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Call;

    #[test]
    fn a_call_survives_the_way_to_another_process() {
        let invoke = Invoke::on_class(Namespace::Smb, "MSFT_SmbGlobalMapping", "Create")
            .with("RemotePath", r"\\server\share")
            .with("RequirePrivacy", true)
            .with("Credential", Secret::new("user:password"));
        let call = Call::from(CimCall::Invoke(invoke));
        let text = serde_json::to_string(&call).unwrap();
        assert_eq!(serde_json::from_str::<Call>(&text).unwrap(), call);
        assert_eq!(call.operation(), "MSFT_SmbGlobalMapping.Create");
    }

    #[test]
    fn a_redacted_argument_does_not_hold_the_secret() {
        let argument = Argument::from(Secret::new("hunter2")).redacted();
        assert!(
            !serde_json::to_string(&argument)
                .unwrap()
                .contains("hunter2")
        );
    }

    #[test]
    fn debug_of_a_call_does_not_show_secrets() {
        let invoke = Invoke::on_class(Namespace::Storage, "MSFT_iSCSITarget", "Connect")
            .with("ChapSecret", Secret::new("hunter2hunter2"));
        assert!(!format!("{invoke:?}").contains("hunter2"));
    }
}
