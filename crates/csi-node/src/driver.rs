//! What stands behind the CSI services: one driver per kind of volume.
//!
//! The services check every field of a request, take the volume's guard and then call the
//! driver on a thread that may block. So a driver meets checked values, one operation per
//! volume at a time, and knows nothing of gRPC.

use std::collections::BTreeMap;
use std::fmt;

use csi_proxy::clock::Deadline;
use csi_proxy::volume::FileSystem;
use csi_proxy::{ErrorKind, Host, HostPath, Result, Secret};

/// A kind of volume on this node.
///
/// Every method may be cut off anywhere and is then repeated: it observes the node anew and
/// goes on from there.
pub trait Driver: Send + Sync + 'static {
    /// The node that it works on.
    fn host(&self) -> &Host;

    /// What the plugin says about itself.
    fn info(&self) -> &PluginInfo;

    /// Whether the driver can work on its node as it is, which is asked often. Nothing is
    /// changed.
    fn probe(&self, _: Deadline) -> Result<()> {
        Ok(())
    }

    /// Makes the volume ready at the staging path.
    fn stage(&self, request: &Stage, deadline: Deadline) -> Result<()>;

    /// Undoes [`Driver::stage`]; what is not staged is success.
    fn unstage(&self, request: &Unstage, deadline: Deadline) -> Result<()>;

    /// Makes the staged volume appear at the target path.
    fn publish(&self, request: &Publish, deadline: Deadline) -> Result<()>;

    /// Undoes [`Driver::publish`]; what is not published is success.
    fn unpublish(&self, request: &Unpublish, deadline: Deadline) -> Result<()>;

    /// How full the volume is that is staged or published at a path, and how it is.
    fn stats(&self, request: &AtPath, deadline: Deadline) -> Result<Stats>;

    /// Grows partition and file system of the volume at a path to its disk. Answers the
    /// disk's size in bytes.
    fn expand(&self, request: &NodeExpand, deadline: Deadline) -> Result<u64>;

    /// The Controller service, where the driver has one.
    fn controller(&self) -> Option<&dyn ControllerDriver> {
        None
    }
}

/// A driver that makes its volumes itself.
pub trait ControllerDriver: Send + Sync {
    /// The id of the volume with this name, whether it exists or not.
    fn volume_id(&self, name: &str) -> String;

    /// Whether all parameters are known and right, and contradict none of the capabilities,
    /// of which there may be none.
    fn check_parameters(
        &self,
        parameters: &BTreeMap<String, String>,
        capabilities: &[Capability],
    ) -> Result<()>;

    /// Whether a volume can have all the uses, and was made with what is asked for.
    fn check_uses(&self, volume: &Volume, asked: &Uses) -> Result<()>;

    /// Makes a volume; one that exists and fits is success.
    fn create(&self, request: &Create, deadline: Deadline) -> Result<Volume>;

    /// Deletes a volume; one that does not exist is success.
    fn delete(&self, volume_id: &str, deadline: Deadline) -> Result<()>;

    /// Makes a volume larger while no node uses it. Answers its size in bytes.
    fn grow(&self, volume_id: &str, range: SizeRange, deadline: Deadline) -> Result<u64>;

    /// A volume, or NotFound.
    fn get(&self, volume_id: &str, deadline: Deadline) -> Result<Volume>;

    /// The volumes in the order of their ids, those after `after` only, at most `limit`.
    fn list(&self, page: &Page, deadline: Deadline) -> Result<Listing>;

    /// How much more can be made with these parameters for these uses, of which there may be
    /// none.
    fn capacity(
        &self,
        parameters: &BTreeMap<String, String>,
        capabilities: &[Capability],
        deadline: Deadline,
    ) -> Result<Capacity>;
}

/// What a plugin says about itself and its node.
#[derive(Clone, Debug)]
pub struct PluginInfo {
    /// The plugin's name in domain form.
    pub name: String,
    /// The node's name towards the Controller.
    pub node_id: String,
    /// Where the node's volumes can be reached from, as labels of the node.
    pub topology: BTreeMap<String, String>,
    /// The most volumes the node takes; 0 leaves it to the cluster.
    pub max_volumes: i64,
}

/// Whether a volume is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading only.
    ReadOnly,
    /// For reading and writing.
    ReadWrite,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "for reading only",
            Self::ReadWrite => "for reading and writing",
        })
    }
}

/// How a volume is going to be used, as a mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Whether it is written.
    pub access: Access,
    /// The file system, if one was named.
    pub file_system: Option<FileSystem>,
}

