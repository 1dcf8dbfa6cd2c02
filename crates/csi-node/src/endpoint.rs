//! Where a plugin listens.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// An address of this machine only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `unix:///run/csi.sock`: a Unix socket, on Windows too.
    Unix(PathBuf),
    /// `tcp://127.0.0.1:10000`: TCP on the loopback interface. Port 0 takes a free one.
    Tcp(SocketAddr),
}

/// An endpoint that cannot be used, in one line that says why and what to do.
#[derive(Debug, thiserror::Error)]
#[error("endpoint {endpoint}: {problem}")]
pub struct EndpointError {
    endpoint: String,
    problem: String,
    source: Option<std::io::Error>,
}

impl EndpointError {
    pub(crate) fn new(endpoint: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self {
            endpoint: endpoint.to_string(),
            problem: problem.to_string(),
            source: None,
        }
    }

    pub(crate) fn io(endpoint: impl fmt::Display, doing: &str, source: std::io::Error) -> Self {
        Self {
            endpoint: endpoint.to_string(),
            problem: format!("{doing}: {source}"),
            source: Some(source),
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if let Some(rest) = text.strip_prefix("unix:") {
            return unix(text, rest);
        }
        if let Some(address) = text.strip_prefix("tcp://") {
            return tcp(text, address);
        }
        let problem = "is of no known kind; write unix:///run/csi.sock or tcp://127.0.0.1:10000";
        Err(EndpointError::new(format!("{text:?}"), problem))
    }
}

/// The two forms of gRPC, `unix://` with an absolute path and `unix:` with any,
/// <https://github.com/grpc/grpc/blob/master/doc/naming.md>.
fn unix(text: &str, rest: &str) -> Result<Endpoint, EndpointError> {
    let absolute = rest.strip_prefix("//").map(PathBuf::from);
    let path = match absolute {
        // On Windows a path with a drive, or one without.
        Some(path) if path.has_root() => Ok(path),
        Some(_) => Err("has a relative path".to_owned()),
        None => std::path::absolute(rest).map_err(|error| format!("has no path ({error})")),
    };
    path.map(Endpoint::Unix).map_err(|problem| {
        let problem = format!("{problem}; write unix:///run/csi.sock, or unix:csi.sock");
        EndpointError::new(text, problem)
    })
}

fn tcp(text: &str, address: &str) -> Result<Endpoint, EndpointError> {
    let address = address.replace("localhost:", "127.0.0.1:");
    let address: SocketAddr = address.parse().map_err(|_| {
        EndpointError::new(
            text,
            "is no address with a port; write tcp://127.0.0.1:10000",
        )
    })?;
    match address.ip().is_loopback() {
        true => Ok(Endpoint::Tcp(address)),
        false => {
            let problem = "would be open to the network; only loopback addresses \
                           (127.0.0.1, ::1) are served";
            Err(EndpointError::new(text, problem))
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_reads_back_as_it_is_shown() {
        for text in [
            "unix:///run/csi.sock",
            "tcp://127.0.0.1:10000",
            "tcp://[::1]:0",
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        let local: Endpoint = "tcp://localhost:5".parse().unwrap();
        assert_eq!(local.to_string(), "tcp://127.0.0.1:5");
    }

    #[test]
    fn a_relative_path_is_one_of_the_directory_that_the_program_runs_in() {
        let here = std::env::current_dir().unwrap();
        let endpoint: Endpoint = "unix:run/csi.sock".parse().unwrap();
        assert_eq!(endpoint, Endpoint::Unix(here.join("run/csi.sock")));
        let endpoint: Endpoint = "unix:/run/csi.sock".parse().unwrap();
        assert_eq!(endpoint.to_string(), "unix:///run/csi.sock");
    }

    #[test]
    fn an_endpoint_that_others_could_reach_is_refused() {
        for text in ["tcp://0.0.0.0:1", "tcp://10.0.0.1:1", "tcp://[::]:1"] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains("open to the network"), "{error}");
        }
    }

    #[test]
    fn a_wrong_endpoint_is_told_what_to_write() {
        for text in [
            "",
            "csi.sock",
            "unix://",
            "unix:",
            "unix://csi.sock",
            "unix://./csi.sock",
            "http://x",
            "tcp://127.0.0.1",
            "tcp://host:1",
        ] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains("write "), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
