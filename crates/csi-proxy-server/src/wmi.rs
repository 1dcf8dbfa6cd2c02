//! The port to WMI with its round trips counted.

use std::sync::Arc;
use std::time::Instant;

use csi_proxy::cim::{Associators, Cim, Invoke, Object, Output, Query};
use csi_proxy::clock::Deadline;
use csi_proxy::port::{CallId, PortResult};

use crate::metrics::Metrics;

/// Counts what goes through it, and how long it takes.
pub(crate) struct Counted {
    cim: Arc<dyn Cim>,
    metrics: Metrics,
}

impl Counted {
    pub(crate) fn new(cim: Arc<dyn Cim>, metrics: Metrics) -> Self {
        Self { cim, metrics }
    }

    fn count<T>(&self, operation: String, ask: impl FnOnce(&dyn Cim) -> T) -> T {
        let started = Instant::now();
        let answer = ask(&*self.cim);
        let duration = started.elapsed();
        tracing::trace!(operation, ?duration, "round trip to WMI");
        self.metrics.wmi(operation, duration);
        answer
    }
}

impl Cim for Counted {
    fn query(&self, query: &Query, deadline: Deadline) -> PortResult<Vec<Object>> {
        self.count(format!("query {}", query.class), |cim| {
            cim.query(query, deadline)
        })
    }

    fn associators(&self, request: &Associators, deadline: Deadline) -> PortResult<Vec<Object>> {
        self.count(format!("associators {}", request.result_class), |cim| {
            cim.associators(request, deadline)
        })
    }

    fn invoke(&self, invoke: &Invoke, deadline: Deadline) -> PortResult<Output> {
        let operation = format!("{}.{}", invoke.target.class(), invoke.method);
        self.count(operation, |cim| cim.invoke(invoke, deadline))
    }

    /// That is asked of our own threads, not of WMI.
    fn is_running(&self, call: &CallId, deadline: Deadline) -> PortResult<bool> {
        self.cim.is_running(call, deadline)
    }
}
