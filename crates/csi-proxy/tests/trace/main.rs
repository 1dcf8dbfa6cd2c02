//! Traces: what is written into them, and what is answered from them.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod kept;
mod operations;
mod recording;
mod replaying;
mod secrets;
