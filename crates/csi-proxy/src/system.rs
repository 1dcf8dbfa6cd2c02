//! The node itself: its BIOS and its services.
//!
//! Source: `CIM_BIOSElement` and `Win32_Service`,
//! <https://learn.microsoft.com/windows/win32/cimwin32prov/win32-service>.

use std::fmt;
use std::time::Duration;

use crate::cim::{Associators, Invoke, Namespace, Query};
use crate::clock::Deadline;
use crate::error::{Code, Error, ErrorKind, Result};
use crate::host::Host;
use crate::operation::Operation;
use crate::row::Row;

const CLASS: &str = "Win32_Service";

/// How long a service may take to reach a state.
const STATE_LIMIT: Duration = Duration::from_secs(30);

/// How often the state is looked at.
const POLL: Duration = Duration::from_millis(250);

/// How many services may stand between a service and its last dependent.
const DEPTH_LIMIT: usize = 32;

/// `ExitCode` of a service that has not run since Windows started.
const ERROR_SERVICE_NEVER_STARTED: u32 = 1077;

/// `StartService` and `StopService`: a change is pending already.
const STATE_PENDING: u32 = 5;
/// `StopService`: the service is not started.
const NOT_STARTED: u32 = 6;
/// `StartService`: the service is running.
const ALREADY_RUNNING: u32 = 10;
/// `StopService`: dependents are running.
const DEPENDENTS_RUNNING: u32 = 3;

/// The group; made by [`Host::system`].
#[derive(Clone, Copy)]
pub struct System<'a> {
    host: &'a Host,
}

/// What Windows tells of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The name that people see.
    pub display_name: String,
    /// What it does at present.
    pub state: ServiceState,
    /// When Windows starts it.
    pub start_mode: StartMode,
}

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $($(#[$variant_doc])* $variant,)+
            /// A word that is not documented.
            Unknown,
        }

        impl $type {
            fn read(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    _ => Self::Unknown,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $text,)+
                    Self::Unknown => "Unknown",
                })
            }
        }
    };
}

words! {
    /// `Win32_Service.State`.
    ServiceState {
        /// It does not run.
        Stopped = "Stopped",
        /// It is starting.
        StartPending = "Start Pending",
        /// It is stopping.
        StopPending = "Stop Pending",
        /// It runs.
        Running = "Running",
        /// It is going on after a pause.
        ContinuePending = "Continue Pending",
        /// It is pausing.
        PausePending = "Pause Pending",
        /// It is paused.
        Paused = "Paused",
    }
}

words! {
    /// `Win32_Service.StartMode`.
    StartMode {
        /// By the boot loader.
        Boot = "Boot",
        /// With the system.
        System = "System",
        /// At the start of Windows.
        Automatic = "Auto",
        /// When somebody starts it.
        Manual = "Manual",
        /// Never.
        Disabled = "Disabled",
    }
}

impl Host {
    /// BIOS and services.
    pub fn system(&self) -> System<'_> {
        System { host: self }
    }
}

