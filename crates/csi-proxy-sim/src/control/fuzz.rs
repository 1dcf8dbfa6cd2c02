//! Whatever comes in a line is answered with one line, and the node lives on.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use csi_proxy::cim::{Argument, Invoke, Object, Query, Target};
use csi_proxy::clock::Deadline;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::ControlServer;
use crate::storage::SimDisk;
use crate::{Process, SimNode};

/// Lines with holes: `$N` is a number, `$S` a text, `$B` a yes or no, `$D` a disk.
const LINES: &[&str] = &[
    r#"{"make_directory": {"path": $S}}"#,
    r#"{"make_file": {"path": $S, "contents": $S}}"#,
    r#"{"remove": {"path": $S}}"#,
    r#"{"check": {"path": $S}, "id": $N}"#,
    r#"{"attach_disk": $D}"#,
    r#"{"attach_disk": $D, "id": $N}"#,
    r#"{"detach_disk": {"number": $N}}"#,
    r#"{"change": {"attach_disk": $D}}"#,
    r#"{"change": {"replace_disk": {"number": $N, "with": $D}}}"#,
    r#"{"change": {"grow_disk": {"number": $N, "size": $N}}}"#,
    r#"{"change": {"set_offline": {"number": $N, "offline": $B}}}"#,
    r#"{"change": {"set_read_only": {"number": $N, "read_only": $B}}}"#,
    r#"{"change": {"make_link": {"path": $S, "target": $S}}}"#,
    r#"{"change": {"change_file": {"path": $S, "how": {"attributes": $N}}}}"#,
    r#"{"change": {"set_smb_password": {"server": $S, "user": $S, "password": $S}}}"#,
    r#"{"change": {"put_service": {"name": $S, "display_name": $S, "exit_code": $N, "depends_on": [$S],
        "start_takes": {"polls": $N, "time": {"secs": $N, "nanos": $N}}}}}"#,
    r#"{"show": null}"#,
    r#"{"state": null}"#,
    r#"{"counts": null}"#,
    r#"{"fault": {"operation": $S, "nth": $N, "times": $N, "effect": {"returns": $N}}}"#,
    r#"{"fault": {"nth": $N, "effect": {"stalls": $N}}}"#,
    r#"{"fault": {"nth": $N, "effect": {"before": {"attach_disk": $D}}}}"#,
    r#"{"fault": {"nth": $N, "effect": "crash_before"}}"#,
    r#"{"latency": {"query": {"secs": $N, "nanos": $N}, "format_per_gib": {"secs": $N, "nanos": $N}}}"#,
    r#"{"reboot": null}"#,
    r#"{"now": null}"#,
    r#"{"sleep_until": {"secs": $N, "nanos": $N}}"#,
    r#"{"cim": {"call": {"query": {"namespace": "storage", "class": $S, "properties": [$S],
        "conditions": [{"property": $S, "value": $N}]}}, "timeout_ms": $N}}"#,
    r#"{"cim": {"call": {"is_running": $N}, "deadline": {"secs": $N, "nanos": $N}}}"#,
    r#"{"os": {"call": {"files": {"stat": {"path": $S}}}, "timeout_ms": $N}}"#,
    r#"{"os": {"call": {"files": {"read_file": {"at": {"path": $S}, "limit": $N}}}}}"#,
    r#"{"os": {"call": {"devices": {"read_range": {"device": $S, "offset": $N, "length": $N}}}}}"#,
    r#"{"os": {"call": {"devices": {"device_ids": $S}}}}"#,
    r#"{"os": {"call": {"virtual_disks": {"create_virtual_disk": {"at": {"path": $S}, "size": $N}}}}}"#,
    r#"{"os": {"call": {"virtual_disks": {"expand_virtual_disk": {"at": {"path": $S}, "size": $N}}}}}"#,
    r#"{"os": {"call": {"locks": {"unlock": $N}}}}"#,
];

