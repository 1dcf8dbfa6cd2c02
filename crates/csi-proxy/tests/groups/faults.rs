//! Every port call of every operation fails once with each code that it can answer, loses
//! its answer, or is where the process or the node ends: the error says what it was, and the
//! operation made again ends well.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::time::Duration;

use csi_proxy::ErrorKind::{Aborted, DeadlineExceeded, NotFound, OutcomeUnknown, Unavailable};
use csi_proxy::cim::CimCall;
use csi_proxy::clock::{Clock, Deadline};
use csi_proxy::codes::Row;
use csi_proxy::os::At;
use csi_proxy::port::Call;
use csi_proxy::{Error, ErrorKind, Host, Result, SharePath};
use csi_proxy_sim::{Fault, SimNode};

use crate::common::{failures, report};
use crate::iscsi::{SECRET, chap_secret, guarded, mutual, portal, storage_node, target};
use crate::smb::{PASSWORD, shared_node, user};
use crate::system::{runs, service_node};
use crate::{KUBELET, NEVER, node, path, symbolic_link};

/// An operation, the node that it is tried on, and what it must have done.
struct Case {
    name: &'static str,
    node: fn() -> SimNode,
    run: fn(&Host, Deadline) -> Result<()>,
    done: fn(&SimNode) -> bool,
    /// Whether what it needs is still there after a reboot.
    survives_reboot: bool,
}

const fn case(
    name: &'static str,
    node: fn() -> SimNode,
    run: fn(&Host, Deadline) -> Result<()>,
    done: fn(&SimNode) -> bool,
) -> Case {
    Case {
        name,
        node,
        run,
        done,
        survives_reboot: true,
    }
}

const CASES: &[Case] = &[
    case(
        "path_exists",
        files,
        |host, deadline| {
            host.filesystem()
                .path_exists(at("link"), deadline)
                .map(drop)
        },
        |_| true,
    ),
    case(
        "path_valid",
        files,
        |host, deadline| {
            host.filesystem()
                .path_valid(within("link"), deadline)
                .map(drop)
        },
        |_| true,
    ),
    case(
        "mkdir",
        files,
        |host, deadline| host.filesystem().mkdir(at(r"new\er"), deadline),
        |node| exists(node, r"new\er"),
    ),
    case(
        "rmdir",
        files,
        |host, deadline| host.filesystem().rmdir(at("empty"), false, deadline),
        |node| !exists(node, "empty"),
    ),
    case(
        "rmdir force",
        files,
        |host, deadline| host.filesystem().rmdir(at("full"), true, deadline),
        |node| !exists(node, "full"),
    ),
    case(
        "rmdir_contents",
        files,
        |host, deadline| host.filesystem().rmdir_contents(at("full"), deadline),
        |node| exists(node, "full") && !exists(node, r"full\file"),
    ),
    case(
        "create_symlink",
        files,
        |host, deadline| {
            host.filesystem()
                .create_symlink(within("full"), within("new"), deadline)
        },
        |node| exists(node, r"new\file"),
    ),
    case(
        "create_symlink again",
        files,
        |host, deadline| {
            host.filesystem()
                .create_symlink(&path(r"C:\data"), at("link"), deadline)
        },
        |node| exists(node, r"link\kept"),
    ),
    case(
        "is_symlink",
        files,
        |host, deadline| host.filesystem().is_symlink(at("link"), deadline).map(drop),
        |_| true,
    ),
    case("new_global_mapping", shared_node, new_mapping, |node| {
        is_mapped(node) && exists(node, "mnt")
    }),
    case(
        "new_global_mapping that is there",
        mapped,
        new_mapping,
        |node| is_mapped(node) && exists(node, "mnt"),
    ),
    case(
        "new_global_mapping that is dead",
        broken,
        new_mapping,
        |node| is_mapped(node) && exists(node, "mnt"),
    ),
    case(
        "remove_global_mapping",
        mapped,
        |host, deadline| host.smb().remove_global_mapping(&share(), deadline),
        |node| !is_mapped(node),
    ),
    case(
        "status",
        mapped,
        |host, deadline| host.smb().status(&share(), deadline).map(drop),
        |_| true,
    ),
    case("acquire_global_mapping", shared_node, acquire, is_mapped),
    case(
        "acquire_global_mapping in use",
        broken,
        acquire_in_use,
        is_mapped,
    ),
    case(
        "release_global_mapping",
        mapped,
        |host, deadline| {
            host.smb()
                .release_global_mapping(&share(), 0, deadline)
                .map(drop)
        },
        |node| !is_mapped(node),
    ),
    case(
        "add_target_portal",
        initiator,
        |host, deadline| host.iscsi().add_target_portal(&portal(), deadline),
        has_portal,
    ),
    case(
        "discover_target_portal",
        offered,
        |host, deadline| {
            host.iscsi()
                .discover_target_portal(&portal(), deadline)
                .map(drop)
        },
        |_| true,
    ),
    case(
        "list_target_portals",
        offered,
        |host, deadline| host.iscsi().list_target_portals(deadline).map(drop),
        |_| true,
    ),
    case(
        "remove_target_portal",
        offered,
        |host, deadline| host.iscsi().remove_target_portal(&portal(), deadline),
        |node| !has_portal(node),
    ),
    case(
        "connect_target",
        offered,
        |host, deadline| {
            host.iscsi()
                .connect_target(&portal(), &guarded(), &mutual(), deadline)
        },
        |node| sessions(node) == 1,
    ),
    case(
        "disconnect_target",
        connected,
        |host, deadline| host.iscsi().disconnect_target(&target(), deadline),
        |node| sessions(node) == 0 && node.snapshot().iscsi.persistent.is_empty(),
    ),
    Case {
        survives_reboot: false,
        ..case(
            "target_disks",
            connected,
            |host, deadline| host.iscsi().target_disks(&target(), deadline).map(drop),
            |_| true,
        )
    },
    case(
        "set_mutual_chap_secret",
        initiator,
        |host, deadline| {
            host.iscsi()
                .set_mutual_chap_secret(&chap_secret(SECRET), deadline)
        },
        |node| node.snapshot().iscsi.initiator_secret.is_some(),
    ),
    case(
        "bios_serial_number",
        files,
        |host, deadline| host.system().bios_serial_number(deadline).map(drop),
        |_| true,
    ),
    case(
        "service",
        || service_node(true),
        |host, deadline| host.system().service("base", deadline).map(drop),
        |_| true,
    ),
    case(
        "start_service",
        || service_node(false),
        |host, deadline| host.system().start_service("base", deadline),
        |node| runs(node, "base"),
    ),
    case(
        "stop_service",
        || service_node(true),
        |host, deadline| host.system().stop_service("top", false, deadline),
        |node| !runs(node, "top"),
    ),
    case(
        "stop_service force",
        || service_node(true),
        |host, deadline| host.system().stop_service("base", true, deadline),
        |node| !runs(node, "base"),
    ),
];

