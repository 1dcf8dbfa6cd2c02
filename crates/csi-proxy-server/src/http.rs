//! Metrics and health over HTTP.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// <https://prometheus.io/docs/specs/om/open_metrics_spec/>, "Overall Structure".
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether calls are taken. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Ready(Arc<AtomicBool>);

impl Ready {
    pub(crate) fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Serves `/metrics`, `/healthz` (the program runs) and `/readyz` (calls are taken) until
/// `shutdown` is there.
///
/// # Errors
/// The listener broke.
pub async fn serve_http(
    listener: TcpListener,
    metrics: Metrics,
    ready: Ready,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let routes = Router::new()
        .route("/metrics", get(text))
        .with_state(metrics)
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readiness))
        .with_state(ready);
    axum::serve(listener, routes)
        .with_graceful_shutdown(shutdown)
        .await
}

async fn text(State(metrics): State<Metrics>) -> impl IntoResponse {
    ([(CONTENT_TYPE, OPEN_METRICS)], metrics.text())
}

async fn readiness(State(ready): State<Ready>) -> impl IntoResponse {
    match ready.get() {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "no calls are taken\n"),
    }
}
