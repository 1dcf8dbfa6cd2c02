//! The life of a volume, step by step, and what must be true after each.

use csi_node::proto::Volume;
use csi_node::proto::volume_usage::Unit;
use csi_proxy::HostPath;
use tonic::Code;

use super::client::{Client, Places, refused};
use crate::failure::{Failure, Result};
use crate::onlooker::{Onlooker, Traces};
use crate::size;

const NAME: &str = "demo";
const SIZE: i64 = 1 << 30;
const LARGER: i64 = 2 << 30;

/// Paths as the kubelet on Windows sends them.
const STAGED: &str = r"\var\lib\kubelet\plugins\kubernetes.io\csi\demo";
const STAGING: &str = r"\var\lib\kubelet\plugins\kubernetes.io\csi\demo\globalmount";
const POD: &str = r"\var\lib\kubelet\pods\demo\volumes\kubernetes.io~csi\demo";
const TARGET: &str = r"\var\lib\kubelet\pods\demo\volumes\kubernetes.io~csi\demo\mount";
const FILE: &str = r"C:\var\lib\kubelet\pods\demo\volumes\kubernetes.io~csi\demo\mount\data.bin";

/// What the plugin makes for all volumes: the pool, and its place for records.
const KEPT: [&str; 2] = [r"C:\csi-volumes\", r"C:\csi-volumes\state\"];

/// What an NTFS of this size may take for itself, in parts of the volume.
const OVERHEAD: i64 = 20;

/// A step of the life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Probe,
    Create,
    Stage,
    StageAgain,
    Publish,
    Write,
    Stats,
    ExpandInUse,
    Unpublish,
    Unstage,
    Expand,
    NodeExpand,
    StatsLarger,
    Read,
    Delete,
}

/// The whole life, in order.
pub(crate) const LIFE: [Step; 18] = [
    Step::Probe,
    Step::Create,
    Step::Stage,
    Step::Publish,
    Step::Write,
    Step::Stats,
    Step::ExpandInUse,
    Step::Unpublish,
    Step::Unstage,
    Step::Expand,
    Step::StageAgain,
    Step::Publish,
    Step::NodeExpand,
    Step::StatsLarger,
    Step::Read,
    Step::Unpublish,
    Step::Unstage,
    Step::Delete,
];

impl Step {
    /// Its name in the output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Create => "create",
            Self::Stage | Self::StageAgain => "stage",
            Self::Publish => "publish",
            Self::Write => "write",
            Self::Stats | Self::StatsLarger => "stats",
            Self::ExpandInUse | Self::Expand => "expand",
            Self::Unpublish => "unpublish",
            Self::Unstage => "unstage",
            Self::NodeExpand => "node-expand",
            Self::Read => "read",
            Self::Delete => "delete",
        }
    }
}

/// A volume's life in the making.
pub(crate) struct Life {
    client: Client,
    onlooker: Onlooker,
    places: Places,
    volume: Volume,
    contents: Vec<u8>,
    read: Vec<u8>,
    before: Option<Traces>,
}

impl Life {
    /// Makes the directories that the kubelet makes, and remembers how the node looks.
    pub(crate) fn new(client: Client, onlooker: Onlooker) -> Result<Self> {
        onlooker.make_directory(STAGED)?;
        onlooker.make_directory(POD)?;
        Ok(Self {
            client,
            onlooker,
            places: Places {
                staging: STAGING.to_owned(),
                target: TARGET.to_owned(),
            },
            volume: Volume::default(),
            contents: contents(),
            read: Vec::new(),
            before: None,
        })
    }

    /// Does what the kubelet does before it asks for a step.
    pub(crate) fn prepare(&self, step: Step) -> Result<()> {
        match step {
            Step::Stage | Step::StageAgain => self.onlooker.make_directory(STAGING),
            _ => Ok(()),
        }
    }

    /// Does a step. Answers what happened.
    pub(crate) async fn act(&mut self, step: Step) -> Result<String> {
        match step {
            Step::Probe => self.probe().await,
            Step::Create => self.create().await,
            Step::Stage => {
                self.stage("attached, partitioned, formatted, mounted")
                    .await
            }
            Step::StageAgain => self.stage("attached and mounted as it was").await,
            Step::Publish => self.publish().await,
            Step::Write => self.write(),
            Step::Stats => self.stats(SIZE).await,
            Step::ExpandInUse => self.expand_in_use().await,
            Step::Unpublish => self.unpublish().await,
            Step::Unstage => self.unstage().await,
            Step::Expand => self.expand().await,
            Step::NodeExpand => self.node_expand().await,
            Step::StatsLarger => self.stats(LARGER).await,
            Step::Read => self.read(),
            Step::Delete => self.delete().await,
        }
    }

