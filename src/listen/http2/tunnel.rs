//! A stream that carries bytes both ways once its extended CONNECT was answered (RFC 8441).

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Buf;
use bytes::Bytes;
use bytes::BytesMut;
use h2::Reason;
use h2::RecvStream;
use h2::SendStream;
use parking_lot::Mutex;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::sync::oneshot;

use super::stream::Open;
use super::unwritten::Unwritten;
use crate::http2::poll_room;
use crate::listen::OnUpgrade;
use crate::listen::Upgraded;

/// A stream whose request asks for a tunnel.
#[derive(Debug)]
pub(super) struct Wanted {
    inbound: Inbound,
    taker: oneshot::Sender<Upgraded>,
}

/// A client's stream behind the answer that opened the tunnel. Dropped before both sides have ended, it is reset.
#[derive(Debug)]
pub(in crate::listen) struct Tunnel {
    /// Shared with whoever attends to it, in the same task: the lock is for the compiler.
    ends: Arc<Mutex<Ends>>,
    unwritten: Unwritten,
    /// The connection has a request under way as long.
    _open: Open,
}

#[derive(Debug)]
struct Ends {
    inbound: Inbound,
    outbound: SendStream<Bytes>,
}

/// What the client sends. It is taken from h2 as it comes, which has a price for each frame, however small; the client
/// gets new window only for what was read on.
#[derive(Debug)]
struct Inbound {
    stream: RecvStream,
    unread: BytesMut,
    end: Option<Result<(), io::ErrorKind>>,
}

impl Wanted {
    pub(super) fn new(stream: RecvStream) -> (Self, OnUpgrade) {
        let (taker, upgrade) = OnUpgrade::pair();
        (Self { inbound: Inbound { stream, unread: BytesMut::new(), end: None }, taker }, upgrade)
    }

    /// Takes what comes before the answer.
    pub(super) fn fill(&mut self, cx: &mut Context<'_>) {
        self.inbound.fill(cx);
    }

    /// The answer opened it. Where nobody takes it any more, the stream is reset.
    pub(super) fn open(self, outbound: SendStream<Bytes>, open: Open, unwritten: Unwritten) {
        let Self { inbound, taker } = self;
        let ends = Arc::new(Mutex::new(Ends { inbound, outbound }));
        drop(taker.send(Tunnel { ends, unwritten, _open: open }.into()));
    }
}

impl Tunnel {
    /// Takes what comes, though nobody reads it yet, until the client gives the stream up.
    pub(in crate::listen) fn given_up(&self) -> impl Future<Output = ()> + Send + use<> {
        let ends = Arc::clone(&self.ends);
        poll_fn(move |cx| {
            let mut ends = ends.lock();
            ends.inbound.fill(cx);
            ends.outbound.poll_reset(cx).map(|_| ())
        })
    }
}

impl Inbound {
    fn fill(&mut self, cx: &mut Context<'_>) {
        while self.end.is_none() {
            match self.stream.poll_data(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(data))) => self.unread.extend_from_slice(&data),
                Poll::Ready(Some(Err(_))) => self.end = Some(Err(io::ErrorKind::ConnectionReset)),
                Poll::Ready(None) => match self.stream.poll_trailers(cx) {
                    Poll::Pending => return,
                    Poll::Ready(Ok(None)) => self.end = Some(Ok(())),
                    // What follows a body may not follow these bytes (RFC 9113, section 8.5).
                    Poll::Ready(Ok(Some(_))) => self.end = Some(Err(io::ErrorKind::InvalidData)),
                    Poll::Ready(Err(_)) => self.end = Some(Err(io::ErrorKind::ConnectionReset)),
                },
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<(), io::ErrorKind>> {
        self.fill(cx);
        if self.unread.is_empty() {
            return self.end.map_or(Poll::Pending, Poll::Ready);
        }
        let length = self.unread.len().min(buf.remaining());
        buf.put_slice(&self.unread[..length]);
        self.unread.advance(length);
        if self.unread.is_empty() {
            self.unread = BytesMut::new();
        }
        // That the stream is gone shows when asked for more.
        let _ = self.stream.flow_control().release_capacity(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut ends = self.ends.lock();
        let read = ready!(ends.inbound.poll_read(cx, buf));
        if read == Err(io::ErrorKind::InvalidData) {
            ends.outbound.send_reset(Reason::PROTOCOL_ERROR);
        }
        Poll::Ready(read.map_err(io::Error::from))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.unwritten.poll_room(cx));
        let outbound = &mut self.ends.lock().outbound;
        let part = &bytes[..bytes.len().min(PART)];
        if !part.is_empty() {
            // Not all of it: what one stream was promised, others do not get.
            outbound.reserve_capacity(1);
            ready!(poll_room(outbound, cx));
            self.unwritten.add(part.len());
            outbound.send_data(Bytes::copy_from_slice(part), false).map_err(broken)?;
        }
        Poll::Ready(Ok(part.len()))
    }

    /// The connection writes by itself.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.ends.lock().outbound.send_data(Bytes::new(), true).map_err(broken))
    }
}

fn broken(error: h2::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

/// What waits on one stream for its client to make room.
const PART: usize = 16 * 1024;
