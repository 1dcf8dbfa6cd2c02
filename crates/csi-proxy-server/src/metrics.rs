//! Metrics: of gRPC with the names of CSI Proxy 1.x, and of the round trips to WMI.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use tonic::Code;

use crate::call::Called;

/// Seconds of a gRPC call, as existing dashboards have them.
const CALL_BUCKETS: [f64; 14] = [
    0.001, 0.01, 0.1, 0.3, 0.6, 1.0, 3.0, 6.0, 9.0, 20.0, 30.0, 60.0, 90.0, 120.0,
];

/// Seconds of a round trip to WMI.
const WMI_BUCKETS: [f64; 10] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 60.0];

/// All metrics. Clones are the same.
#[derive(Clone)]
pub struct Metrics(Arc<Families>);

struct Families {
    registry: Registry,
    started: Family<CallLabels, Counter>,
    handled: Family<HandledLabels, Counter>,
    received: Family<CallLabels, Counter>,
    sent: Family<CallLabels, Counter>,
    handling: Family<CallLabels, Histogram, fn() -> Histogram>,
    wmi_round_trips: Family<WmiLabels, Counter>,
    wmi_time: Family<WmiLabels, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    grpc_type: &'static str,
    grpc_service: &'static str,
    grpc_method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandledLabels {
    grpc_type: &'static str,
    grpc_service: &'static str,
    grpc_method: &'static str,
    grpc_code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WmiLabels {
    operation: String,
}

impl Metrics {
    /// Metrics that have counted nothing.
    pub fn new() -> Self {
        let mut families = Families {
            registry: Registry::default(),
            started: Family::default(),
            handled: Family::default(),
            received: Family::default(),
            sent: Family::default(),
            handling: Family::new_with_constructor(|| Histogram::new(CALL_BUCKETS)),
            wmi_round_trips: Family::default(),
            wmi_time: Family::new_with_constructor(|| Histogram::new(WMI_BUCKETS)),
        };
        families.register();
        Self(Arc::new(families))
    }

    /// All of them in the text format of OpenMetrics.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.0.registry) {
            Ok(()) => text,
            // Writing to memory does not fail.
            Err(_) => String::new(),
        }
    }

    pub(crate) fn started(&self, called: Called) {
        self.0.started.get_or_create(&labels(called)).inc();
    }

    pub(crate) fn received(&self, called: Called) {
        self.0.received.get_or_create(&labels(called)).inc();
    }

    pub(crate) fn sent(&self, called: Called) {
        self.0.sent.get_or_create(&labels(called)).inc();
    }

    pub(crate) fn handled(&self, called: Called, code: Code, duration: Duration) {
        let CallLabels {
            grpc_type,
            grpc_service,
            grpc_method,
        } = labels(called);
        let handled = HandledLabels {
            grpc_type,
            grpc_service,
            grpc_method,
            grpc_code: code_name(code),
        };
        self.0.handled.get_or_create(&handled).inc();
        self.0
            .handling
            .get_or_create(&labels(called))
            .observe(duration.as_secs_f64());
    }

    pub(crate) fn wmi(&self, operation: String, duration: Duration) {
        let labels = WmiLabels { operation };
        self.0.wmi_round_trips.get_or_create(&labels).inc();
        self.0
            .wmi_time
            .get_or_create(&labels)
            .observe(duration.as_secs_f64());
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Families {
    /// `_total` and the unit are added to the names when they are written.
    fn register(&mut self) {
        let registry = &mut self.registry;
        for (name, help, counter) in [
            (
                "grpc_server_started",
                "Calls that were started",
                &self.started,
            ),
            (
                "grpc_server_msg_received",
                "Messages received",
                &self.received,
            ),
            ("grpc_server_msg_sent", "Messages sent", &self.sent),
        ] {
            registry.register(name, help, counter.clone());
        }
        let (name, help) = ("grpc_server_handled", "Calls that ended, by their code");
        registry.register(name, help, self.handled.clone());
        let (name, help) = ("grpc_server_handling", "Time that calls took");
        registry.register_with_unit(name, help, Unit::Seconds, self.handling.clone());
        let (name, help) = ("csi_proxy_wmi_round_trips", "Questions and calls to WMI");
        registry.register(name, help, self.wmi_round_trips.clone());
        let (name, help) = ("csi_proxy_wmi", "Time that round trips to WMI took");
        registry.register_with_unit(name, help, Unit::Seconds, self.wmi_time.clone());
    }
}

fn labels(called: Called) -> CallLabels {
    CallLabels {
        grpc_type: "unary",
        grpc_service: called.api.service,
        grpc_method: called.method.name,
    }
}

/// A code as Go writes it, which dashboards know.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use csi_proxy_api::{Api, Group};

    #[test]
    fn the_names_are_those_of_existing_dashboards() {
        let api = Api::find(Group::Filesystem, "v1").unwrap();
        let method = api.method_at("/v1.Filesystem/PathExists").unwrap();
        let called = Called { api, method };
        let metrics = Metrics::new();
        metrics.started(called);
        metrics.received(called);
        metrics.sent(called);
        metrics.handled(called, Code::Ok, Duration::from_millis(5));
        metrics.handled(called, Code::NotFound, Duration::from_secs(200));
        metrics.wmi("query MSFT_Disk".to_owned(), Duration::from_millis(2));
        let text = metrics.text();
        let of = r#"grpc_type="unary",grpc_service="v1.Filesystem",grpc_method="PathExists""#;
        for line in [
            format!("grpc_server_started_total{{{of}}} 1"),
            format!("grpc_server_msg_received_total{{{of}}} 1"),
            format!("grpc_server_msg_sent_total{{{of}}} 1"),
            format!(r#"grpc_server_handled_total{{{of},grpc_code="OK"}} 1"#),
            format!(r#"grpc_server_handled_total{{{of},grpc_code="NotFound"}} 1"#),
            format!("grpc_server_handling_seconds_count{{{of}}} 2"),
            format!(r#"grpc_server_handling_seconds_bucket{{le="0.001",{of}}} 0"#),
            format!(r#"grpc_server_handling_seconds_bucket{{le="120.0",{of}}} 1"#),
            r#"csi_proxy_wmi_round_trips_total{operation="query MSFT_Disk"} 1"#.to_owned(),
            r#"csi_proxy_wmi_seconds_count{operation="query MSFT_Disk"} 1"#.to_owned(),
        ] {
            assert!(text.contains(&line), "{line} in {text}");
        }
    }
}