    /// Looks, with calls that the step does not pay for, whether the node is as it should
    /// be after it. `formats` is how many there were in the step.
    pub(crate) async fn check(&mut self, step: Step, formats: u64) -> Result<()> {
        let expected = u64::from(step == Step::Stage);
        let text = format!("formatted {formats} times instead of {expected}");
        expect("the plugin", formats == expected, &text)?;
        match step {
            Step::Probe => {
                self.before = Some(self.onlooker.traces()?);
                Ok(())
            }
            Step::Stage | Step::StageAgain => self.must_be_mounted(),
            Step::Publish => self.must_be_linked(),
            Step::Unpublish => self.must_be_unlinked(),
            Step::Unstage => self.must_be_unmounted(),
            Step::Read => {
                let same = self.contents == self.read;
                expect("the file", same, "differs from what was written")
            }
            Step::Delete => self.must_be_as_before().await,
            _ => Ok(()),
        }
    }

    async fn probe(&mut self) -> Result<String> {
        let info = self.client.info().await?;
        let ready = self.client.ready().await?;
        expect("the plugin", ready, "is not ready")?;
        let node = self.client.node_id().await?;
        Ok(format!(
            "{} {} is ready on node {node}",
            info.name, info.vendor_version
        ))
    }

    async fn create(&mut self) -> Result<String> {
        self.volume = self.client.create(NAME, SIZE).await?;
        same_size("the new volume", self.volume.capacity_bytes, SIZE)?;
        Ok(format!(
            "volume {} of {}",
            self.volume.volume_id,
            shown(self.volume.capacity_bytes)
        ))
    }

    async fn stage(&mut self, done: &str) -> Result<String> {
        self.client.stage(&self.volume, &self.places).await?;
        Ok(done.to_owned())
    }

    async fn publish(&mut self) -> Result<String> {
        self.client.publish(&self.volume, &self.places).await?;
        Ok("linked from the path of the pod".to_owned())
    }

    fn write(&mut self) -> Result<String> {
        self.onlooker.write(&file()?, &self.contents)?;
        Ok(format!(
            "the pod wrote {} to its volume",
            self.contents_size()
        ))
    }

    async fn stats(&mut self, size: i64) -> Result<String> {
        let answer = self
            .client
            .stats(&self.volume.volume_id, &self.places)
            .await?;
        let bytes = answer
            .usage
            .iter()
            .find(|usage| usage.unit == i32::from(Unit::Bytes))
            .ok_or_else(|| Failure::new("the stats say nothing about bytes"))?;
        let abnormal = answer
            .volume_condition
            .is_some_and(|condition| condition.abnormal);
        expect("the volume", !abnormal, "is in an abnormal condition")?;
        let fits = bytes.total <= size && bytes.total > size - size / OVERHEAD;
        let text = format!(
            "has {} instead of nearly {}",
            shown(bytes.total),
            shown(size)
        );
        expect("the file system", fits, &text)?;
        let written = i64::try_from(self.contents.len()).unwrap_or(i64::MAX);
        expect(
            "the file system",
            bytes.used >= written,
            "is emptier than what was written",
        )?;
        let sum = bytes.used.saturating_add(bytes.available);
        expect(
            "used and available",
            sum == bytes.total,
            "are not the total",
        )?;
        Ok(format!(
            "{} of {} used",
            shown(bytes.used),
            shown(bytes.total)
        ))
    }

    async fn expand_in_use(&mut self) -> Result<String> {
        let volume = &self.volume.volume_id;
        match self.client.controller_expand(volume, LARGER).await {
            Err(status) if status.code() == Code::FailedPrecondition => {
                Ok("refused while the volume is attached, as Windows does".to_owned())
            }
            Err(status) => Err(refused("ControllerExpandVolume", &status)),
            Ok(_) => Err(Failure::new(
                "the volume was grown while it is attached; FailedPrecondition was expected",
            )),
        }
    }

