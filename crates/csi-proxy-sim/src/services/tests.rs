//! The rules of the service control manager, each with its return value.

use std::time::Duration;

use csi_proxy::Host;
use csi_proxy::cim::{Associators, Invoke, Namespace, Object, ObjectPath, Query};
use csi_proxy::clock::{Clock, Deadline};

use super::{Service, ServiceState, StartMode, Takes};
use crate::SimNode;

const CLASS: &str = "Win32_Service";

fn node(services: impl IntoIterator<Item = Service>) -> (SimNode, Host) {
    let builder = services
        .into_iter()
        .fold(SimNode::builder(), |builder, one| builder.service(one));
    let node = builder.build();
    let host = node.process().host();
    (node, host)
}

fn service(name: &str) -> Service {
    Service::new(name, name)
}

fn get(host: &Host, name: &str) -> Object {
    let properties = ["Name", "State", "StartMode", "ExitCode", "ProcessId"];
    let query = Query::new(Namespace::Cimv2, CLASS, &properties).with("Name", name);
    let mut found = host.cim().query(&query, Deadline::Never).unwrap();
    assert_eq!(found.len(), 1, "{name}");
    found.remove(0)
}

fn state(host: &Host, name: &str) -> String {
    let state = get(host, name).properties["State"].clone();
    state.as_str().unwrap().to_owned()
}

fn path(host: &Host, name: &str) -> ObjectPath {
    let query = Query::new(Namespace::Cimv2, CLASS, &[]);
    let query = query.with("Name", name);
    host.cim().query(&query, Deadline::Never).unwrap()[0]
        .path
        .clone()
}

fn run(host: &Host, name: &str, method: &str) -> u32 {
    let invoke = Invoke::on(Namespace::Cimv2, CLASS, &path(host, name), method);
    let output = host.cim().invoke(&invoke, Deadline::Never).unwrap();
    output.return_value
}

fn start(host: &Host, name: &str) -> u32 {
    run(host, name, "StartService")
}

fn stop(host: &Host, name: &str) -> u32 {
    run(host, name, "StopService")
}

#[test]
fn a_service_starts_once_and_stops_once() {
    let (_, host) = node([]);
    assert_eq!(state(&host, "msiscsi"), "Stopped");
    assert_eq!(stop(&host, "MSiSCSI"), 6);
    assert_eq!(start(&host, "MSiSCSI"), 0);
    assert_eq!(state(&host, "MSiSCSI"), "Running");
    assert_eq!(start(&host, "MSiSCSI"), 10);
    assert_eq!(stop(&host, "MSiSCSI"), 0);
    assert_eq!(state(&host, "MSiSCSI"), "Stopped");
}

#[test]
fn a_service_has_an_exit_code_and_a_process_only_while_it_runs() {
    let (_, host) = node([service("x")]);
    let of = |name: &str| get(&host, "x").properties[name].as_u32().unwrap();
    assert_eq!((of("ExitCode"), of("ProcessId")), (1077, 0));
    assert_eq!(start(&host, "x"), 0);
    assert_eq!(of("ExitCode"), 0);
    assert_ne!(of("ProcessId"), 0);
}

#[test]
fn a_service_that_cannot_be_started_says_why() {
    let (_, host) = node([
        Service {
            start_mode: StartMode::Disabled,
            ..service("disabled")
        },
        Service {
            removed: true,
            ..service("removed")
        },
        service("lonely").depends_on("missing"),
        service("waiting").depends_on("disabled"),
        service("chicken").depends_on("egg"),
        service("egg").depends_on("chicken"),
    ]);
    assert_eq!(start(&host, "disabled"), 14);
    assert_eq!(start(&host, "removed"), 16);
    assert_eq!(start(&host, "lonely"), 12);
    assert_eq!(start(&host, "waiting"), 13);
    assert_eq!(start(&host, "chicken"), 18);
}

#[test]
fn a_change_is_pending_for_so_many_queries() {
    let takes = Takes {
        polls: 2,
        ..Takes::default()
    };
    let (node, host) = node([Service {
        start_takes: takes,
        stop_takes: takes,
        ..service("x")
    }]);
    let invoke = |method| Invoke::on(Namespace::Cimv2, CLASS, &path(&host, "x"), method);
    let (begin, end) = (invoke("StartService"), invoke("StopService"));
    let run = |invoke: &Invoke| {
        let output = host.cim().invoke(invoke, Deadline::Never).unwrap();
        output.return_value
    };
    let states = || [(); 3].map(|()| state(&host, "x"));
    assert_eq!(run(&begin), 0);
    assert_eq!(run(&begin), 10);
    assert_eq!(run(&end), 5);
    assert_eq!(states(), ["Start Pending", "Start Pending", "Running"]);
    assert_eq!(run(&end), 0);
    assert_eq!(run(&end), 5);
    assert_eq!(states(), ["Stop Pending", "Stop Pending", "Stopped"]);
    assert_eq!(node.snapshot().services.get("X").unwrap().pending, None);
}

