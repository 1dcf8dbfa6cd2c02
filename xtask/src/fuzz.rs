//! `cargo xtask fuzz`: the parsers against damaged inputs, for longer than the tests do it.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;

use crate::command::{cargo, run};

/// What `cargo xtask fuzz` is told.
#[derive(Args)]
pub(crate) struct FuzzArgs {
    /// How long
    #[arg(long, default_value_t = 5)]
    minutes: u64,

    /// Makes the same inputs as an earlier run [default: one that changes with the time]
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs until the time is over or an input fails. Not optimised, since then arithmetic that
/// overflows is found too.
pub(crate) fn exec(args: &FuzzArgs) -> ExitCode {
    let seed = args.seed.unwrap_or_else(from_the_time);
    println!("seed {seed}");
    let seconds = args.minutes * 60;
    let mut command = cargo(["test", "--package", "csi-proxy", "--test", "fuzz"]);
    command
        .args(["--", "--ignored", "--nocapture", "--exact", "for_minutes"])
        .env("CSI_PROXY_FUZZ_SECONDS", seconds.to_string())
        .env("CSI_PROXY_FUZZ_SEED", seed.to_string());
    match run(&mut command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "{error}\nan input that failed is kept in crates/csi-proxy/tests/fuzz/corpus, \
                 where it is a test from now on; the seed was {seed}"
            );
            ExitCode::FAILURE
        }
    }
}

fn from_the_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = since.map_or(0, |since| since.as_nanos());
    // The lower half is what changes.
    u64::try_from(nanoseconds & u128::from(u64::MAX)).unwrap_or(0)
}
