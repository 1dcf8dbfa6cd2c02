//! Whether a fault can ever happen. One that cannot is a mistake of who wrote it, and a test
//! that waits for it would pass for the wrong reason.

use csi_proxy::os::{DevicesCall, FilesCall, LocksCall, MountPointsCall, VirtualDisksCall};

use super::{Effect, Fault};
use crate::change::NodeChange;

/// Names that are at least so much like the one that was written are told, from 0 to 1.
const ALIKE: f64 = 0.6;
/// At most so many of them.
const MOST_NAMES: usize = 5;
/// The bit of an HRESULT that says that it is a failure.
const SEVERITY: u32 = 1 << 31;

/// A fault that could never happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fault: {field} {value}: expected {expected}")]
pub struct NotAFault {
    field: &'static str,
    value: String,
    expected: String,
}

impl NotAFault {
    fn new(field: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self {
            field,
            value: value.to_string(),
            expected: expected.into(),
        }
    }
}

impl Fault {
    /// Checks that the fault can happen: the node knows its operation, it counts calls from 1
    /// on, it has an effect, and that is a failure where it should be one.
    pub fn check(&self) -> Result<(), NotAFault> {
        if let Some(operation) = &self.operation {
            check_operation(operation)?;
        }
        for (field, count) in [("nth", self.nth), ("times", self.times)] {
            if count == 0 {
                return Err(NotAFault::new(field, count, "a number from 1 on"));
            }
        }
        match &self.effect {
            Effect::Nothing => {
                let expected = "what happens: returns, hresult, win32, stalls, loses_answer, \
                                before, crash_before, crash_after, reboot_before or reboot_after";
                Err(NotAFault::new("effect", "nothing", expected))
            }
            Effect::Win32(0) => {
                let expected = "an error of Windows, as 5 (0 is success)";
                Err(NotAFault::new("win32", 0, expected))
            }
            Effect::Hresult(code) if code & SEVERITY == 0 => {
                let expected = "an HRESULT that is a failure, as 0x80041001; errors of Windows \
                                go under win32";
                Err(NotAFault::new("hresult", format!("{code:#x}"), expected))
            }
            Effect::Before(NodeChange::AttachDisk(disk)) => (disk.check())
                .map_err(|error| NotAFault::new("before attach_disk", error, "a disk")),
            Effect::Before(NodeChange::ReplaceDisk { with, .. }) => (with.check())
                .map_err(|error| NotAFault::new("before replace_disk", error, "a disk")),
            _ => Ok(()),
        }
    }
}

/// Every operation that the node knows.
fn operations() -> impl Iterator<Item = String> {
    let os = [
        FilesCall::METHODS,
        MountPointsCall::METHODS,
        DevicesCall::METHODS,
        VirtualDisksCall::METHODS,
        LocksCall::METHODS,
    ];
    let os = os.into_iter().flatten().map(|name| (*name).to_owned());
    crate::cim::operations().chain(os)
}

fn check_operation(operation: &str) -> Result<(), NotAFault> {
    if operations().any(|known| known.eq_ignore_ascii_case(operation)) {
        return Ok(());
    }
    let lower = operation.to_lowercase();
    let likeness =
        |known: &str| strsim::normalized_damerau_levenshtein(&known.to_lowercase(), &lower);
    let mut near: Vec<(f64, String)> = operations()
        .map(|known| (likeness(&known), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    near.truncate(MOST_NAMES);
    let near: Vec<String> = near.into_iter().map(|(_, known)| known).collect();
    let expected = match near.is_empty() {
        true => "a call that the simulated node knows, as MSFT_Volume.Format, query MSFT_Disk, \
                 associators MSFT_Volume or create_link"
            .to_owned(),
        false => format!(
            "a call that the simulated node knows; near it are {}",
            near.join(", ")
        ),
    };
    Err(NotAFault::new(
        "operation",
        format!("{operation:?}"),
        expected,
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::SimNode;
    use crate::storage::SimDisk;

    fn refused(fault: &Fault) -> String {
        fault.check().unwrap_err().to_string()
    }

    #[test]
    fn an_operation_that_there_is_not_is_refused_with_the_names_near_it() {
        for (operation, near) in [
            ("MSFT_Volum.Format", "MSFT_Volume.Format"),
            ("MSFT_Volume.Fromat", "MSFT_Volume.Format"),
            ("query MSFT_Disks", "query MSFT_Disk"),
            ("associators MSFT_Volumes", "associators MSFT_Volume"),
            ("creat_link", "create_link"),
            ("CreateLink", "create_link"),
            ("", "MSFT_Volume.Format"),
            ("something else", "query MSFT_Disk"),
        ] {
            let error = refused(&Fault::on(operation).win32(5));
            assert!(
                error.contains(&format!("operation {operation:?}")),
                "{error}"
            );
            assert!(error.contains(near), "{error}");
        }
    }

    #[test]
    fn every_operation_that_there_is_is_taken_whatever_its_case() {
        for operation in operations() {
            for name in [operation.clone(), operation.to_uppercase()] {
                assert_eq!(Fault::on(&name).win32(5).check(), Ok(()), "{name}");
            }
        }
    }

    #[test]
    fn counts_codes_and_effects_that_cannot_be_are_refused_by_their_name() {
        let disk = Box::new(SimDisk::raw(100));
        let attach = NodeChange::AttachDisk(disk.clone());
        let replace = NodeChange::ReplaceDisk {
            number: 1,
            with: disk,
        };
        for (fault, field) in [
            (Fault::on("stat").nth(0).win32(5), "nth 0"),
            (Fault::at_call(0).win32(5), "nth 0"),
            (Fault::on("stat").times(0).win32(5), "times 0"),
            (Fault::on("stat"), "effect nothing"),
            (Fault::on("stat").win32(0), "win32 0"),
            (Fault::on("stat").hresult(5), "hresult 0x5"),
            (Fault::on("stat").before_change(attach), "size"),
            (Fault::on("stat").before_change(replace), "size"),
        ] {
            let error = refused(&fault);
            assert!(
                error.contains(field) && error.contains("expected"),
                "{error}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "MSFT_Volume.Format")]
    fn a_node_takes_no_fault_that_could_never_happen() {
        let fault = Fault::on("MSFT_Volum.Format").returns(43006);
        SimNode::builder().build().inject(fault);
    }

    #[test]
    fn stalls_are_seconds_from_0_on() {
        let read = |seconds: &str| {
            let text = format!(r#"{{"operation": "stat", "effect": {{"stalls": {seconds}}}}}"#);
            serde_json::from_str::<Fault>(&text)
        };
        for seconds in ["-1", "-0.001", "1e300", "1e20"] {
            let error = read(seconds).unwrap_err().to_string();
            assert!(
                error.contains("stalls") && error.contains("expected"),
                "{error}"
            );
        }
        for seconds in ["1e999", "NaN", "null", "\"1\""] {
            assert!(read(seconds).is_err(), "{seconds}");
        }
        assert!(read("0").and_then(|_| read("2.5")).is_ok());
        assert_eq!(Fault::on("stat").stalls(Duration::MAX).check(), Ok(()));
    }
}
