//! How a trace is written.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use csi_proxy::clock::Deadline;
use csi_proxy::trace::{Header, NodeKind, Output, Secrets, Trace};
use csi_proxy::{Host, HostPath};
use csi_proxy_sim::{Latency, SimNode};

use crate::operations::{Begin, Text, recorded};

fn exists(host: &Host) -> bool {
    let path = HostPath::from_kubelet(r"C:\Windows").unwrap();
    host.filesystem()
        .path_exists(&path, Deadline::Never)
        .unwrap()
}

fn header() -> Header {
    Header::new(NodeKind::Simulated, None)
}

/// A disk with room for so many bytes.
struct Full(Text, usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(self.1);
        if length == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.1 -= length;
        self.0.write(&bytes[..length])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_trace_with_one_warning_and_no_call() {
    let node = SimNode::builder().build();
    let warnings = Arc::new(AtomicUsize::new(0));
    let (text, told) = (Text::default(), warnings.clone());
    let host = node.process().host();
    let output = Output::begin(
        Full(text.clone(), 600),
        &header(),
        host.os().now(),
        Secrets::default(),
        move |error| {
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            told.fetch_add(1, Ordering::Relaxed);
        },
    )
    .unwrap();
    let host = host.recorded(&output);
    for _ in 0..20 {
        assert!(exists(&host));
    }
    assert_eq!(warnings.load(Ordering::Relaxed), 1);
    let trace = Trace::parse(&text.read()).unwrap();
    assert!(trace.cut_off);
    assert!((1..20).contains(&trace.len()), "{trace:?}");
}

#[test]
fn a_header_that_cannot_be_written_is_told_at_the_start() {
    let host = SimNode::builder().build().process().host();
    let full = Full(Text::default(), 3);
    let began = Output::begin(full, &header(), host.os().now(), Secrets::default(), |_| {});
    assert_eq!(began.unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn lines_are_whole_whatever_number_of_threads_writes_them() {
    const THREADS: usize = 8;
    const CALLS: usize = 50;
    let node = SimNode::builder().build();
    let text = recorded(&node, Begin::Exactly, |host| {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..CALLS).for_each(|_| assert!(exists(host))));
            }
        });
    });
    let trace = Trace::parse(&text).unwrap();
    assert!(!trace.cut_off);
    let mut sequence: Vec<_> = trace.entries().map(|entry| entry.sequence).collect();
    sequence.sort_unstable();
    let expected: Vec<_> = (1..).take(THREADS * CALLS).collect();
    assert_eq!(sequence, expected);
}

#[test]
fn times_are_those_of_the_node_from_the_start_of_the_trace() {
    let latency = Latency {
        os: Duration::from_millis(7),
        ..Latency::NONE
    };
    let node = SimNode::builder().latency(latency).build();
    node.clock().advance(Duration::from_secs(1000));
    let text = recorded(&node, Begin::Exactly, |host| {
        node.clock().advance(Duration::from_secs(5));
        let path = HostPath::from_kubelet(r"C:\Windows").unwrap();
        let deadline = host.os().deadline_in(Duration::from_secs(3));
        host.filesystem().path_exists(&path, deadline).unwrap();
    });
    let trace = Trace::parse(&text).unwrap();
    let entry = trace.entries().next().unwrap();
    assert_eq!(entry.at, Duration::from_secs(5));
    assert_eq!(entry.took, Duration::from_millis(7));
    assert_eq!(entry.timeout, Some(Duration::from_secs(3)));
}
