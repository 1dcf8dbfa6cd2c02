//! Object paths and namespaces as clients write them.

use csi_proxy::cim::Namespace;

/// The class that an object path names, and whether it names one of its instances:
/// `MSFT_Disk`, `\\.\ROOT\CIMV2:Win32_Service.Name="a"`.
pub(crate) fn class_in(path: &str) -> (&str, bool) {
    let before_keys = path.find(['"', '=']).unwrap_or(path.len());
    let start = path[..before_keys].rfind(':').map_or(0, |colon| colon + 1);
    let rest = &path[start..];
    match rest.find(['.', '=']) {
        Some(end) => (&rest[..end], true),
        None => (rest, false),
    }
}

/// The namespace that a client connects to: `ROOT\CIMV2`, `//./root/cimv2`.
pub(crate) fn namespace_in(resource: &str) -> Option<Namespace> {
    let plain = resource.replace('/', r"\");
    let path = match plain.strip_prefix(r"\\") {
        Some(rest) => rest.split_once('\\')?.1,
        None => &plain,
    };
    [Namespace::Storage, Namespace::Smb, Namespace::Cimv2]
        .into_iter()
        .find(|namespace| namespace.as_str().eq_ignore_ascii_case(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_class_or_an_instance() {
        for (path, expected) in [
            ("MSFT_Disk", ("MSFT_Disk", false)),
            (r"ROOT\CIMV2:Win32_Service", ("Win32_Service", false)),
            (r#"Win32_Service.Name="a:b""#, ("Win32_Service", true)),
            (
                r#"\\NODE\ROOT\Microsoft\Windows\Storage:MSFT_Volume.ObjectId="\\\\?\\Volume{g}""#,
                ("MSFT_Volume", true),
            ),
            (
                r#"\\.\root\cimv2:Win32_Service="a""#,
                ("Win32_Service", true),
            ),
            ("Win32_WMISetting=@", ("Win32_WMISetting", true)),
        ] {
            assert_eq!(class_in(path), expected, "{path}");
        }
    }

    #[test]
    fn a_namespace_is_found_however_it_is_written() {
        for resource in [
            r"ROOT\CIMV2",
            "root/cimv2",
            r"\\.\root\cimv2",
            "//NODE/Root/CimV2",
        ] {
            assert_eq!(namespace_in(resource), Some(Namespace::Cimv2), "{resource}");
        }
        assert_eq!(namespace_in(r"ROOT\SECURITY"), None);
    }
}
