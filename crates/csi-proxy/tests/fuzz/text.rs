//! Texts: paths, places and locators of disks, lines of the control endpoint, machine files.

use csi_proxy::locator::DiskLocation;
use csi_proxy::{DiskNumber, HostPath, Locator, VolumeId};
use csi_proxy_sim::Machine;
use csi_proxy_sim::control::Request;

use crate::random::Random;

const WORDS: &[&str] = &[
    "\\",
    "/",
    ":",
    ".",
    "..",
    "C:",
    r"\\?\",
    r"\\.\",
    r"\??\",
    "UNC\\",
    "con",
    "lpt1",
    "COM\u{b9}",
    " ",
    "\t",
    "\0",
    "\u{7f}",
    "ä",
    "\u{1F600}",
    "\u{FEFF}",
    "*",
    "?",
    "\"",
    "'",
    "|",
    "<",
    "lun=",
    "adapter=",
    "bus=",
    "target=",
    "serial=",
    "page83=",
    "unique-id=",
    ",",
    "=",
    "LUN 1",
    "Target 0",
    "Adapter 4294967295",
    "_00000001.",
    "0",
    "-1",
    "4294967296",
    "18446744073709551616",
    "1e400",
    "{",
    "}",
    "[",
    "]",
    "null",
    "true",
    "{}",
    "\"path\":",
    "\"size\":",
    "\\u0000",
    "\\ud800",
];

/// A new text from the pool.
pub(crate) fn mutated(random: &mut Random, pool: &[Vec<u8>]) -> Vec<u8> {
    let mut text = as_text(random.pick::<Vec<u8>>(pool));
    for _ in 0..1 + random.below(4) {
        let (from, to) = range(random, &text);
        let word = (*random.pick(WORDS)).to_owned();
        match random.below(7) {
            0 => text.truncate(from),
            1 => text.replace_range(from..to, ""),
            2 => text.insert_str(from, &word),
            3 => text.replace_range(from..to, &word),
            4 => {
                let part = text[from..to].repeat(1 + random.below(20));
                text.insert_str(to, &part);
            }
            5 => {
                let other = as_text(random.pick::<Vec<u8>>(pool));
                let (start, end) = range(random, &other);
                text.replace_range(from..to, &other[start..end]);
            }
            _ => text = change_number(random, &text),
        }
    }
    let mut bytes = text.into_bytes();
    // Above the longest path that Windows has.
    bytes.truncate(40_000);
    bytes
}

fn as_text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

fn range(random: &mut Random, text: &str) -> (usize, usize) {
    let edge = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let from = edge(random.below(text.len() + 1));
    let longest = (text.len() - from).min(40);
    (from, edge(from + random.below(longest + 1)).max(from))
}

/// Puts a number at a limit in the place of one in the text.
fn change_number(random: &mut Random, text: &str) -> String {
    let starts: Vec<_> = text.match_indices(|c: char| c.is_ascii_digit()).collect();
    if starts.is_empty() {
        return text.to_owned();
    }
    let at = random.pick(&starts).0;
    let digits = text[at..].chars().take_while(char::is_ascii_digit).count();
    let numbers = [
        "0",
        "00",
        "4294967295",
        "4294967296",
        "18446744073709551615",
        "9e9",
        "-0",
    ];
    let number = random.pick(&numbers);
    format!("{}{number}{}", &text[..at], &text[at + digits..])
}

/// Answers whether any parser took it.
pub(crate) fn check(input: &[u8]) -> bool {
    let text = as_text(input);
    let text = text.as_str();
    [
        path(text),
        locator(text),
        location(text),
        ids(text),
        control_line(text),
        machine(text),
    ]
    .contains(&true)
}

fn path(text: &str) -> bool {
    let strict = HostPath::strict(text);
    let Ok(path) = HostPath::from_kubelet(text) else {
        assert!(
            strict.is_err(),
            "strict takes what from_kubelet does not: {text:?}"
        );
        return false;
    };
    if let Ok(strict) = strict {
        assert_eq!(strict, path, "two meanings of {text:?}");
    }
    let shown = path.as_str();
    assert_eq!(
        HostPath::from_kubelet(shown).as_ref(),
        Ok(&path),
        "{text:?}"
    );
    assert_eq!(
        HostPath::from_kubelet(&path.verbatim()).as_ref(),
        Ok(&path),
        "{text:?}"
    );
    assert!(
        shown.encode_utf16().count() <= text.encode_utf16().count() + 3,
        "{text:?}"
    );
    assert!(
        !shown[2..].contains([':', '/', '*', '?', '"', '<', '>', '|', '\0']),
        "{shown:?}"
    );
    assert!(
        path.names().all(|name| !matches!(name, "" | "." | "..")),
        "{shown:?}"
    );
    assert!(
        path.is_within(&path.root()) && path.same_as(&path),
        "{shown:?}"
    );
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            assert_eq!(parent.join(name).as_ref(), Ok(&path), "{shown:?}");
            assert!(
                path.is_within(&parent) && !parent.is_within(&path),
                "{shown:?}"
            );
        }
        (None, None) => assert_eq!(path, path.root()),
        other => panic!("{other:?} of {shown:?}"),
    }
    true
}

fn locator(text: &str) -> bool {
    let Ok(locator) = text.parse::<Locator>() else {
        return false;
    };
    let shown = locator.to_string();
    assert_eq!(
        shown.parse::<Locator>().as_ref(),
        Ok(&locator),
        "{text:?} as {shown:?}"
    );
    true
}

fn location(text: &str) -> bool {
    let Some(location) = DiskLocation::read(text) else {
        return false;
    };
    let parts = [
        ("Adapter", location.adapter),
        ("Bus", location.bus),
        ("Target", location.target),
        ("LUN", location.lun),
    ];
    let written: Vec<_> = parts
        .into_iter()
        .filter_map(|(name, number)| Some(format!("{name} {}", number?)))
        .collect();
    assert!(!written.is_empty(), "{text:?}");
    assert_eq!(
        DiskLocation::read(&written.join(" : ")),
        Some(location),
        "{text:?}"
    );
    true
}

fn ids(text: &str) -> bool {
    let volume = VolumeId::new(text);
    if let Ok(volume) = &volume {
        assert_eq!(
            VolumeId::new(volume.as_str()).as_ref(),
            Ok(volume),
            "{text:?}"
        );
        assert_eq!(
            VolumeId::new(&volume.device().0).as_ref(),
            Ok(volume),
            "{text:?}"
        );
    }
    let number = text.parse::<DiskNumber>();
    if let Ok(number) = number {
        assert_eq!(number.to_string().parse(), Ok(number), "{text:?}");
    }
    volume.is_ok() || number.is_ok()
}

/// What is asked of the control endpoint of the simulated node.
fn control_line(text: &str) -> bool {
    let Ok(request) = serde_json::from_str::<Request>(text) else {
        return false;
    };
    let written = serde_json::to_string(&request).unwrap();
    assert!(!written.contains('\n'), "{written}");
    let again: Request = serde_json::from_str(&written)
        .unwrap_or_else(|error| panic!("{error} in {written}, from {text}"));
    assert_eq!(serde_json::to_string(&again).unwrap(), written, "{text}");
    true
}

/// A machine file of the simulated node.
fn machine(text: &str) -> bool {
    Machine::parse(text)
        .and_then(|machine| machine.build())
        .is_ok()
}
