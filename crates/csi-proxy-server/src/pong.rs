//! Answers to pings, which wait a moment for something to travel with.
//!
//! A Go client pings along with nearly every call, to estimate the bandwidth. Answered at once,
//! each call costs two writes here and two reads there, and those are most of its time. The
//! answer of the call comes within a fraction of a millisecond, so both travel together; without
//! one the answer to the ping goes when a millisecond is over.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::Sleep;

/// How long the answer to a ping waits.
const WAIT: Duration = Duration::from_millis(1);

/// The frame header of such an answer: 8 bytes, PING, ACK, the whole connection. RFC 9113,
/// section 6.7.
const PONG: [u8; 9] = [0, 0, 8, 6, 1, 0, 0, 0, 0];

/// Its length with the 8 bytes.
const PONG_SIZE: usize = 17;

/// What waits.
#[derive(Default)]
pub(crate) struct Pongs {
    held: Vec<u8>,
    until: Option<Pin<Box<Sleep>>>,
}

impl Pongs {
    /// Writes bytes and what waits before them; an answer to a ping alone waits.
    pub(crate) fn poll_write(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.held.is_empty() {
            if bytes.len() == PONG_SIZE && bytes.starts_with(&PONG) {
                self.held.extend_from_slice(bytes);
                self.until = Some(Box::pin(tokio::time::sleep(WAIT)));
                return Poll::Ready(Ok(bytes.len()));
            }
            return Pin::new(stream).poll_write(context, bytes);
        }
        let together = [&self.held, bytes].concat();
        let written = ready!(Pin::new(&mut *stream).poll_write(context, &together))?;
        match written.checked_sub(self.held.len()) {
            // Not all of what waited: it goes before the bytes are looked at.
            None | Some(0) if !bytes.is_empty() => {
                self.written(written);
                ready!(self.poll_write_held(stream, context))?;
                Pin::new(stream).poll_write(context, bytes)
            }
            behind => {
                self.written(written);
                Poll::Ready(Ok(behind.unwrap_or(0)))
            }
        }
    }

    /// Writes what has waited long enough; the rest may wait, and the task is woken then.
    pub(crate) fn poll_due(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(until) = &mut self.until
            && until.as_mut().poll(context).is_pending()
        {
            return Poll::Ready(Ok(()));
        }
        self.poll_write_held(stream, context)
    }

    /// Writes what waits.
    pub(crate) fn poll_write_held(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let written = ready!(Pin::new(&mut *stream).poll_write(context, &self.held))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written(written);
        }
        Poll::Ready(Ok(()))
    }

    fn written(&mut self, bytes: usize) {
        self.held.drain(..bytes.min(self.held.len()));
        // What has been begun is not to wait again.
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use tokio::io::{AsyncReadExt, duplex};

    const ANSWER: &[u8] = &[0, 0, 8, 6, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];

    async fn write(pongs: &mut Pongs, stream: &mut tokio::io::DuplexStream, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = poll_fn(|context| pongs.poll_write(stream, context, rest)).await;
            rest = &rest[written.unwrap()..];
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_travels_with_what_comes_next() {
        // 5 bytes go at once, so that what waits goes in pieces too.
        for room in [5, 17, 20, 64] {
            let (mut client, mut server) = duplex(room);
            let reader = tokio::spawn(async move {
                let mut all = Vec::new();
                client.read_to_end(&mut all).await.unwrap();
                all
            });
            let mut pongs = Pongs::default();
            write(&mut pongs, &mut server, b"first").await;
            write(&mut pongs, &mut server, ANSWER).await;
            poll_fn(|context| pongs.poll_due(&mut server, context))
                .await
                .unwrap();
            assert_eq!(pongs.held, ANSWER, "it waits");
            write(&mut pongs, &mut server, b"answer of a call").await;
            assert!(pongs.held.is_empty());
            drop(server);
            let expected = [b"first", ANSWER, b"answer of a call"].concat();
            assert_eq!(reader.await.unwrap(), expected, "{room}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_without_company_goes_when_its_time_is_over() {
        let (mut client, mut server) = duplex(64);
        let mut pongs = Pongs::default();
        write(&mut pongs, &mut server, ANSWER).await;
        let mut sent = [0; PONG_SIZE];
        let mut polled = 0;
        tokio::select! {
            read = client.read_exact(&mut sent) => { read.unwrap(); }
            () = poll_fn(|context| -> Poll<()> {
                polled += 1;
                assert!(pongs.poll_due(&mut server, context).is_ready());
                Poll::Pending
            }) => {}
        }
        assert_eq!(sent, ANSWER);
        assert!(polled > 1, "the task is woken");
    }

    #[tokio::test]
    async fn two_answers_wait_for_nothing_more() {
        let (mut client, mut server) = duplex(64);
        let mut pongs = Pongs::default();
        write(&mut pongs, &mut server, ANSWER).await;
        write(&mut pongs, &mut server, ANSWER).await;
        let mut sent = [0; 2 * PONG_SIZE];
        client.read_exact(&mut sent).await.unwrap();
        assert_eq!(sent, [ANSWER, ANSWER].concat()[..]);
    }
}
