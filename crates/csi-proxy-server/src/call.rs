//! One call on its way: its turn, its deadline, the library behind it, and the audit line.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use csi_proxy::clock::Deadline;
use csi_proxy::os::At;
use csi_proxy::{DiskNumber, Error, Host, NotAnId, Result, VolumeId};
use csi_proxy_api::{Api, Method};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Request, Response, Status};

use crate::audit;
use crate::connection::Peer;
use crate::deadline;
use crate::settings::Settings;

/// What all versions serve: the library, behind limits. Clones are the same.
#[derive(Clone)]
pub(crate) struct Service(Arc<Shared>);

struct Shared {
    host: Host,
    settings: Settings,
    running: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The method that a request is for, put into it by [`crate::observed`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    pub(crate) api: &'static Api,
    pub(crate) method: &'static Method,
}

/// A call that has its turn.
pub(crate) struct Call<'a> {
    host: &'a Host,
    settings: &'a Settings,
    operation: &'static str,
    /// Until when it must have its answer.
    pub(crate) deadline: Deadline,
}

impl Service {
    pub(crate) fn new(host: Host, settings: Settings) -> Self {
        let running = Arc::new(Semaphore::new(settings.limits.running as usize));
        Self(Arc::new(Shared {
            host,
            settings,
            running,
            waiting: AtomicUsize::new(0),
        }))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Returns when no call works any more.
    pub(crate) async fn idle(&self) {
        let all = self.0.settings.limits.running;
        // It fails only when it is closed, which nobody does.
        drop(self.0.running.acquire_many(all).await);
    }

    /// How many calls work.
    pub(crate) fn running(&self) -> usize {
        self.0.settings.limits.running as usize - self.0.running.available_permits()
    }

    /// Has the library do a call. What has begun is done to its end, also when the client has
    /// gone away: nothing on the node is left half done because of that.
    pub(crate) async fn call<Q, R>(
        &self,
        request: Request<Q>,
        work: impl FnOnce(&Call<'_>, Q) -> Result<R> + Send + 'static,
    ) -> std::result::Result<Response<R>, Status>
    where
        Q: Debug + Send + 'static,
        R: Send + 'static,
    {
        let arrived = Instant::now();
        let called = *request
            .extensions()
            .get::<Called>()
            .ok_or_else(|| Status::internal("the request is for no method of the API"))?;
        let peer = request.extensions().get::<Arc<Peer>>().cloned();
        let limit = deadline::of(request.metadata())?.unwrap_or(self.0.settings.limits.call);
        let turn = self.turn().await?;
        let left = limit.saturating_sub(arrived.elapsed());
        let service = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            service.work(called, peer.as_deref(), left, request.into_inner(), work)
        });
        match task.await {
            Ok(answer) => answer.map(Response::new).map_err(Status::from),
            // The panic is in the log.
            Err(_) => Err(Status::internal(format!(
                "{} ended by a fault of this program",
                called.method.name
            ))),
        }
    }

    fn work<Q: Debug, R>(
        &self,
        called: Called,
        peer: Option<&Peer>,
        left: Duration,
        request: Q,
        work: impl FnOnce(&Call<'_>, Q) -> Result<R>,
    ) -> Result<R> {
        let host = &self.0.host;
        let call = Call {
            host,
            settings: &self.0.settings,
            operation: called.method.name,
            deadline: host.os().deadline_in(left),
        };
        let arguments = audit::wants(called).then(|| audit::arguments(&request));
        let started = Instant::now();
        let answer = work(&call, request);
        if let Some(arguments) = arguments {
            let code = answer.as_ref().map_or_else(code_of, |_| Code::Ok);
            let error = answer.as_ref().err();
            audit::line(called, &arguments, peer, code, error, started.elapsed());
        }
        answer
    }

    /// Waits until fewer calls work than may.
    async fn turn(&self) -> std::result::Result<OwnedSemaphorePermit, Status> {
        if let Ok(turn) = Arc::clone(&self.0.running).try_acquire_owned() {
            return Ok(turn);
        }
        let _place = Place::take(&self.0.waiting, self.0.settings.limits.waiting)?;
        Arc::clone(&self.0.running)
            .acquire_owned()
            .await
            .map_err(|_| Status::unavailable("the server is ending"))
    }
}

fn code_of(error: &Error) -> Code {
    Code::from_i32(error.kind().grpc_code())
}

/// A place among those that wait.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, most: usize) -> std::result::Result<Self, Status> {
        let place = Self(waiting);
        match waiting.fetch_add(1, Ordering::Relaxed) {
            before if before < most => Ok(place),
            _ => Err(Status::resource_exhausted(format!(
                "{most} calls are waiting already; try again later"
            ))),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What versions read out of requests.
impl<'a> Call<'a> {
    /// The library.
    pub(crate) fn host(&self) -> &'a Host {
        self.host
    }

    /// The name of the method, for errors.
    pub(crate) fn operation(&self) -> &'static str {
        self.operation
    }

    /// Whether new SMB mappings must encrypt.
    pub(crate) fn require_privacy(&self) -> bool {
        self.settings.require_privacy
    }

    /// A path, and the working directory that it must not leave.
    pub(crate) fn path(&self, field: &str, text: &str) -> Result<At> {
        self.settings.working_dirs.at(self.operation, field, text)
    }

    /// A disk number that travels as text.
    pub(crate) fn disk_number(&self, field: &str, text: &str) -> Result<DiskNumber> {
        text.parse()
            .map_err(|error: NotAnId| error.in_field(self.operation, field))
    }

    /// A volume.
    pub(crate) fn volume_id(&self, text: &str) -> Result<VolumeId> {
        VolumeId::new(text).map_err(|error| error.in_field(self.operation, "volume_id"))
    }
}
