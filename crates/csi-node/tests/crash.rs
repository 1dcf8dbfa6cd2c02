//! The process crashes, or the node reboots, at every single port call of every operation.
//! A new plugin repeats the call: it ends in the right state, nothing leaks, and the files
//! on the volume keep their contents. All of it also with the kubelet's files over a link.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Answer, GIB, POOL, Rig, STAGING, TARGET, parent};
use csi_node::proto::CreateVolumeRequest;
use csi_node::proto::controller_server::Controller as _;
use csi_proxy_sim::Fault;
use tonic::Request;

const FILE: &str = r"\data\file.txt";
const CONTENT: &str = "bytes of the pod";

/// How a run is cut off at a call: its name, whether the node reboots, and the fault.
type Cut = (&'static str, bool, fn(Fault) -> Fault);

const CUTS: [Cut; 4] = [
    ("crash before", false, Fault::crash_before),
    ("crash after", false, Fault::crash_after),
    ("reboot before", true, Fault::reboot_before),
    ("reboot after", true, Fault::reboot_after),
];

/// An operation that is cut off.
struct Case {
    name: &'static str,
    /// Leads to where the operation begins.
    before: &'static [fn(&Rig) -> Answer<()>],
    act: fn(&Rig) -> Answer<()>,
    /// What the kubelet does after a reboot before it repeats the call.
    after_reboot: &'static [fn(&Rig) -> Answer<()>],
    /// The state that the repeated call has to reach.
    done: fn(&Rig),
    /// What leads from there to a node without the volume.
    end: &'static [fn(&Rig) -> Answer<()>],
}

fn create(rig: &Rig) -> Answer<()> {
    rig.create("v", GIB).map(drop)
}

/// A volume about which there is more to keep than its size.
fn create_labelled(rig: &Rig) -> Answer<()> {
    let request = CreateVolumeRequest {
        parameters: common::map(&[("label", "data")]),
        ..common::create("v", GIB)
    };
    rig.call(rig.plugin.create_volume(Request::new(request)))
        .map(drop)
}

fn delete(rig: &Rig) -> Answer<()> {
    rig.delete("v")
}

fn stage(rig: &Rig) -> Answer<()> {
    rig.stage("v")
}

fn unstage(rig: &Rig) -> Answer<()> {
    rig.unstage("v")
}

fn publish(rig: &Rig) -> Answer<()> {
    rig.publish("v")
}

fn unpublish(rig: &Rig) -> Answer<()> {
    rig.unpublish("v")
}

fn grow(rig: &Rig) -> Answer<()> {
    rig.grow("v", 2 * GIB).map(|size| assert_eq!(size, 2 * GIB))
}

fn node_expand(rig: &Rig) -> Answer<()> {
    let size = rig.node_expand("v", STAGING, 2 * GIB);
    size.map(|size| assert_eq!(size, 2 * GIB))
}

/// What a pod writes to the staged volume.
fn write(rig: &Rig) -> Answer<()> {
    let file = format!("{STAGING}{FILE}");
    rig.make_directory(parent(&file));
    rig.write(&file, CONTENT);
    Ok(())
}

fn is_staged(rig: &Rig) {
    assert!(rig.stats("v", STAGING).is_ok());
}

fn file_is_kept(rig: &Rig) {
    is_staged(rig);
    assert_eq!(rig.read(&format!("{STAGING}{FILE}")), CONTENT);
}

fn is_published(rig: &Rig) {
    assert_eq!(rig.read(&format!("{TARGET}{FILE}")), CONTENT);
    assert_eq!(rig.tree(parent(TARGET)), [format!("{TARGET} -> {STAGING}")]);
}

fn is_not_published(rig: &Rig) {
    assert!(rig.tree(parent(TARGET)).is_empty());
    file_is_kept(rig);
}

fn is_not_staged(rig: &Rig) {
    assert!(
        rig.tree(parent(STAGING))
            .iter()
            .all(|line| !line.contains(" = "))
    );
    let list = rig.list(0, "").unwrap();
    assert!(
        list.entries[0]
            .status
            .clone()
            .unwrap()
            .published_node_ids
            .is_empty()
    );
    // The bytes are still there.
    stage(rig).unwrap();
    file_is_kept(rig);
    unstage(rig).unwrap();
}

fn exists(rig: &Rig) {
    assert_eq!(
        rig.tree(POOL),
        [r"C:\csi\pool\state\", r"C:\csi\pool\v.vhdx"]
    );
}

fn has_its_label(rig: &Rig) {
    let list = rig.list(0, "").unwrap();
    let context = list.entries[0].volume.clone().unwrap().volume_context;
    assert_eq!(context, common::map(&[("label", "data")]));
}

fn is_gone(rig: &Rig) {
    assert_eq!(rig.tree(POOL), [r"C:\csi\pool\state\"]);
}

fn is_larger(rig: &Rig) {
    let list = rig.list(0, "").unwrap();
    assert_eq!(
        list.entries[0].volume.clone().unwrap().capacity_bytes,
        2 * GIB
    );
}

fn file_system_is_larger(rig: &Rig) {
    assert!(rig.stats("v", STAGING).unwrap().usage[0].total > GIB);
    file_is_kept(rig);
}

const CASES: &[Case] = &[
    Case {
        name: "create",
        before: &[],
        act: create,
        after_reboot: &[],
        done: exists,
        end: &[delete],
    },
    Case {
        name: "first stage",
        before: &[create],
        act: stage,
        after_reboot: &[],
        done: is_staged,
        end: &[unstage, delete],
    },
    Case {
        name: "stage",
        before: &[create, stage, write, unstage],
        act: stage,
        after_reboot: &[],
        done: file_is_kept,
        end: &[unstage, delete],
    },
    Case {
        name: "create with parameters",
        before: &[],
        act: create_labelled,
        after_reboot: &[],
        done: has_its_label,
        end: &[delete],
    },
    Case {
        name: "delete with parameters",
        before: &[create_labelled],
        act: delete,
        after_reboot: &[],
        done: is_gone,
        end: &[],
    },
    Case {
        name: "publish",
        before: &[create, stage, write],
        act: publish,
        after_reboot: &[stage],
        done: is_published,
        end: &[unpublish, unstage, delete],
    },
    Case {
        name: "unpublish",
        before: &[create, stage, write, publish],
        act: unpublish,
        after_reboot: &[stage],
        done: is_not_published,
        end: &[unstage, delete],
    },
    Case {
        name: "unstage",
        before: &[create, stage, write],
        act: unstage,
        after_reboot: &[],
        done: is_not_staged,
        end: &[delete],
    },
    Case {
        name: "controller expand",
        before: &[create, stage, write, unstage],
        act: grow,
        after_reboot: &[],
        done: is_larger,
        end: &[delete],
    },
    Case {
        name: "node expand",
        before: &[create, stage, write, unstage, grow, stage],
        act: node_expand,
        after_reboot: &[stage],
        done: file_system_is_larger,
        end: &[unstage, delete],
    },
    Case {
        name: "delete",
        before: &[create, stage, write, unstage],
        act: delete,
        after_reboot: &[],
        done: is_gone,
        end: &[],
    },
];

/// A fresh node, as all of its kind are.
type Fresh = fn() -> Rig;

#[test]
fn an_operation_cut_off_at_any_call_is_completed_by_the_next_plugin() {
    cut_off_all(Rig::new);
}

#[test]
fn an_operation_on_paths_over_a_link_is_completed_by_the_next_plugin() {
    cut_off_all(Rig::over_link);
}

fn cut_off_all(fresh: Fresh) {
    let cut_points: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = CASES
            .iter()
            .map(|case| scope.spawn(move || everywhere(case, fresh)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    common::report(&format!("{cut_points} cut points in all"));
}

/// Cuts an operation off in each way at each of its calls, and counts.
fn everywhere(case: &Case, fresh: Fresh) -> u64 {
    let calls = calls_of(case, fresh);
    assert!(calls >= 2, "{}: {calls} calls", case.name);
    for call in 1..=calls {
        for (cut, reboot, how) in CUTS {
            let name = format!("{} at call {call} of {calls}: {cut}", case.name);
            cut_off(&name, case, fresh, how(Fault::at_call(call)), reboot);
        }
    }
    let reboots = calls * CUTS.iter().filter(|(_, reboot, _)| *reboot).count() as u64;
    let cut_points = calls * CUTS.len() as u64;
    let crashes = cut_points - reboots;
    common::report(&format!(
        "{}: {calls} calls, cut off by {crashes} crashes and {reboots} reboots",
        case.name
    ));
    cut_points
}

/// The number of port calls of the operation, without faults.
fn calls_of(case: &Case, fresh: Fresh) -> u64 {
    let rig = begin(case, fresh);
    rig.node.reset_counts();
    (case.act)(&rig).unwrap();
    let calls = rig.node.counts().total();
    (case.done)(&rig);
    end(case, &rig, &fresh());
    calls
}

fn cut_off(name: &str, case: &Case, fresh: Fresh, fault: Fault, reboot: bool) {
    let mut rig = begin(case, fresh);
    rig.node.inject(fault);
    // A crash right after the last call may come too late to be noticed, but it comes.
    let _ = (case.act)(&rig);
    assert_eq!(
        rig.node.show_faults(),
        [""; 0],
        "{name}: it was not cut off"
    );
    rig.restart();
    if reboot {
        for step in case.after_reboot {
            step(&rig).unwrap_or_else(|status| panic!("{name}: {status:?}"));
        }
    }
    (case.act)(&rig).unwrap_or_else(|status| panic!("{name}: {status:?}"));
    (case.done)(&rig);
    end(case, &rig, &fresh());
}

fn begin(case: &Case, fresh: Fresh) -> Rig {
    let rig = fresh();
    for step in case.before {
        step(&rig).unwrap();
    }
    rig
}

/// Takes the volume away; then the node is as it was before there was one.
fn end(case: &Case, rig: &Rig, fresh: &Rig) {
    for step in case.end {
        step(rig).unwrap();
    }
    is_gone(rig);
    assert!(rig.tree(parent(TARGET)).is_empty());
    assert_eq!(rig.disks(), fresh.disks());
    assert_eq!(rig.locks(), 0);
    let below = parent(parent(STAGING));
    let mounts = |line: &String| line.contains(" = ") || line.contains(" -> ");
    assert!(!rig.tree(below).iter().any(mounts));
}
