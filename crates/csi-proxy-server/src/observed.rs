//! What happens around every call: it is counted, and one that changes something is refused by
//! a server that only answers questions.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use tonic::{Code, Status};
use tower::Service;

use csi_proxy_api::Api;

use crate::call::Called;
use crate::metrics::Metrics;

/// The generated server of a version, with that around it.
#[derive(Clone)]
pub(crate) struct Observed<S> {
    server: S,
    api: &'static Api,
    read_only: bool,
    metrics: Metrics,
}

impl<S> Observed<S> {
    pub(crate) fn new(server: S, api: &'static Api, read_only: bool, metrics: Metrics) -> Self {
        Self {
            server,
            api,
            read_only,
            metrics,
        }
    }
}

impl<S: NamedService> NamedService for Observed<S> {
    const NAME: &'static str = S::NAME;
}

type Answer = Result<Response<Body>, Infallible>;

impl<S> Service<Request<Body>> for Observed<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.server.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // Tonic itself answers what is no method.
        let Some(method) = self.api.method_at(request.uri().path()) else {
            return Box::pin(self.server.call(request));
        };
        let api = self.api;
        let called = Called { api, method };
        let running = Running::start(called, self.metrics.clone());
        if self.read_only && !method.read_only {
            let refused = Status::permission_denied(format!(
                "{}: this server only answers questions (--read-only-api)",
                method.name
            ));
            return Box::pin(async move { running.end(Ok(refused.into_http())) });
        }
        request.extensions_mut().insert(called);
        let answer = self.server.call(request);
        Box::pin(async move { running.end(answer.await) })
    }
}

/// A call that is counted as cancelled when nobody waits for its end.
struct Running {
    called: Called,
    metrics: Metrics,
    started: Instant,
    ended: bool,
}

impl Running {
    fn start(called: Called, metrics: Metrics) -> Self {
        metrics.started(called);
        metrics.received(called);
        Self {
            called,
            metrics,
            started: Instant::now(),
            ended: false,
        }
    }

    fn end(mut self, answer: Answer) -> Answer {
        self.ended = true;
        let code = answer.as_ref().map_or(Code::Unknown, code_of);
        if code == Code::Ok {
            self.metrics.sent(self.called);
        }
        self.metrics
            .handled(self.called, code, self.started.elapsed());
        answer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            let duration = self.started.elapsed();
            self.metrics.handled(self.called, Code::Cancelled, duration);
        }
    }
}

/// An error is in the headers; success comes behind the message.
fn code_of(response: &Response<Body>) -> Code {
    match Status::from_header_map(response.headers()) {
        Some(status) => status.code(),
        None => Code::Ok,
    }
}
