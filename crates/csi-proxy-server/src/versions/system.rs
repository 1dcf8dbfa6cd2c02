//! The version of the group `system`.

use csi_proxy::system::{ServiceState, StartMode};
use csi_proxy::{Error, ErrorKind, Result};
use csi_proxy_api::system::v1alpha1::{ServiceStatus, StartType};

use super::table;
use crate::call::Call;

table! { system [v1alpha1 {}] system_server::System, call {
    get_bios_serial_number(GetBiosSerialNumberRequest {}) -> GetBiosSerialNumberResponse {
        let serial_number = call.host().system().bios_serial_number(call.deadline)?;
        GetBiosSerialNumberResponse { serial_number }
    }
    start_service(StartServiceRequest { name }) -> StartServiceResponse {
        call.host().system().start_service(named(call, &name)?, call.deadline)?;
        StartServiceResponse {}
    }
    stop_service(StopServiceRequest { name, force }) -> StopServiceResponse {
        call.host().system().stop_service(named(call, &name)?, force, call.deadline)?;
        StopServiceResponse {}
    }
    get_service(GetServiceRequest { name }) -> GetServiceResponse {
        let service = call.host().system().service(named(call, &name)?, call.deadline)?;
        GetServiceResponse {
            display_name: service.display_name,
            start_type: start_type(call, &name, service.start_mode)?.into(),
            status: status(service.state).into(),
        }
    }
}}

fn named<'a>(call: &Call<'_>, name: &'a str) -> Result<&'a str> {
    match name {
        "" => Err(Error::new(
            ErrorKind::InvalidArgument,
            call.operation(),
            "name \"\"",
            "expected the name of a service",
        )),
        name => Ok(name),
    }
}

fn status(state: ServiceState) -> ServiceStatus {
    match state {
        ServiceState::Stopped => ServiceStatus::Stopped,
        ServiceState::StartPending => ServiceStatus::StartPending,
        ServiceState::StopPending => ServiceStatus::StopPending,
        ServiceState::Running => ServiceStatus::Running,
        ServiceState::ContinuePending => ServiceStatus::ContinuePending,
        ServiceState::PausePending => ServiceStatus::PausePending,
        ServiceState::Paused => ServiceStatus::Paused,
        ServiceState::Unknown => ServiceStatus::Unknown,
    }
}

/// The API has no word for an unknown one.
fn start_type(call: &Call<'_>, name: &str, mode: StartMode) -> Result<StartType> {
    match mode {
        StartMode::Boot => Ok(StartType::Boot),
        StartMode::System => Ok(StartType::System),
        StartMode::Automatic => Ok(StartType::Automatic),
        StartMode::Manual => Ok(StartType::Manual),
        StartMode::Disabled => Ok(StartType::Disabled),
        StartMode::Unknown => Err(Error::new(
            ErrorKind::Internal,
            call.operation(),
            format_args!("service {name:?}"),
            "Windows gives it a start mode that is not documented",
        )),
    }
}
