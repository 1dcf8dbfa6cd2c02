//! The parameters of a storage class, which come back as the volume context.

use std::collections::BTreeMap;

use csi_proxy::Result;
use csi_proxy::volume::{FileSystem, FormatOptions};

use crate::driver::Capability;
use crate::validate::{Fields, cut, shown};

/// The file system: `ntfs` or `refs`.
const FS_TYPE: &str = "fsType";
/// The size of the file system's allocation units in bytes.
const ALLOCATION_UNIT_SIZE: &str = "allocationUnitSize";
/// The file system's label.
const LABEL: &str = "label";
/// What Kubernetes' sidecars and the kubelet put beside them.
const OF_KUBERNETES: [&str; 2] = ["csi.storage.k8s.io/", "storage.kubernetes.io/"];

/// How a volume is formatted when it is staged for the first time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    fs_type: Option<FileSystem>,
    allocation_unit: Option<u32>,
    label: Option<String>,
}

impl Parameters {
    /// Reads them from the parameters of a storage class. One that is not known is an error:
    /// a typing error must not become a default.
    pub(super) fn read(operation: &'static str, given: &BTreeMap<String, String>) -> Result<Self> {
        Self::read_field(operation, "parameters", given)
    }

    /// Reads them from a volume context.
    pub(super) fn read_context(
        operation: &'static str,
        given: &BTreeMap<String, String>,
    ) -> Result<Self> {
        Self::read_field(operation, "volume_context", given)
    }

    fn read_field(
        operation: &'static str,
        map: &str,
        given: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let fields = Fields(operation);
        let mut parameters = Self::default();
        for (key, value) in given {
            let field = format!("{map}.{}", cut(key));
            match &**key {
                FS_TYPE => parameters.fs_type = Some(fields.fs_type(&field, value)?),
                ALLOCATION_UNIT_SIZE => {
                    let size = value.parse().map_err(|_| {
                        fields.wrong(
                            &field,
                            format!("{}, expected a number of bytes", shown(value)),
                        )
                    })?;
                    parameters.allocation_unit = Some(size);
                }
                LABEL => parameters.label = Some(fields.text(&field, value)?),
                key if OF_KUBERNETES.iter().any(|prefix| key.starts_with(prefix)) => {}
                _ => {
                    let expected = [FS_TYPE, ALLOCATION_UNIT_SIZE, LABEL].join(", ");
                    let detail = format!("is not known, expected one of {expected}");
                    return Err(fields.wrong(&field, detail));
                }
            }
        }
        Ok(parameters)
    }

    /// Whether a volume can be formatted like this, for each of the uses.
    pub(super) fn check(&self, operation: &'static str, capabilities: &[Capability]) -> Result<()> {
        self.options(self.file_system()).check(operation)?;
        capabilities
            .iter()
            .try_for_each(|capability| self.format(operation, capability).map(drop))
    }

    /// The same with the file system that the uses name, if the parameters name none: what a
    /// volume has to be made with. One volume cannot have two.
    pub(super) fn for_uses(
        self,
        operation: &'static str,
        capabilities: &[Capability],
    ) -> Result<Self> {
        let named = capabilities
            .iter()
            .find_map(|capability| capability.file_system);
        let parameters = Self {
            fs_type: self.fs_type.or(named),
            ..self
        };
        parameters.check(operation, capabilities)?;
        Ok(parameters)
    }

    /// The same with the file system that a volume gets for which none was named.
    pub(super) fn decided(self) -> Self {
        Self {
            fs_type: Some(self.file_system()),
            ..self
        }
    }

    /// The first parameter in which what is asked for is not what a volume was made with, and
    /// how it differs. One that is not asked for differs in nothing.
    pub(super) fn contradiction(&self, asked: &Self) -> Option<(String, String)> {
        let made_with = self.to_context();
        let differs = |(key, value): &(String, String)| made_with.get(key) != Some(value);
        let (key, value) = asked.to_context().into_iter().find(differs)?;
        let made_with = made_with.get(&key).map(|value| shown(value));
        let made_with = made_with.unwrap_or_else(|| "none".to_owned());
        let detail = format!(
            "{} is asked for, and the volume was made with {made_with}",
            shown(&value)
        );
        Some((key, detail))
    }

    /// The file system that the volume gets.
    pub(super) fn file_system(&self) -> FileSystem {
        self.fs_type.unwrap_or_default()
    }

