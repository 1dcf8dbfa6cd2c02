//! Windows services and the firmware.

mod class;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use csi_proxy::clock::Moment;
use serde::{Deserialize, Serialize};

use crate::Builder;
use crate::fs::upcase;
use crate::state::State;

pub(crate) use class::{ASSOCIATIONS, CLASSES};

/// The node's services.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Services(
    /// By their name in upper case.
    pub BTreeMap<String, Service>,
);

impl Default for Services {
    /// The iSCSI initiator, which Windows does not start by itself, and what a container
    /// host runs.
    fn default() -> Self {
        let running = |name: &str, display_name: &str| Service {
            state: ServiceState::Running,
            start_mode: StartMode::Auto,
            ..Service::new(name, display_name)
        };
        let initiator = Service::new("MSiSCSI", "Microsoft iSCSI Initiator Service");
        let all = [
            initiator,
            running("LanmanWorkstation", "Workstation"),
            running("containerd", "containerd"),
            running("kubelet", "kubelet").depends_on("containerd"),
        ];
        Self(
            all.into_iter()
                .map(|one| (upcase(&one.name), one))
                .collect(),
        )
    }
}

/// A service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// `Win32_Service.Name`.
    pub name: String,
    /// `Win32_Service.DisplayName`.
    pub display_name: String,
    /// `Win32_Service.State`.
    #[serde(default)]
    pub state: ServiceState,
    /// `Win32_Service.StartMode`.
    #[serde(default)]
    pub start_mode: StartMode,
    /// `Win32_Service.ExitCode`: 1077 as long as it was never started.
    #[serde(default = "never_started")]
    pub exit_code: u32,
    /// The names of the services that it depends on.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// Whether it takes a request to stop.
    #[serde(default = "yes")]
    pub accepts_stop: bool,
    /// It is being removed.
    #[serde(default)]
    pub removed: bool,
    /// How long it takes to start.
    #[serde(default)]
    pub start_takes: Takes,
    /// How long it takes to stop.
    #[serde(default)]
    pub stop_takes: Takes,
    /// Set for a service that stops with this exit code instead of running.
    #[serde(default)]
    pub start_fails: Option<u32>,
    /// What is left of a pending change.
    #[serde(default)]
    pub pending: Option<Pending>,
}

/// How long a change of a service's state takes: both must have passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Takes {
    /// So many queries of `Win32_Service` still see it pending.
    pub polls: u32,
    /// So long on the node's clock.
    pub time: Duration,
}

/// A change that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// The queries that still see it pending.
    pub polls: u32,
    /// The time on the node's clock at which it may end.
    pub until: Duration,
}

/// `Win32_Service.State`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceState {
    /// It does not run.
    #[default]
    Stopped,
    /// It is starting.
    StartPending,
    /// It is stopping.
    StopPending,
    /// It runs.
    Running,
    /// It is paused.
    Paused,
}

impl ServiceState {
    /// The text in `Win32_Service.State`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "Stopped",
            Self::StartPending => "Start Pending",
            Self::StopPending => "Stop Pending",
            Self::Running => "Running",
            Self::Paused => "Paused",
        }
    }
}

/// `Win32_Service.StartMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartMode {
    /// With Windows.
    Auto,
    /// When it is asked for.
    #[default]
    Manual,
    /// Never.
    Disabled,
}

impl StartMode {
    /// The text in `Win32_Service.StartMode`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "Auto",
            Self::Manual => "Manual",
            Self::Disabled => "Disabled",
        }
    }
}

/// `ERROR_SERVICE_NEVER_STARTED`.
fn never_started() -> u32 {
    1077
}

fn yes() -> bool {
    true
}

impl Service {
    /// A service that is started by hand and was not yet.
    pub fn new(name: &str, display_name: &str) -> Self {
        Self {
            name: name.to_owned(),
            display_name: display_name.to_owned(),
            state: ServiceState::Stopped,
            start_mode: StartMode::Manual,
            exit_code: never_started(),
            depends_on: Vec::new(),
            accepts_stop: true,
            removed: false,
            start_takes: Takes::default(),
            stop_takes: Takes::default(),
            start_fails: None,
            pending: None,
        }
    }

    /// The same, running.
    #[must_use]
    pub fn running(mut self) -> Self {
        self.state = ServiceState::Running;
        self.exit_code = 0;
        self
    }

    /// The same, depending on another service.
    #[must_use]
    pub fn depends_on(mut self, name: &str) -> Self {
        self.depends_on.push(name.to_owned());
        self
    }

    fn depends_on_service(&self, name: &str) -> bool {
        let mut names = self.depends_on.iter();
        names.any(|one| upcase(one) == upcase(name))
    }

    fn begin(&mut self, state: ServiceState, takes: Takes, now: Moment) {
        self.state = state;
        self.pending = Some(Pending {
            polls: takes.polls,
            until: now.0.saturating_add(takes.time),
        });
    }

    fn end_pending(&mut self) {
        self.pending = None;
        match (self.state, self.start_fails) {
            (ServiceState::StartPending, None) => {
                self.state = ServiceState::Running;
                self.exit_code = 0;
            }
            (ServiceState::StartPending, Some(code)) => {
                self.state = ServiceState::Stopped;
                self.exit_code = code;
            }
            _ => {
                self.state = ServiceState::Stopped;
                self.exit_code = 0;
            }
        }
    }
}

