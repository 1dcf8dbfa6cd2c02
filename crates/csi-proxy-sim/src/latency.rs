//! How long things take on a real node.

use std::time::Duration;

use csi_proxy::cim::CimCall;
use csi_proxy::port::Call;
use serde::{Deserialize, Serialize};

/// How long calls take. [`Latency::NONE`], the default, answers at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Latency {
    /// A query or an association.
    pub query: Duration,
    /// A method, besides its work.
    pub method: Duration,
    /// A call of the operating system.
    pub os: Duration,
    /// A quick format, for each GiB of the volume.
    pub format_per_gib: Duration,
}

impl Latency {
    /// Everything answers at once.
    pub const NONE: Self = Self {
        query: Duration::ZERO,
        method: Duration::ZERO,
        os: Duration::ZERO,
        format_per_gib: Duration::ZERO,
    };

    /// A busy node, from figures that were published: a WMI query takes 0.1 s to 0.3 s, a
    /// format of 1 GB 2.9 s.
    pub const MEASURED: Self = Self {
        query: Duration::from_millis(200),
        method: Duration::from_millis(200),
        os: Duration::from_millis(1),
        format_per_gib: Duration::from_millis(2900),
    };

    /// How long a call takes besides its work.
    pub(crate) fn of(&self, call: &Call) -> Duration {
        match call {
            Call::Cim(CimCall::Query(_) | CimCall::Associators(_)) => self.query,
            Call::Cim(CimCall::Invoke(_)) => self.method,
            Call::Cim(CimCall::IsRunning(_)) => Duration::ZERO,
            _ => self.os,
        }
    }

    /// How long a format takes. A full one writes every byte; a hundred times longer is
    /// assumed.
    pub(crate) fn format(&self, size: u64, full: bool) -> Duration {
        const GIB: u64 = 1 << 30;
        let per_gib = self.format_per_gib.as_nanos();
        let nanoseconds = per_gib.saturating_mul(u128::from(size)) / u128::from(GIB);
        let quick = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        match full {
            true => quick.saturating_mul(100),
            false => quick,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_takes_as_long_as_the_volume_is_large() {
        let format = |gib: u64| Latency::MEASURED.format(gib << 30, false);
        assert_eq!(format(1), Duration::from_millis(2900));
        assert_eq!(format(10), Duration::from_secs(29));
        assert_eq!(Latency::NONE.format(1 << 40, true), Duration::ZERO);
    }
}