    /// How the volume is formatted for a use: as NTFS if neither the parameters nor the
    /// capability name a file system. They must not contradict each other.
    pub(super) fn format(
        &self,
        operation: &'static str,
        capability: &Capability,
    ) -> Result<FormatOptions> {
        let file_system = match (self.fs_type, capability.file_system) {
            (Some(ours), Some(asked)) if ours != asked => {
                let (asked, ours) = (asked.as_str(), ours.as_str());
                let detail = format!("{asked}, but {FS_TYPE} of the volume is {ours}");
                return Err(Fields(operation).wrong("volume_capability.mount.fs_type", detail));
            }
            (ours, asked) => ours.or(asked).unwrap_or_default(),
        };
        let options = self.options(file_system);
        options.check(operation)?;
        Ok(options)
    }

    fn options(&self, file_system: FileSystem) -> FormatOptions {
        FormatOptions {
            file_system,
            allocation_unit: self.allocation_unit,
            label: self.label.clone(),
        }
    }

    /// The file system that a volume must have for a use; nothing if none was named.
    pub(super) fn named_file_system(&self, capability: &Capability) -> Option<FileSystem> {
        self.fs_type.or(capability.file_system)
    }

    /// The volume context from which [`Parameters::read`] reads the same again.
    pub(super) fn to_context(&self) -> BTreeMap<String, String> {
        let fs_type = self
            .fs_type
            .map(|system| system.as_str().to_ascii_lowercase());
        let unit = self.allocation_unit.map(|bytes| bytes.to_string());
        [
            (FS_TYPE, fs_type),
            (ALLOCATION_UNIT_SIZE, unit),
            (LABEL, self.label.clone()),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Access;
    use csi_proxy::ErrorKind;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    fn capability(fs_type: Option<FileSystem>) -> Capability {
        Capability {
            access: Access::ReadWrite,
            file_system: fs_type,
        }
    }

    #[test]
    fn a_context_reads_back_as_the_parameters() {
        let given = map(&[
            ("fsType", "ReFS"),
            ("allocationUnitSize", "65536"),
            ("label", "data"),
            ("csi.storage.k8s.io/pvc/name", "claim"),
            ("storage.kubernetes.io/csiProvisionerIdentity", "1-2-x"),
        ]);
        let read = Parameters::read("x", &given).unwrap();
        let context = read.to_context();
        assert_eq!(context.len(), 3);
        assert_eq!(context["fsType"], "refs");
        assert_eq!(Parameters::read("x", &context).unwrap(), read);
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        for (key, value) in [
            ("fstype", "ntfs"),
            ("fsType", "ext4"),
            ("allocationUnitSize", "4k"),
            ("allocationUnitSize", "-1"),
            ("label", "a\nb"),
            ("label", ""),
            ("", ""),
        ] {
            let error = Parameters::read("x", &map(&[(key, value)])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(
                error.to_string().contains(&format!("parameters.{key}")),
                "{error}"
            );
        }
    }

    #[test]
    fn parameters_and_capability_must_agree_on_the_file_system() {
        let refs = Parameters::read("x", &map(&[("fsType", "refs")])).unwrap();
        let none = Parameters::default();
        let system = |parameters: &Parameters, asked| {
            let options = parameters.format("x", &capability(asked))?;
            Ok::<_, csi_proxy::Error>(options.file_system)
        };
        assert_eq!(system(&refs, None).unwrap(), FileSystem::Refs);
        assert_eq!(
            system(&refs, Some(FileSystem::Refs)).unwrap(),
            FileSystem::Refs
        );
        assert_eq!(
            system(&none, Some(FileSystem::Refs)).unwrap(),
            FileSystem::Refs
        );
        assert_eq!(system(&none, None).unwrap(), FileSystem::Ntfs);
        let error = system(&refs, Some(FileSystem::Ntfs)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn an_allocation_unit_must_be_one_that_windows_takes() {
        let ok = Parameters::read("x", &map(&[("allocationUnitSize", "65536")])).unwrap();
        let format = |parameters: &Parameters| parameters.format("x", &capability(None));
        assert_eq!(format(&ok).unwrap().allocation_unit, Some(65536));
        let odd = Parameters::read("x", &map(&[("allocationUnitSize", "5000")])).unwrap();
        assert_eq!(format(&odd).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}
