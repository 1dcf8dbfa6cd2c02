//! BIOS and services.

use std::time::Duration;

use csi_proxy::ErrorKind::{DeadlineExceeded, FailedPrecondition, NotFound};
use csi_proxy::clock::Clock;
use csi_proxy::system::{Service, ServiceState, StartMode};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::services::{self, Takes};

use crate::NEVER;

/// Service `base`; `middle` and `side` depend on it, `top` on both of them.
pub(crate) fn service_node(running: bool) -> SimNode {
    let node = SimNode::builder().build();
    node.change(|state| {
        for (name, depends_on) in [
            ("base", &[][..]),
            ("middle", &["base"]),
            ("side", &["base"]),
            ("top", &["middle", "side"]),
        ] {
            let mut service = services::Service::new(name, &format!("The {name}"));
            for other in depends_on {
                service = service.depends_on(other);
            }
            if running {
                service = service.running();
            }
            state.services.put(service);
        }
    });
    node
}

fn slow(polls: u32, seconds: u64) -> Takes {
    Takes {
        polls,
        time: Duration::from_secs(seconds),
    }
}

fn change(node: &SimNode, name: &str, how: impl FnOnce(&mut services::Service)) {
    node.change(|state| how(state.services.get_mut(name).unwrap()));
}

pub(crate) fn runs(node: &SimNode, name: &str) -> bool {
    node.snapshot().services.runs(name)
}

#[test]
fn the_bios_serial_number_is_told_trimmed() {
    let node = SimNode::builder().build();
    node.change(|state| state.bios.serial_number = Some("  4121-0001 ".to_owned()));
    let host = node.process().host();
    assert_eq!(
        host.system().bios_serial_number(NEVER).unwrap(),
        "4121-0001"
    );
    for none in [None, Some(String::new()), Some("  ".to_owned())] {
        node.change(|state| state.bios.serial_number = none);
        let error = host.system().bios_serial_number(NEVER).unwrap_err();
        assert_eq!(error.kind(), NotFound);
    }
}

#[test]
fn a_service_is_described() {
    let node = service_node(true);
    let host = node.process().host();
    assert_eq!(
        host.system().service("BASE", NEVER).unwrap(),
        Service {
            display_name: "The base".to_owned(),
            state: ServiceState::Running,
            start_mode: StartMode::Manual,
        }
    );
}

#[test]
fn a_service_that_is_not_there_is_not_found() {
    let node = service_node(true);
    let host = node.process().host();
    for name in ["none", "", "b'a\"se", r"ba\se"] {
        let system = host.system();
        assert_eq!(system.service(name, NEVER).unwrap_err().kind(), NotFound);
        assert_eq!(
            system.start_service(name, NEVER).unwrap_err().kind(),
            NotFound
        );
        for force in [false, true] {
            let stopped = system.stop_service(name, force, NEVER);
            assert_eq!(stopped.unwrap_err().kind(), NotFound);
        }
    }
}

#[test]
fn a_service_is_started_once_and_waited_for() {
    let node = service_node(false);
    change(&node, "base", |service| service.start_takes = slow(3, 5));
    let host = node.process().host();
    for _ in 0..2 {
        host.system().start_service("base", NEVER).unwrap();
        assert!(runs(&node, "base"));
    }
    assert_eq!(node.counts().of("Win32_Service.StartService"), 1);
}

#[test]
fn a_service_that_is_stopping_is_started_afterwards() {
    let node = service_node(false);
    change(&node, "base", |service| {
        service.state = services::ServiceState::StopPending;
        service.pending = Some(services::Pending {
            polls: 2,
            until: Duration::ZERO,
        });
    });
    let host = node.process().host();
    host.system().start_service("base", NEVER).unwrap();
    assert!(runs(&node, "base"));
}

#[test]
fn a_service_that_does_not_start_in_30_seconds_is_told() {
    let node = service_node(false);
    change(&node, "base", |service| service.start_takes = slow(0, 31));
    let host = node.process().host();
    let begin = node.clock().now();
    let error = host.system().start_service("base", NEVER).unwrap_err();
    assert_eq!(error.kind(), DeadlineExceeded);
    assert!(error.to_string().contains("Start Pending"), "{error}");
    assert_eq!(node.clock().now().0 - begin.0, Duration::from_secs(30));
}

