//! Named pipes: the first instance is ours alone, remote clients are refused, and instances wait
//! for clients before they come.

mod security;

use std::io::{Error, ErrorKind, Result};
use std::os::windows::io::AsRawHandle as _;
use std::path::{Path, PathBuf};

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};
use tokio::task::JoinSet;

use crate::connection::Peer;
use crate::transport::{Place, sddl};

use security::Descriptor;

pub(crate) use security::image_of;

/// A connection.
pub(crate) type Stream = NamedPipeServer;

/// Instances that wait for clients. So many that connect in the same instant get in at once;
/// more find the pipe busy for a moment (`ERROR_PIPE_BUSY`) and have to ask again.
const SPARE: usize = 32;

/// Of each pipe, in bytes. Longer messages go through in pieces.
const BUFFER: u32 = 16 << 10;

/// `ERROR_ACCESS_DENIED`: the name is another's.
const ACCESS_DENIED: i32 = 5;

/// `ERROR_PIPE_BUSY`: the name is another's, and it has all the instances that it may have.
const PIPE_BUSY: i32 = 231;

/// `ERROR_NO_DATA`: the client has gone away before it was looked at.
const NO_DATA: i32 = 232;

/// A pipe at which clients are waited for.
pub(crate) struct Listener {
    path: PathBuf,
    descriptor: Descriptor,
    waiting: JoinSet<Result<NamedPipeServer>>,
}

impl Listener {
    /// Claims the name.
    pub(crate) fn bind(path: &Path, place: &Place) -> Result<Self> {
        let service = security::own_user()?;
        let sddl = sddl::of_pipes(place.pipe_sddl.as_deref(), &service)
            .map_err(|error| Error::new(ErrorKind::InvalidInput, error))?;
        let mut listener = Self {
            path: path.to_owned(),
            descriptor: Descriptor::read(&sddl)?,
            waiting: JoinSet::new(),
        };
        let first = listener.instance(true).map_err(explained)?;
        // Wine, up to version 8 at least, gives an instance of another's pipe all the same.
        if security::instances(first.as_raw_handle())? > 1 {
            return Err(taken());
        }
        listener.wait_at(first);
        listener.fill()?;
        Ok(listener)
    }

    /// Waits for a client. Another instance takes the place of the one that it is given.
    pub(crate) async fn accept(&mut self) -> Result<(Stream, Peer)> {
        if let Err(error) = self.fill() {
            // With fewer than there should be it goes on, with none it does not.
            match self.waiting.is_empty() {
                true => return Err(error),
                false => tracing::warn!("{}: no further instance: {error}", self.path.display()),
            }
        }
        let pipe = loop {
            match self.waiting.join_next().await {
                Some(Ok(Err(error))) if error.raw_os_error() == Some(NO_DATA) => self.fill()?,
                Some(Ok(pipe)) => break pipe?,
                Some(Err(error)) => return Err(Error::other(error)),
                None => return Err(ErrorKind::NotConnected.into()),
            }
        };
        let process = security::client_process(pipe.as_raw_handle());
        Ok((pipe, Peer::new(process)))
    }

    fn fill(&mut self) -> Result<()> {
        while self.waiting.len() < SPARE {
            let instance = self.instance(false)?;
            self.wait_at(instance);
        }
        Ok(())
    }

    fn instance(&mut self, first: bool) -> Result<NamedPipeServer> {
        let mut options = ServerOptions::new();
        options
            .first_pipe_instance(first)
            .reject_remote_clients(true)
            .in_buffer_size(BUFFER)
            .out_buffer_size(BUFFER);
        self.descriptor.create(&options, &self.path)
    }

    fn wait_at(&mut self, pipe: NamedPipeServer) {
        self.waiting.spawn(async move {
            pipe.connect().await?;
            Ok(pipe)
        });
    }
}

fn explained(error: Error) -> Error {
    match error.raw_os_error() {
        Some(ACCESS_DENIED | PIPE_BUSY) => taken(),
        _ => error,
    }
}

fn taken() -> Error {
    Error::new(
        ErrorKind::AddrInUse,
        "another program serves there; stop it first",
    )
}

/// A pipe goes with its last instance.
pub(crate) fn remove(_path: &Path) {}
