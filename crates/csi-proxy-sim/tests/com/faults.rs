//! A provider that hangs, goes away or denies access.

use std::time::Duration;

use csi_proxy::cim::{Namespace, Query};
use csi_proxy::clock::Clock as _;
use csi_proxy::port::PortError;
use csi_proxy::{DiskNumber, ErrorKind};
use csi_proxy_sim::storage::SimDisk;
use csi_proxy_sim::{Fault, SimClock, SimNode};

use crate::{GIB, NEVER, Reached};

fn reached() -> Reached {
    let disk = SimDisk::raw(4 * GIB).number(1);
    Reached::new(SimNode::builder().disk(disk).build())
}

/// `RPC_E_DISCONNECTED`, `RPC_S_SERVER_UNAVAILABLE`, `WBEM_E_SHUTTING_DOWN`
const RESTARTED: [u32; 3] = [0x8001_0108, 0x8007_06BA, 0x8004_1033];

#[test]
fn a_query_survives_a_restart_of_wmi() {
    let reached = reached();
    let size = || reached.host.disk().stats(DiskNumber(1), NEVER);
    size().unwrap();
    for (restarts, code) in (1..).zip(RESTARTED) {
        reached
            .node
            .inject(Fault::on("query MSFT_Disk").hresult(code));
        assert_eq!(size().unwrap().total_bytes, 4 * GIB);
        assert_eq!(reached.face.counts().connects, 1 + restarts);
    }
}

#[test]
fn a_wmi_that_stays_away_is_unavailable() {
    let reached = reached();
    let fault = Fault::on("query MSFT_Disk").times(2).hresult(0x8007_06BA);
    reached.node.inject(fault);
    let error = reached.host.disk().stats(DiskNumber(1), NEVER).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    reached.host.disk().stats(DiskNumber(1), NEVER).unwrap();
}

#[test]
fn a_method_during_a_restart_is_not_made_twice() {
    let reached = reached();
    reached.host.disk().rescan(NEVER).unwrap();
    for code in RESTARTED {
        let before = reached.face.counts().methods;
        let method = "MSFT_StorageSetting.UpdateHostStorageCache";
        reached.node.inject(Fault::on(method).hresult(code));
        let error = reached.host.disk().rescan(NEVER).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        assert_eq!(reached.face.counts().methods, before + 1);
        reached.host.disk().rescan(NEVER).unwrap();
    }
}

#[test]
fn a_lost_answer_is_an_unknown_outcome() {
    let reached = reached();
    reached
        .node
        .inject(Fault::on("MSFT_Disk.Initialize").loses_answer());
    let error = reached.host.disk().partition(DiskNumber(1), NEVER);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    reached.host.disk().partition(DiskNumber(1), NEVER).unwrap();
    assert_eq!(reached.node.faults_left(), 0);
}

#[test]
fn access_denied_keeps_its_code_and_the_connection() {
    let reached = reached();
    reached.host.disk().stats(DiskNumber(1), NEVER).unwrap();
    let denied = Fault::on("query MSFT_Disk").hresult(0x8004_1003);
    reached.node.inject(denied);
    let error = reached.host.disk().stats(DiskNumber(1), NEVER).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    reached.host.disk().stats(DiskNumber(1), NEVER).unwrap();
    assert_eq!(reached.face.counts().connects, 1);
}

#[test]
fn a_provider_that_hangs_costs_its_caller_the_deadline_alone() {
    let disk = SimDisk::raw(4 * GIB).number(1);
    let clock = SimClock::manual();
    let reached = Reached::new(SimNode::builder().clock(clock).disk(disk).build());
    let stall = Duration::from_secs(600);
    reached
        .node
        .inject(Fault::on("query MSFT_Volume").stalls(stall));
    let clock = reached.node.clock();
    let deadline = clock.deadline_in(Duration::from_secs(30));
    let cim = reached.host.cim();
    let hanging = Query::new(Namespace::Storage, "MSFT_Volume", &["Path"]);
    let given_up = std::thread::scope(|scope| {
        let caller = scope.spawn(|| cim.query(&hanging, deadline));
        while reached.face.counts().queries == 0 {
            std::thread::yield_now();
        }
        // Others are served meanwhile.
        reached.host.disk().stats(DiskNumber(1), NEVER).unwrap();
        clock.advance(Duration::from_secs(31));
        caller.join().unwrap()
    });
    let Err(PortError::DeadlineExceeded { running: Some(id) }) = given_up else {
        panic!("{given_up:?}");
    };
    assert!(cim.is_running(&id, NEVER).unwrap());
    reached.host.disk().stats(DiskNumber(1), NEVER).unwrap();
    clock.advance(stall);
    while cim.is_running(&id, NEVER).unwrap() {
        std::thread::yield_now();
    }
}
