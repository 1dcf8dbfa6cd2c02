//! The one error of the library.

use std::fmt;

use crate::codes;
use crate::port::{PortError, SystemCode};

/// The storage classes' return value "in use".
const IN_USE: u32 = 6;

/// What opening or reading a volume answers while another program has locked it:
/// `ERROR_ACCESS_DENIED`, `ERROR_SHARING_VIOLATION`, `ERROR_LOCK_VIOLATION`, `ERROR_BUSY`.
const LOCKED: &[u32] = &[5, 32, 33, 170];

/// The upper half of `HRESULT_FROM_WIN32`.
const HRESULT_FACILITY_WIN32: u32 = 0x8007;

/// What the library answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of error it is: what the caller can do about it. Each kind is one gRPC code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong whatever the node looks like.
    InvalidArgument,
    /// What the request names is not there.
    NotFound,
    /// Something else is there under that name.
    AlreadyExists,
    /// The node's state forbids it; waiting alone does not help.
    FailedPrecondition,
    /// A size or number that the node cannot give.
    OutOfRange,
    /// Another operation on the same object runs.
    Aborted,
    /// Windows denies access, or the path leads outside the root.
    PermissionDenied,
    /// Credentials are missing or wrong.
    Unauthenticated,
    /// No space or another limit reached.
    ResourceExhausted,
    /// Windows, or this provider, does not support it.
    Unsupported,
    /// No answer in time.
    DeadlineExceeded,
    /// The answer was lost; observe again, then decide.
    OutcomeUnknown,
    /// The service behind it does not run or cannot be reached.
    Unavailable,
    /// Windows failed in a way that the caller can do nothing about, or answered nonsense.
    Internal,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::InvalidArgument,
        Self::NotFound,
        Self::AlreadyExists,
        Self::FailedPrecondition,
        Self::OutOfRange,
        Self::Aborted,
        Self::PermissionDenied,
        Self::Unauthenticated,
        Self::ResourceExhausted,
        Self::Unsupported,
        Self::DeadlineExceeded,
        Self::OutcomeUnknown,
        Self::Unavailable,
        Self::Internal,
    ];

    /// Whether the request is refused as things are. Otherwise the outcome is open, or work
    /// may still run: the same request again goes on with it.
    pub const fn is_refusal(self) -> bool {
        !matches!(
            self,
            Self::Aborted
                | Self::DeadlineExceeded
                | Self::OutcomeUnknown
                | Self::Unavailable
                | Self::Internal
        )
    }

    /// The gRPC status code, <https://grpc.io/docs/guides/status-codes/>.
    pub const fn grpc_code(self) -> i32 {
        match self {
            Self::InvalidArgument => 3,
            Self::DeadlineExceeded => 4,
            Self::NotFound => 5,
            Self::AlreadyExists => 6,
            Self::PermissionDenied => 7,
            Self::ResourceExhausted => 8,
            Self::FailedPrecondition => 9,
            Self::Aborted => 10,
            Self::OutOfRange => 11,
            Self::Unsupported => 12,
            Self::Internal => 13,
            Self::OutcomeUnknown | Self::Unavailable => 14,
            Self::Unauthenticated => 16,
        }
    }
}

/// A code that Windows gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// Of a Win32 function or of COM.
    System(SystemCode),
    /// The `ReturnValue` of a WMI method.
    Method {
        /// Class and method, `MSFT_Volume.Format`.
        method: String,
        /// The value.
        value: u32,
    },
}

impl Code {
    /// What it means, where it is documented.
    pub fn meaning(&self) -> Option<&'static str> {
        match self {
            Self::System(code) => codes::system_meaning(*code),
            Self::Method { method, value } => codes::method_meaning(method, *value),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(code) => code.fmt(f)?,
            Self::Method { method, value } => write!(f, "{method} answered {value}")?,
        }
        match self.meaning() {
            Some(meaning) => write!(f, " ({meaning})"),
            None => Ok(()),
        }
    }
}

/// An operation that failed: what was tried, on what, and what Windows said.
#[derive(Clone, Debug)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    kind: ErrorKind,
    operation: &'static str,
    object: String,
    detail: String,
    code: Option<Code>,
    source: Option<PortError>,
}

