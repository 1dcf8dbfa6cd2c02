//! The traces in the repository.

use std::path::{Path, PathBuf};

use csi_proxy::trace::Trace;
use csi_proxy_sim::replay::replay;

use crate::operations::{Begin, GROUPS, node, recorded};

/// All together take no more bytes of the repository.
const LIMIT: u64 = 300 << 10;

fn traces() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    let files = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    paths.sort();
    paths
}

#[test]
fn the_simulated_node_answers_every_kept_trace_as_it_was_recorded() {
    let traces = traces();
    assert!(!traces.is_empty());
    for path in &traces {
        let trace = Trace::load(path).unwrap();
        trace.check().unwrap();
        let replay = replay(&trace).unwrap();
        assert_eq!(replay.differences, [], "{}", path.display());
        assert!(replay.calls > 0 && !trace.cut_off, "{}", path.display());
    }
}

#[test]
fn every_group_is_replayed_without_a_difference_however_the_trace_tells_the_start() {
    for begin in [Begin::Exactly, Begin::BySnapshot] {
        for group in GROUPS {
            let text = recorded(&node(), begin, group.run);
            let replay = replay(&Trace::parse(&text).unwrap()).unwrap();
            assert_eq!(replay.differences, [], "{} {begin:?}", group.name);
            // No snapshot tells which iSCSI targets there are.
            let is_left_out = (begin, group.name) == (Begin::BySnapshot, "iscsi");
            assert_eq!(!replay.left_out.is_empty(), is_left_out, "{}", group.name);
        }
    }
}

#[test]
fn the_kept_traces_are_small() {
    let sizes = traces()
        .into_iter()
        .map(|path| path.metadata().unwrap().len());
    let sum: u64 = sizes.sum();
    assert!(sum <= LIMIT, "{sum} bytes");
}
