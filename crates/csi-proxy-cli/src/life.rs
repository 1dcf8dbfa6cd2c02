//! The life of a volume, step by step, and what must be true after each.

use csi_node::proto::Volume;
use csi_node::proto::volume_usage::Unit;
use csi_proxy::HostPath;
use tonic::Code;

use crate::client::{Client, Places, refused};
use crate::failure::{Failure, Result};
use crate::onlooker::{Onlooker, Traces};
use crate::size;

/// Where a life takes place, and with what sizes.
pub(crate) struct Setting {
    /// The volume's name.
    name: &'static str,
    /// Its size at first, and after it was grown, in bytes.
    sizes: [i64; 2],
    /// What belongs to the life: a directory with all that it makes, the pool among it.
    root: HostPath,
    /// The kubelet's directory for the volume.
    plugin: HostPath,
    /// The kubelet's directory for the pod's volume.
    pod: HostPath,
    /// What the plugin makes for all volumes and keeps: the pool, and its place for records.
    kept: [HostPath; 2],
}

impl Setting {
    /// The demo's: paths as the kubelet on Windows has them, all of drive `C:` is watched.
    pub(crate) fn of_the_demo() -> Result<Self> {
        let plugins = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi";
        let pods = r"C:\var\lib\kubelet\pods";
        let pool = crate::demo::POOL;
        Self::new(
            "demo",
            [1 << 30, 2 << 30],
            [r"C:\", plugins, pods, pool].map(path),
        )
    }

    /// A small volume with everything below one directory: the pool, and what the kubelet
    /// would make.
    pub(crate) fn below(root: &HostPath, pool: &HostPath) -> Result<Self> {
        let plugins = join(root, &["kubelet", "plugins", "kubernetes.io", "csi"]);
        let pods = join(root, &["kubelet", "pods"]);
        let directories = [Ok(root.clone()), plugins, pods, Ok(pool.clone())];
        Self::new("selftest", [256 << 20, 384 << 20], directories)
    }

    fn new(
        name: &'static str,
        sizes: [i64; 2],
        [root, plugins, pods, pool]: [Result<HostPath>; 4],
    ) -> Result<Self> {
        let pool = pool?;
        Ok(Self {
            name,
            sizes,
            root: root?,
            plugin: join(&plugins?, &[name])?,
            pod: join(&pods?, &[name, "volumes", "kubernetes.io~csi", name])?,
            kept: [pool.clone(), join(&pool, &["state"])?],
        })
    }
}

/// A path below a directory.
pub(crate) fn join(directory: &HostPath, names: &[&str]) -> Result<HostPath> {
    names.iter().try_fold(directory.clone(), |path, name| {
        path.join(name)
            .map_err(|error| Failure::new(error.to_string()))
    })
}

fn path(text: &str) -> Result<HostPath> {
    crate::path(text).map_err(Failure::new)
}

/// What an NTFS of this size may take for itself, in parts of the volume; and what GPT takes
/// of the disk: a reserved partition of 16 MiB, and the tables with their alignment.
const OVERHEAD: i64 = 20;
const OF_GPT: i64 = 18 << 20;

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
    setting: Setting,
    places: Places,
    volume: Volume,
    contents: Vec<u8>,
    read: Vec<u8>,
    before: Option<Traces>,
}

impl Life {
    /// Makes the directories that the kubelet makes, and remembers how the node looks.
    pub(crate) fn new(client: Client, onlooker: Onlooker, setting: Setting) -> Result<Self> {
        onlooker.make_directory(&setting.plugin)?;
        onlooker.make_directory(&setting.pod)?;
        let staging = join(&setting.plugin, &["globalmount"])?;
        let target = join(&setting.pod, &["mount"])?;
        Ok(Self {
            client,
            onlooker,
            setting,
            places: Places { staging, target },
            volume: Volume::default(),
            contents: contents(),
            read: Vec::new(),
            before: None,
        })
    }