#[test]
fn a_change_is_pending_for_so_long() {
    let (node, host) = node([Service {
        start_takes: Takes {
            polls: 0,
            time: Duration::from_secs(20),
        },
        ..service("x")
    }]);
    assert_eq!(start(&host, "x"), 0);
    assert_eq!(state(&host, "x"), "Start Pending");
    let clock = node.clock();
    clock.pause(Duration::from_secs(19), Deadline::Never);
    assert_eq!(state(&host, "x"), "Start Pending");
    clock.pause(Duration::from_secs(1), Deadline::Never);
    assert_eq!(state(&host, "x"), "Running");
}

#[test]
fn a_service_that_fails_to_start_stops_with_its_exit_code() {
    let (_, host) = node([Service {
        start_fails: Some(1067),
        ..service("x")
    }]);
    assert_eq!(start(&host, "x"), 0);
    assert_eq!(state(&host, "x"), "Stopped");
    assert_eq!(get(&host, "x").properties["ExitCode"].as_u32(), Some(1067));
}

#[test]
fn what_a_service_depends_on_is_started_first() {
    let (_, host) = node([
        service("top").depends_on("middle"),
        service("middle").depends_on("bottom"),
        Service {
            start_takes: Takes {
                polls: 1,
                ..Takes::default()
            },
            ..service("bottom")
        },
    ]);
    assert_eq!(start(&host, "top"), 0);
    assert_eq!(state(&host, "top"), "Start Pending");
    assert_eq!(state(&host, "top"), "Running");
    assert_eq!(state(&host, "bottom"), "Running");
}

#[test]
fn a_service_does_not_stop_while_others_depend_on_it() {
    let (_, host) = node([
        service("base").running(),
        service("user").running().depends_on("BASE"),
        Service {
            accepts_stop: false,
            ..service("stubborn").running()
        },
    ]);
    assert_eq!(stop(&host, "base"), 3);
    assert_eq!(stop(&host, "user"), 0);
    assert_eq!(stop(&host, "base"), 0);
    assert_eq!(stop(&host, "stubborn"), 4);
}

#[test]
fn dependents_are_found_in_one_direction_or_in_both() {
    let (_, host) = node([
        service("base"),
        service("middle").depends_on("base"),
        service("top").depends_on("middle"),
    ]);
    let path = path(&host, "middle");
    let request = Associators::new(
        Namespace::Cimv2,
        &path,
        "Win32_DependentService",
        CLASS,
        &["Name"],
    );
    let names = |request: &Associators| {
        let found = host.cim().associators(request, Deadline::Never).unwrap();
        let name = |object: &Object| object.properties["Name"].as_str().unwrap().to_owned();
        found.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&request.clone().in_role("Antecedent")), ["top"]);
    assert_eq!(names(&request.clone().in_role("Dependent")), ["base"]);
    assert_eq!(names(&request), ["top", "base"]);
}

#[test]
fn a_reboot_starts_what_starts_with_windows() {
    let (node, _) = node([
        Service {
            start_mode: StartMode::Auto,
            ..service("auto")
        },
        service("manual").running(),
    ]);
    node.reboot();
    let services = node.snapshot().services;
    assert_eq!(services.get("auto").unwrap().state, ServiceState::Running);
    assert_eq!(services.get("manual").unwrap().state, ServiceState::Stopped);
}

#[test]
fn the_firmware_has_a_serial_number_or_none() {
    let serial = |node: &SimNode, class: &str| {
        let query = Query::new(Namespace::Cimv2, class, &["SerialNumber"]);
        let found = node.process().host().cim().query(&query, Deadline::Never);
        found.unwrap()[0].properties["SerialNumber"].clone()
    };
    let node = SimNode::builder().bios_serial_number(Some("1234")).build();
    assert_eq!(serial(&node, "CIM_BIOSElement").as_str(), Some("1234"));
    assert_eq!(serial(&node, "Win32_BIOS").as_str(), Some("1234"));
    let node = SimNode::builder().bios_serial_number(None).build();
    assert_eq!(
        serial(&node, "CIM_BIOSElement"),
        csi_proxy::cim::Value::Null
    );
}
