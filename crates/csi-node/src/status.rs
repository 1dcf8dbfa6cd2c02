//! The one place where an error of the library becomes a gRPC status.

use csi_proxy::Error;
use tonic::{Code, Status};

/// The status of an error: its kind's code, and the whole message, with Windows' code and
/// what it means.
pub(crate) fn status(error: &Error) -> Status {
    Status::new(Code::from_i32(error.kind().grpc_code()), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use csi_proxy::ErrorKind;

    #[test]
    fn every_kind_of_error_has_its_own_code() {
        let expected = [
            (ErrorKind::InvalidArgument, Code::InvalidArgument),
            (ErrorKind::NotFound, Code::NotFound),
            (ErrorKind::AlreadyExists, Code::AlreadyExists),
            (ErrorKind::FailedPrecondition, Code::FailedPrecondition),
            (ErrorKind::OutOfRange, Code::OutOfRange),
            (ErrorKind::Aborted, Code::Aborted),
            (ErrorKind::PermissionDenied, Code::PermissionDenied),
            (ErrorKind::Unauthenticated, Code::Unauthenticated),
            (ErrorKind::ResourceExhausted, Code::ResourceExhausted),
            (ErrorKind::Unsupported, Code::Unimplemented),
            (ErrorKind::DeadlineExceeded, Code::DeadlineExceeded),
            (ErrorKind::OutcomeUnknown, Code::Unavailable),
            (ErrorKind::Unavailable, Code::Unavailable),
            (ErrorKind::Internal, Code::Internal),
        ];
        assert_eq!(expected.map(|(kind, _)| kind), ErrorKind::ALL);
        for (kind, code) in expected {
            let status = status(&Error::new(kind, "stage", "volume v", "why"));
            assert_eq!(status.code(), code);
            assert_eq!(status.message(), "stage: volume v: why");
        }
    }
}
