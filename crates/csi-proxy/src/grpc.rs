//! The one place where an error becomes a gRPC status.

use tonic::{Code, Status};

use crate::error::Error;

/// The longest message in bytes. It travels in a header, and clients take few KiB of those;
/// one may quote a request that is much longer.
const LIMIT: usize = 2048;

/// The code of its kind, and its message, with Windows' code and what it means.
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let code = Code::from_i32(error.kind().grpc_code());
        Self::new(code, shortened(error.to_string()))
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > LIMIT {
        let end = (0..=LIMIT).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
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

    #[test]
    fn a_message_that_no_header_holds_is_cut() {
        let path = "é".repeat(LIMIT);
        let status = Status::from(Error::new(ErrorKind::NotFound, "stage", path, "why"));
        assert!(status.message().len() <= LIMIT + '…'.len_utf8());
        assert!(status.message().ends_with("é…"), "{}", status.message());
    }
}