/// Disks, with the same holes.
const DISKS: &[&str] = &[
    r#"{"size": $N, "number": $N}"#,
    r#"{"size": "1 GiB", "number": $N, "hidden": {"rescans": $N, "seconds": $N}}"#,
    r#"{"size": $N, "style": "gpt", "partitions": [{"offset": $N, "size": $N, "content": "ntfs"}, {}]}"#,
    r#"{"size": $N, "style": "mbr", "partitions": [{"size": $N, "content": "ext4"}, {"offset": $N}]}"#,
    r#"{"size": "1 GiB", "style": "gpt", "partitions": [{"content": "ntfs", "allocation_unit": $N,
        "drive_letter": $S, "guid": $S, "health": $N, "format_seconds": $N}]}"#,
    r#"{"size": "1 GiB", "style": "gpt", "partitions": [{"kind": "reserved", "offset": $N, "size": $N},
        {"content": "unknown"}]}"#,
    r#"{"size": $N, "content": "damaged_ntfs", "unique_id": $S, "slow_online": $N,
        "page83": [{"code_set": $N, "kind": $N, "association": $N, "value": [1, 2]}]}"#,
];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "511",
    "512",
    "1000",
    "1048576",
    "33554432",
    "1073741824",
    "4294967294",
    "4294967295",
    "4294967296",
    "9223372036854775296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551104",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "0.5",
    "1e300",
    "1e999",
    "null",
    "\"1\"",
    "\"16777216 TiB\"",
    "[]",
    "{}",
];

const TEXTS: &[&str] = &[
    r#""""#,
    r#""C:\\""#,
    r#""C:\\tmp""#,
    r#""C:\\tmp\\a""#,
    r#""/tmp/b""#,
    r#""X:\\a""#,
    r#""C:\\tmp\\..\\..\\a""#,
    r#""C""#,
    r#""\\\\.\\PhysicalDrive0""#,
    r#""\\\\.\\PhysicalDrive99999999999""#,
    r#""MSFT_Disk""#,
    r#""Number""#,
    r#""stat""#,
    r#""MSFT_Volume.Format""#,
    r#""kubelet""#,
    r#""\u0000""#,
    r#""\ud800""#,
    r#""C:\\\udfff""#,
    r#""C:\\💾""#,
    "\"C:\\\\\u{1}\"",
    "null",
    "7",
    r#""11111111-2222-3333-4444-555555555555""#,
];

fn filled(line: &str, picks: &[Index]) -> String {
    let mut picks = picks.iter().cycle();
    let mut text = line.to_owned();
    for (hole, choices) in [
        ("$D", DISKS),
        ("$N", NUMBERS),
        ("$S", TEXTS),
        ("$B", &["true", "false", "1"]),
    ] {
        while text.contains(hole) {
            let choice = picks.next().map_or("null", |pick| *pick.get(choices));
            text = text.replacen(hole, choice, 1);
        }
    }
    text.replace('\n', " ")
}

struct Line(Vec<u8>);

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// Lines that are nearly right, and bytes of any kind.
fn lines() -> impl Strategy<Value = Vec<Line>> {
    let near = (select(LINES), prop::collection::vec(any::<Index>(), 12))
        .prop_map(|(line, picks)| Line(filled(line, &picks).into_bytes()));
    let bytes = prop::collection::vec(any::<u8>(), 0..40).prop_map(|mut bytes| {
        bytes.retain(|byte| *byte != b'\n');
        Line(bytes)
    });
    prop::collection::vec(prop_oneof![9 => near, 1 => bytes], 1..12)
}

/// Sends a line and reads its answer.
fn ask(stream: &mut BufReader<TcpStream>, line: &[u8]) -> serde_json::Value {
    let shown = String::from_utf8_lossy(line).into_owned();
    stream.get_mut().write_all(&[line, b"\n"].concat()).unwrap();
    let mut answer = String::new();
    stream.read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{shown}: {answer:?}: {error}"))
}

fn connect(server: &ControlServer) -> BufReader<TcpStream> {
    let uri = server.uri();
    let address = uri.strip_prefix("tcp://").unwrap();
    BufReader::new(TcpStream::connect(address).unwrap())
}

