//! Sockets of the control endpoint: Unix with mode 0600, or TCP on the loopback interface.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

use super::ControlError;

/// Where the endpoint is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl Address {
    pub(super) fn parse(uri: &str) -> Result<Self, ControlError> {
        let fail = |reason: &str| ControlError::Address {
            uri: uri.to_owned(),
            reason: reason.to_owned(),
        };
        if let Some(rest) = uri.strip_prefix("unix:") {
            // The two forms of gRPC: unix:// with an absolute path, unix: with any.
            let path = match rest.strip_prefix("//").map(PathBuf::from) {
                Some(path) if path.has_root() => Some(path),
                Some(_) => None,
                None => std::path::absolute(rest).ok(),
            };
            let path = path
                .ok_or_else(|| fail("expected unix:///path with an absolute path, or unix:path"))?;
            return Ok(Self::Unix(path));
        }
        let tcp = uri
            .strip_prefix("tcp://")
            .ok_or_else(|| fail("expected unix:///path or tcp://127.0.0.1:port"))?;
        let tcp = tcp.replacen("localhost:", "127.0.0.1:", 1);
        let address: SocketAddr = tcp
            .parse()
            .map_err(|_| fail("expected an IP address and a port"))?;
        match address.ip().is_loopback() {
            true => Ok(Self::Tcp(address)),
            false => Err(fail("only the loopback interface is allowed")),
        }
    }
}

/// A connection that can be read, written and closed from several threads.
pub(super) trait Connection: Read + Write + Send {
    fn another(&self) -> io::Result<Box<dyn Connection>>;
    fn close(&self);
}

impl Connection for TcpStream {
    fn another(&self) -> io::Result<Box<dyn Connection>> {
        Ok(Box::new(self.try_clone()?))
    }

    fn close(&self) {
        // It may be closed already.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// A socket that waits for connections.
pub(super) enum Listener {
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    pub(super) fn open(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => unix::listen(path),
            Address::Tcp(address) => TcpListener::bind(address).map(Self::Tcp),
        }
    }

    pub(super) fn accept(&self) -> io::Result<Box<dyn Connection>> {
        match self {
            #[cfg(unix)]
            Self::Unix(listener, _) => Ok(Box::new(listener.accept()?.0)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
        }
    }

    /// Makes a thread that waits in [`Listener::accept`] return, whether the socket's file is
    /// still there or not.
    pub(super) fn wake(&self) {
        // What cannot be woken has ended.
        let _ = match self {
            #[cfg(unix)]
            Self::Unix(listener, _) => unix::shut(listener),
            Self::Tcp(listener) => listener.local_addr().and_then(TcpStream::connect).map(drop),
        };
    }

    /// The address with the port that was given, where 0 was asked for.
    pub(super) fn address(&self) -> io::Result<Address> {
        match self {
            #[cfg(unix)]
            Self::Unix(_, path) => Ok(Address::Unix(path.clone())),
            Self::Tcp(listener) => listener.local_addr().map(Address::Tcp),
        }
    }
}

pub(super) fn connect(address: &Address) -> io::Result<Box<dyn Connection>> {
    match address {
        Address::Unix(path) => unix::connect(path),
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
    }
}

/// Unix sockets.
#[cfg(unix)]
mod unix {
    use std::fs::{self, DirBuilder, Permissions};
    use std::io;
    use std::net::Shutdown;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{Connection, Listener};

    /// How many sockets this process has opened.
    static OPENED: AtomicU64 = AtomicU64::new(0);

    impl Connection for UnixStream {
        fn another(&self) -> io::Result<Box<dyn Connection>> {
            Ok(Box::new(self.try_clone()?))
        }

        fn close(&self) {
            // It may be closed already.
            let _ = self.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn connect(path: &Path) -> io::Result<Box<dyn Connection>> {
        Ok(Box::new(UnixStream::connect(path)?))
    }

    /// Linux lets a socket that listens be shut down like one that is connected: whoever
    /// waits in `accept` is told an error.
    pub(super) fn shut(listener: &UnixListener) -> io::Result<()> {
        let socket = OwnedFd::from(listener.try_clone()?);
        UnixStream::from(socket).shutdown(Shutdown::Both)
    }

    /// The socket is made in a directory of its own, so that nobody else can open it before
    /// its mode is set.
    pub(super) fn listen(path: &Path) -> io::Result<Listener> {
        remove_stale(path)?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        let (process, number) = (std::process::id(), OPENED.fetch_add(1, Ordering::Relaxed));
        let private = parent.join(format!(".csi-proxy-sim-{process}-{number}"));
        DirBuilder::new().mode(0o700).create(&private)?;
        let listener = listen_in(&private, path);
        // What is left of it does no harm.
        let _ = fs::remove_dir_all(&private);
        listener
    }

    fn listen_in(private: &Path, path: &Path) -> io::Result<Listener> {
        let socket = private.join("socket");
        let listener = UnixListener::bind(&socket)?;
        fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        fs::rename(&socket, path)?;
        Ok(Listener::Unix(listener, path.to_owned()))
    }

    /// Removes the socket of a process that is gone; one that answers, or a file of another
    /// kind, stays and is an error.
    fn remove_stale(path: &Path) -> io::Result<()> {
        let other = |what: &str| Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(found) if !found.file_type().is_socket() => {
                other("there is a file that is no socket; remove it or choose another path")
            }
            Ok(_) if UnixStream::connect(path).is_ok() => {
                other("another process serves this socket")
            }
            Ok(_) => fs::remove_file(path),
        }
    }
}

/// std has no Unix sockets here.
#[cfg(not(unix))]
mod unix {
    use std::io;
    use std::path::Path;

    use super::{Connection, Listener};

    fn unsupported<T>() -> io::Result<T> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "unix:// is not available on this system; use tcp://127.0.0.1:port",
        ))
    }

    pub(super) fn connect(_: &Path) -> io::Result<Box<dyn Connection>> {
        unsupported()
    }

    pub(super) fn listen(_: &Path) -> io::Result<Listener> {
        unsupported()
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
    fn only_local_addresses_are_taken() {
        for uri in [
            "unix:///run/sim.sock",
            "unix:/run/sim.sock",
            "unix:sim.sock",
            "tcp://127.0.0.1:0",
            "tcp://[::1]:7000",
            "tcp://localhost:1",
        ] {
            assert!(Address::parse(uri).is_ok(), "{uri}");
        }
        for uri in [
            "",
            "unix://relative",
            "unix:",
            "tcp://0.0.0.0:1",
            "tcp://192.0.2.1:1",
            "tcp://127.0.0.1",
            "npipe:////./pipe/x",
            "/run/sim.sock",
        ] {
            let error = Address::parse(uri).unwrap_err();
            assert!(matches!(error, ControlError::Address { .. }), "{uri}");
        }
    }
}
