//! Tests on the machine itself, which is Wine more often than Windows: what Wine has of it.

mod files;
mod locks;
mod removal;
mod volumes;
mod wmi;

use std::sync::Arc;

use windows::Win32::Foundation::WIN32_ERROR;

use super::Os;
use crate::clock::{Deadline, SystemClock};
use crate::os::{At, Bytes, Files as _, RemoveTree, WriteFile};
use crate::path::HostPath;
use crate::port::{PortError, PortResult, SystemCode};

/// The machine, and a directory for one test.
struct Place {
    os: Os,
    directory: HostPath,
}

impl Place {
    /// An empty directory of that name.
    fn new(name: &str) -> Self {
        let temp = std::env::temp_dir().join("csi-proxy-tests").join(name);
        let place = Self {
            os: os(),
            directory: HostPath::from_kubelet(temp.to_str().unwrap()).unwrap(),
        };
        let all = RemoveTree {
            at: At::path(&place.directory),
            keep_root: false,
        };
        let _ = place.os.remove_tree(&all, Deadline::Never);
        place.make("");
        place
    }

    fn path(&self, below: &str) -> HostPath {
        HostPath::from_kubelet(&format!(r"{}\{below}", self.directory)).unwrap()
    }

    fn at(&self, below: &str) -> At {
        At::path(&self.path(below))
    }

    fn make(&self, below: &str) -> bool {
        let at = self.at(below);
        self.os.create_directories(&at, Deadline::Never).unwrap()
    }

    fn write(&self, below: &str, contents: &str) {
        self.try_write(self.at(below), contents).unwrap();
    }

    fn try_write(&self, at: At, contents: &str) -> PortResult<()> {
        let contents = Bytes(contents.as_bytes().to_vec());
        let request = WriteFile { at, contents };
        self.os.write_file(&request, Deadline::Never)
    }

    fn names(&self, below: &str) -> Vec<String> {
        let entries = self.os.list(&self.at(below), Deadline::Never).unwrap();
        let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let all = RemoveTree {
            at: At::path(&self.directory),
            keep_root: false,
        };
        let _ = self.os.remove_tree(&all, Deadline::Never);
    }
}

fn os() -> Os {
    Os::new(Arc::new(SystemClock::new()))
}

/// The Win32 code of a failed call.
#[track_caller]
fn code<T: std::fmt::Debug>(answer: PortResult<T>) -> WIN32_ERROR {
    match answer {
        Err(PortError::System {
            code: SystemCode::Win32(code),
            ..
        }) => WIN32_ERROR(code),
        other => panic!("expected a Win32 error, got {other:?}"),
    }
}
