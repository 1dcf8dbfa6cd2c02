//! A plugin with the driver `local` on a simulated node, and what a test asks of both.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(dead_code, reason = "no test uses all of it")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::OnceLock;
use std::time::Duration;

use csi_node::Plugin;
use csi_node::local::{LocalConfig, LocalDriver};
use csi_node::proto::controller_server::Controller as _;
use csi_node::proto::node_server::Node as _;
use csi_node::proto::volume_capability::access_mode::Mode;
use csi_node::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use csi_node::proto::*;
use csi_proxy::cim::{Namespace, Query};
use csi_proxy::clock::Deadline;
use csi_proxy::os::{At, Bytes, ReadFile, Reparse, WriteFile};
use csi_proxy::{Host, HostPath};
use csi_proxy_sim::storage::{Content, SimDisk, SimPartition};
use csi_proxy_sim::{Process, SimNode, State};
use tokio::runtime::Runtime;
use tonic::{Request, Status};

pub(crate) const MIB: i64 = 1 << 20;
pub(crate) const GIB: i64 = 1 << 30;
pub(crate) const POOL: &str = r"C:\csi\pool";
pub(crate) const STAGING: &str =
    r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\local\v\globalmount";
pub(crate) const TARGET: &str = r"C:\var\lib\kubelet\pods\p\volumes\kubernetes.io~csi\v\mount";

/// What a call answers.
pub(crate) type Answer<T> = Result<T, Status>;

