//! Operations over a trace instead of a node.

use std::sync::Arc;

use csi_proxy::clock::Deadline::Never;
use csi_proxy::port::Carried;
use csi_proxy::trace::{Replayer, Trace};
use csi_proxy::{Error, Host, HostPath};

use crate::operations::{Begin, GROUPS, node, recorded};

fn replayer(text: &str) -> (Arc<Carried<Replayer>>, Host) {
    let ports = Arc::new(Carried(Replayer::new(&Trace::parse(text).unwrap())));
    (ports.clone(), Host::new(ports.clone(), ports))
}

fn mkdir(host: &Host, path: &str) -> Result<(), Error> {
    let path = HostPath::from_kubelet(path).unwrap();
    host.filesystem().mkdir(&path, Never)
}

#[test]
fn every_operation_goes_over_its_own_trace_as_it_went_on_the_node() {
    for group in GROUPS {
        let text = recorded(&node(), Begin::Exactly, group.run);
        let (ports, host) = replayer(&text);
        // It expects of the answers what it expected of the node's.
        (group.run)(&host);
        assert_eq!(ports.0.finish(), Ok(()), "{}", group.name);
        Trace::parse(&text).unwrap().check().unwrap();
    }
}

#[test]
fn a_call_that_the_trace_does_not_have_is_named_with_its_line_and_the_difference() {
    let text = recorded(&node(), Begin::Exactly, |host| {
        mkdir(host, r"C:\one").unwrap();
        mkdir(host, r"C:\two").unwrap();
    });
    let (ports, host) = replayer(&text);
    mkdir(&host, r"C:\one").unwrap();
    let error = mkdir(&host, r"C:\three").unwrap_err().to_string();
    for part in [
        "line 3",
        "create_directories",
        r#""C:\\three" instead of "C:\\two""#,
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert_eq!(ports.0.finish().unwrap_err().line, 3);

    let (ports, host) = replayer(&text);
    let path = HostPath::from_kubelet(r"C:\one").unwrap();
    let error = host
        .filesystem()
        .rmdir(&path, true, Never)
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 2"), "{error}");
    assert!(error.contains("instead of create_directories"), "{error}");
    assert!(ports.0.finish().is_err());
}

#[test]
fn calls_that_are_not_made_and_calls_too_many_are_told() {
    let text = recorded(&node(), Begin::Exactly, |host| {
        mkdir(host, r"C:\one").unwrap();
        mkdir(host, r"C:\two").unwrap();
    });
    let (ports, host) = replayer(&text);
    mkdir(&host, r"C:\one").unwrap();
    let left = ports.0.finish().unwrap_err();
    assert_eq!(left.line, 3);
    assert!(left.reason.contains("was not made"), "{left}");
    mkdir(&host, r"C:\two").unwrap();
    ports.0.finish().unwrap();
    let error = mkdir(&host, r"C:\two").unwrap_err().to_string();
    assert!(error.contains("line 4: the trace has ended"), "{error}");
}

#[test]
fn an_answer_of_another_kind_is_found_in_its_line() {
    let text = recorded(&node(), Begin::Exactly, |host| {
        mkdir(host, r"C:\one").unwrap();
    });
    let broken = text.replace(
        r#""ok":{"files":{"create_directories":true}}"#,
        r#""ok":{"files":{"remove_file":null}}"#,
    );
    assert_ne!(broken, text);
    let mismatch = Trace::parse(&broken).unwrap().check().unwrap_err();
    assert_eq!(mismatch.line, 2);
}
