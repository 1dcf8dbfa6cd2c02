//! The two ports on Windows itself: [`Cim`] over WMI, [`Os`] over Win32.

#![expect(
    unsafe_code,
    reason = "Win32 and COM are called here and nowhere else in the library"
)]

mod cim;
mod devices;
mod directory;
mod files;
mod locks;
mod mount_points;
mod object;
mod os;
mod values;
mod virtual_disks;
mod win32;

use std::sync::Arc;

use crate::clock::SystemClock;
use crate::host::Host;

pub use cim::Cim;
pub use os::Os;

impl Host {
    /// The machine that the program runs on. Nothing is asked of it before the first call.
    pub fn local() -> Self {
        let clock = Arc::new(SystemClock::new());
        Self::new(Arc::new(Cim::new(clock.clone())), Arc::new(Os::new(clock)))
    }
}

#[cfg(test)]
mod tests;
