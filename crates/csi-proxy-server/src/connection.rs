//! A connection of a client: who is at its other end, that it does not stay silent, and that the
//! HTTP/2 library can read what it says.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tonic::transport::server::Connected;

use crate::authority::Authorities;
use crate::pong::Pongs;
use crate::transport;

/// What an HTTP/2 client says first has so many bytes, RFC 9113 section 3.4.
const PREFACE: usize = 24;

/// The process at the other end of a connection.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    process: Option<u32>,
    image: OnceLock<String>,
}

impl Peer {
    pub(crate) fn new(process: Option<u32>) -> Self {
        Self {
            process,
            image: OnceLock::new(),
        }
    }

    /// Its process id, where the system tells.
    pub(crate) fn process(&self) -> Option<u32> {
        self.process
    }

    /// The path of its program, where the system tells; otherwise empty. It is asked for once.
    pub(crate) fn image(&self) -> &str {
        self.image.get_or_init(|| {
            self.process
                .and_then(transport::image_of)
                .unwrap_or_default()
        })
    }
}

/// A connection. One that has not said in time that it speaks HTTP/2 is closed.
pub(crate) struct Connection<S> {
    stream: S,
    peer: Arc<Peer>,
    /// The bytes that are still missing, and until when they must have come.
    preface: Option<(usize, Pin<Box<Sleep>>)>,
    authorities: Authorities,
    /// What has been read and not been taken, from the place on up to which it has.
    read: Vec<u8>,
    taken: usize,
    pongs: Pongs,
}

impl<S> Connection<S> {
    pub(crate) fn new(stream: S, peer: Peer, first_words: Duration) -> Self {
        Self {
            stream,
            peer: Arc::new(peer),
            preface: Some((PREFACE, Box::pin(tokio::time::sleep(first_words)))),
            authorities: Authorities::behind(PREFACE),
            read: Vec::new(),
            taken: 0,
            pongs: Pongs::default(),
        }
    }

    /// Gives as much of what has been read as there is room for, and whether there was any.
    fn give(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let waiting = &self.read[self.taken..];
        let given = &waiting[..waiting.len().min(buffer.remaining())];
        buffer.put_slice(given);
        self.taken += given.len();
        if self.taken < self.read.len() {
            return true;
        }
        let any = !self.read.is_empty();
        self.read.clear();
        self.taken = 0;
        any
    }

    fn has_read(&mut self, bytes: usize) {
        self.preface = match self.preface.take() {
            Some((missing, until)) if missing > bytes => Some((missing - bytes, until)),
            _ => None,
        };
    }
}

impl<S> Connected for Connection<S> {
    type ConnectInfo = Arc<Peer>;

    fn connect_info(&self) -> Arc<Peer> {
        Arc::clone(&self.peer)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        // What was read may all be held until the rest of a frame comes.
        while !this.give(buffer) {
            let before = buffer.filled().len();
            match Pin::new(&mut this.stream).poll_read(context, buffer) {
                Poll::Ready(Ok(())) => {
                    let bytes = &buffer.filled()[before..];
                    if bytes.is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                    this.authorities.pass(bytes, &mut this.read);
                    let bytes = bytes.len();
                    this.has_read(bytes);
                    buffer.set_filled(before);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    if let Some((_, until)) = &mut this.preface {
                        ready!(until.as_mut().poll(context));
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        this.pongs.poll_write(&mut this.stream, context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(this.pongs.poll_due(&mut this.stream, context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(this.pongs.poll_write_held(&mut this.stream, context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const LIMIT: Duration = Duration::from_millis(1);

    fn connection(stream: tokio::io::DuplexStream) -> Connection<tokio::io::DuplexStream> {
        Connection::new(stream, Peer::default(), LIMIT)
    }

    #[tokio::test]
    async fn a_connection_that_says_too_little_is_closed() {
        let (mut client, server) = duplex(64);
        let mut server = connection(server);
        client.write_all(&[0; PREFACE - 1]).await.unwrap();
        let mut bytes = [0; PREFACE];
        let error = server.read_exact(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_connection_that_has_begun_may_be_silent() {
        let (mut client, server) = duplex(64);
        let mut server = connection(server);
        client.write_all(&[0; PREFACE]).await.unwrap();
        let mut bytes = [0; PREFACE];
        server.read_exact(&mut bytes).await.unwrap();
        assert!(server.preface.is_none());
        drop(client);
        assert_eq!(server.read(&mut bytes).await.unwrap(), 0);
    }
}
