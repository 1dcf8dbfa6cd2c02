//! WMI: what Wine has of it too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::Cim;
use super::os;
use crate::cim::{Cim as _, Namespace, Query, Value};
use crate::clock::{Deadline, SystemClock};
use crate::port::{PortError, SystemCode};
use crate::system::ServiceState;
use crate::{ErrorKind, Host};

/// WMI for one test at a time: Wine's breaks when it is first used by several threads.
fn cim() -> (Cim, MutexGuard<'static, ()>) {
    static ONE: Mutex<()> = Mutex::new(());
    let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    (Cim::new(Arc::new(SystemClock::new())), turn)
}

#[test]
fn the_services_of_this_machine_have_names_and_paths() {
    let query = Query::new(Namespace::Cimv2, "Win32_Service", &["Name", "State"]);
    let services = cim().0.query(&query, Deadline::Never).unwrap();
    assert!(services.len() > 5, "{services:?}");
    for service in services {
        assert!(service.properties["Name"].as_str().is_some());
        assert!(service.path.0.contains("Win32_Service"), "{}", service.path);
        assert_eq!(service.properties.len(), 2);
    }
}

#[test]
fn a_condition_selects_one_service() {
    let query = Query::new(Namespace::Cimv2, "Win32_Service", &["Name"]).with("Name", "eventlog");
    let services = cim().0.query(&query, Deadline::Never).unwrap();
    let names: Vec<&Value> = services
        .iter()
        .map(|service| &service.properties["Name"])
        .collect();
    assert_eq!(names.len(), 1);
    assert!(names[0].as_str().unwrap().eq_ignore_ascii_case("eventlog"));
}

#[test]
fn a_query_that_wmi_cannot_read_is_an_error_with_its_code() {
    let query = Query::new(Namespace::Cimv2, "Win32_Service WHERE (", &["Name"]);
    let answer = cim().0.query(&query, Deadline::Never);
    // WBEM_E_INVALID_QUERY
    let expected = SystemCode::HResult(0x8004_1017);
    assert!(
        matches!(&answer, Err(PortError::System { code, .. }) if *code == expected),
        "{answer:?}"
    );
}

/// The print spooler: Windows has it, and so does Wine.
const SERVICE: &str = "Spooler";

#[test]
fn a_service_of_this_machine_is_started_and_stopped() {
    let (cim, _turn) = cim();
    let host = Host::new(Arc::new(cim), Arc::new(os()));
    let system = host.system();
    let deadline = || host.os().deadline_in(Duration::from_secs(60));
    let state = || system.service(SERVICE, deadline()).unwrap().state;
    let at_first = state();
    for _ in 0..2 {
        system.start_service(SERVICE, deadline()).unwrap();
        assert_eq!(state(), ServiceState::Running);
    }
    for _ in 0..2 {
        system.stop_service(SERVICE, false, deadline()).unwrap();
        assert_eq!(state(), ServiceState::Stopped);
    }
    if at_first == ServiceState::Running {
        system.start_service(SERVICE, deadline()).unwrap();
    }
}

#[test]
fn a_service_that_is_not_there_is_not_found() {
    let (cim, _turn) = cim();
    let host = Host::new(Arc::new(cim), Arc::new(os()));
    let error = host.system().start_service("no such", Deadline::Never);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}