fn files() -> SimNode {
    node(|state| {
        state.put_directory(r"C:\data").unwrap();
        state.put_file(r"C:\data\kept", b"x").unwrap();
        state.put_directory(r"C:\var\lib\kubelet\full\sub").unwrap();
        state
            .put_file(r"C:\var\lib\kubelet\full\file", b"x")
            .unwrap();
        state.put_directory(r"C:\var\lib\kubelet\empty").unwrap();
        let link = symbolic_link(r"C:\data");
        state.put_link(r"C:\var\lib\kubelet\link", link).unwrap();
    })
}

fn at(name: &str) -> At {
    At::path(&path(&format!(r"{KUBELET}\{name}")))
}

fn within(name: &str) -> At {
    At::within(&path(&format!(r"{KUBELET}\{name}")), &path(KUBELET))
}

fn exists(node: &SimNode, name: &str) -> bool {
    node.process().os().stat(&at(name), NEVER).is_ok()
}

fn share() -> SharePath {
    SharePath::new(r"\\s\share\a").unwrap()
}

fn new_mapping(host: &Host, deadline: Deadline) -> Result<()> {
    host.smb()
        .new_global_mapping(&share(), Some(&user()), Some(&at("mnt")), true, deadline)
}

fn acquire(host: &Host, deadline: Deadline) -> Result<()> {
    host.smb()
        .acquire_global_mapping(&share(), Some(&user()), true, &[], deadline)
}

fn acquire_in_use(host: &Host, deadline: Deadline) -> Result<()> {
    let users = [Some(user().username().to_owned())];
    host.smb()
        .acquire_global_mapping(&share(), Some(&user()), true, &users, deadline)
}

fn mapped() -> SimNode {
    let node = shared_node();
    acquire(&node.process().host(), NEVER).unwrap();
    node
}

