//! A plugin: a driver behind the three CSI services.

use std::sync::Arc;
use std::time::{Duration, Instant};

use csi_proxy::Result;
use csi_proxy::clock::{Clock, Deadline};
use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status};

use crate::driver::Driver;
use crate::jobs::{Call, Jobs};
use crate::proto::controller_server::ControllerServer;
use crate::proto::identity_server::IdentityServer;
use crate::proto::node_server::NodeServer;

/// How long a call without a deadline of its own is waited for; the kubelet's own is as long.
const CALL_LIMIT: Duration = Duration::from_secs(120);
/// How long the work behind a call may take. A format must not be cut off, and a hung
/// provider must not hold a volume for ever.
const WORK_LIMIT: Duration = Duration::from_secs(15 * 60);
/// How much works at a time.
const MOST_JOBS: u32 = 64;

/// A driver behind the CSI services Identity, Node and, if it has one, Controller. A clone
/// is the same plugin.
#[derive(Clone)]
pub struct Plugin {
    pub(crate) driver: Arc<dyn Driver>,
    jobs: Jobs,
    call_limit: Duration,
    work_limit: Duration,
}

/// Makes a [`Plugin`].
pub struct PluginBuilder {
    driver: Arc<dyn Driver>,
    call_limit: Duration,
    work_limit: Duration,
    most_jobs: u32,
}

impl Plugin {
    /// A plugin over a driver.
    pub fn new(driver: impl Driver) -> Self {
        Self::builder(driver).build()
    }

    /// A plugin over a driver, with limits of one's own.
    pub fn builder(driver: impl Driver) -> PluginBuilder {
        PluginBuilder {
            driver: Arc::new(driver),
            call_limit: CALL_LIMIT,
            work_limit: WORK_LIMIT,
            most_jobs: MOST_JOBS,
        }
    }

    /// The services, for a server of one's own.
    pub fn routes(&self) -> Routes {
        let routes = Routes::new(IdentityServer::new(self.clone()))
            .add_service(NodeServer::new(self.clone()));
        match self.driver.controller() {
            Some(_) => routes.add_service(ControllerServer::new(self.clone())),
            None => routes,
        }
    }

    /// Takes no more work and waits until all that runs has ended.
    pub async fn drain(&self) {
        self.jobs.drain().await;
    }

    /// The door by which every answer leaves: one line in the log for each request, and an
    /// error as a gRPC status. The line has what the caller is told, which shows no secret
    /// and is cut where the request is long.
    pub(crate) async fn answer<T>(
        &self,
        method: &'static str,
        answer: impl Future<Output = Result<T>>,
    ) -> std::result::Result<Response<T>, Status> {
        let began = Instant::now();
        let answer = answer.await;
        let duration = began.elapsed();
        match answer {
            Ok(message) => {
                tracing::debug!(method, code = ?Code::Ok, ?duration, "done");
                Ok(Response::new(message))
            }
            Err(error) => {
                let status = Status::from(error);
                let (code, refusal) = (status.code(), status.message());
                tracing::warn!(method, ?code, ?duration, "{refusal}");
                Err(status)
            }
        }
    }

    /// Does `work` as the only one for a volume; the same request again joins it.
    pub(crate) async fn for_volume<R: Message, T: Clone + Send + Sync + 'static>(
        &self,
        operation: &'static str,
        volume: &str,
        request: &Request<R>,
        work: impl FnOnce(&dyn Driver, Deadline) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let call = Call {
            operation,
            request: request.get_ref().encode_to_vec(),
        };
        tracing::debug!(method = operation, volume, "begun or joined");
        let deadline = self.deadline(request.metadata());
        let work = self.work(work);
        self.jobs
            .for_volume(volume, call, self.clock(), deadline, work)
            .await
    }

    /// Does `work` that changes nothing.
    pub(crate) async fn reading<T: Clone + Send + Sync + 'static>(
        &self,
        operation: &'static str,
        object: &str,
        metadata: &MetadataMap,
        work: impl FnOnce(&dyn Driver, Deadline) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let deadline = self.deadline(metadata);
        let work = self.work(work);
        self.jobs
            .reading(operation, object, self.clock(), deadline, work)
            .await
    }

    fn work<T>(
        &self,
        work: impl FnOnce(&dyn Driver, Deadline) -> Result<T> + Send + 'static,
    ) -> impl FnOnce() -> Result<T> + Send + 'static {
        let (driver, limit) = (Arc::clone(&self.driver), self.work_limit);
        move || {
            let deadline = driver.host().os().deadline_in(limit);
            work(&*driver, deadline)
        }
    }

    fn clock(&self) -> &dyn Clock {
        self.driver.host().os()
    }

    fn deadline(&self, metadata: &MetadataMap) -> Deadline {
        let limit = metadata
            .get("grpc-timeout")
            .and_then(|value| grpc_timeout(value.to_str().ok()?))
            .unwrap_or(self.call_limit);
        self.clock().deadline_in(limit)
    }
}

impl PluginBuilder {
    /// How long a call is waited for that brings no deadline of its own; 2 minutes if not
    /// given.
    #[must_use]
    pub fn call_limit(mut self, limit: Duration) -> Self {
        self.call_limit = limit;
        self
    }

    /// How long the work behind a call may take; 15 minutes if not given.
    #[must_use]
    pub fn work_limit(mut self, limit: Duration) -> Self {
        self.work_limit = limit;
        self
    }

    /// How many operations run at a time, at least 1; 64 if not given.
    #[must_use]
    pub fn most_jobs(mut self, most: u32) -> Self {
        self.most_jobs = most.max(1);
        self
    }

    /// The plugin.
    pub fn build(self) -> Plugin {
        Plugin {
            driver: self.driver,
            jobs: Jobs::new(self.most_jobs),
            call_limit: self.call_limit,
            work_limit: self.work_limit,
        }
    }
}

/// Reads a `grpc-timeout`: at most eight digits and a unit,
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>. A little is taken off
/// it, so that our answer is there before the caller stops waiting.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let right = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| right)?;
    let timeout = match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    };
    Some(timeout - (timeout / 20).min(Duration::from_millis(200)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grpc_timeout_is_read_with_some_time_for_the_answer() {
        let cases = [
            ("2M", Some(119_800)),
            ("15S", Some(14_800)),
            ("1H", Some(3_599_800)),
            ("1000m", Some(950)),
            ("1000000u", Some(950)),
            ("10000000n", Some(9)),
        ];
        for (text, expected) in cases {
            let timeout = grpc_timeout(text).map(|timeout| timeout.as_millis());
            assert_eq!(timeout, expected, "{text}");
        }
        for text in ["", "S", "1", "-1S", "1s", "123456789S", "1.5S", "é"] {
            assert_eq!(grpc_timeout(text), None, "{text}");
        }
    }
}
