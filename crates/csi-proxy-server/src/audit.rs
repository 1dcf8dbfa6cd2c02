//! The audit line: who had the node changed, how, and what came of it.

use std::fmt::Debug;
use std::time::Duration;

use csi_proxy::Error;
use tonic::Code;
use tracing::Level;

use crate::call::Called;
use crate::connection::Peer;

/// The target of the lines, by which a log is searched.
const TARGET: &str = "csi_proxy_server::audit";

/// The longest text of arguments; a request may be much longer.
const LIMIT: usize = 2048;

/// The arguments of a request as the audit line shows them. Messages with secrets do not show
/// those, see `csi-proxy-api`.
pub(crate) fn arguments(request: &impl Debug) -> String {
    let mut text = format!("{request:?}");
    if text.len() > LIMIT {
        let end = (0..=LIMIT).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

/// Whether a line is to be written for calls of a method: for questions only at the level `debug`.
pub(crate) fn wants(called: Called) -> bool {
    !called.method.read_only || tracing::enabled!(target: TARGET, Level::DEBUG)
}

/// Writes the line of a call.
pub(crate) fn line(
    called: Called,
    arguments: &str,
    peer: Option<&Peer>,
    code: Code,
    error: Option<&Error>,
    duration: Duration,
) {
    let error = error.map(ToString::to_string);
    macro_rules! write {
        ($level:ident) => {
            tracing::$level!(
                target: TARGET,
                group = called.api.group.name(),
                version = called.api.version,
                method = called.method.name,
                arguments,
                process = peer.and_then(Peer::process),
                image = peer.map(Peer::image),
                result = ?code,
                error,
                duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
                "call"
            )
        };
    }
    match called.method.read_only {
        true => write!(debug),
        false => write!(info),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use csi_proxy_api::{iscsi, smb};

    #[test]
    fn arguments_are_shown_on_one_line_without_secrets() {
        let request = smb::v1::NewSmbGlobalMappingRequest {
            remote_path: "\\\\server\\share\nx".to_owned(),
            username: "ann".to_owned(),
            password: "hunter2".to_owned(),
            ..Default::default()
        };
        let shown = arguments(&request);
        assert!(shown.contains("ann"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(!shown.contains('\n'), "{shown}");
        let request = iscsi::v1alpha2::SetMutualChapSecretRequest {
            mutual_chap_secret: "hunter2hunter2".to_owned(),
        };
        assert!(!arguments(&request).contains("hunter2"));
    }

    #[test]
    fn long_arguments_are_cut() {
        let shown = arguments(&"é".repeat(LIMIT));
        assert!(shown.len() <= LIMIT + '…'.len_utf8(), "{}", shown.len());
        assert!(shown.ends_with('…'));
    }
}