/// A node with a plugin on it.
pub(crate) struct Rig {
    pub(crate) node: SimNode,
    pub(crate) process: Process,
    pub(crate) plugin: Plugin,
    pub(crate) runtime: &'static Runtime,
    config: LocalConfig,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::on(SimNode::builder().build())
    }

    pub(crate) fn on(node: SimNode) -> Self {
        Self::with(node, config())
    }

    /// On a node whose kubelet keeps its files on another drive, with a link in their place:
    /// Windows knows all its paths by other names.
    pub(crate) fn over_link() -> Self {
        let files = SimPartition::of(Content::Ntfs).drive_letter('D');
        let disk = SimDisk::gpt(64 << 30).partition(files);
        let target = r"D:\kubelet".to_owned();
        let node = SimNode::builder().disk(disk).with(|state| {
            state.put_directory(&target).unwrap();
            let link = Reparse::SymbolicLink { target };
            state.put_link(r"C:\var\lib\kubelet", link).unwrap();
        });
        Self::on(node.build())
    }

    pub(crate) fn with(node: SimNode, config: LocalConfig) -> Self {
        let process = node.process();
        let plugin = plugin(&process, &config);
        let rig = Self {
            node,
            process,
            plugin,
            runtime: runtime(),
            config,
        };
        // The kubelet makes the staging directory and the parent of the target.
        rig.make_directory(STAGING);
        rig.make_directory(parent(TARGET));
        rig
    }

    /// The plugin's process ends, after what it did has come to an end, and a new one starts.
    pub(crate) fn restart(&mut self) {
        self.runtime.block_on(self.plugin.drain());
        self.restart_at_once();
    }

    /// The plugin's process is killed and a new one starts.
    pub(crate) fn restart_at_once(&mut self) {
        self.process.crash();
        self.process = self.node.process();
        self.plugin = plugin(&self.process, &self.config);
    }

    pub(crate) fn create(&self, name: &str, bytes: i64) -> Answer<Volume> {
        let answer = self.call(self.plugin.create_volume(Request::new(create(name, bytes))));
        answer.map(|answer| answer.volume.unwrap())
    }

    pub(crate) fn delete(&self, volume_id: &str) -> Answer<()> {
        let request = DeleteVolumeRequest {
            volume_id: volume_id.to_owned(),
            ..Default::default()
        };
        self.call(self.plugin.delete_volume(Request::new(request)))
            .map(drop)
    }

    pub(crate) fn grow(&self, volume_id: &str, bytes: i64) -> Answer<i64> {
        let request = ControllerExpandVolumeRequest {
            volume_id: volume_id.to_owned(),
            capacity_range: Some(at_least(bytes)),
            ..Default::default()
        };
        self.call(self.plugin.controller_expand_volume(Request::new(request)))
            .map(|answer| answer.capacity_bytes)
    }

    pub(crate) fn stage(&self, volume_id: &str) -> Answer<()> {
        self.stage_with(stage(volume_id, STAGING, Mode::SingleNodeWriter))
    }

    pub(crate) fn stage_with(&self, request: NodeStageVolumeRequest) -> Answer<()> {
        self.call(self.plugin.node_stage_volume(Request::new(request)))
            .map(drop)
    }

    pub(crate) fn unstage(&self, volume_id: &str) -> Answer<()> {
        self.unstage_at(volume_id, STAGING)
    }

    pub(crate) fn unstage_at(&self, volume_id: &str, path: &str) -> Answer<()> {
        let request = unstage(volume_id, path);
        self.call(self.plugin.node_unstage_volume(Request::new(request)))
            .map(drop)
    }

    pub(crate) fn publish(&self, volume_id: &str) -> Answer<()> {
        self.publish_with(publish(volume_id, STAGING, TARGET))
    }

    pub(crate) fn publish_with(&self, request: NodePublishVolumeRequest) -> Answer<()> {
        self.call(self.plugin.node_publish_volume(Request::new(request)))
            .map(drop)
    }

    pub(crate) fn unpublish(&self, volume_id: &str) -> Answer<()> {
        self.unpublish_at(volume_id, TARGET)
    }

    pub(crate) fn unpublish_at(&self, volume_id: &str, path: &str) -> Answer<()> {
        let request = unpublish(volume_id, path);
        self.call(self.plugin.node_unpublish_volume(Request::new(request)))
            .map(drop)
    }

    pub(crate) fn node_expand(&self, volume_id: &str, path: &str, bytes: i64) -> Answer<i64> {
        let request = NodeExpandVolumeRequest {
            volume_id: volume_id.to_owned(),
            volume_path: path.to_owned(),
            capacity_range: Some(at_least(bytes)),
            ..Default::default()
        };
        self.call(self.plugin.node_expand_volume(Request::new(request)))
            .map(|answer| answer.capacity_bytes)
    }

    pub(crate) fn stats(&self, volume_id: &str, path: &str) -> Answer<NodeGetVolumeStatsResponse> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: volume_id.to_owned(),
            volume_path: path.to_owned(),
            ..Default::default()
        };
        self.call(self.plugin.node_get_volume_stats(Request::new(request)))
    }

    pub(crate) fn list(&self, max_entries: i32, token: &str) -> Answer<ListVolumesResponse> {
        let request = ListVolumesRequest {
            max_entries,
            starting_token: token.to_owned(),
        };
        self.call(self.plugin.list_volumes(Request::new(request)))
    }

    pub(crate) fn capacity(&self, request: GetCapacityRequest) -> Answer<GetCapacityResponse> {
        self.call(self.plugin.get_capacity(Request::new(request)))
    }

    pub(crate) fn call<T>(
        &self,
        answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Answer<T> {
        self.runtime
            .block_on(answer)
            .map(tonic::Response::into_inner)
    }

    /// Nothing on the node has changed. A difference is too long to be shown.
    #[track_caller]
    pub(crate) fn assert_unchanged(&self, before: &State) {
        assert!(self.node.snapshot() == *before, "the node was changed");
    }

    /// Another process on the node, for looking and for what a pod does.
    pub(crate) fn host(&self) -> Host {
        self.node.process().host()
    }

    pub(crate) fn make_directory(&self, directory: &str) {
        let at = At::path(&path(directory));
        self.host()
            .os()
            .create_directories(&at, Deadline::Never)
            .unwrap();
    }

    pub(crate) fn write(&self, file: &str, contents: &str) {
        let request = WriteFile {
            at: At::path(&path(file)),
            contents: Bytes(contents.as_bytes().to_vec()),
        };
        self.host()
            .os()
            .write_file(&request, Deadline::Never)
            .unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> String {
        let request = ReadFile {
            at: At::path(&path(file)),
            limit: 1 << 20,
        };
        let bytes = self
            .host()
            .os()
            .read_file(&request, Deadline::Never)
            .unwrap();
        String::from_utf8(bytes.0).unwrap()
    }

    pub(crate) fn exists(&self, file: &str) -> bool {
        let at = At::path(&path(file));
        self.host().os().stat(&at, Deadline::Never).is_ok()
    }

    /// The disks on the node, each with where it is.
    pub(crate) fn disks(&self) -> Vec<String> {
        let query = Query::new(Namespace::Storage, "MSFT_Disk", &["Number", "Location"]);
        let rows = self.host().cim().query(&query, Deadline::Never).unwrap();
        rows.iter()
            .map(|row| format!("{:?}", row.properties))
            .collect()
    }

    /// How many locks are held.
    pub(crate) fn locks(&self) -> usize {
        self.node.snapshot().locks.held().count()
    }

    /// Everything below a directory, without going through links and mount points: a line
    /// for each object.
    pub(crate) fn tree(&self, directory: &str) -> Vec<String> {
        let mut lines = Vec::new();
        tree(&self.host(), &path(directory), &mut lines);
        lines.sort();
        lines
    }
}

/// Prints a line that is shown for a test that passes too.
pub(crate) fn report(line: &str) {
    let mut shown = std::io::stderr();
    writeln!(shown, "{line}").unwrap();
}

fn tree(host: &Host, directory: &HostPath, lines: &mut Vec<String>) {
    let at = At::path(directory);
    for entry in host.os().list(&at, Deadline::Never).unwrap_or_default() {
        let path = directory.join(&entry.name).unwrap();
        match &entry.stat.reparse {
            Some(Reparse::SymbolicLink { target }) => lines.push(format!("{path} -> {target}")),
            Some(Reparse::MountPoint { .. }) => lines.push(format!("{path} = a volume")),
            Some(other) => lines.push(format!("{path} = {other:?}")),
            None if entry.stat.directory => {
                lines.push(format!("{path}\\"));
                tree(host, &path, lines);
            }
            None => lines.push(path.to_string()),
        }
    }
}

/// One for all rigs of a test program.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap())
}

