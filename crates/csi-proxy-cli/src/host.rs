//! The library's host that a command works with: this machine, or a simulated node.

use std::sync::Arc;

use csi_proxy::Host;
use csi_proxy::port::{Carried, Transport};

use crate::failure::{Failure, Result};

/// What to do with the commands that take a machine file.
pub(crate) const SIMULATE: &str =
    "add --simulate or --simulate=machine.toml to run on a simulated one";

/// The machine that the program runs on. Where that is no Windows node, the error says what to
/// do: `otherwise`.
pub(crate) fn local(otherwise: &str) -> Result<Host> {
    #[cfg(windows)]
    {
        let _ = otherwise;
        Ok(Host::local())
    }
    #[cfg(not(windows))]
    Err(Failure::new(format!(
        "this is no Windows node: {otherwise}"
    )))
}

/// The library on a simulated node.
///
/// On Windows its calls to WMI go the whole way, through the library's own client of WMI and
/// the node's COM face, so that what runs is what runs on a real node. A program has one such
/// node at a time.
pub(crate) struct Simulated {
    pub(crate) host: Host,
    /// Clients of WMI reach the node as long as this is there.
    #[cfg(windows)]
    _face: csi_proxy_sim::com::Face,
}

impl Simulated {
    /// Over the way to a process on the node.
    #[cfg(windows)]
    pub(crate) fn over(process: impl Transport + 'static) -> Result<Self> {
        use csi_proxy::windows::Cim;
        use csi_proxy_sim::com::Face;

        let ports = Arc::new(Carried(process));
        let face = Face::register(ports.clone())
            .map_err(|error| Failure::from_error("the simulated WMI cannot be shown", &error))?;
        Ok(Self {
            host: Host::new(Arc::new(Cim::new(ports.clone())), ports),
            _face: face,
        })
    }

    /// Over the way to a process on the node.
    #[cfg(not(windows))]
    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Windows")]
    pub(crate) fn over(process: impl Transport + 'static) -> Result<Self> {
        let ports = Arc::new(Carried(process));
        let host = Host::new(ports.clone(), ports);
        Ok(Self { host })
    }
}
