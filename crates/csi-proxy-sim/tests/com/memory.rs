//! Calls leave nothing behind.

#![expect(unsafe_code, reason = "Windows tells what a process holds")]

use csi_proxy::DiskNumber;
use csi_proxy_sim::SimNode;
use csi_proxy_sim::storage::SimDisk;
use windows::Win32::System::ProcessStatus::{GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows::Win32::System::Threading::{GetCurrentProcess, GetProcessHandleCount};

use crate::{GIB, NEVER, Reached};

/// What the process holds.
#[derive(Debug)]
struct Held {
    handles: u32,
    bytes: usize,
}

impl Held {
    fn now() -> Self {
        let mut handles = 0;
        let mut memory = PROCESS_MEMORY_COUNTERS::default();
        let size = u32::try_from(size_of_val(&memory)).unwrap();
        // SAFETY: no preconditions.
        let process = unsafe { GetCurrentProcess() };
        // SAFETY: the number is written to a local.
        unsafe { GetProcessHandleCount(process, &raw mut handles) }.unwrap();
        // SAFETY: the structure is written to a local of that size.
        unsafe { GetProcessMemoryInfo(process, &raw mut memory, size) }.unwrap();
        Self {
            handles,
            bytes: memory.WorkingSetSize,
        }
    }
}

/// Queries and method calls, one of each per round.
fn calls(reached: &Reached, rounds: u32) {
    for _ in 0..rounds {
        reached.host.disk().stats(DiskNumber(1), NEVER).unwrap();
        reached.host.disk().rescan(NEVER).unwrap();
    }
}

#[test]
fn a_hundred_thousand_calls_leave_nothing_behind() {
    const MIB: usize = 1 << 20;
    let disk = SimDisk::raw(4 * GIB).number(1);
    let reached = Reached::new(SimNode::builder().disk(disk).build());
    // The node keeps a log of its last 10,000 calls, which is full after these.
    calls(&reached, 6_000);
    let first = Held::now();
    calls(&reached, 50_000);
    let last = Held::now();
    assert!(
        last.handles <= first.handles + 8,
        "{first:?}, then {last:?}"
    );
    assert!(
        last.bytes <= first.bytes + 2 * MIB,
        "{first:?}, then {last:?}"
    );
}
