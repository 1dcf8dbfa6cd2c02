//! Every answer leaves by one door: a request that is refused is one line in the log, which
//! shows no secret, and what is long in a request is not sent back.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock};

use common::{GIB, Rig, STAGING, TARGET, at_least, capability, create, map, publish, stage};
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::proto::*;
use prost::Message;
use prost::bytes::{Buf as _, BufMut as _};
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use serde_json::Value;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Request, Status};

const SECRET: &str = "hunter2-and-more";
/// The longest message that the library lets into a status, and what marks the cut.
const LONGEST: usize = 2048 + '…'.len_utf8();
/// More than any message and any map may have, less than a server takes.
const MIB: usize = 1 << 20;

/// Messages as they are on the wire.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining()).to_vec()))
    }
}

/// What is logged, for the whole program; only one test at a time uses it.
struct Log {
    lines: &'static Mutex<Vec<u8>>,
    _used: MutexGuard<'static, ()>,
}

impl Log {
    fn begin() -> Self {
        static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());
        static USED: Mutex<()> = Mutex::new(());
        static STARTED: OnceLock<()> = OnceLock::new();
        let used = USED.lock().unwrap_or_else(|error| error.into_inner());
        STARTED.get_or_init(|| {
            tracing_subscriber::fmt()
                .json()
                .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
                .with_writer(|| Writer(&LINES))
                .init();
        });
        LINES.lock().unwrap().clear();
        Self {
            lines: &LINES,
            _used: used,
        }
    }

    /// The lines since the last time.
    fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.lines.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

struct Writer(&'static Mutex<Vec<u8>>);

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Calls a method over the plugin's services.
fn call(rig: &Rig, service: &str, method: &str, message: Vec<u8>) -> Result<Vec<u8>, Status> {
    let path = format!("/csi.v1.{service}/{method}").parse().unwrap();
    let mut client = tonic::client::Grpc::new(rig.plugin.routes());
    rig.runtime.block_on(async {
        let answer = client.unary(Request::new(message), path, Raw).await;
        answer.map(tonic::Response::into_inner)
    })
}

fn secrets() -> std::collections::BTreeMap<String, String> {
    map(&[("password", SECRET)])
}

/// For each method a request that is right but for what a test changes in it. All carry
/// secrets where they can.
fn requests() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let volume_id = || "v".to_owned();
    let wanted = || Some(capability(Mode::SingleNodeWriter));
    vec![
        (
            "Controller",
            "CreateVolume",
            CreateVolumeRequest {
                secrets: secrets(),
                ..create("v", GIB)
            }
            .encode_to_vec(),
        ),
        (
            "Controller",
            "DeleteVolume",
            DeleteVolumeRequest {
                volume_id: volume_id(),
                secrets: secrets(),
            }
            .encode_to_vec(),
        ),
        (
            "Controller",
            "ValidateVolumeCapabilities",
            ValidateVolumeCapabilitiesRequest {
                volume_id: volume_id(),
                volume_capabilities: wanted().into_iter().collect(),
                secrets: secrets(),
                ..Default::default()
            }
            .encode_to_vec(),
        ),
        (
            "Controller",
            "ListVolumes",
            ListVolumesRequest::default().encode_to_vec(),
        ),
        (
            "Controller",
            "GetCapacity",
            GetCapacityRequest {
                volume_capabilities: wanted().into_iter().collect(),
                ..Default::default()
            }
            .encode_to_vec(),
        ),
        (
            "Controller",
            "ControllerExpandVolume",
            ControllerExpandVolumeRequest {
                volume_id: volume_id(),
                capacity_range: Some(at_least(GIB)),
                secrets: secrets(),
                volume_capability: wanted(),
            }
            .encode_to_vec(),
        ),
        (
            "Controller",
            "ControllerGetVolume",
            ControllerGetVolumeRequest {
                volume_id: volume_id(),
            }
            .encode_to_vec(),
        ),
        (
            "Node",
            "NodeStageVolume",
            NodeStageVolumeRequest {
                secrets: secrets(),
                ..stage("v", STAGING, Mode::SingleNodeWriter)
            }
            .encode_to_vec(),
        ),
        (
            "Node",
            "NodeUnstageVolume",
            common::unstage("v", STAGING).encode_to_vec(),
        ),
        (
            "Node",
            "NodePublishVolume",
            NodePublishVolumeRequest {
                secrets: secrets(),
                ..publish("v", STAGING, TARGET)
            }
            .encode_to_vec(),
        ),
        (
            "Node",
            "NodeUnpublishVolume",
            common::unpublish("v", TARGET).encode_to_vec(),
        ),
        (
            "Node",
            "NodeGetVolumeStats",
            NodeGetVolumeStatsRequest {
                volume_id: volume_id(),
                volume_path: STAGING.to_owned(),
                staging_target_path: STAGING.to_owned(),
            }
            .encode_to_vec(),
        ),
        (
            "Node",
            "NodeExpandVolume",
            NodeExpandVolumeRequest {
                volume_id: volume_id(),
                volume_path: STAGING.to_owned(),
                capacity_range: Some(at_least(GIB)),
                staging_target_path: STAGING.to_owned(),
                volume_capability: wanted(),
                secrets: secrets(),
            }
            .encode_to_vec(),
        ),
    ]
}

