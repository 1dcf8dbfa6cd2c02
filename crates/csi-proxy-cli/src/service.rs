//! `csi-proxy service`, and the program as the Windows service `csiproxy`.

#[cfg_attr(windows, path = "service/windows.rs")]
#[cfg_attr(not(windows), path = "service/elsewhere.rs")]
mod manager;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Result;

pub(crate) use manager::run;

/// What `csi-proxy service` is told.
#[derive(Args)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Makes the service, which starts with Windows and is started again when it ends by itself;
    /// one that is there gets the new flags
    Install {
        /// The flags of `csi-proxy serve`, behind --
        #[arg(last = true, value_name = "FLAGS")]
        flags: Vec<OsString>,
    },
    /// Stops the service and takes it away
    Uninstall,
    /// Tells what the service does
    Status,
}

/// Does what is asked for.
pub(crate) fn manage(args: ServiceArgs) -> Result<ExitCode> {
    match args.action {
        Action::Install { flags } => manager::install(flags),
        Action::Uninstall => manager::uninstall(),
        Action::Status => manager::status(),
    }?;
    Ok(ExitCode::SUCCESS)
}
