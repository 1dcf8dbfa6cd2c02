//! All versions on their pipes or sockets, and their end.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use csi_proxy::Host;
use csi_proxy_api::{API, Api};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::service::Routes;

use crate::call::Service;
use crate::http::Ready;
use crate::metrics::Metrics;
use crate::settings::{Limits, Settings};
use crate::transport::{self, Listener, Place};
use crate::versions;
use crate::wmi::Counted;

/// The longest list of headers of a request, in bytes.
const LONGEST_HEADERS: u32 = 16 << 10;

/// A server that listens and does not serve yet: clients wait.
pub struct Server {
    service: Service,
    versions: Vec<Version>,
}

/// A version that listens.
struct Version {
    api: &'static Api,
    path: PathBuf,
    listener: Listener,
    routes: Routes,
}

/// A pipe or socket that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve {group} {version} at {}", endpoint.display())]
pub struct BindError {
    group: &'static str,
    version: &'static str,
    endpoint: PathBuf,
    source: io::Error,
}

/// How serving ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A version has ended by itself.
    #[error("serving {endpoint} has ended", endpoint = endpoint.display())]
    Ended {
        /// Its pipe or socket.
        endpoint: PathBuf,
        /// What happened, if that is known.
        source: Option<tonic::transport::Error>,
    },
    /// Calls were still running when the time for them was over.
    #[error(
        "{running} calls were still running after {grace:?}; what they began goes on in Windows"
    )]
    StillRunning {
        /// How many.
        running: usize,
        /// The time they had.
        grace: Duration,
    },
}

impl Server {
    /// Listens at the endpoints of all versions of the groups. It must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// The first endpoint that cannot be had, because another program has it for instance.
    pub fn bind(
        host: Host,
        settings: Settings,
        place: &Place,
        metrics: &Metrics,
    ) -> Result<Self, BindError> {
        let watched = metrics.clone();
        let host = host.map_cim(|cim| Arc::new(Counted::new(cim, watched)));
        let service = Service::new(host, settings);
        let mut bound = Vec::new();
        for api in &API {
            if !service.settings().groups.contains(&api.group) {
                continue;
            }
            if let Some(routes) = versions::routes(api, &service, metrics) {
                let path = api.endpoint_in(&place.directory);
                bound.push(Version::bind(api, path, place, routes)?);
            }
        }
        Ok(Self {
            service,
            versions: bound,
        })
    }

    /// The pipes or sockets.
    pub fn endpoints(&self) -> impl Iterator<Item = &Path> {
        self.versions.iter().map(|version| version.path.as_path())
    }

    /// Serves until `shutdown` is there. Then nobody is taken any more, and running calls,
    /// those of clients that have gone away too, have `grace` to end.
    ///
    /// # Errors
    /// A version that ended by itself; calls that did not end in time.
    pub async fn serve(
        self,
        shutdown: impl Future<Output = ()>,
        grace: Duration,
        ready: &Ready,
    ) -> Result<(), ServeError> {
        let (stop, stopped) = watch::channel(());
        let mut serving = JoinSet::new();
        for version in self.versions {
            let limits = self.service.settings().limits.clone();
            serving.spawn(version.serve(limits, stopped.clone()));
        }
        drop(stopped);
        ready.set(true);
        let ended = tokio::select! {
            () = shutdown => None,
            ended = serving.join_next() => ended,
        };
        ready.set(false);
        drop(stop);
        let drained = tokio::time::timeout(grace, async {
            while serving.join_next().await.is_some() {}
            self.service.idle().await;
        });
        let drained = drained.await;
        match (ended, drained) {
            (Some(ended), _) => Err(Self::ended(ended)),
            (None, Ok(())) => Ok(()),
            (None, Err(_)) => Err(ServeError::StillRunning {
                running: self.service.running(),
                grace,
            }),
        }
    }

    fn ended(
        ended: Result<(PathBuf, Result<(), tonic::transport::Error>), tokio::task::JoinError>,
    ) -> ServeError {
        let (endpoint, source) = match ended {
            Ok((endpoint, served)) => (endpoint, served.err()),
            Err(panic) => (PathBuf::from(panic.to_string()), None),
        };
        ServeError::Ended { endpoint, source }
    }
}

impl Version {
    fn bind(
        api: &'static Api,
        path: PathBuf,
        place: &Place,
        routes: Routes,
    ) -> Result<Self, BindError> {
        match Listener::bind(&path, place) {
            Ok(listener) => Ok(Self {
                api,
                path,
                listener,
                routes,
            }),
            Err(source) => Err(BindError {
                group: api.group.name(),
                version: api.version,
                endpoint: path,
                source,
            }),
        }
    }

    async fn serve(
        self,
        limits: Limits,
        mut stopped: watch::Receiver<()>,
    ) -> (PathBuf, Result<(), tonic::transport::Error>) {
        tracing::debug!("{} is served at {}", self.api.service, self.path.display());
        let connections = transport::connections(self.listener, limits.first_words);
        let path = self.path.clone();
        let served = tonic::transport::Server::builder()
            .max_concurrent_streams(limits.per_connection)
            .concurrency_limit_per_connection(limits.per_connection as usize)
            .http2_keepalive_interval(Some(limits.keep_alive))
            .http2_keepalive_timeout(Some(limits.keep_alive_answer))
            .http2_max_header_list_size(LONGEST_HEADERS)
            .add_routes(self.routes)
            .serve_with_incoming_shutdown(connections, async move {
                // The sender says nothing, it goes.
                while stopped.changed().await.is_ok() {}
                transport::remove(&path);
            })
            .await;
        (self.path, served)
    }
}
