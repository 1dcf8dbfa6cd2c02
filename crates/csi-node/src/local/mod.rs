//! The driver `local`: volumes are VHDX files in a pool directory on the node.
//!
//! Everything it knows it reads from the node: a file's name is the volume's id, its size is
//! the volume's size, whether it is attached says whether the volume is in use, and a small
//! file beside it holds its parameters, if it has any. So a restart needs no database, and
//! whatever was cut off is found again.
//!
//! Parameters of a storage class, which are also the volume context: `fsType` (`ntfs`,
//! `refs`), `allocationUnitSize` (bytes), `label`. A file system that the volume capability
//! names counts as `fsType`. CreateVolume with the name of a volume that was made with other
//! parameters, or whose size is not in the range, is AlreadyExists; the access modes may
//! differ, since each volume has both.
//!
//! A volume that is staged for a reader (`SINGLE_NODE_READER_ONLY`) is attached read-only,
//! so Windows refuses every write. A pod that asks for a read-only mount of a volume that is
//! staged writable is refused: a link cannot refuse writes. What a container's
//! `volumeMounts[].readOnly` asks for, the container runtime enforces by itself when it
//! mounts the directory into the container.

mod attached;
mod context;
mod controller;
mod id;
mod node;
mod parameters;
mod paths;
mod pool;
mod size;

use std::sync::Mutex;

use csi_proxy::clock::Deadline;
use csi_proxy::os::At;
use csi_proxy::{Error, Host, HostPath, Result};

use crate::driver::PluginInfo;
use crate::names;
use crate::validate::Fields;
use pool::Pool;

/// The name of the plugin if no other is configured.
pub const PLUGIN_NAME: &str = "local.csi-proxy.io";
/// Where the library keeps its records, below the pool, if the host names no other place.
const STATE: &str = "state";

/// What the driver has to be told.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// The directory of the VHDX files. It is made when it is missing.
    pub pool: HostPath,
    /// The most bytes that all volumes together may have; no limit but the pool's free space
    /// if not given.
    pub limit: Option<u64>,
    /// The node's name in the cluster, at most 63 characters: it is a topology value too.
    pub node_id: String,
    /// The plugin's name, a domain name of at most 54 characters; also part of the prefix of
    /// its topology key.
    pub plugin_name: String,
    /// The most volumes in use on the node; 0 leaves it to the cluster.
    pub max_volumes: u32,
}

impl LocalConfig {
    /// A pool on a node, with no limits.
    pub fn new(pool: HostPath, node_id: impl Into<String>) -> Self {
        Self {
            pool,
            limit: None,
            node_id: node_id.into(),
            plugin_name: PLUGIN_NAME.to_owned(),
            max_volumes: 0,
        }
    }
}

/// The driver.
pub struct LocalDriver {
    host: Host,
    directory: HostPath,
    limit: u64,
    info: PluginInfo,
    /// Held while a volume is made or grown: who counts what is left must be alone.
    making: Mutex<()>,
}

impl LocalDriver {
    /// The driver on a node. The host's state directory is below the pool if it has none.
    /// Nothing on the node is touched yet.
    pub fn new(host: Host, config: LocalConfig) -> Result<Self> {
        let fields = Fields("local configuration");
        names::check_plugin_name(&config.plugin_name)
            .map_err(|error| fields.wrong("plugin_name", error))?;
        names::check_node_id(&config.node_id).map_err(|error| fields.wrong("node_id", error))?;
        if config.pool.file_name().is_none() {
            let detail = format!("{} is a whole drive, expected a directory", config.pool);
            return Err(fields.wrong("pool", detail));
        }
        let host = match host.state_dir() {
            Some(_) => host,
            None => {
                let state = config.pool.join(STATE);
                let state = state.map_err(|error| fields.wrong("pool", error))?;
                host.with_state_dir(state)
            }
        };
        let key = names::topology_key(&config.plugin_name);
        Ok(Self {
            host,
            directory: config.pool,
            limit: config.limit.unwrap_or(u64::MAX),
            info: PluginInfo {
                name: config.plugin_name,
                topology: [(key, config.node_id.clone())].into(),
                node_id: config.node_id,
                max_volumes: config.max_volumes.into(),
            },
            making: Mutex::new(()),
        })
    }

    fn pool(&self, operation: &'static str, deadline: Deadline) -> Pool<'_> {
        Pool {
            host: &self.host,
            directory: &self.directory,
            operation,
            deadline,
        }
    }

    /// Makes the pool and the directory of the library's records.
    fn make_directories(&self, pool: &Pool<'_>) -> Result<()> {
        for directory in [Some(&self.directory), self.host.state_dir()]
            .into_iter()
            .flatten()
        {
            let made = self
                .host
                .os()
                .create_directories(&At::path(directory), pool.deadline);
            made.map_err(|error| Error::from_port(pool.operation, directory, error))?;
        }
        Ok(())
    }
}