impl System<'_> {
    /// The serial number that the BIOS gives.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it gives none.
    pub fn bios_serial_number(&self, deadline: Deadline) -> Result<String> {
        let operation = self.operation("system bios serial number", deadline);
        let query = Query::new(Namespace::Cimv2, "CIM_BIOSElement", &["SerialNumber"]);
        let rows = operation.query(&query)?;
        let serial = match rows.first() {
            Some(row) => row.optional_text("SerialNumber")?.unwrap_or_default(),
            None => "",
        };
        match serial.trim() {
            "" => Err(operation.error(ErrorKind::NotFound, "BIOS", "it gives no serial number")),
            serial => Ok(serial.to_owned()),
        }
    }

    /// What Windows tells of a service.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no service of that name.
    pub fn service(&self, name: &str, deadline: Deadline) -> Result<Service> {
        let operation = self.operation("system service", deadline);
        let row = existing(&operation, name)?;
        Ok(Service {
            display_name: row
                .optional_text("DisplayName")?
                .unwrap_or_default()
                .to_owned(),
            state: ServiceState::read(row.text("State")?),
            start_mode: StartMode::read(row.text("StartMode")?),
        })
    }

    /// Starts a service and waits until it runs, at most 30 s. A running service is success.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] without such a service, [`ErrorKind::FailedPrecondition`]
    /// when it is disabled, paused or stops by itself, [`ErrorKind::DeadlineExceeded`] when it
    /// does not run in time.
    pub fn start_service(&self, name: &str, deadline: Deadline) -> Result<()> {
        let operation = self.limited("system start service", deadline);
        let mut asked = false;
        loop {
            let row = existing(&operation, name)?;
            let state = ServiceState::read(row.text("State")?);
            match state {
                ServiceState::Running => return Ok(()),
                ServiceState::Paused => {
                    let detail = "the service is paused; continue it";
                    return Err(operation.error(
                        ErrorKind::FailedPrecondition,
                        object(name),
                        detail,
                    ));
                }
                ServiceState::Stopped if !asked => {
                    let start = method(&row, "StartService");
                    let started = operation.invoke(object(name), &start).map(|_| ());
                    asked = is_accepted(started, &[STATE_PENDING, ALREADY_RUNNING])?;
                }
                ServiceState::Stopped => refuse_failed_start(&operation, name, &row)?,
                _ => {}
            }
            wait(&operation, name, state, ServiceState::Running)?;
        }
    }

    /// Stops a service and waits until it is stopped, at most 30 s each. With `force` the
    /// running services that depend on it are stopped first, the deepest first. A stopped
    /// service is success.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] without such a service; [`ErrorKind::FailedPrecondition`]
    /// when services that depend on it run (the error names them) and `force` is not set,
    /// or when it takes no stop; [`ErrorKind::DeadlineExceeded`] when it does not stop in
    /// time.
    pub fn stop_service(&self, name: &str, force: bool, deadline: Deadline) -> Result<()> {
        let operation = self.operation("system stop service", deadline);
        if force {
            for dependent in self.running_dependents(&operation, name)? {
                self.stop_one(&dependent, deadline)?;
            }
        }
        self.stop_one(name, deadline)
    }

    fn stop_one(&self, name: &str, deadline: Deadline) -> Result<()> {
        let operation = self.limited("system stop service", deadline);
        let mut asked = false;
        loop {
            let row = existing(&operation, name)?;
            let state = ServiceState::read(row.text("State")?);
            match state {
                ServiceState::Stopped => return Ok(()),
                ServiceState::StopPending => {}
                _ if !asked => {
                    let stop = method(&row, "StopService");
                    let stopped = operation.invoke(object(name), &stop).map(|_| ());
                    asked = is_accepted(stopped, &[STATE_PENDING, NOT_STARTED])
                        .map_err(|error| with_dependents(&operation, &row, error))?;
                }
                _ => {}
            }
            wait(&operation, name, state, ServiceState::Stopped)?;
        }
    }

    /// The names of the running services that depend on a service, each before those that
    /// it depends on.
    fn running_dependents(&self, operation: &Operation<'_>, name: &str) -> Result<Vec<String>> {
        let mut order = Vec::new();
        let row = existing(operation, name)?;
        let mut way = vec![row.text("Name")?.to_owned()];
        collect_dependents(operation, &row, &mut way, &mut order)?;
        Ok(order)
    }

    fn operation(&self, name: &'static str, deadline: Deadline) -> Operation<'_> {
        Operation::new(self.host, name, deadline)
    }

    /// The operation with the limit of one change of state.
    fn limited(&self, name: &'static str, deadline: Deadline) -> Operation<'_> {
        let limit = self.host.os().deadline_in(STATE_LIMIT);
        let sooner = match (deadline, limit) {
            (Deadline::At(given), Deadline::At(limit)) => Deadline::At(given.min(limit)),
            (_, limit) => limit,
        };
        self.operation(name, sooner)
    }
}

/// The state of a service; nothing when there is none of that name.
pub(crate) fn service_state(operation: &Operation<'_>, name: &str) -> Result<Option<ServiceState>> {
    match find(operation, name)? {
        Some(row) => Ok(Some(ServiceState::read(row.text("State")?))),
        None => Ok(None),
    }
}

fn find(operation: &Operation<'_>, name: &str) -> Result<Option<Row>> {
    let query = Query::new(Namespace::Cimv2, CLASS, PROPERTIES).with("Name", name);
    Ok(operation.query(&query)?.into_iter().next())
}

const PROPERTIES: &[&str] = &["Name", "DisplayName", "State", "StartMode", "ExitCode"];

fn existing(operation: &Operation<'_>, name: &str) -> Result<Row> {
    find(operation, name)?.ok_or_else(|| {
        operation.error(
            ErrorKind::NotFound,
            object(name),
            "there is no service of that name",
        )
    })
}

fn method(service: &Row, name: &str) -> Invoke {
    Invoke::on(Namespace::Cimv2, CLASS, service.path(), name)
}

fn object(name: &str) -> String {
    format!("service {name:?}")
}

/// Whether the request was taken. It was not when Windows answers one of these codes: the
/// service is changing or has changed since it was looked at, so it is looked at again.
fn is_accepted(result: Result<()>, changed: &[u32]) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if is_answer(&error, changed) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_answer(error: &Error, values: &[u32]) -> bool {
    matches!(error.code(), Some(Code::Method { value, .. }) if values.contains(value))
}

/// A service that was asked to start and has stopped by itself.
fn refuse_failed_start(operation: &Operation<'_>, name: &str, row: &Row) -> Result<()> {
    match row.optional_u32("ExitCode")? {
        None | Some(0 | ERROR_SERVICE_NEVER_STARTED) => Ok(()),
        Some(code) => Err(operation.error(
            ErrorKind::FailedPrecondition,
            object(name),
            format_args!("the service stopped by itself with exit code {code}"),
        )),
    }
}

fn wait(
    operation: &Operation<'_>,
    name: &str,
    state: ServiceState,
    wanted: ServiceState,
) -> Result<()> {
    let waiting_for = format_args!("the state {wanted} (it is {state})");
    operation.pause(POLL, object(name), waiting_for)
}

/// The services that depend on this one.
fn dependents(operation: &Operation<'_>, service: &Row) -> Result<Vec<Row>> {
    let request = Associators::new(
        Namespace::Cimv2,
        service.path(),
        "Win32_DependentService",
        CLASS,
        PROPERTIES,
    )
    .in_role("Antecedent");
    operation.associators(&request)
}

fn collect_dependents(
    operation: &Operation<'_>,
    service: &Row,
    way: &mut Vec<String>,
    order: &mut Vec<String>,
) -> Result<()> {
    for dependent in dependents(operation, service)? {
        let name = dependent.text("Name")?.to_owned();
        let running = ServiceState::read(dependent.text("State")?) != ServiceState::Stopped;
        if !running || order.contains(&name) {
            continue;
        }
        if way.contains(&name) || way.len() > DEPTH_LIMIT {
            let detail = format!("its dependents form a loop at {name:?}");
            return Err(operation.error(ErrorKind::FailedPrecondition, object(&way[0]), detail));
        }
        way.push(name.clone());
        collect_dependents(operation, &dependent, way, order)?;
        way.pop();
        order.push(name);
    }
    Ok(())
}

/// Names the services that keep this one from stopping.
fn with_dependents(operation: &Operation<'_>, service: &Row, error: Error) -> Error {
    if !is_answer(&error, &[DEPENDENTS_RUNNING]) {
        return error;
    }
    let running: Vec<String> = dependents(operation, service)
        .unwrap_or_default()
        .iter()
        .filter(|row| row.text("State").is_ok_and(|state| state != "Stopped"))
        .filter_map(|row| row.text("Name").ok().map(str::to_owned))
        .collect();
    error.with_detail(format_args!("running: {}", running.join(", ")))
}
