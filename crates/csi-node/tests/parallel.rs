//! Many volumes and many callers at a time.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{GIB, MIB, POOL, Rig, create, parent, publish, stage, unpublish, unstage};
use csi_node::Plugin;
use csi_node::proto::DeleteVolumeRequest;
use csi_node::proto::controller_server::Controller as _;
use csi_node::proto::node_server::Node as _;
use csi_node::proto::volume_capability::access_mode::Mode;
use tonic::{Request, Status};

/// A deadlock ends the test instead of hanging it; nothing is measured with it.
const GIVE_UP: Duration = Duration::from_secs(300);

/// A volume with paths of its own.
#[derive(Clone)]
struct Mine {
    id: String,
    staging: String,
    target: String,
}

impl Mine {
    fn new(number: usize) -> Self {
        Self {
            id: format!("v-{number}"),
            staging: format!(r"C:\staging\{number}\globalmount"),
            target: format!(r"C:\pods\{number}\mount"),
        }
    }

    fn prepare(&self, rig: &Rig) {
        rig.make_directory(&self.staging);
        rig.make_directory(parent(&self.target));
    }

    async fn stage(&self, plugin: &Plugin) -> Result<(), Status> {
        let request = stage(&self.id, &self.staging, Mode::SingleNodeWriter);
        plugin
            .node_stage_volume(Request::new(request))
            .await
            .map(drop)
    }

    async fn publish(&self, plugin: &Plugin) -> Result<(), Status> {
        let request = publish(&self.id, &self.staging, &self.target);
        plugin
            .node_publish_volume(Request::new(request))
            .await
            .map(drop)
    }

    async fn unpublish(&self, plugin: &Plugin) -> Result<(), Status> {
        let request = unpublish(&self.id, &self.target);
        plugin
            .node_unpublish_volume(Request::new(request))
            .await
            .map(drop)
    }

    async fn unstage(&self, plugin: &Plugin) -> Result<(), Status> {
        let request = unstage(&self.id, &self.staging);
        plugin
            .node_unstage_volume(Request::new(request))
            .await
            .map(drop)
    }

    async fn delete(&self, plugin: &Plugin) -> Result<(), Status> {
        let request = DeleteVolumeRequest {
            volume_id: self.id.clone(),
            ..Default::default()
        };
        plugin.delete_volume(Request::new(request)).await.map(drop)
    }
}

/// Runs all the tasks to their end.
fn all<T: Send + 'static>(rig: &Rig, tasks: Vec<impl Future<Output = T> + Send + 'static>) {
    rig.runtime.block_on(async {
        let handles: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
        for handle in handles {
            tokio::time::timeout(GIVE_UP, handle)
                .await
                .expect("deadlock")
                .unwrap();
        }
    });
}

fn assert_nothing_is_left(rig: &Rig) {
    assert_eq!(rig.tree(POOL), [r"C:\csi\pool\state\"]);
    let leads_away = |line: &String| line.contains(" -> ") || line.contains(" = ");
    assert!(!rig.tree(r"C:\staging").iter().any(leads_away));
    assert!(!rig.tree(r"C:\pods").iter().any(leads_away));
    assert_eq!(rig.disks(), Rig::new().disks());
    assert_eq!(rig.locks(), 0);
}

#[test]
fn sixty_four_volumes_live_side_by_side() {
    let rig = Arc::new(Rig::new());
    let volumes: Vec<_> = (0..64).map(Mine::new).collect();
    for mine in &volumes {
        mine.prepare(&rig);
    }
    let life = |mine: Mine| {
        let rig = Arc::clone(&rig);
        async move {
            let plugin = &rig.plugin;
            let made = plugin
                .create_volume(Request::new(create(&mine.id, 64 * MIB)))
                .await;
            assert_eq!(
                made.unwrap().into_inner().volume.unwrap().volume_id,
                mine.id
            );
            mine.stage(plugin).await.unwrap();
            mine.publish(plugin).await.unwrap();
            let file = format!(r"{}\who.txt", mine.target);
            rig.write(&file, &mine.id);
            assert_eq!(rig.read(&format!(r"{}\who.txt", mine.staging)), mine.id);
            mine.unpublish(plugin).await.unwrap();
            mine.unstage(plugin).await.unwrap();
            mine.stage(plugin).await.unwrap();
            assert_eq!(rig.read(&format!(r"{}\who.txt", mine.staging)), mine.id);
            mine.unstage(plugin).await.unwrap();
            mine.delete(plugin).await.unwrap();
        }
    };
    all(&rig, volumes.into_iter().map(life).collect());
    assert_nothing_is_left(&rig);
}

#[test]
fn a_thousand_cycles_with_every_call_made_twice_at_a_time() {
    const VOLUMES: usize = 8;
    const CYCLES: usize = 125;
    let rig = Arc::new(Rig::new());
    let volumes: Vec<_> = (0..VOLUMES).map(Mine::new).collect();
    for mine in &volumes {
        mine.prepare(&rig);
        rig.create(&mine.id, GIB).unwrap();
    }
    let cycles = |mine: Mine| {
        let rig = Arc::clone(&rig);
        async move {
            let plugin = &rig.plugin;
            let file = format!(r"{}\count.txt", mine.target);
            for cycle in 0..CYCLES {
                let (first, again) = tokio::join!(mine.stage(plugin), mine.stage(plugin));
                both(first, again);
                let (first, again) = tokio::join!(mine.publish(plugin), mine.publish(plugin));
                both(first, again);
                if cycle > 0 {
                    assert_eq!(rig.read(&file), format!("{} {}", mine.id, cycle - 1));
                }
                rig.write(&file, &format!("{} {cycle}", mine.id));
                let (first, again) = tokio::join!(mine.unpublish(plugin), mine.unpublish(plugin));
                both(first, again);
                let (first, again) = tokio::join!(mine.unstage(plugin), mine.unstage(plugin));
                both(first, again);
            }
            mine.delete(plugin).await.unwrap();
        }
    };
    all(&rig, volumes.iter().cloned().map(cycles).collect());
    assert_nothing_is_left(&rig);
}

/// A call and the same call beside it: both succeed, since the second joins the first.
fn both(first: Result<(), Status>, again: Result<(), Status>) {
    first.unwrap();
    again.unwrap();
}

#[test]
fn different_calls_for_one_volume_are_aborted_or_done_and_never_mixed() {
    let rig = Arc::new(Rig::new());
    let mine = Mine::new(1);
    mine.prepare(&rig);
    rig.create(&mine.id, GIB).unwrap();
    let caller = |number: usize| {
        let (rig, mine) = (Arc::clone(&rig), mine.clone());
        async move {
            let plugin = &rig.plugin;
            for _ in 0..50 {
                let answer = match number % 4 {
                    0 => mine.stage(plugin).await,
                    1 => mine.publish(plugin).await,
                    2 => mine.unpublish(plugin).await,
                    _ => mine.unstage(plugin).await,
                };
                // A publish may come while the volume is not staged.
                if let Err(status) = answer {
                    let expected = [tonic::Code::Aborted, tonic::Code::FailedPrecondition];
                    assert!(expected.contains(&status.code()), "{status:?}");
                }
            }
        }
    };
    all(&rig, (0..8).map(caller).collect());
    rig.runtime.block_on(async {
        mine.unpublish(&rig.plugin).await.unwrap();
        mine.unstage(&rig.plugin).await.unwrap();
        mine.delete(&rig.plugin).await.unwrap();
    });
    assert_nothing_is_left(&rig);
}