    /// Does what the kubelet does before it asks for a step.
    pub(crate) fn prepare(&self, step: Step) -> Result<()> {
        match step {
            Step::Stage | Step::StageAgain => self.onlooker.make_directory(&self.places.staging),
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
            Step::Stats => self.stats(self.size()).await,
            Step::ExpandInUse => self.expand_in_use().await,
            Step::Unpublish => self.unpublish().await,
            Step::Unstage => self.unstage().await,
            Step::Expand => self.expand().await,
            Step::NodeExpand => self.node_expand().await,
            Step::StatsLarger => self.stats(self.larger()).await,
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
                self.before = Some(self.traces()?);
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
        self.volume = self.client.create(self.setting.name, self.size()).await?;
        same_size("the new volume", self.volume.capacity_bytes, self.size())?;
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
        self.onlooker.write(&self.file()?, &self.contents)?;
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
        let fits = bytes.total <= size && bytes.total > size - size / OVERHEAD - OF_GPT;
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
        let (volume, larger) = (&self.volume.volume_id, self.setting.sizes[1]);
        match self.client.controller_expand(volume, larger).await {
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
        let (volume, larger) = (&self.volume.volume_id, self.setting.sizes[1]);
        let answer = self
            .client
            .controller_expand(volume, larger)
            .await
            .map_err(|status| refused("ControllerExpandVolume", &status))?;
        same_size("the grown volume", answer.capacity_bytes, larger)?;
        expect(
            "the answer",
            answer.node_expansion_required,
            "asks for no NodeExpandVolume",
        )?;
        Ok(format!("the volume has {}", shown(answer.capacity_bytes)))
    }

    async fn node_expand(&mut self) -> Result<String> {
        let (volume, larger) = (&self.volume.volume_id, self.setting.sizes[1]);
        let size = self
            .client
            .node_expand(volume, larger, &self.places)
            .await?;
        same_size("the grown volume", size, larger)?;
        Ok(format!("the file system fills {}", shown(size)))
    }

    fn read(&mut self) -> Result<String> {
        self.read = self.onlooker.read(&self.file()?)?;
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
        let staging = &self.places.staging;
        let mounted = self.onlooker.mounted_volume(staging)?.is_some();
        expect(staging.as_str(), mounted, "is not a mount point")
    }

    fn must_be_linked(&self) -> Result<()> {
        let Places { staging, target } = &self.places;
        let leads_to = self.onlooker.link_target(target)?;
        let right = leads_to.is_some_and(|path| path.same_as(staging));
        expect(target.as_str(), right, "is not a link to the staging path")
    }

    fn must_be_unlinked(&self) -> Result<()> {
        let target = &self.places.target;
        expect(
            target.as_str(),
            !self.onlooker.exists(target)?,
            "still exists",
        )
    }

    fn must_be_unmounted(&self) -> Result<()> {
        let staging = &self.places.staging;
        let mounted = self.onlooker.mounted_volume(staging)?.is_some();
        expect(staging.as_str(), !mounted, "is still a mount point")?;
        // The kubelet removes the directory that it has made.
        self.onlooker.remove(staging)
    }

    async fn must_be_as_before(&mut self) -> Result<()> {
        let volumes = self.client.volumes().await?;
        expect("ListVolumes", volumes.is_empty(), "still names a volume")?;
        let Some(before) = &self.before else {
            return Err(Failure::new("the node was not looked at before"));
        };
        let mut differences = self.traces()?.differences(before);
        let kept = |line: &String| {
            let kept = &mut self.setting.kept.iter();
            kept.any(|path| *line == format!(r"left: {path}\"))
        };
        differences.retain(|line| !kept(line));
        match differences.as_slice() {
            [] => Ok(()),
            lines => Err(Failure::new(format!(
                "the node differs: {}",
                lines.join("; ")
            ))),
        }
    }

    /// Everything that belongs to the life.
    fn traces(&self) -> Result<Traces> {
        self.onlooker.traces(&self.setting.root)
    }

    fn file(&self) -> Result<HostPath> {
        join(&self.places.target, &["data.bin"])
    }

    fn size(&self) -> i64 {
        self.setting.sizes[0]
    }

    fn larger(&self) -> i64 {
        self.setting.sizes[1]
    }

    fn contents_size(&self) -> String {
        size::show(self.contents.len().try_into().unwrap_or(u64::MAX))
    }
}

/// One MiB in which no two places look alike.
pub(crate) fn contents() -> Vec<u8> {
    let mut state = 1u32;
    std::iter::repeat_with(|| {
        // The multiplier and increment of Numerical Recipes' generator.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(1 << 20)
    .collect()
}

fn shown(bytes: i64) -> String {
    u64::try_from(bytes).map_or_else(|_| bytes.to_string(), size::show)
}

fn same_size(what: &str, found: i64, expected: i64) -> Result<()> {
    let text = format!("has {found} bytes instead of {expected}");
    expect(what, found == expected, &text)
}

/// A failure that says what is wrong with what, unless all is right.
pub(crate) fn expect(what: &str, right: bool, wrong: &str) -> Result<()> {
    match right {
        true => Ok(()),
        false => Err(Failure::new(format!("{what} {wrong}"))),
    }
}