fn broken() -> SimNode {
    let node = mapped();
    node.change(|state| state.smb.break_mapping("s", "share"));
    node
}

fn is_mapped(node: &SimNode) -> bool {
    let mappings = node.snapshot().smb.mappings;
    mappings.len() == 1 && !mappings[0].broken
}

/// The initiator starts with Windows, and the secret for mutual CHAP is known.
fn initiator() -> SimNode {
    let node = storage_node();
    node.change(|state| {
        let service = state.services.get_mut("MSiSCSI").unwrap();
        service.start_mode = csi_proxy_sim::services::StartMode::Auto;
    });
    node
}

fn offered() -> SimNode {
    let node = initiator();
    let host = node.process().host();
    let secret = chap_secret("mutual-secret-1");
    host.iscsi().set_mutual_chap_secret(&secret, NEVER).unwrap();
    host.iscsi().add_target_portal(&portal(), NEVER).unwrap();
    node
}

/// A session that would be made again at the next start.
fn connected() -> SimNode {
    let node = offered();
    let none = csi_proxy::iscsi::Authentication::None;
    node.process()
        .host()
        .iscsi()
        .connect_target(&portal(), &target(), &none, NEVER)
        .unwrap();
    node.change(|state| {
        let login = state.iscsi.sessions[0].login.clone();
        state.iscsi.persistent.push(login);
    });
    node
}

fn has_portal(node: &SimNode) -> bool {
    !node.snapshot().iscsi.portals.is_empty()
}

fn sessions(node: &SimNode) -> usize {
    node.snapshot().iscsi.sessions.len()
}

/// The port calls that an operation makes when nothing goes wrong.
fn calls(case: &Case) -> Vec<Call> {
    let node = (case.node)();
    let before = node.call_log().len();
    (case.run)(&node.process().host(), NEVER).expect(case.name);
    let log = node.call_log();
    assert!((case.done)(&node), "{}", case.name);
    log[before..]
        .iter()
        .map(|entry| entry.call.clone())
        .collect()
}