impl Error {
    /// An error that the library itself finds. `object` names what it is about (`disk 3`,
    /// `volume \\?\Volume{…}\`, a path, a field of the request); `detail` says what is wrong
    /// and what was expected.
    pub fn new(
        kind: ErrorKind,
        operation: &'static str,
        object: impl fmt::Display,
        detail: impl fmt::Display,
    ) -> Self {
        Self(Box::new(Parts {
            kind,
            operation,
            object: object.to_string(),
            detail: detail.to_string(),
            code: None,
            source: None,
        }))
    }

    /// The error of a port call.
    pub fn from_port(operation: &'static str, object: impl fmt::Display, error: PortError) -> Self {
        let code = match &error {
            PortError::System { code, .. } => Some(Code::System(*code)),
            _ => None,
        };
        let detail = match &error {
            PortError::System { api, .. } => format!("{api} failed"),
            other => other.to_string(),
        };
        Self(Box::new(Parts {
            kind: kind_of(&error),
            operation,
            object: object.to_string(),
            detail,
            code,
            source: Some(error),
        }))
    }

    /// The error of a WMI method that answered a return value other than success.
    /// `extended` is its `ExtendedStatus`, if it gave one.
    pub fn from_method(
        operation: &'static str,
        object: impl fmt::Display,
        method: impl Into<String>,
        value: u32,
        extended: Option<&str>,
    ) -> Self {
        let method = method.into();
        Self(Box::new(Parts {
            kind: codes::method_kind(&method, value),
            operation,
            object: object.to_string(),
            detail: extended.map(str::to_owned).unwrap_or_default(),
            code: Some(Code::Method { method, value }),
            source: None,
        }))
    }

    /// The same with another kind, where the caller knows better what it means here.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// The same with more to say.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        if !self.0.detail.is_empty() {
            self.0.detail.push_str("; ");
        }
        self.0.detail.push_str(&detail.to_string());
        self
    }

    /// What kind it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation of the library that failed, `volume format` for example.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// What it was tried on.
    pub fn object(&self) -> &str {
        &self.0.object
    }

    /// The code that Windows gave, if it gave one.
    pub fn code(&self) -> Option<&Code> {
        self.0.code.as_ref()
    }

    /// Whether a WMI method answered this return value.
    pub(crate) fn is_return_value(&self, wanted: u32) -> bool {
        matches!(&self.0.code, Some(Code::Method { value, .. }) if *value == wanted)
    }

    /// Whether Windows says, in one of its ways, that something else uses the object.
    pub(crate) fn is_in_use(&self) -> bool {
        match &self.0.code {
            Some(Code::Method { value, .. }) => *value == IN_USE,
            Some(Code::System(SystemCode::Win32(code))) => LOCKED.contains(code),
            Some(Code::System(SystemCode::HResult(code))) => {
                code >> 16 == HRESULT_FACILITY_WIN32 && LOCKED.contains(&(code & 0xffff))
            }
            None => false,
        }
    }

    /// The port's error, if it was one.
    pub fn port_error(&self) -> Option<&PortError> {
        self.0.source.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts {
            operation,
            object,
            detail,
            code,
            ..
        } = &*self.0;
        write!(f, "{operation}: {object}")?;
        if let Some(code) = code {
            write!(f, ": {code}")?;
        }
        if !detail.is_empty() {
            write!(f, ": {detail}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}

fn kind_of(error: &PortError) -> ErrorKind {
    match error {
        PortError::System { code, .. } => codes::system_kind(*code),
        PortError::Outside { .. } => ErrorKind::PermissionDenied,
        PortError::DeadlineExceeded { .. } => ErrorKind::DeadlineExceeded,
        PortError::OutcomeUnknown { .. } => ErrorKind::OutcomeUnknown,
        PortError::Unavailable { .. } => ErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_operation_object_code_and_meaning() {
        let port = PortError::System {
            api: "RemoveDirectoryW".to_owned(),
            code: SystemCode::Win32(145),
            message: "The directory is not empty.".to_owned(),
        };
        let error = Error::from_port("filesystem rmdir", r"C:\x", port);
        assert_eq!(error.kind(), ErrorKind::FailedPrecondition);
        let shown = error.to_string();
        for part in [
            "filesystem rmdir",
            r"C:\x",
            "145",
            "not empty",
            "RemoveDirectoryW",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn every_kind_has_a_grpc_code_that_is_an_error() {
        for kind in ErrorKind::ALL {
            assert!((1..=16).contains(&kind.grpc_code()), "{kind:?}");
        }
    }
}
