//! The ports on Windows itself: [`Cim`] over WMI.

#![expect(
    unsafe_code,
    reason = "Win32 and COM are called here and nowhere else in the library"
)]

mod cim;
mod values;

pub use cim::Cim;

#[cfg(test)]
mod tests;
