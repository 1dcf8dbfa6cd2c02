//! Writes a trace of each group's operations on a simulated node:
//! `cargo run -p csi-proxy --example record_groups -- DIRECTORY`. The traces in
//! `tests/traces` that are named after a group come from it.

#![expect(clippy::unwrap_used, reason = "it fails where it cannot go on")]

#[path = "../tests/trace/operations.rs"]
mod operations;

use std::path::PathBuf;

use operations::{Begin, GROUPS, life_of_a_disk, recorded};

fn main() {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.expect("expected a directory");
    let groups = GROUPS.iter();
    let traces = groups.map(|group| (group.name, Begin::Exactly, group.run));
    // As a trace of Windows begins.
    let by_snapshot = ("by-snapshot", Begin::BySnapshot, life_of_a_disk as fn(&_));
    for (name, begin, run) in traces.chain([by_snapshot]) {
        let text = recorded(&operations::node(), begin, run);
        let file = directory.join(format!("{name}.jsonl"));
        std::fs::write(&file, text).unwrap();
        println!("{}", file.display());
    }
}
