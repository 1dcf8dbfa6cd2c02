//! The one place where an error becomes a gRPC status.

use tonic::{Code, Status};

use crate::error::Error;

/// The code of its kind, and the whole message, with Windows' code and what it means.
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self::new(Code::from_i32(error.kind().grpc_code()), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

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
            let status = Status::from(Error::new(kind, "stage", "volume v", "why"));
            assert_eq!(status.code(), code);
            assert_eq!(status.message(), "stage: volume v: why");
        }
    }
}