/// A field with text in a message: its name, and the numbers that lead to it.
struct TextField {
    name: String,
    path: Vec<u32>,
}

fn protocol() -> FileDescriptorProto {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let file = |file: &FileDescriptorProto| file.package() == "csi.v1";
    set.file.into_iter().find(file).unwrap()
}

/// The message of that full name; nested ones too.
fn message<'a>(all: &'a [DescriptorProto], name: &str) -> Option<&'a DescriptorProto> {
    let (first, rest) = match name.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (name, None),
    };
    let found = all.iter().find(|message| message.name() == first)?;
    rest.map_or(Some(found), |rest| message(&found.nested_type, rest))
}

/// All fields with text in a request, the keys and values of maps too.
fn text_fields(file: &FileDescriptorProto, name: &str, start: &TextField) -> Vec<TextField> {
    let mut found = Vec::new();
    for field in &message(&file.message_type, name).unwrap().field {
        let mut path = start.path.clone();
        path.push(field.number().try_into().unwrap());
        let here = TextField {
            name: format!("{}.{}", start.name, field.name()),
            path,
        };
        match field.r#type() {
            Type::String => found.push(here),
            Type::Message => {
                // Timestamps and wrapped numbers have no text.
                if let Some(nested) = field.type_name().strip_prefix(".csi.v1.") {
                    found.extend(text_fields(file, nested, &here));
                }
            }
            _ => {}
        }
    }
    found
}

/// The field on the wire. Put behind a message it replaces what that has, or adds to it.
fn encode(path: &[u32], text: &str) -> Vec<u8> {
    let (first, rest) = path.split_first().unwrap();
    let inner = match rest {
        [] => text.as_bytes().to_vec(),
        rest => encode(rest, text),
    };
    let mut bytes = Vec::new();
    prost::encoding::encode_key(
        *first,
        prost::encoding::WireType::LengthDelimited,
        &mut bytes,
    );
    prost::encoding::encode_varint(inner.len() as u64, &mut bytes);
    bytes.extend(inner);
    bytes
}

/// The requests of all methods, each with a long text in one of its fields.
fn long_requests(text: &str) -> Vec<(&'static str, &'static str, String, Vec<u8>)> {
    let file = protocol();
    let mut all = Vec::new();
    for (service, method, right) in requests() {
        let start = TextField {
            name: method.to_owned(),
            path: Vec::new(),
        };
        for field in text_fields(&file, &format!("{method}Request"), &start) {
            let mut message = right.clone();
            message.extend(encode(&field.path, text));
            all.push((service, method, field.name, message));
        }
    }
    all
}

/// The methods of the services, with whether their requests have text.
fn methods() -> Vec<(String, String, bool)> {
    let file = protocol();
    let services = ["Identity", "Controller", "Node"];
    let served = |name: &str| services.contains(&name);
    let mut methods = Vec::new();
    for service in file.service.iter().filter(|one| served(one.name())) {
        for method in &service.method {
            let start = TextField {
                name: String::new(),
                path: Vec::new(),
            };
            let request = method.input_type().strip_prefix(".csi.v1.").unwrap();
            let text = !text_fields(&file, request, &start).is_empty();
            methods.push((service.name().to_owned(), method.name().to_owned(), text));
        }
    }
    methods
}

