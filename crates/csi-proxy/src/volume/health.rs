//! What Windows says about a volume's health.

use std::fmt;

/// What Windows says about a volume's health. It reads as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeHealth {
    /// `HealthStatus`.
    pub status: HealthStatus,
    /// `OperationalStatus`.
    pub operational: Vec<u64>,
}

/// `MSFT_Volume.HealthStatus`.
///
/// Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume>. The
/// class itself calls 1 "Warning" and 2 "Unhealthy" on Windows Server 2019.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthStatus {
    /// 0.
    Healthy,
    /// 1: the file system should be scanned.
    ScanNeeded,
    /// 2: what a scan found can be repaired in a moment, offline.
    SpotFixNeeded,
    /// 3: the file system must be scanned and repaired offline.
    FullRepairNeeded,
    /// Any other, and none.
    Unknown,
}

/// Values of `OperationalStatus` that a volume is known to have.
///
/// Source: the class's MOF, whose first values are those of
/// <https://learn.microsoft.com/windows-hardware/drivers/storage/msft-storagefaultdomain>.
const OPERATIONAL: [(u64, &str); 9] = [
    (0, "Unknown"),
    (2, "OK"),
    (3, "Degraded"),
    (5, "Predictive Failure"),
    (6, "Error"),
    (7, "Non-Recoverable Error"),
    (0xd00d, "Scan Needed"),
    (0xd00e, "Spot Fix Needed"),
    (0xd00f, "Full Repair Needed"),
];

impl VolumeHealth {
    /// Whether the volume can be used without worry.
    pub fn is_healthy(&self) -> bool {
        self.status == HealthStatus::Healthy
    }
}

impl HealthStatus {
    /// The status for a number; a volume may have none.
    pub(super) fn from_number(number: Option<u32>) -> Self {
        match number {
            Some(0) => Self::Healthy,
            Some(1) => Self::ScanNeeded,
            Some(2) => Self::SpotFixNeeded,
            Some(3) => Self::FullRepairNeeded,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for VolumeHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HealthStatus is {}", self.status)?;
        for (index, value) in self.operational.iter().enumerate() {
            let before = if index == 0 {
                "; OperationalStatus is"
            } else {
                ","
            };
            write!(f, "{before} {value}")?;
            if let Some((_, name)) = OPERATIONAL.iter().find(|(known, _)| known == value) {
                write!(f, " ({name})")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for HealthStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Healthy => "Healthy",
            Self::ScanNeeded => "Scan Needed",
            Self::SpotFixNeeded => "Spot Fix Needed",
            Self::FullRepairNeeded => "Full Repair Needed",
            Self::Unknown => "Unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_is_told_in_microsofts_words() {
        let shown = |number, operational: &[u64]| {
            let health = VolumeHealth {
                status: HealthStatus::from_number(number),
                operational: operational.to_vec(),
            };
            health.to_string()
        };
        assert_eq!(shown(Some(0), &[]), "HealthStatus is Healthy");
        assert_eq!(
            shown(Some(2), &[0xd00e, 6]),
            "HealthStatus is Spot Fix Needed; OperationalStatus is 53262 (Spot Fix Needed), 6 (Error)"
        );
        assert_eq!(
            shown(None, &[99]),
            "HealthStatus is Unknown; OperationalStatus is 99"
        );
    }
}
