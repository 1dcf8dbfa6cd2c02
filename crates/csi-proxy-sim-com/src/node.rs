//! The connection to the simulated node.

use std::env;
use std::sync::{Arc, Mutex, PoisonError};

use csi_proxy::port::Carried;
use csi_proxy_sim::com;
use csi_proxy_sim::control::{CSI_PROXY_SIM, ControlClient, ControlError};
use windows::Win32::Foundation::{E_INVALIDARG, ERROR_ENVVAR_NOT_FOUND};
use windows::Win32::System::Com::IClassFactory;
use windows_core::HRESULT;

/// What RPC says of a server that is not there.
const RPC_S_SERVER_UNAVAILABLE: u32 = 1722;

/// The connection that all objects of this process have in common: the program is one process
/// of the node.
static CONNECTION: Mutex<Connection> = Mutex::new(Connection(None));

/// The class object of the node that the environment names now.
pub(crate) fn class_object() -> Result<IClassFactory, HRESULT> {
    let uri = env::var(CSI_PROXY_SIM).map_err(|_| ERROR_ENVVAR_NOT_FOUND.to_hresult())?;
    let mut connection = CONNECTION.lock().unwrap_or_else(PoisonError::into_inner);
    let client = connection.to(&uri)?;
    Ok(com::class_object(Arc::new(Carried(client))))
}

/// A connection, and what it was made to.
struct Connection(Option<(String, ControlClient)>);

impl Connection {
    /// The connection to a node, which is made when there is none to it that lives.
    fn to(&mut self, uri: &str) -> Result<ControlClient, HRESULT> {
        if let Some((to, client)) = &self.0
            && to == uri
            && client.is_open()
        {
            return Ok(client.clone());
        }
        let client = ControlClient::connect(uri).map_err(|error| code_of(&error))?;
        self.0 = Some((uri.to_owned(), client.clone()));
        Ok(client)
    }
}

fn code_of(error: &ControlError) -> HRESULT {
    match error {
        ControlError::Address { .. } => E_INVALIDARG,
        _ => HRESULT::from_win32(RPC_S_SERVER_UNAVAILABLE),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use csi_proxy::clock::Deadline;
    use csi_proxy_sim::control::ControlServer;
    use csi_proxy_sim::storage::SimDisk;
    use csi_proxy_sim::{Fault, SimNode};

    use super::*;

    fn serve(node: &SimNode) -> ControlServer {
        ControlServer::start(node.clone(), "tcp://127.0.0.1:0").expect("a free port")
    }

    /// How many disks the node has; nothing when it does not answer.
    fn disks(client: &ControlClient) -> Option<usize> {
        let ids = client.host().disk().list_ids(Deadline::Never);
        ids.ok().map(|ids| ids.len())
    }

    #[test]
    fn a_program_is_one_process_of_the_node() {
        let node = SimNode::builder().build();
        let server = serve(&node);
        let mut connection = Connection(None);
        let first = connection.to(&server.uri()).expect("a node");
        assert_eq!(disks(&first), Some(1));
        node.inject(Fault::on("query MSFT_Disk").crash_before());
        assert_eq!(disks(&first), None);
        let second = connection.to(&server.uri()).expect("a node");
        assert_eq!(disks(&second), None);
    }

    #[test]
    fn the_node_is_the_one_that_is_named_now() {
        let one = SimNode::builder().build();
        let two = SimNode::builder().disk(SimDisk::raw(1 << 30)).build();
        let (one, two) = (serve(&one), serve(&two));
        let mut connection = Connection(None);
        for (server, expected) in [(&one, 1), (&two, 2), (&one, 1)] {
            let client = connection.to(&server.uri()).expect("a node");
            assert_eq!(disks(&client), Some(expected));
        }
    }

    #[test]
    fn a_connection_that_has_ended_is_not_used_again() {
        let server = serve(&SimNode::builder().build());
        let uri = server.uri();
        let mut connection = Connection(None);
        let client = connection.to(&uri).expect("a node");
        drop(server);
        let began = Instant::now();
        while client.is_open() {
            assert!(began.elapsed() < Duration::from_secs(60));
            thread::yield_now();
        }
        assert_eq!(
            connection.to(&uri).err(),
            Some(HRESULT::from_win32(RPC_S_SERVER_UNAVAILABLE))
        );
    }
}