fn plugin(process: &Process, config: &LocalConfig) -> Plugin {
    Plugin::new(LocalDriver::new(process.host(), config.clone()).unwrap())
}

pub(crate) fn config() -> LocalConfig {
    LocalConfig::new(path(POOL), "node-1")
}

pub(crate) fn path(text: &str) -> HostPath {
    HostPath::from_kubelet(text).unwrap()
}

pub(crate) fn parent(text: &str) -> &str {
    text.rsplit_once('\\').unwrap().0
}

pub(crate) fn create(name: &str, bytes: i64) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(at_least(bytes)),
        volume_capabilities: vec![capability(Mode::SingleNodeWriter)],
        ..Default::default()
    }
}

pub(crate) fn stage(volume_id: &str, path: &str, mode: Mode) -> NodeStageVolumeRequest {
    NodeStageVolumeRequest {
        volume_id: volume_id.to_owned(),
        staging_target_path: path.to_owned(),
        volume_capability: Some(capability(mode)),
        ..Default::default()
    }
}

pub(crate) fn unstage(volume_id: &str, path: &str) -> NodeUnstageVolumeRequest {
    NodeUnstageVolumeRequest {
        volume_id: volume_id.to_owned(),
        staging_target_path: path.to_owned(),
    }
}

pub(crate) fn publish(volume_id: &str, staging: &str, target: &str) -> NodePublishVolumeRequest {
    NodePublishVolumeRequest {
        volume_id: volume_id.to_owned(),
        staging_target_path: staging.to_owned(),
        target_path: target.to_owned(),
        volume_capability: Some(capability(Mode::SingleNodeWriter)),
        ..Default::default()
    }
}

pub(crate) fn unpublish(volume_id: &str, target: &str) -> NodeUnpublishVolumeRequest {
    NodeUnpublishVolumeRequest {
        volume_id: volume_id.to_owned(),
        target_path: target.to_owned(),
    }
}

pub(crate) fn capability(mode: Mode) -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: mode.into() }),
        access_type: Some(AccessType::Mount(MountVolume::default())),
    }
}

pub(crate) fn at_least(bytes: i64) -> CapacityRange {
    CapacityRange {
        required_bytes: bytes,
        limit_bytes: 0,
    }
}

pub(crate) fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

/// A request with a deadline of its own.
pub(crate) fn within<T>(seconds: u64, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(Duration::from_secs(seconds));
    request
}