/// Which failures of a call are no failures of the operation.
enum Which {
    Codes(&'static [u32]),
    Kinds(&'static [ErrorKind]),
    All,
}

/// A failure after which the operation has done its work or knows its answer all the same.
struct Success {
    /// The operations; all if there are none.
    cases: &'static [&'static str],
    /// The call that fails.
    call: &'static str,
    which: Which,
    /// Why it is success; for the reader.
    _why: &'static str,
}

const SUCCESSES: &[Success] = &[
    Success {
        cases: &[],
        call: "unlock",
        which: Which::All,
        _why: "the work is done; the lock is given back by the next operation",
    },
    Success {
        cases: &[],
        call: "try_lock",
        which: Which::Kinds(&[Aborted]),
        _why: "as if another operation held the share's lock: it is waited for",
    },
    Success {
        cases: &["path_exists", "path_valid", "create_symlink"],
        call: "stat",
        which: Which::Codes(&[2, 3]),
        _why: "nothing is at the path, which is the answer, or what a new link needs",
    },
    Success {
        cases: &["path_valid", "is_symlink"],
        call: "reach",
        which: Which::Kinds(&[NotFound, Unavailable]),
        _why: "the target, or its server, is not there, which is the answer",
    },
    Success {
        cases: &[
            "new_global_mapping that is there",
            "new_global_mapping that is dead",
            "acquire_global_mapping in use",
        ],
        call: "reach",
        which: Which::All,
        _why: "a mapping over which the share cannot be reached is made anew",
    },
    Success {
        cases: &["rmdir"],
        call: "remove_directory",
        which: Which::Codes(&[2, 3]),
        _why: "it is gone already",
    },
    Success {
        cases: &["rmdir force"],
        call: "remove_tree",
        which: Which::Codes(&[2, 3]),
        _why: "it is gone already",
    },
    Success {
        cases: &["create_symlink again"],
        call: "create_link",
        which: Which::Codes(&[183]),
        _why: "the same link is there",
    },
    Success {
        cases: &["remove_global_mapping", "release_global_mapping"],
        call: "MSFT_SmbGlobalMapping.Remove",
        // ERROR_NOT_CONNECTED, WBEM_E_NOT_FOUND.
        which: Which::Codes(&[2250, 0x8004_1002]),
        _why: "it is gone already",
    },
    Success {
        cases: &["add_target_portal"],
        call: "MSFT_iSCSITargetPortal.New",
        // The initiator's code, WBEM_E_ALREADY_EXISTS.
        which: Which::Codes(&[0xefff_0032, 0x8004_1019]),
        _why: "it is there already",
    },
    Success {
        cases: &["remove_target_portal"],
        call: "MSFT_iSCSITargetPortal.Remove",
        which: Which::Codes(&[0xefff_0043, 0x8004_1002]),
        _why: "it is gone already",
    },
    Success {
        cases: &["connect_target"],
        call: "MSFT_iSCSITarget.Connect",
        which: Which::Codes(&[0xefff_003f, 0x8004_1019]),
        _why: "the target is logged in already",
    },
    Success {
        cases: &["disconnect_target"],
        call: "MSFT_iSCSITarget.Disconnect",
        which: Which::Codes(&[0xefff_001c, 0x8004_1002]),
        _why: "the session is gone already",
    },
    Success {
        cases: &["start_service"],
        call: "Win32_Service.StartService",
        // 5: a change of its state is pending; 10: it runs.
        which: Which::Codes(&[5, 10]),
        _why: "the state is looked at until it is the one that is wanted",
    },
    Success {
        cases: &["stop_service", "stop_service force"],
        call: "Win32_Service.StopService",
        // 5: a change of its state is pending; 6: it does not run.
        which: Which::Codes(&[5, 6]),
        _why: "the state is looked at until it is the one that is wanted",
    },
];

impl Success {
    fn covers(&self, case: &Case, call: &str, row: Row) -> bool {
        let which = match self.which {
            Which::Codes(codes) => codes.contains(&row.code),
            Which::Kinds(kinds) => kinds.contains(&row.kind),
            Which::All => true,
        };
        which && self.call == call && (self.cases.is_empty() || self.cases.contains(&case.name))
    }
}

/// What was in the way is said to be gone although it is not: the error is that something is
/// in the way.
fn says_gone(case: &Case, call: &Call, row: Row) -> bool {
    let removed = match case.name {
        "create_symlink again" => "stat",
        "new_global_mapping that is dead" | "acquire_global_mapping in use" => {
            "MSFT_SmbGlobalMapping.Remove"
        }
        _ => return false,
    };
    row.kind == NotFound && call.operation() == removed
}

/// Neither the text nor the parts of an error show a secret.
fn check_secrets(error: &Error) {
    let mut shown = format!("{error}\n{error:?}");
    let mut source = error.source();
    while let Some(inner) = source {
        shown.push_str(&format!("\n{inner}\n{inner:?}"));
        source = inner.source();
    }
    for secret in [PASSWORD, &PASSWORD.replace('\\', r"\\"), SECRET] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn every_call_that_fails_is_told_by_kind_and_meaning_and_the_retry_works() {
    let mut count = 0;
    let mut used = BTreeSet::new();
    for case in CASES {
        // One node, set back each time: making one takes longer than an operation.
        let node = (case.node)();
        let start = node.snapshot();
        for (n, call) in (1..).zip(calls(case)) {
            for (fault, row) in failures(&call, n) {
                let what = format!("{}: {} with {row:?}", case.name, call.operation());
                node.change(|state| state.clone_from(&start));
                node.inject(fault);
                let host = node.process().host();
                let operation = call.operation();
                let success = SUCCESSES
                    .iter()
                    .position(|success| success.covers(case, &operation, row));
                used.extend(success);
                match ((case.run)(&host, NEVER), success) {
                    (Ok(()), Some(_)) => {}
                    (Ok(()), None) => panic!("{what}: told as success"),
                    (Err(error), Some(_)) => panic!("{what}: {error}"),
                    (Err(error), None) => {
                        check_secrets(&error);
                        if !says_gone(case, &call, row) {
                            assert_eq!(error.kind(), row.kind, "{what}: {error}");
                            assert!(error.to_string().contains(row.meaning), "{what}: {error}");
                        }
                    }
                }
                assert_eq!(node.faults_left(), 0, "{what}");
                (case.run)(&host, NEVER).expect(&what);
                assert!((case.done)(&node), "{what}");
                count += 1;
            }
        }
    }
    assert_eq!(used.len(), SUCCESSES.len(), "not met: only {used:?}");
    report(&format!("{count} failures"));
}

/// Methods whose effect must not come twice. Setting a secret again sets the same secret,
/// and a mapping that nobody uses is always made anew.
fn counts_once(case: &Case, call: &Call) -> bool {
    let is_method = matches!(call, Call::Cim(CimCall::Invoke(_)));
    is_method
        && !matches!(
            case.name,
            "set_mutual_chap_secret" | "acquire_global_mapping"
        )
}

#[test]
fn a_lost_answer_is_told_and_the_retry_does_nothing_twice() {
    for case in CASES {
        let clean = calls(case);
        for (n, call) in (1..).zip(&clean) {
            let what = format!("{}: {}", case.name, call.operation());
            let node = (case.node)();
            node.inject(Fault::at_call(n).loses_answer());
            node.reset_counts();
            let process = node.process();
            match (case.run)(&process.host(), NEVER) {
                Ok(()) => assert_eq!(call.operation(), "unlock", "{what}"),
                Err(error) => {
                    assert_eq!(error.kind(), OutcomeUnknown, "{what}: {error}");
                    check_secrets(&error);
                }
            }
            // A lock that nobody knows of lasts as long as its process.
            if call.operation() == "try_lock" {
                process.crash();
            }
            let retry = match call.operation().as_str() {
                "try_lock" => node.process(),
                _ => process,
            };
            (case.run)(&retry.host(), NEVER).expect(&what);
            assert!((case.done)(&node), "{what}");
            for method in clean.iter().filter(|call| counts_once(case, call)) {
                let operation = method.operation();
                let once = clean.iter().filter(|one| one.operation() == operation);
                assert_eq!(node.counts().of(&operation), once.count() as u64, "{what}");
            }
        }
    }
}

#[test]
fn a_process_or_a_node_that_ends_at_any_call_leaves_work_that_a_new_process_ends() {
    let mut cuts = 0;
    for case in CASES {
        for (n, call) in (1..).zip(calls(case)) {
            for (fault, reboots) in [
                (Fault::at_call(n).crash_before(), false),
                (Fault::at_call(n).crash_after(), false),
                (Fault::at_call(n).reboot_before(), true),
                (Fault::at_call(n).reboot_after(), true),
            ] {
                if reboots && !case.survives_reboot {
                    continue;
                }
                let what = format!("{}: {}", case.name, call.operation());
                let node = (case.node)();
                node.inject(fault);
                match (case.run)(&node.process().host(), NEVER) {
                    Ok(()) => assert_eq!(call.operation(), "unlock", "{what}"),
                    Err(error) => {
                        assert_eq!(error.kind(), Unavailable, "{what}: {error}");
                        check_secrets(&error);
                    }
                }
                (case.run)(&node.process().host(), NEVER).expect(&what);
                assert!((case.done)(&node), "{what}");
                cuts += 1;
            }
        }
    }
    report(&format!("{cuts} cut points"));
}

#[test]
fn a_call_that_hangs_is_given_up_at_the_deadline_and_the_retry_works() {
    let hour = Duration::from_secs(3600);
    for case in CASES {
        for (n, call) in (1..).zip(calls(case)) {
            let what = format!("{}: {}", case.name, call.operation());
            let node = (case.node)();
            node.inject(Fault::at_call(n).stalls(hour));
            let host = node.process().host();
            let deadline = node.clock().deadline_in(Duration::from_secs(10));
            match (case.run)(&host, deadline) {
                // Locks are taken and given back whatever the time.
                Ok(()) => assert_eq!(call.operation(), "unlock", "{what}"),
                Err(error) => {
                    assert_eq!(error.kind(), DeadlineExceeded, "{what}: {error}");
                    let in_time = Deadline::At(node.clock().now()) == deadline;
                    assert!(in_time || call.operation() == "try_lock", "{what}");
                }
            }
            // What hung takes effect late.
            let late = node.clock().now().0 + 2 * hour;
            node.clock().sleep_until(csi_proxy::clock::Moment(late));
            (case.run)(&host, NEVER).expect(&what);
            assert!((case.done)(&node), "{what}");
        }
    }
}

#[test]
fn the_log_of_calls_shows_no_secret() {
    for case in CASES {
        let log = format!("{:?}", calls(case));
        for secret in [PASSWORD, &PASSWORD.replace('\\', r"\\"), SECRET] {
            assert!(!log.contains(secret), "{}", case.name);
        }
    }
}
