//! The compiled protocol against the published description of CSI 1.12, field by field.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet,
};
use serde_json::{Map, Value};

/// A protocol as lines: `path: what it is`.
type Lines = BTreeMap<String, String>;

#[test]
fn the_protocol_is_csi_1_12_to_the_letter() {
    let published: Value = serde_json::from_str(include_str!("data/csi-v1-api.json")).unwrap();
    let set = FileDescriptorSet::decode(csi_node::proto::FILE_DESCRIPTOR_SET).unwrap();
    let file = set
        .file
        .iter()
        .find(|file| file.package() == "csi.v1")
        .unwrap();

    let expected = published_lines(&published);
    let compiled = compiled_lines(file);
    assert!(expected.len() > 350, "{} lines", expected.len());
    for (path, what) in &expected {
        assert_eq!(compiled.get(path), Some(what), "{path}");
    }
    for path in compiled.keys() {
        assert!(expected.contains_key(path), "{path} is not in CSI");
    }
}

fn published_lines(api: &Value) -> Lines {
    let mut lines = Lines::new();
    for (service, methods) in object(&api["services"]) {
        for (method, types) in object(methods) {
            let streams = matches!(&**method, "GetMetadataAllocated" | "GetMetadataDelta");
            let what = format!(
                "rpc {} {} stream={streams}",
                text(&types["request"]),
                text(&types["response"]),
            );
            lines.insert(format!("{service}/{method}"), what);
        }
    }
    for (name, message) in object(&api["messages"]) {
        published_message(name, message, &mut lines);
    }
    published_enums("", &api["enums"], &mut lines);
    lines
}

fn published_message(path: &str, message: &Value, lines: &mut Lines) {
    lines.insert(path.to_owned(), "message".to_owned());
    published_fields(path, "", &message["fields"], lines);
    for (oneof, fields) in members(&message["oneofs"]) {
        published_fields(path, oneof, fields, lines);
    }
    for (name, nested) in members(&message["messages"]) {
        published_message(&format!("{path}.{name}"), nested, lines);
    }
    published_enums(&format!("{path}."), &message["enums"], lines);
}

fn published_fields(path: &str, oneof: &str, fields: &Value, lines: &mut Lines) {
    for (name, field) in members(fields) {
        let kind = text(&field["type"]).replace(['.', ' '], "/");
        let kind = kind
            .replace("/google/", "google/")
            .replace("map<string,/string>", "map");
        let what = format!("{} {kind} oneof={oneof}", field["number"]);
        lines.insert(format!("{path}.{name}"), what);
    }
}

fn published_enums(prefix: &str, enums: &Value, lines: &mut Lines) {
    for (name, values) in members(enums) {
        for (value, number) in object(values) {
            lines.insert(format!("{prefix}{name}.{value}"), format!("value {number}"));
        }
    }
}

fn compiled_lines(file: &FileDescriptorProto) -> Lines {
    let mut lines = Lines::new();
    for service in &file.service {
        for method in &service.method {
            let what = format!(
                "rpc {} {} stream={}",
                last(method.input_type()),
                last(method.output_type()),
                method.server_streaming(),
            );
            lines.insert(format!("{}/{}", service.name(), method.name()), what);
        }
    }
    for message in &file.message_type {
        compiled_message(message.name(), message, &mut lines);
    }
    compiled_enums("", &file.enum_type, &mut lines);
    lines
}

fn compiled_message(path: &str, message: &DescriptorProto, lines: &mut Lines) {
    lines.insert(path.to_owned(), "message".to_owned());
    for field in &message.field {
        let oneof = field.oneof_index.map_or("", |index| {
            message.oneof_decl[usize::try_from(index).unwrap()].name()
        });
        let what = format!(
            "{} {} oneof={oneof}",
            field.number(),
            type_of(field, message)
        );
        lines.insert(format!("{path}.{}", field.name()), what);
    }
    for nested in &message.nested_type {
        if !nested.options.as_ref().is_some_and(|o| o.map_entry()) {
            compiled_message(&format!("{path}.{}", nested.name()), nested, lines);
        }
    }
    compiled_enums(&format!("{path}."), &message.enum_type, lines);
}

fn compiled_enums(prefix: &str, enums: &[EnumDescriptorProto], lines: &mut Lines) {
    for r#enum in enums {
        for value in &r#enum.value {
            let path = format!("{prefix}{}.{}", r#enum.name(), value.name());
            lines.insert(path, format!("value {}", value.number()));
        }
    }
}

fn type_of(field: &FieldDescriptorProto, message: &DescriptorProto) -> String {
    let map = message.nested_type.iter().any(|nested| {
        nested.options.as_ref().is_some_and(|o| o.map_entry())
            && nested.name() == last(field.type_name())
    });
    if map {
        return "map".to_owned();
    }
    let name = match field.r#type() {
        Type::String => "string".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Message | Type::Enum if field.type_name().starts_with(".google.") => {
            field.type_name().trim_start_matches('.').replace('.', "/")
        }
        Type::Message | Type::Enum => last(field.type_name()).to_owned(),
        other => panic!("{}: {other:?}", field.name()),
    };
    match field.label() {
        Label::Repeated => format!("repeated/{name}"),
        _ => name,
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap()
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

/// The members of an object that may be missing.
fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
