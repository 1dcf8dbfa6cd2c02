//! A node's state in a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use csi_proxy::clock::{Clock, Moment};
use serde::{Deserialize, Serialize};

use crate::clock::SimClock;
use crate::latency::Latency;
use crate::node::SimNode;
use crate::state::State;

/// What is in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    /// What the clock showed.
    clock: Moment,
    state: State,
}

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file itself.
    #[error("{}", path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// What is in it.
    #[error("{} is no saved node", path.display())]
    Content {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl SimNode {
    /// Saves the node with all files and disks. The file holds the passwords of simulated
    /// servers.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let saved = Saved {
            clock: self.sim_clock().now(),
            state: self.snapshot(),
        };
        let text = serde_json::to_vec(&saved).map_err(|source| FileError::Content {
            path: path.to_owned(),
            source,
        })?;
        // Beside it first, so that a crash leaves the old file or the new one.
        let beside = path.with_extension("new");
        fs::write(&beside, text)
            .and_then(|()| fs::rename(&beside, path))
            .map_err(|source| FileError::Io {
                path: path.to_owned(),
                source,
            })
    }

    /// The node as it was saved, with a clock that goes on where the other one stood. What
    /// ran goes on; locks are free, since no process is left.
    pub fn load(path: &Path, clock: SimClock, latency: Latency) -> Result<Self, FileError> {
        let text = fs::read(path).map_err(|source| FileError::Io {
            path: path.to_owned(),
            source,
        })?;
        let Saved {
            clock: at,
            mut state,
        } = serde_json::from_slice(&text).map_err(|source| FileError::Content {
            path: path.to_owned(),
            source,
        })?;
        clock.advance_to(at);
        state.locks.release_all();
        Ok(Self::new(state, Arc::new(clock), latency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::SimDisk;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("csi-proxy-sim-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_node_is_the_same_after_save_and_load() {
        let node = SimNode::builder()
            .disk(SimDisk::ntfs(1 << 30))
            .with(|state| state.put_file(r"C:\file", b"contents").unwrap())
            .build();
        node.clock().advance(std::time::Duration::from_secs(7));
        let path = place("same");
        node.save(&path).unwrap();
        let loaded = SimNode::load(&path, SimClock::auto(), Latency::NONE).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(loaded.snapshot(), node.snapshot());
        assert_eq!(loaded.clock().now(), node.clock().now());
    }

    #[test]
    fn a_file_that_is_no_node_is_refused_by_name() {
        let path = place("other");
        fs::write(&path, r#"{"clock": 1}"#).unwrap();
        let error = SimNode::load(&path, SimClock::auto(), Latency::NONE)
            .err()
            .unwrap();
        fs::remove_file(&path).unwrap();
        assert!(error.to_string().contains("other"), "{error}");
    }
}