#[test]
fn every_method_with_text_is_tried_here_or_not_offered() {
    let _log = Log::begin();
    let rig = Rig::new();
    let tried: Vec<_> = requests().iter().map(|(_, method, _)| *method).collect();
    for (service, method, text) in methods() {
        if text && !tried.contains(&&*method) {
            let answer = call(&rig, &service, &method, Vec::new());
            assert_eq!(answer.unwrap_err().code(), Code::Unimplemented, "{method}");
        }
    }
}

#[test]
fn long_text_in_any_field_is_not_sent_back() {
    let log = Log::begin();
    // A text that no rule allows, one that could be a name, and one that could be a path.
    for text in ["\n".repeat(MIB), "x".repeat(MIB), r"C:\x".repeat(MIB / 4)] {
        let requests = long_requests(&text);
        assert!(requests.len() > 50, "{} fields", requests.len());
        for (service, method, field, message) in requests {
            let rig = Rig::new();
            rig.create("v", GIB).unwrap();
            match method {
                "NodeStageVolume" | "CreateVolume" | "DeleteVolume" => {}
                _ => rig.stage("v").unwrap(),
            }
            log.take();
            match call(&rig, service, method, message) {
                Ok(answer) => assert!(answer.len() <= 2 * LONGEST, "{field}: {}", answer.len()),
                Err(status) => {
                    let told = status.message();
                    assert!(told.len() <= LONGEST, "{field}: {} bytes", told.len());
                    assert_ne!(status.code(), Code::Internal, "{field}: {told}");
                    // What was wrong comes before the cut.
                    assert!(!told.ends_with('…'), "{field}: {told}");
                }
            }
            for line in log.take() {
                assert!(line.len() <= 3 * LONGEST, "{field}: {}", line.len());
            }
        }
    }
}

#[test]
fn a_request_is_one_line_with_method_code_and_duration_and_no_secret() {
    let log = Log::begin();
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    // Refused by the check of the fields, by the driver, and done.
    let wrong = "\u{7}";
    let mut refused = 0;
    for (service, method, field, message) in long_requests(wrong) {
        log.take();
        let answer = call(&rig, service, method, message);
        let lines = log.take();
        for line in &lines {
            assert!(!line.contains(SECRET), "{field}: {line}");
        }
        check_line(&field, method, &answer, &lines);
        refused += usize::from(answer.is_err());
    }
    assert!(refused > 30, "{refused}");
    for (service, method, message) in requests() {
        for message in [message, Vec::new()] {
            log.take();
            let answer = call(&rig, service, method, message);
            let lines = log.take();
            assert!(!lines.concat().contains(SECRET), "{method}: {lines:?}");
            check_line(method, method, &answer, &lines);
        }
    }
    for (service, method, _) in methods() {
        if service == "Identity" || method.ends_with("Capabilities") || method == "NodeGetInfo" {
            log.take();
            let answer = call(&rig, &service, &method, Vec::new());
            check_line(&method, &method, &answer, &log.take());
        }
    }
}

/// One line for the answer: a warning for a refusal.
#[track_caller]
fn check_line(name: &str, method: &str, answer: &Result<Vec<u8>, Status>, lines: &[String]) {
    let lines: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["fields"]["code"].is_string())
        .collect();
    let [line] = &*lines else {
        panic!("{name}: {lines:?}");
    };
    let fields = &line["fields"];
    assert_eq!(fields["method"], method, "{name}");
    assert!(fields["duration"].is_string(), "{name}: {line}");
    let (level, code, words) = match answer {
        Ok(_) => ("DEBUG", Code::Ok, "done"),
        Err(status) => ("WARN", status.code(), status.message()),
    };
    assert_eq!(fields["code"], format!("{code:?}"), "{name}: {line}");
    assert_eq!(line["level"], level, "{name}: {line}");
    assert_eq!(fields["message"], words, "{name}: {line}");
}
