//! Faults: the right check fails, and nothing is left behind.

use std::time::Duration;

use csi_proxy_sim::Fault;

use super::super::suite::Interrupt;
use super::{look, node, run, run_on};

/// For each check one of its port calls fails; then that check does, and no other that does not
/// depend on it.
#[test]
fn each_check_fails_when_windows_fails_it_and_leaves_nothing_behind() {
    let clean = run(&node());
    let mut start = 0;
    for (line, end) in clean.lines.iter().zip(&clean.calls) {
        let Some(step) = line["step"].as_str() else {
            break;
        };
        let calls = start + 1..=*end;
        start = *end;
        if calls.is_empty() || step == "selftest clean-up" {
            continue;
        }
        // A check may cope with the failure of one call, but not of all.
        let found = calls.clone().any(|call| {
            let node = node();
            let before = look(&node);
            // The looks above are calls too, and come before.
            node.inject(Fault::at_call(call).returns(5));
            let run = run(&node);
            assert_eq!(look(&node), before, "{step} at call {call}");
            assert!(
                run.failed().iter().all(|failed| *failed == step),
                "{step}: {:?}",
                run.failed()
            );
            !run.passed
        });
        assert!(found, "{step} never fails");
    }
}

#[test]
fn a_fault_fails_the_check_that_is_about_it() {
    for (operation, nth, step) in [
        ("create_directories", 2, "filesystem mkdir"),
        ("create_link", 1, "filesystem create-symlink"),
        ("remove_tree", 1, "filesystem rmdir-contents"),
        ("create_virtual_disk", 1, "vhdx create"),
        ("attach_virtual_disk", 1, "vhdx attach"),
        (
            "MSFT_StorageSetting.UpdateHostStorageCache",
            1,
            "disk rescan",
        ),
        ("device_ids", 6, "disk list-ids"),
        ("MSFT_Disk.Offline", 1, "disk offline"),
        ("MSFT_Disk.Online", 1, "disk online"),
        ("MSFT_Disk.Initialize", 1, "disk partition"),
        ("MSFT_Disk.CreatePartition", 1, "disk partition"),
        ("MSFT_Volume.Format", 1, "volume format"),
        ("set_mount_point", 1, "volume mount"),
        ("MSFT_Volume.Flush", 1, "volume write-cache"),
        ("delete_mount_point", 1, "volume unmount"),
        ("detach_virtual_disk", 1, "vhdx detach"),
        ("expand_virtual_disk", 2, "vhdx expand"),
        ("set_mount_point", 2, "vhdx attach-again"),
        ("MSFT_Partition.Resize", 1, "volume resize"),
        ("MSFT_Partition.Resize", 2, "volume resize"),
        ("attach_virtual_disk", 4, "vhdx read-only"),
        ("space", 1, "csi create"),
        ("MSFT_Volume.Format", 2, "csi stage"),
        ("create_link", 6, "csi publish"),
        ("MSFT_Partition.Resize", 3, "csi node-expand"),
    ] {
        let node = node();
        let before = look(&node);
        node.inject(Fault::on(operation).nth(nth).returns(5));
        let run = run(&node);
        assert_eq!(node.faults_left(), 0, "{operation} {nth} was not called");
        assert_eq!(run.failed(), [step], "{operation} {nth}");
        assert_eq!(look(&node), before, "{operation} {nth}");
    }
}

/// What Windows answers may be wrong without an error.
#[test]
fn a_wrong_state_fails_the_check_that_is_about_it() {
    let data = r"C:\csi-proxy-selftest\disk\mount\data.bin";
    let put_file = Fault::on("MSFT_Partition.Resize").before(move |state| {
        state.put_file(data, b"other").unwrap();
    });
    let erase = Fault::on("remove_tree").before(|state| {
        state
            .erase(r"C:\csi-proxy-selftest\files\data\file.txt")
            .unwrap();
    });
    let mounted = Fault::on("delete_mount_point").before(|state| {
        state.erase(r"C:\csi-proxy-selftest\disk\mount").unwrap();
    });
    for (fault, step) in [
        (put_file, "volume read"),
        (erase, "filesystem rmdir-contents"),
        (mounted, "volume unmount"),
    ] {
        let node = node();
        let before = look(&node);
        node.inject(fault);
        let run = run(&node);
        assert_eq!(node.faults_left(), 0, "{step}");
        assert_eq!(run.failed(), [step]);
        assert_eq!(look(&node), before, "{step}");
    }
}

/// Windows goes on with a call that nobody waits for any more.
#[test]
fn a_call_that_hangs_fails_its_check_and_leaves_nothing_behind() {
    for (operation, step) in [
        ("MSFT_Disk.Offline", "disk offline"),
        ("MSFT_Partition.Resize", "volume resize"),
    ] {
        let node = node();
        let before = look(&node);
        node.inject(Fault::on(operation).stalls(Duration::from_secs(600)));
        let run = run(&node);
        assert_eq!(run.failed(), [step]);
        assert_eq!(look(&node), before, "{step}");
    }
}

#[test]
fn a_signal_ends_the_suite_after_the_running_check_and_leaves_nothing_behind() {
    for (operation, last) in [
        ("MSFT_Volume.Format", "volume format"),
        ("MSFT_Volume.Flush", "volume write-cache"),
    ] {
        let node = node();
        let before = look(&node);
        let interrupt = Interrupt::default();
        let signalled = interrupt.clone();
        node.inject(Fault::on(operation).before(move |_| signalled.set("Ctrl-C")));
        let run = run_on(&node, node.process().host(), &interrupt);
        let [.., before_last, clean_up, summary] = run.lines.as_slice() else {
            panic!("{:?}", run.lines);
        };
        assert_eq!(clean_up["step"], "selftest clean-up");
        assert_eq!(clean_up["ok"], true);
        assert_eq!(look(&node), before);
        assert!(!run.passed);
        assert_eq!(before_last["step"], last);
        assert_ne!(summary["summary"]["not_run"], 0);
    }
}
