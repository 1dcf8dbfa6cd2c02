//! How long storage operations take on a simulated node without latencies, alone and in a
//! crowd of disks, which must make no difference once a disk is known.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use csi_proxy::clock::Deadline;
use csi_proxy::staging::StageRequest;
use csi_proxy::volume::FormatOptions;
use csi_proxy::{DiskNumber, Error, Host, HostPath, Locator, NotAHostPath};
use csi_proxy_sim::SimNode;
use csi_proxy_sim::storage::SimDisk;

const NEVER: Deadline = Deadline::Never;
const GIB: u64 = 1 << 30;
const ONE: DiskNumber = DiskNumber(1);

/// How many disks besides the system disk a node has.
const DISKS: [u32; 2] = [1, 256];

/// A node with a formatted disk, number 1, and others up to a number of disks.
fn crowded(disks: u32) -> SimNode {
    let first = SimDisk::ntfs(GIB)
        .number(1)
        .unique_id("one")
        .serial("first");
    let others = (2..=disks).map(|number| SimDisk::ntfs(GIB).number(number));
    let builder = SimNode::builder().disk(first);
    others
        .fold(builder, |builder, disk| builder.disk(disk))
        .build()
}

fn host(node: &SimNode) -> Result<Host, NotAHostPath> {
    let state_dir = HostPath::from_kubelet(r"C:\state")?;
    Ok(node.process().host().with_state_dir(state_dir))
}

fn request() -> Result<StageRequest, NotAHostPath> {
    Ok(StageRequest {
        disk: "one".to_owned(),
        path: HostPath::from_kubelet(r"C:\var\lib\kubelet\plugins\staging\a")?,
        format: FormatOptions::default(),
        file_system: None,
        read_only: false,
    })
}

fn cycle(host: &Host, request: &StageRequest) -> Result<(), Error> {
    let staged = host.staging().stage(request, NEVER)?;
    host.staging()
        .unstage(&request.path, Some(&staged.volume), NEVER)
}

/// Stage and unstage of a formatted volume.
fn stage_cycle(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stage and unstage");
    for disks in DISKS {
        let node = crowded(disks);
        let prepared = host(&node).and_then(|host| Ok((host, request()?)));
        let Ok((host, request)) = prepared else {
            panic!("the paths are wrong");
        };
        group.bench_function(BenchmarkId::from_parameter(disks), |bencher| {
            bencher.iter(|| cycle(&host, &request).expect("a formatted volume can be staged"));
        });
        node.reset_counts();
        cycle(&host, &request).expect("a formatted volume can be staged");
        let counts = node.counts();
        println!(
            "stage and unstage among {disks}: {} WMI calls, {} of the system",
            counts.cim, counts.os
        );
    }
    group.finish();
}

/// A stage of a disk that was never used: initialise, partition, format, mount.
fn first_stage(criterion: &mut Criterion) {
    let node = SimNode::builder()
        .disk(SimDisk::raw(GIB).number(1).unique_id("one"))
        .build();
    let fresh = node.snapshot();
    let prepared = host(&node).and_then(|host| Ok((host, request()?)));
    let Ok((host, request)) = prepared else {
        panic!("the paths are wrong");
    };
    criterion.bench_function("first stage", |bencher| {
        bencher.iter(|| {
            node.change(|state| state.clone_from(&fresh));
            host.staging()
                .stage(&request, NEVER)
                .expect("a fresh disk can be staged")
        });
    });
}

/// Questions with a known disk number, and the search for a disk.
fn questions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("questions");
    for disks in DISKS {
        let node = crowded(disks);
        let Ok(host) = host(&node) else {
            panic!("the path is wrong");
        };
        group.bench_function(BenchmarkId::new("disk stats", disks), |bencher| {
            bencher.iter(|| black_box(host.disk().stats(ONE, NEVER)).expect("the disk is there"));
        });
        group.bench_function(BenchmarkId::new("volumes of a disk", disks), |bencher| {
            let list = || host.volume().list_on_disk(ONE, None, NEVER);
            bencher.iter(|| black_box(list()).expect("the disk is there"));
        });
        for text in ["serial=first", "page83=one"] {
            let locator: Locator = text.parse().expect("it is a locator");
            group.bench_function(BenchmarkId::new(text, disks), |bencher| {
                let find = || host.disk().find(&locator, NEVER);
                bencher.iter(|| black_box(find()).expect("the disk is there"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, stage_cycle, first_stage, questions);
criterion_main!(benches);
