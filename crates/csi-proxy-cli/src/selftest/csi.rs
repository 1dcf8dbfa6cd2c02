//! The life of a volume of the driver `local`, over gRPC, and a call over a Unix socket.

use std::error::Error as _;
use std::io::{self, Write};
use std::path::PathBuf;

use csi_node::{Endpoint, EndpointError, Server};
use csi_proxy::{Host, HostPath};

use super::suite::Suite;
use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::life::{LIFE, Life, Setting, Step, join};
use crate::meter::measured;
use crate::onlooker::Onlooker;
use crate::report::Outcome;
use crate::served;

/// The name of the call over a Unix socket.
pub(super) const SOCKET: &str = "csi unix-socket";
const NODE_ID: &str = "selftest";
/// `WSAEAFNOSUPPORT`: this Windows has no Unix sockets.
const ADDRESS_FAMILY_UNKNOWN: i32 = 10047;

/// The name of a step of the life.
pub(super) fn name(step: Step) -> String {
    format!("csi {}", step.name())
}

/// The plugin on the node.
pub(super) struct Csi {
    host: Host,
    root: HostPath,
    pool: HostPath,
    socket: PathBuf,
}

impl Csi {
    /// With everything below the folder of the self-test.
    pub(super) fn new(host: Host, folder: &HostPath, socket: PathBuf) -> Result<Self> {
        let root = join(folder, &["csi"])?;
        Ok(Self {
            host,
            pool: join(&root, &["pool"])?,
            root,
            socket,
        })
    }

    /// Goes through the life, at a port of the loopback interface, which every system has.
    pub(super) async fn life<W: Write>(&self, suite: &mut Suite<'_, W>) -> Result<()> {
        let plugin = served::plugin(self.host.clone(), &self.pool, NODE_ID)?;
        let server = served::bind_loopback().await?;
        let endpoint = server.endpoint().to_string();
        let work = async {
            let client = Client::connect(&endpoint).await?;
            let setting = Setting::below(&self.root, &self.pool)?;
            self.steps(suite, client, setting).await
        };
        served::serve_while(server, plugin, work).await
    }

    async fn steps<W: Write>(
        &self,
        suite: &mut Suite<'_, W>,
        client: Client,
        setting: Setting,
    ) -> Result<()> {
        let guard = suite.area.guard.clone();
        // It is made in the first step, which pays for it.
        let mut start = Some((client, Onlooker::new(self.host.clone()), setting));
        let mut life: Option<Life> = None;
        for step in LIFE {
            if suite.is_ended() {
                break;
            }
            let work = async {
                if let Some((client, onlooker, setting)) = start.take() {
                    life = Some(Life::new(client, onlooker, setting)?);
                }
                let life = life
                    .as_mut()
                    .ok_or_else(|| Failure::new("there is no life"))?;
                life.prepare(step)?;
                life.act(step).await
            };
            let (outcome, cost, formats) = measured(&*guard, work).await;
            let outcome = match (outcome, &mut life) {
                (Ok(detail), Some(life)) => life.check(step, formats).await.map(|()| detail),
                (outcome, _) => outcome,
            };
            let failed = outcome.is_err();
            suite.step(&name(step), outcome.into(), cost)?;
            if failed {
                break;
            }
        }
        Ok(())
    }

    /// Asks the plugin who it is, over a Unix socket.
    pub(super) async fn call_over_socket(&self) -> Outcome {
        let endpoint = Endpoint::Unix(self.socket.clone());
        match Server::bind(&endpoint).await {
            Ok(server) => self.call_to(server).await.into(),
            Err(error) if says_no_sockets(&error) => Outcome::LeftOut(error.to_string()),
            Err(error) => Outcome::Failed(Failure::new(error.to_string())),
        }
    }

    async fn call_to(&self, server: Server) -> Result<String> {
        let plugin = served::plugin(self.host.clone(), &self.pool, NODE_ID)?;
        let endpoint = server.endpoint().to_string();
        let work = async {
            let mut client = Client::connect(&endpoint).await?;
            let info = client.info().await?;
            Ok(format!("{} answered at {endpoint}", info.name))
        };
        served::serve_while(server, plugin, work).await
    }
}

fn says_no_sockets(error: &EndpointError) -> bool {
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| {
        source.kind() == io::ErrorKind::Unsupported
            || cfg!(windows) && source.raw_os_error() == Some(ADDRESS_FAMILY_UNKNOWN)
    })
}