/// Request of [`ControllerDriver::check_uses`].
#[derive(Clone, Debug)]
pub struct Uses {
    /// How the volume is going to be used.
    pub capabilities: Vec<Capability>,
    /// What it has to be as its volume context says; nothing says nothing.
    pub context: BTreeMap<String, String>,
    /// The parameters that it has to be made with; none say nothing.
    pub parameters: BTreeMap<String, String>,
}

/// A wish for a size, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeRange {
    /// At least this much.
    pub required: Option<u64>,
    /// At most this much.
    pub limit: Option<u64>,
}

impl fmt::Display for SizeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.required, self.limit) {
            (Some(required), Some(limit)) => write!(f, "{required} to {limit} bytes"),
            (Some(required), None) => write!(f, "at least {required} bytes"),
            (None, Some(limit)) => write!(f, "at most {limit} bytes"),
            (None, None) => f.write_str("any size"),
        }
    }
}

/// Request of [`ControllerDriver::create`].
#[derive(Clone, Debug)]
pub struct Create {
    /// The name that decides whether the volume exists.
    pub name: String,
    /// Its size.
    pub range: SizeRange,
    /// What it must be usable for.
    pub capabilities: Vec<Capability>,
    /// The parameters of the storage class.
    pub parameters: BTreeMap<String, String>,
}

/// A volume.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Its id.
    pub id: String,
    /// Its size in bytes.
    pub size: u64,
    /// What the node needs to know about it.
    pub context: BTreeMap<String, String>,
    /// Whether it is in use on this node.
    pub in_use: bool,
    /// How it is.
    pub condition: Condition,
}

/// Which volumes to list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Only those with a greater id.
    pub after: Option<String>,
    /// At most this many.
    pub limit: Option<usize>,
}

/// Volumes.
#[derive(Clone, Debug)]
pub struct Listing {
    /// In the order of their ids.
    pub volumes: Vec<Volume>,
    /// Whether there are more after the last one.
    pub more: bool,
}

/// How much more can be made, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// In total.
    pub available: u64,
    /// The largest volume.
    pub maximum: u64,
    /// The smallest volume.
    pub minimum: u64,
}

/// Request of [`Driver::stage`].
#[derive(Clone, Debug)]
pub struct Stage {
    /// The volume.
    pub volume_id: String,
    /// Where it is made ready.
    pub staging_path: HostPath,
    /// What for.
    pub capability: Capability,
    /// What the Controller answered when the volume was made.
    pub volume_context: BTreeMap<String, String>,
    /// What the Controller answered when the volume was attached.
    pub publish_context: BTreeMap<String, String>,
    /// Credentials.
    pub secrets: BTreeMap<String, Secret>,
}

/// Request of [`Driver::unstage`].
#[derive(Clone, Debug)]
pub struct Unstage {
    /// The volume.
    pub volume_id: String,
    /// Where it was made ready.
    pub staging_path: HostPath,
}

/// Request of [`Driver::publish`].
#[derive(Clone, Debug)]
pub struct Publish {
    /// The volume.
    pub volume_id: String,
    /// Where it is staged.
    pub staging_path: HostPath,
    /// Where it has to appear.
    pub target_path: HostPath,
    /// What for.
    pub capability: Capability,
    /// Whether the pod must not write.
    pub read_only: bool,
}

/// Request of [`Driver::unpublish`].
#[derive(Clone, Debug)]
pub struct Unpublish {
    /// The volume.
    pub volume_id: String,
    /// Where it appears.
    pub target_path: HostPath,
}

/// A volume at a path where it is staged or published.
#[derive(Clone, Debug)]
pub struct AtPath {
    /// The volume.
    pub volume_id: String,
    /// The path.
    pub path: HostPath,
}

/// Request of [`Driver::expand`].
#[derive(Clone, Debug)]
pub struct NodeExpand {
    /// The volume and where it is.
    pub at: AtPath,
    /// The size that it must have.
    pub range: SizeRange,
}

/// How full a volume is, in bytes, and how it is.
#[derive(Clone, Debug)]
pub struct Stats {
    /// All of it.
    pub total: u64,
    /// What can still be written.
    pub available: u64,
    /// How it is.
    pub condition: Condition,
}

/// Whether a volume needs attention.
#[derive(Clone, Debug)]
pub struct Condition {
    /// It does.
    pub abnormal: bool,
    /// What is wrong, or that nothing is.
    pub message: String,
}

impl Condition {
    /// Nothing is wrong.
    pub fn healthy() -> Self {
        Self {
            abnormal: false,
            message: "healthy".to_owned(),
        }
    }

    /// Something is wrong.
    pub fn abnormal(message: impl Into<String>) -> Self {
        Self {
            abnormal: true,
            message: message.into(),
        }
    }
}

/// NotFound is an answer, not an error.
pub(crate) fn none_if_missing<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
