//! What a server serves, and to whom.

use std::time::Duration;

use csi_proxy_api::Group;

use crate::working_dirs::WorkingDirs;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Only these groups.
    pub groups: Vec<Group>,
    /// Only methods that change nothing; others are `PermissionDenied`.
    pub read_only: bool,
    /// Where the paths of requests must lie.
    pub working_dirs: WorkingDirs,
    /// New SMB mappings must encrypt what they carry.
    pub require_privacy: bool,
    /// Answer gRPC reflection.
    pub reflection: bool,
    /// What clients may take up.
    pub limits: Limits,
}

/// What clients may take up, so that one that floods or stalls does not hold up the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls that work at the same time, over all pipes. The others wait their turn.
    pub running: u32,
    /// Calls that may wait for their turn; one more is `ResourceExhausted`.
    pub waiting: usize,
    /// Calls of one connection that are taken at the same time; the connection waits with
    /// more.
    pub per_connection: u32,
    /// How long a new connection may take to say that it speaks HTTP/2.
    pub first_words: Duration,
    /// How often a connection on which nothing happens is asked whether it is there.
    pub keep_alive: Duration,
    /// How long it may take to answer that.
    pub keep_alive_answer: Duration,
    /// How long a call may take whose client names no deadline.
    pub call: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            running: 64,
            waiting: 1024,
            per_connection: 32,
            first_words: Duration::from_secs(10),
            keep_alive: Duration::from_secs(60),
            keep_alive_answer: Duration::from_secs(20),
            call: Duration::from_secs(600),
        }
    }
}
