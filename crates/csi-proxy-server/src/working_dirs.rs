//! The directories that clients may work in.

use csi_proxy::os::At;
use csi_proxy::{Error, ErrorKind, HostPath, Result};

/// Directories, of which each path of a request must lie in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingDirs(Vec<HostPath>);

impl WorkingDirs {
    /// These directories.
    pub fn new(directories: impl IntoIterator<Item = HostPath>) -> Self {
        Self(directories.into_iter().collect())
    }

    /// Reads the path of a request in the strict grammar of the API, and gives it the working
    /// directory that it must not leave: the text is compared here, by whole names, and the
    /// object that the path leads to by whoever opens it.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no such path, `PermissionDenied` for one outside.
    pub(crate) fn at(&self, operation: &'static str, field: &str, text: &str) -> Result<At> {
        let path = HostPath::strict(text).map_err(|error| error.in_field(operation, field))?;
        // The innermost one, if they are nested.
        let root = self
            .0
            .iter()
            .filter(|root| path.is_within(root))
            .max_by_key(|root| root.names().count());
        match root {
            Some(root) => Ok(At::within(&path, root)),
            None => Err(self.outside(operation, field, &path)),
        }
    }

    fn outside(&self, operation: &'static str, field: &str, path: &HostPath) -> Error {
        let roots: Vec<_> = self.0.iter().map(HostPath::as_str).collect();
        Error::new(
            ErrorKind::PermissionDenied,
            operation,
            format_args!("{field} {:?}", path.as_str()),
            format_args!(
                "it lies outside the working directories; expected a path in {}",
                roots.join(" or ")
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn working_dirs() -> WorkingDirs {
        let directories = [r"C:\var\lib\kubelet", r"D:\data", r"D:\data\inner"];
        WorkingDirs::new(directories.map(|path| HostPath::strict(path).unwrap()))
    }

    fn root_of(text: &str) -> Option<String> {
        let at = working_dirs().at("mkdir", "path", text).ok()?;
        at.within.map(String::from)
    }

    #[test]
    fn a_path_is_held_in_the_innermost_directory_around_it() {
        for (path, root) in [
            (r"C:\var\lib\kubelet", r"C:\var\lib\kubelet"),
            (r"c:\VAR\lib\Kubelet\pods\x", r"C:\var\lib\kubelet"),
            (r"D:\data\x", r"D:\data"),
            (r"D:\data\inner", r"D:\data\inner"),
            (r"D:\data\inner\x\y", r"D:\data\inner"),
        ] {
            assert_eq!(root_of(path).as_deref(), Some(root), "{path}");
        }
    }

    #[test]
    fn a_path_outside_is_denied_and_told_what_is_expected() {
        for path in [
            r"C:\var\lib\kubelet-x",
            r"C:\var\lib\kubele",
            r"C:\var\lib",
            r"C:\",
            r"D:\var\lib\kubelet\x",
            r"C:\VAR~1\lib\kubelet",
            r"C:\data",
        ] {
            let error = working_dirs().at("mkdir", "path", path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{path}");
            let expected = r"expected a path in C:\var\lib\kubelet or D:\data or D:\data\inner";
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn what_is_no_strict_path_is_an_invalid_argument() {
        for path in [
            "",
            r"\var\lib\kubelet\x",
            "C:/var/lib/kubelet",
            r"C:\var\lib\kubelet\..\x",
            r"C:\var\lib\kubelet\x:stream",
            r"C:\var\lib\kubelet\nul",
            r"\\?\C:\var\lib\kubelet\x",
            r"\\.\C:\var\lib\kubelet",
            r"\\server\share",
            r"C:\var\lib\kubelet\a*",
        ] {
            let error = working_dirs().at("mkdir", "path", path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{path}");
            assert!(error.to_string().contains("path"), "{error}");
        }
    }
}
