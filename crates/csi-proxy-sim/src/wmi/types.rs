//! The declared types of properties and parameters.
//!
//! Sources: the pages of the classes below
//! <https://learn.microsoft.com/windows-hardware/drivers/storage/storage-classes>,
//! <https://learn.microsoft.com/previous-versions/windows/desktop/smb/msft-smbglobalmapping>,
//! <https://learn.microsoft.com/windows/win32/cimwin32prov/win32-service>.

/// A CIM type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CimType {
    pub(crate) base: Base,
    pub(crate) array: bool,
}

/// The type of a value, or of an array's elements, with its number (`CIMTYPE_ENUMERATION`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Base {
    Text = 8,
    Boolean = 11,
    U16 = 18,
    U32 = 19,
    U64 = 21,
    Char16 = 103,
}

/// `CIM_FLAG_ARRAY`
const ARRAY: i32 = 0x2000;

impl CimType {
    const fn one(base: Base) -> Self {
        Self { base, array: false }
    }

    const fn many(base: Base) -> Self {
        Self { base, array: true }
    }

    /// Its number.
    pub(crate) fn number(self) -> i32 {
        self.base as i32 | if self.array { ARRAY } else { 0 }
    }
}

/// The type of a property of a class, or of a parameter of its methods.
pub(crate) fn type_of(class: &str, name: &str) -> CimType {
    OF_A_CLASS
        .iter()
        .find(|(of, own, _)| *of == class && *own == name)
        .map(|(_, _, cim_type)| *cim_type)
        .or_else(|| {
            EVERYWHERE
                .iter()
                .find(|(names, _)| names.contains(&name))
                .map(|(_, cim_type)| *cim_type)
        })
        .unwrap_or(CimType::one(Base::Text))
}

/// Names that mean something else in one class than in the others.
const OF_A_CLASS: &[(&str, &str, CimType)] = &[
    ("MSFT_Disk", "OperationalStatus", CimType::many(Base::U16)),
    ("MSFT_Volume", "OperationalStatus", CimType::many(Base::U16)),
    (
        "MSFT_Partition",
        "OperationalStatus",
        CimType::one(Base::U16),
    ),
    ("MSFT_SmbGlobalMapping", "Status", CimType::one(Base::U32)),
];

/// Names with one type wherever they stand. What is not here is text.
const EVERYWHERE: &[(&[&str], CimType)] = &[
    (
        &[
            "AcceptStop",
            "AssignDriveLetter",
            "BootFromDisk",
            "Compress",
            "Force",
            "Full",
            "IsActive",
            "IsBoot",
            "IsClustered",
            "IsConnected",
            "IsDataDigest",
            "IsDiscovered",
            "IsHeaderDigest",
            "IsHidden",
            "IsMultipathEnabled",
            "IsOffline",
            "IsPersistent",
            "IsReadOnly",
            "IsShadowCopy",
            "IsSystem",
            "NoDefaultDriveLetter",
            "OfflineScanAndFix",
            "Persistent",
            "RemoveData",
            "RemoveOEM",
            "ReportToPnP",
            "RequireIntegrity",
            "RequirePrivacy",
            "Scan",
            "SetIntegrityStreams",
            "ShortFileNameSupport",
            "SpotFix",
            "Started",
            "UseLargeFRS",
            "UseMaximumSize",
            "UseWriteThrough",
            "ZeroOutEntireDisk",
        ],
        CimType::one(Base::Boolean),
    ),
    (
        &[
            "BusType",
            "FileSystemType",
            "HealthStatus",
            "InitiatorPortNumber",
            "MbrType",
            "OfflineReason",
            "PartitionStyle",
            "ProvisioningType",
            "TargetPortNumber",
            "TargetPortalPortNumber",
            "TransitionState",
            "UniqueIdFormat",
        ],
        CimType::one(Base::U16),
    ),
    (
        &[
            "AllocationUnitSize",
            "DedupMode",
            "DiskNumber",
            "DriveType",
            "ExitCode",
            "LogicalSectorSize",
            "Number",
            "NumberOfConnections",
            "NumberOfPartitions",
            "PartitionNumber",
            "PhysicalSectorSize",
            "ProcessId",
            "ReturnValue",
            "Signature",
        ],
        CimType::one(Base::U32),
    ),
    (
        &[
            "Alignment",
            "AllocatedSize",
            "LargestFreeExtent",
            "Offset",
            "Size",
            "SizeMax",
            "SizeMin",
            "SizeRemaining",
        ],
        CimType::one(Base::U64),
    ),
    (&["DriveLetter"], CimType::one(Base::Char16)),
    (
        &["AccessPaths", "SupportedFileSystems"],
        CimType::many(Base::Text),
    ),
    (&["SupportedClusterSizes"], CimType::many(Base::U32)),
];

#[cfg(test)]
mod tests {
    use csi_proxy::cim::Value;

    use super::*;
    use crate::cim::CLASSES;

    /// A node with an instance of every class that can be described.
    fn rows() -> Vec<(&'static str, &'static str, Value)> {
        let machine = crate::Machine::parse(crate::example_machine()).unwrap();
        let node = machine.build().unwrap();
        let state = node.snapshot();
        let mut found = Vec::new();
        for class in CLASSES.iter().copied().flatten() {
            let names: Vec<String> = class
                .properties
                .iter()
                .map(|name| (*name).to_owned())
                .collect();
            let hint = crate::cim::Hint {
                properties: &names,
                ..Default::default()
            };
            for row in (class.rows)(&state, &hint) {
                for (name, value) in row.properties {
                    found.push((class.name, name, value));
                }
            }
        }
        found
    }

    fn fits(cim_type: CimType, value: &Value) -> bool {
        let element = |value: &Value| match (cim_type.base, value) {
            (Base::Text, Value::Text(_)) | (Base::Boolean, Value::Boolean(_)) => true,
            (Base::U64, Value::Text(digits)) => digits.parse::<u64>().is_ok(),
            (Base::U16 | Base::Char16, Value::Integer(number)) => u16::try_from(*number).is_ok(),
            (Base::U32, Value::Integer(number)) => u32::try_from(*number).is_ok(),
            _ => false,
        };
        match value {
            Value::Null => true,
            Value::Array(values) => cim_type.array && values.iter().all(element),
            value => !cim_type.array && element(value),
        }
    }

    #[test]
    fn every_value_of_a_node_has_its_declared_type() {
        let rows = rows();
        assert!(rows.len() > 100);
        for (class, name, value) in rows {
            let cim_type = type_of(class, name);
            assert!(
                fits(cim_type, &value),
                "{class}.{name}: {value:?} is no {cim_type:?}"
            );
        }
    }
}
