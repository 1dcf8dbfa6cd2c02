//! The life of a volume on a simulated node without latencies: what is measured is the
//! plugin, the library and the simulation, from the RPC down. Beside the times it prints the
//! port calls that each RPC makes.

#![expect(clippy::unwrap_used, reason = "a benchmark ends at the first fault")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{GIB, Rig, STAGING, TARGET};
use criterion::{Criterion, criterion_group, criterion_main};

type Step = (&'static str, fn(&Rig));

/// The RPCs of a life in their order.
const LIFE: [Step; 11] = [
    ("create", |rig| drop(rig.create("v", GIB).unwrap())),
    ("first stage", |rig| rig.stage("v").unwrap()),
    ("unstage", |rig| rig.unstage("v").unwrap()),
    ("controller expand", |rig| {
        assert_eq!(rig.grow("v", 2 * GIB).unwrap(), 2 * GIB);
    }),
    ("stage", |rig| rig.stage("v").unwrap()),
    ("node expand", |rig| {
        assert_eq!(rig.node_expand("v", STAGING, 2 * GIB).unwrap(), 2 * GIB);
    }),
    ("publish", |rig| rig.publish("v").unwrap()),
    ("stats", |rig| drop(rig.stats("v", TARGET).unwrap())),
    ("unpublish", |rig| rig.unpublish("v").unwrap()),
    ("last unstage", |rig| rig.unstage("v").unwrap()),
    ("delete", |rig| rig.delete("v").unwrap()),
];

fn life(criterion: &mut Criterion) {
    let rig = Rig::new();
    println!("port calls: WMI, operating system");
    for (name, step) in LIFE {
        rig.node.reset_counts();
        step(&rig);
        let counts = rig.node.counts();
        println!("  {name:17} {:3} {:3}", counts.cim, counts.os);
    }
    criterion.bench_function("life of a volume", |bench| {
        bench.iter(|| {
            for (_, step) in LIFE {
                step(&rig);
            }
        });
    });
}

fn publish(criterion: &mut Criterion) {
    let rig = Rig::new();
    rig.create("v", GIB).unwrap();
    rig.stage("v").unwrap();
    assert!(rig.exists(STAGING));
    criterion.bench_function("publish and unpublish", |bench| {
        bench.iter(|| {
            rig.publish("v").unwrap();
            rig.unpublish("v").unwrap();
        });
    });
}

criterion_group!(benches, life, publish);
criterion_main!(benches);
