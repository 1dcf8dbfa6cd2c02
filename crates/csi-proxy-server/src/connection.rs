//! A connection of a client: who is at its other end, and that it does not stay silent.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tonic::transport::server::Connected;

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
}

impl<S> Connection<S> {
    pub(crate) fn new(stream: S, peer: Peer, first_words: Duration) -> Self {
        Self {
            stream,
            peer: Arc::new(peer),
            preface: Some((PREFACE, Box::pin(tokio::time::sleep(first_words)))),
        }
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
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        match read {
            Poll::Ready(Ok(())) => self.has_read(buffer.filled().len() - before),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                if let Some((_, until)) = &mut self.preface {
                    ready!(until.as_mut().poll(context));
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
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