    async fn unpublish(&mut self) -> Result<String> {
        self.client
            .unpublish(&self.volume.volume_id, &self.places)
            .await?;
        Ok("the link is gone".to_owned())
    }

    async fn unstage(&mut self) -> Result<String> {
        self.client
            .unstage(&self.volume.volume_id, &self.places)
            .await?;
        Ok("unmounted and detached".to_owned())
    }

    async fn expand(&mut self) -> Result<String> {
        let volume = &self.volume.volume_id;
        let answer = self
            .client
            .controller_expand(volume, LARGER)
            .await
            .map_err(|status| refused("ControllerExpandVolume", &status))?;
        same_size("the grown volume", answer.capacity_bytes, LARGER)?;
        expect(
            "the answer",
            answer.node_expansion_required,
            "asks for no NodeExpandVolume",
        )?;
        Ok(format!("the volume has {}", shown(answer.capacity_bytes)))
    }

    async fn node_expand(&mut self) -> Result<String> {
        let volume = &self.volume.volume_id;
        let size = self
            .client
            .node_expand(volume, LARGER, &self.places)
            .await?;
        same_size("the grown volume", size, LARGER)?;
        Ok(format!("the file system fills {}", shown(size)))
    }

    fn read(&mut self) -> Result<String> {
        self.read = self.onlooker.read(&file()?)?;
        Ok(format!(
            "the pod read {}, the same as it wrote",
            self.contents_size()
        ))
    }

    async fn delete(&mut self) -> Result<String> {
        self.client.delete(&self.volume.volume_id).await?;
        Ok("the node is as it was before".to_owned())
    }

    fn must_be_mounted(&self) -> Result<()> {
        let mounted = self.onlooker.mounted_volume(STAGING)?.is_some();
        expect(STAGING, mounted, "is not a mount point")
    }

    fn must_be_linked(&self) -> Result<()> {
        let target = self.onlooker.link_target(TARGET)?;
        let staging = HostPath::from_kubelet(STAGING).ok();
        let right = match (&target, &staging) {
            (Some(target), Some(staging)) => target.same_as(staging),
            _ => false,
        };
        expect(TARGET, right, "is not a link to the staging path")
    }

    fn must_be_unlinked(&self) -> Result<()> {
        expect(TARGET, !self.onlooker.exists(TARGET)?, "still exists")
    }

    fn must_be_unmounted(&self) -> Result<()> {
        let mounted = self.onlooker.mounted_volume(STAGING)?.is_some();
        expect(STAGING, !mounted, "is still a mount point")?;
        // The kubelet removes the directory that it has made.
        self.onlooker.remove(STAGING)
    }

    async fn must_be_as_before(&mut self) -> Result<()> {
        let volumes = self.client.volumes().await?;
        expect("ListVolumes", volumes.is_empty(), "still names a volume")?;
        let Some(before) = &self.before else {
            return Err(Failure::new("the node was not looked at before"));
        };
        let mut differences = self.onlooker.traces()?.differences(before);
        differences.retain(|line| !KEPT.iter().any(|kept| line == &format!("left: {kept}")));
        match differences.as_slice() {
            [] => Ok(()),
            lines => Err(Failure::new(format!(
                "the node differs: {}",
                lines.join("; ")
            ))),
        }
    }

    fn contents_size(&self) -> String {
        size::show(self.contents.len().try_into().unwrap_or(u64::MAX))
    }
}

/// One MiB in which no two places look alike.
fn contents() -> Vec<u8> {
    let mut state = 1u32;
    std::iter::repeat_with(|| {
        // The multiplier and increment of Numerical Recipes' generator.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(1 << 20)
    .collect()
}

fn file() -> Result<HostPath> {
    HostPath::from_kubelet(FILE).map_err(|error| Failure::new(error.to_string()))
}

fn shown(bytes: i64) -> String {
    u64::try_from(bytes).map_or_else(|_| bytes.to_string(), size::show)
}

fn same_size(what: &str, found: i64, expected: i64) -> Result<()> {
    let text = format!("has {found} bytes instead of {expected}");
    expect(what, found == expected, &text)
}

/// A failure that says what is wrong with what, unless all is right.
fn expect(what: &str, right: bool, wrong: &str) -> Result<()> {
    match right {
        true => Ok(()),
        false => Err(Failure::new(format!("{what} {wrong}"))),
    }
}