proptest! {
    #[test]
    fn any_line_has_one_answer_and_the_node_lives(lines in lines()) {
        let node = SimNode::builder().disk(SimDisk::ntfs(1 << 30)).build();
        let server = ControlServer::start(node, "tcp://127.0.0.1:0").unwrap();
        let mut stream = connect(&server);
        for line in lines {
            let answer = ask(&mut stream, &line.0);
            let kinds = ["ok", "error", "port_error"];
            prop_assert_eq!(kinds.iter().filter(|kind| answer.get(kind).is_some()).count(), 1);
        }
        let answer = ask(&mut stream, br#"{"check": {"path": "C:\\Windows"}, "id": 4711}"#);
        prop_assert!(answer["id"] == 4711 && answer["ok"].is_string(), "{}", answer);
        let shown = ask(&mut connect(&server), br#"{"show": null}"#);
        prop_assert!(shown["ok"].is_string(), "{}", shown);
    }

    #[test]
    fn any_arguments_of_any_method_have_an_answer(calls in prop::collection::vec(method(), 1..8)) {
        let node = SimNode::builder()
            .disk(SimDisk::ntfs(1 << 30))
            .disk(SimDisk::gpt(1 << 30))
            .disk(SimDisk::raw(1 << 30))
            .build();
        let process = node.process();
        for call in calls {
            call.make(&process);
        }
        prop_assert!(node.show().contains("disk 0"));
    }
}

/// A method of WMI with arguments, on whatever object there is.
#[derive(Debug)]
struct AnyMethod {
    class: Index,
    method: Index,
    object: Index,
    arguments: Vec<Option<Argument>>,
}

fn method() -> impl Strategy<Value = AnyMethod> {
    let number = prop_oneof![any::<u64>(), (0u32..64).prop_map(|bit| 1 << bit), 0u64..20];
    let text = select(
        &[
            "",
            "GPT",
            "NTFS",
            "ReFS",
            "X",
            "C:\\tmp\\",
            "18446744073709551615",
        ][..],
    );
    let argument = prop_oneof![
        4 => number.prop_map(Argument::Integer),
        2 => any::<bool>().prop_map(Argument::Boolean),
        2 => text.prop_map(|text| Argument::Text(text.to_owned())),
    ];
    (
        any::<[Index; 3]>(),
        prop::collection::vec(prop::option::of(argument), 12),
    )
        .prop_map(|([class, method, object], arguments)| AnyMethod {
            class,
            method,
            object,
            arguments,
        })
}

impl AnyMethod {
    fn make(&self, process: &Process) {
        let with_methods: Vec<_> = (crate::cim::CLASSES.iter().copied().flatten())
            .filter(|class| !class.methods.is_empty())
            .collect();
        let class = self.class.get(&with_methods);
        let method = self.method.get(class.methods);
        let target = match method.is_static {
            true => Target::Class(class.name.to_owned()),
            false => {
                let query = Query::new(class.namespace, class.name, &[]);
                let objects = process.cim().query(&query, Deadline::Never).unwrap();
                let Some(Object { path, .. }) = pick(&objects, self.object) else {
                    return;
                };
                Target::Instance {
                    class: class.name.to_owned(),
                    path: path.clone(),
                }
            }
        };
        let arguments = (method.parameters.iter().zip(&self.arguments))
            .filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
        let invoke = Invoke {
            arguments: arguments.collect(),
            target,
            ..Invoke::on_class(class.namespace, class.name, method.name)
        };
        // Whether it does anything does not matter here.
        let _ = process.cim().invoke(&invoke, Deadline::Never);
    }
}

fn pick<T>(all: &[T], index: Index) -> Option<&T> {
    (!all.is_empty()).then(|| index.get(all))
}

#[test]
fn a_lone_surrogate_is_refused_with_the_id_of_its_request() {
    let node = SimNode::builder().build();
    let server = ControlServer::start(node, "tcp://127.0.0.1:0").unwrap();
    let mut stream = connect(&server);
    for text in [r#"C:\\\ud800"#, r#"C:\\\udfff"#, r#"C:\\\ud800a"#] {
        let line = format!(r#"{{"make_directory": {{"path": "{text}"}}, "id": 7}}"#);
        let answer = ask(&mut stream, line.as_bytes());
        assert_eq!(answer["id"], 7, "{answer}");
        let error = answer["error"].as_str().unwrap();
        assert!(
            error.contains("surrogate") || error.contains("hex escape"),
            "{error}"
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_answered() {
    let node = SimNode::builder().build();
    let server = ControlServer::start(node, "tcp://127.0.0.1:0").unwrap();
    let mut stream = connect(&server);
    for line in [
        &b"\xff\xfe"[..],
        b"",
        b"{\"check\": {\"path\": \"\xff\"}}",
        b"7",
        b"[]",
    ] {
        assert!(ask(&mut stream, line)["error"].is_string(), "{line:?}");
    }
}