#[test]
fn a_deadline_before_the_30_seconds_is_kept() {
    let node = service_node(false);
    change(&node, "base", |service| service.start_takes = slow(0, 20));
    let host = node.process().host();
    let begin = node.clock().now();
    let deadline = node.clock().deadline_in(Duration::from_secs(4));
    let error = host.system().start_service("base", deadline).unwrap_err();
    assert_eq!(error.kind(), DeadlineExceeded);
    assert_eq!(node.clock().now().0 - begin.0, Duration::from_secs(4));
    host.system().start_service("base", NEVER).unwrap();
    assert_eq!(node.counts().of("Win32_Service.StartService"), 1);
}

#[test]
fn a_service_that_cannot_start_says_why() {
    for (how, word) in [
        (
            (|service: &mut services::Service| service.start_mode = services::StartMode::Disabled)
                as fn(&mut services::Service),
            "disabled",
        ),
        (|service| service.start_fails = Some(1067), "exit code 1067"),
        (
            |service| service.state = services::ServiceState::Paused,
            "paused",
        ),
        (|service| service.removed = true, "removed"),
        (
            |service| service.depends_on = vec!["none".to_owned()],
            "depends on",
        ),
    ] {
        let node = service_node(false);
        change(&node, "base", how);
        let host = node.process().host();
        let error = host.system().start_service("base", NEVER).unwrap_err();
        assert_eq!(error.kind(), FailedPrecondition, "{word}: {error}");
        assert!(error.to_string().contains(word), "{word}: {error}");
    }
}

#[test]
fn a_service_is_stopped_once_and_waited_for() {
    let node = service_node(true);
    change(&node, "top", |service| service.stop_takes = slow(3, 5));
    let host = node.process().host();
    for _ in 0..2 {
        host.system().stop_service("top", false, NEVER).unwrap();
        assert!(!runs(&node, "top"));
    }
    assert_eq!(node.counts().of("Win32_Service.StopService"), 1);
}

#[test]
fn a_service_that_is_starting_is_stopped_afterwards() {
    let node = service_node(true);
    change(&node, "top", |service| {
        service.state = services::ServiceState::StartPending;
        service.pending = Some(services::Pending {
            polls: 3,
            until: Duration::ZERO,
        });
    });
    let host = node.process().host();
    host.system().stop_service("top", false, NEVER).unwrap();
    assert!(!runs(&node, "top"));
}

#[test]
fn running_dependents_keep_a_service_from_stopping_and_are_named() {
    let node = service_node(true);
    change(&node, "side", |service| {
        service.state = services::ServiceState::Stopped;
    });
    change(&node, "top", |service| {
        service.state = services::ServiceState::Stopped;
    });
    let before = node.snapshot();
    let host = node.process().host();
    let error = host
        .system()
        .stop_service("base", false, NEVER)
        .unwrap_err();
    assert_eq!(error.kind(), FailedPrecondition);
    assert!(error.to_string().contains("running: middle"), "{error}");
    assert!(!error.to_string().contains("side"), "{error}");
    assert_eq!(node.snapshot(), before);
}

#[test]
fn force_stops_the_dependents_deepest_first_and_nothing_else() {
    let node = service_node(true);
    change(&node, "middle", |service| service.stop_takes = slow(2, 20));
    change(&node, "side", |service| service.stop_takes = slow(0, 20));
    let host = node.process().host();
    host.system().stop_service("middle", true, NEVER).unwrap();
    for (name, expected) in [
        ("top", false),
        ("middle", false),
        ("side", true),
        ("base", true),
    ] {
        assert_eq!(runs(&node, name), expected, "{name}");
    }
    host.system().stop_service("base", true, NEVER).unwrap();
    assert!(!runs(&node, "side") && !runs(&node, "base"));
    assert_eq!(node.counts().of("Win32_Service.StopService"), 4);
}

#[test]
fn a_service_that_takes_no_stop_says_so() {
    let node = service_node(true);
    change(&node, "top", |service| service.accepts_stop = false);
    let host = node.process().host();
    let error = host.system().stop_service("top", true, NEVER).unwrap_err();
    assert_eq!(error.kind(), FailedPrecondition);
    assert!(error.to_string().contains("does not take"), "{error}");
}

#[test]
fn a_service_that_does_not_stop_in_30_seconds_is_told() {
    let node = service_node(true);
    change(&node, "top", |service| service.stop_takes = slow(0, 31));
    let host = node.process().host();
    let error = host.system().stop_service("top", false, NEVER).unwrap_err();
    assert_eq!(error.kind(), DeadlineExceeded);
    assert!(error.to_string().contains("Stop Pending"), "{error}");
}
