//! The classes `Win32_Service` and `CIM_BIOSElement`.
//!
//! Source: <https://learn.microsoft.com/windows/win32/cimwin32prov/win32-service>,
//! <https://learn.microsoft.com/windows/win32/cimwin32prov/win32-dependentservice>,
//! <https://learn.microsoft.com/windows/win32/cimwin32prov/cim-bioselement>.

use csi_proxy::cim::Namespace;
use csi_proxy::port::PortResult;

use super::{Service, ServiceState};
use crate::cim::{Association, Class, Hint, Method, MethodCall, Reply, Row, done};
use crate::fs::upcase;
use crate::state::State;

pub(crate) const CLASSES: &[Class] = &[
    Class {
        namespace: Namespace::Cimv2,
        name: "Win32_Service",
        properties: &[
            "AcceptStop",
            "DisplayName",
            "ExitCode",
            "Name",
            "ProcessId",
            "Started",
            "StartMode",
            "State",
            "Status",
        ],
        rows: services,
        methods: &[
            Method {
                name: "StartService",
                is_static: false,
                parameters: &[],
                run: start,
            },
            Method {
                name: "StopService",
                is_static: false,
                parameters: &[],
                run: stop,
            },
        ],
    },
    bios_class("CIM_BIOSElement"),
    bios_class("Win32_BIOS"),
];

pub(crate) const ASSOCIATIONS: &[Association] = &[Association {
    name: "Win32_DependentService",
    ends: ["Win32_Service", "Win32_Service"],
    roles: ["Antecedent", "Dependent"],
    follow: depending,
}];

const fn bios_class(name: &'static str) -> Class {
    Class {
        namespace: Namespace::Cimv2,
        name,
        properties: &["Manufacturer", "Name", "SerialNumber", "Version"],
        rows: bios,
        methods: &[],
    }
}

fn services(state: &State, hint: &Hint<'_>) -> Vec<Row> {
    let wanted = hint.key.or_else(|| hint.text("Name")).map(upcase);
    match wanted {
        Some(key) => state.services.0.get(&key).map(row).into_iter().collect(),
        None => state.services.0.values().map(row).collect(),
    }
}

fn row(service: &Service) -> Row {
    let runs = service.state != ServiceState::Stopped;
    Row {
        key: upcase(&service.name),
        properties: vec![
            ("AcceptStop", (runs && service.accepts_stop).into()),
            ("DisplayName", service.display_name.as_str().into()),
            ("ExitCode", service.exit_code.into()),
            ("Name", service.name.as_str().into()),
            // Any number that tells a service that runs from one that does not.
            ("ProcessId", if runs { 4242_u32 } else { 0 }.into()),
            ("Started", runs.into()),
            ("StartMode", service.start_mode.as_str().into()),
            ("State", service.state.as_str().into()),
            ("Status", "OK".into()),
        ],
    }
}

fn start(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    done(call.state.services.start(call.key, call.now))
}

fn stop(call: &mut MethodCall<'_>) -> PortResult<Reply> {
    done(call.state.services.stop(call.key, call.now))
}

/// From a service in the role of the antecedent to those that depend on it, and back.
fn depending(state: &State, from: usize, key: &str) -> Vec<String> {
    let services = &state.services;
    if from == 0 {
        return services
            .dependents(key)
            .map(|one| upcase(&one.name))
            .collect();
    }
    let names = services.get(key).map(|service| &service.depends_on);
    names
        .into_iter()
        .flatten()
        .map(|name| upcase(name))
        .collect()
}

fn bios(state: &State, _: &Hint<'_>) -> Vec<Row> {
    vec![Row {
        key: "BIOS".to_owned(),
        properties: vec![
            ("Manufacturer", "American Megatrends Inc.".into()),
            ("Name", "Hyper-V UEFI Release v4.1".into()),
            ("SerialNumber", state.bios.serial_number.clone().into()),
            ("Version", "VRTUAL - 1".into()),
        ],
    }]
}