impl Services {
    /// The service of that name, without case.
    pub fn get(&self, name: &str) -> Option<&Service> {
        self.0.get(&upcase(name))
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Service> {
        self.0.get_mut(&upcase(name))
    }

    /// Adds a service, or puts it in the place of the one of that name.
    pub fn put(&mut self, service: Service) {
        self.0.insert(upcase(&service.name), service);
    }

    /// Whether a service runs.
    pub fn runs(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|service| service.state == ServiceState::Running)
    }

    fn dependents<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Service> {
        let all = self.0.values();
        all.filter(move |service| service.depends_on_service(name))
    }

    /// `StartService`; answers its return value.
    ///
    /// Source: <https://learn.microsoft.com/windows/win32/cimwin32prov/startservice-method-in-class-win32-service>
    fn start(&mut self, name: &str, now: Moment) -> u32 {
        let mut on_the_way = Vec::new();
        self.start_with_dependencies(name, now, &mut on_the_way)
    }

    /// Windows starts what a service depends on, first.
    fn start_with_dependencies(
        &mut self,
        name: &str,
        now: Moment,
        on_the_way: &mut Vec<String>,
    ) -> u32 {
        if on_the_way.contains(&upcase(name)) {
            return 18;
        }
        let Some(service) = self.get(name) else {
            return 12;
        };
        match service {
            _ if service.removed => return 16,
            _ if service.start_mode == StartMode::Disabled => return 14,
            // Also while it starts or stops: assumed.
            _ if service.state != ServiceState::Stopped => return 10,
            _ => {}
        }
        on_the_way.push(upcase(name));
        for dependency in service.depends_on.clone() {
            match self.start_with_dependencies(&dependency, now, on_the_way) {
                0 | 10 => {}
                code @ (12 | 18) => return code,
                _ => return 13,
            }
        }
        on_the_way.pop();
        if let Some(service) = self.get_mut(name) {
            service.begin(ServiceState::StartPending, service.start_takes, now);
        }
        self.settle(now);
        0
    }

    /// `StopService`; answers its return value.
    ///
    /// Source: <https://learn.microsoft.com/windows/win32/cimwin32prov/stopservice-method-in-class-win32-service>
    fn stop(&mut self, name: &str, now: Moment) -> u32 {
        let mut dependents = self.dependents(name);
        let in_use = dependents.any(|service| service.state != ServiceState::Stopped);
        drop(dependents);
        let Some(service) = self.get_mut(name) else {
            return 6;
        };
        match service.state {
            ServiceState::Stopped => return 6,
            ServiceState::StartPending | ServiceState::StopPending => return 5,
            _ if in_use => return 3,
            _ if !service.accepts_stop => return 4,
            ServiceState::Running | ServiceState::Paused => {}
        }
        service.begin(ServiceState::StopPending, service.stop_takes, now);
        self.settle(now);
        0
    }

    /// Ends the changes that are due. A service runs only after those that it depends on.
    fn settle(&mut self, now: Moment) {
        loop {
            let due = self.0.iter().find(|(_, service)| self.is_due(service, now));
            let Some(name) = due.map(|(name, _)| name.clone()) else {
                return;
            };
            if let Some(service) = self.0.get_mut(&name) {
                service.end_pending();
            }
        }
    }

    fn is_due(&self, service: &Service, now: Moment) -> bool {
        let is_over = |pending: Pending| pending.polls == 0 && pending.until <= now.0;
        let starts = service.state == ServiceState::StartPending;
        let waits = starts && !service.depends_on.iter().all(|name| self.runs(name));
        service.pending.is_some_and(is_over) && !waits
    }
}

/// What `CIM_BIOSElement` tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bios {
    /// `SerialNumber`.
    pub serial_number: Option<String>,
}

impl Default for Bios {
    fn default() -> Self {
        Self {
            serial_number: Some("0000-0001-2345-6789-0123-4567-89".to_owned()),
        }
    }
}

impl Builder {
    /// Adds a service, or puts it in the place of the one of that name.
    #[must_use]
    pub fn service(mut self, service: Service) -> Self {
        self.state.services.put(service);
        self
    }

    /// The serial number in the firmware.
    #[must_use]
    pub fn bios_serial_number(mut self, serial_number: Option<&str>) -> Self {
        self.state.bios.serial_number = serial_number.map(ToOwned::to_owned);
        self
    }
}

/// Does what is due at `now`.
pub(crate) fn settle(state: &mut State, now: Moment) {
    if state
        .services
        .0
        .values()
        .any(|service| service.pending.is_some())
    {
        state.services.settle(now);
    }
}

/// `Win32_Service` was queried: what waits for queries comes nearer.
pub(crate) fn polled(state: &mut State, class: &str) {
    if !class.eq_ignore_ascii_case("Win32_Service") {
        return;
    }
    for service in state.services.0.values_mut() {
        if let Some(pending) = &mut service.pending {
            pending.polls = pending.polls.saturating_sub(1);
        }
    }
}

/// The node reboots: what starts with Windows runs, the rest does not.
pub(crate) fn reboot(state: &mut State) {
    for service in state.services.0.values_mut() {
        service.pending = None;
        (service.state, service.exit_code) = match service.start_mode {
            StartMode::Auto => (ServiceState::Running, 0),
            StartMode::Manual | StartMode::Disabled => (ServiceState::Stopped, never_started()),
        };
    }
}
