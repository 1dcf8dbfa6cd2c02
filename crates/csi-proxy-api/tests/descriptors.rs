//! The compiled descriptors are the published API, to the letter.

use std::collections::BTreeMap;

use csi_proxy_api::{API, Api};
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto};
use prost_types::{FileDescriptorProto, FileDescriptorSet, ServiceDescriptorProto};
use serde_json::{Map, Value, json};

/// Group → version → what it is made of.
type Published = BTreeMap<String, BTreeMap<String, Value>>;

fn published() -> Published {
    serde_json::from_str(include_str!("csi-proxy-v1-api.json")).expect("the published API")
}

#[test]
fn every_version_is_what_was_published() {
    let mut published = published();
    for api in &API {
        let expected = published
            .get_mut(api.group.name())
            .and_then(|versions| versions.remove(api.version))
            .unwrap_or_else(|| panic!("{} was never published", api.name()));
        assert_same(&api.name(), &described(api), &expected);
    }
    published.retain(|_, versions| !versions.is_empty());
    assert!(published.is_empty(), "missing: {published:?}");
}

#[test]
fn there_are_23_versions_with_139_methods() {
    assert_eq!(API.len(), 23);
    assert_eq!(API.iter().map(|api| api.methods.len()).sum::<usize>(), 139);
}

#[test]
fn the_table_says_what_the_descriptors_say() {
    for api in &API {
        let expected = described(api);
        let methods: Map<_, _> = api
            .methods
            .iter()
            .map(|method| {
                assert_eq!(method.path, format!("/{}/{}", api.service, method.name));
                let value = json!({"request": method.request, "response": method.response});
                (method.name.to_owned(), value)
            })
            .collect();
        assert_same(&api.name(), &Value::Object(methods), &expected["rpcs"]);
        let service = format!("{}.{}", api.version, text(&expected["service"]));
        assert_eq!(api.service, service);
    }
}

#[test]
fn methods_that_change_something_are_not_read_only() {
    let changing = [
        "Add",
        "Connect",
        "Create",
        "Disconnect",
        "Dismount",
        "Format",
        "Link",
        "Mkdir",
        "Mount",
        "New",
        "Partition",
        "Remove",
        "Rescan",
        "Resize",
        "Rmdir",
        "Set",
        "Start",
        "Stop",
        "Unmount",
        "Write",
    ];
    for method in API.iter().flat_map(|api| api.methods) {
        // LinkPath makes a link, ListTargetPortals does not: whole first words count.
        let changes = changing.iter().any(|verb| method.name.starts_with(verb));
        assert_eq!(method.read_only, !changes, "{}", method.path);
    }
}

/// Compares member by member, so that a failure names the place.
fn assert_same(place: &str, actual: &Value, expected: &Value) {
    let (Value::Object(actual), Value::Object(expected)) = (actual, expected) else {
        assert_eq!(actual, expected, "{place}");
        return;
    };
    for (name, expected) in expected {
        let place = format!("{place}.{name}");
        let actual = actual
            .get(name)
            .unwrap_or_else(|| panic!("{place} is missing"));
        assert_same(&place, actual, expected);
    }
    for name in actual.keys() {
        assert!(
            expected.contains_key(name),
            "{place}.{name} was never published"
        );
    }
}

/// A version as its descriptors describe it, in the shape of the published file.
fn described(api: &Api) -> Value {
    let file = file(api);
    assert_eq!(file.syntax(), "proto3");
    let [service] = file.service.as_slice() else {
        panic!("{} has one service", api.name());
    };
    json!({
        "package": file.package(),
        "service": service.name(),
        "pipe": api.pipe(),
        "rpcs": rpcs(service, &file),
        "messages": object(&file.message_type, |message| {
            (message.name().to_owned(), fields(message, &file))
        }),
        "enums": object(&file.enum_type, |kind| (kind.name().to_owned(), values(kind))),
    })
}

fn file(api: &Api) -> FileDescriptorProto {
    let mut set = FileDescriptorSet::decode(api.file_descriptor_set()).expect("descriptors");
    assert_eq!(set.file.len(), 1, "{} imports nothing", api.name());
    set.file.remove(0)
}

fn rpcs(service: &ServiceDescriptorProto, file: &FileDescriptorProto) -> Value {
    object(&service.method, |method| {
        assert!(!method.client_streaming() && !method.server_streaming());
        let types = json!({
            "request": local(method.input_type(), file),
            "response": local(method.output_type(), file),
        });
        (method.name().to_owned(), types)
    })
}

fn fields(message: &DescriptorProto, file: &FileDescriptorProto) -> Value {
    assert!(message.oneof_decl.is_empty() && message.enum_type.is_empty());
    for nested in &message.nested_type {
        assert!(is_map_entry(nested), "{} is nested", nested.name());
    }
    object(&message.field, |field| {
        let value = json!({"number": field.number(), "type": type_of(field, message, file)});
        (field.name().to_owned(), value)
    })
}

fn values(kind: &EnumDescriptorProto) -> Value {
    object(&kind.value, |value| {
        (value.name().to_owned(), value.number().into())
    })
}

/// The type as the published file writes it: `string`, `repeated string`,
/// `map <uint32, DiskIDs>`.
fn type_of(
    field: &FieldDescriptorProto,
    message: &DescriptorProto,
    file: &FileDescriptorProto,
) -> String {
    let name = match field.r#type() {
        Type::Message | Type::Enum => local(field.type_name(), file),
        Type::String => "string".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Uint32 => "uint32".to_owned(),
        other => other.as_str_name().to_owned(),
    };
    let entry = message
        .nested_type
        .iter()
        .find(|entry| name == format!("{}.{}", message.name(), entry.name()));
    match (field.label(), entry) {
        (Label::Repeated, Some(entry)) => map_type(entry, file),
        (Label::Repeated, None) => format!("repeated {name}"),
        (Label::Optional, None) if !field.proto3_optional() => name,
        (label, _) => format!("{label:?} {name}"),
    }
}

fn map_type(entry: &DescriptorProto, file: &FileDescriptorProto) -> String {
    let of = |name| {
        let field = entry.field.iter().find(|field| field.name() == name);
        type_of(field.expect("a map has keys and values"), entry, file)
    };
    format!("map <{}, {}>", of("key"), of("value"))
}

fn is_map_entry(message: &DescriptorProto) -> bool {
    message
        .options
        .as_ref()
        .is_some_and(|options| options.map_entry())
}

/// `.v1.DiskIDs` → `DiskIDs`; every type is of the file's own package.
fn local(full: &str, file: &FileDescriptorProto) -> String {
    full.strip_prefix(&format!(".{}.", file.package()))
        .unwrap_or_else(|| panic!("{full} is of another package"))
        .to_owned()
}

fn object<T>(items: &[T], member: impl Fn(&T) -> (String, Value)) -> Value {
    let members: Map<_, _> = items.iter().map(member).collect();
    assert_eq!(members.len(), items.len(), "no name twice");
    Value::Object(members)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}
