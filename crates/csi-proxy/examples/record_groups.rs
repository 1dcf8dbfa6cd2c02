//! Writes a trace of each group's operations on a simulated node:
//! `cargo run -p csi-proxy --example record_groups -- DIRECTORY`. The traces in
//! `tests/traces` that are named after a group come from it.

#![expect(clippy::unwrap_used, reason = "it fails where it cannot go on")]

#[path = "../tests/trace/operations.rs"]
mod operations;

use std::path::PathBuf;

use operations::{Begin, GROUPS, recorded};

fn main() {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.expect("expected a directory");
    for group in GROUPS {
        // One begins as a trace of Windows does.
        let begin = match group.name {
            "disk-volume" => Begin::BySnapshot,
            _ => Begin::Exactly,
        };
        let text = recorded(&operations::node(), begin, group.run);
        let file = directory.join(format!("{}.jsonl", group.name));
        std::fs::write(&file, text).unwrap();
        println!("{}", file.display());
    }
}
