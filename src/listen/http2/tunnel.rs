//! A stream that carries bytes both ways after an extended CONNECT (RFC 8441).

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use h2::{Reason, RecvStream, SendStream};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use crate::listen::http2::frame_writer::WriteBacklog;
use crate::listen::http2::stream::OpenStream;
use crate::listen::{OnUpgrade, Upgraded};
use crate::wire::http2::poll_room;

/// In bytes: the most that one write takes.
const MAX_WRITE: usize = 16 * 1024;

/// A client's stream after the response that opened the tunnel. Dropped before both sides have ended, it is reset.
#[derive(Debug)]
pub(in crate::listen) struct Http2Tunnel {
    /// Shared with the future of [`Self::given_up`], in the same task: the lock is for the compiler.
    halves: Arc<Mutex<TunnelHalves>>,
    backlog: WriteBacklog,
    /// The tunnel counts as a request in progress.
    _open: OpenStream,
}

#[derive(Debug)]
struct TunnelHalves {
    inbound: TunnelReader,
    outbound: SendStream<Bytes>,
}

/// The bytes of the client. They are taken from h2 as they come, because h2 charges for each frame, also for a small
/// one. The client gets new window only for bytes that were read from the tunnel.
#[derive(Debug)]
pub(super) struct TunnelReader {
    stream: RecvStream,
    unread: BytesMut,
    end: Option<Result<(), io::ErrorKind>>,
}

impl Http2Tunnel {
    pub(super) fn new(
        inbound: TunnelReader,
        outbound: SendStream<Bytes>,
        open: OpenStream,
        backlog: WriteBacklog,
    ) -> Self {
        let halves = Arc::new(Mutex::new(TunnelHalves { inbound, outbound }));
        Self { halves, backlog, _open: open }
    }

    /// Takes bytes of the client before they are read, and returns when the client resets the stream.
    pub(in crate::listen) fn given_up(&self) -> impl Future<Output = ()> + Send + use<> {
        let halves = Arc::clone(&self.halves);
        poll_fn(move |cx| {
            let mut halves = halves.lock();
            halves.inbound.fill(cx);
            halves.outbound.poll_reset(cx).map(|_| ())
        })
    }
}

impl TunnelReader {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self { stream, unread: BytesMut::new(), end: None }
    }

    /// Takes the bytes that have arrived.
    pub(super) fn fill(&mut self, cx: &mut Context<'_>) {
        while self.end.is_none() {
            match self.stream.poll_data(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(data))) => self.unread.extend_from_slice(&data),
                Poll::Ready(Some(Err(_))) => self.end = Some(Err(io::ErrorKind::ConnectionReset)),
                Poll::Ready(None) => match self.stream.poll_trailers(cx) {
                    Poll::Pending => return,
                    Poll::Ready(Ok(None)) => self.end = Some(Ok(())),
                    // A tunnel has no trailers (RFC 9113, section 8.5).
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
        // A failure shows in the next read.
        let _ = self.stream.flow_control().release_capacity(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Http2Tunnel {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut halves = self.halves.lock();
        let read = ready!(halves.inbound.poll_read(cx, buf));
        if read == Err(io::ErrorKind::InvalidData) {
            halves.outbound.send_reset(Reason::PROTOCOL_ERROR);
        }
        Poll::Ready(read.map_err(io::Error::from))
    }
}

impl AsyncWrite for Http2Tunnel {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.backlog.poll_room(cx));
        let outbound = &mut self.halves.lock().outbound;
        let part = &bytes[..bytes.len().min(MAX_WRITE)];
        if !part.is_empty() {
            // One byte, not all: window that is reserved for this stream is not available to others.
            outbound.reserve_capacity(1);
            ready!(poll_room(outbound, cx));
            self.backlog.add(part.len());
            outbound.send_data(Bytes::copy_from_slice(part), false).map_err(broken)?;
        }
        Poll::Ready(Ok(part.len()))
    }

    /// h2 flushes by itself.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.halves.lock().outbound.send_data(Bytes::new(), true).map_err(broken))
    }
}

fn broken(error: h2::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

// A stream that becomes a tunnel if the response opens it.

/// A stream whose request asks for a tunnel.
#[derive(Debug)]
pub(super) struct PendingTunnel {
    inbound: TunnelReader,
    upgraded: oneshot::Sender<Upgraded>,
}

impl PendingTunnel {
    pub(super) fn new(stream: RecvStream) -> (Self, OnUpgrade) {
        let (upgraded, upgrade) = OnUpgrade::pair();
        (Self { inbound: TunnelReader::new(stream), upgraded }, upgrade)
    }

    /// Takes the bytes that come before the response.
    pub(super) fn fill(&mut self, cx: &mut Context<'_>) {
        self.inbound.fill(cx);
    }

    /// The response opened the tunnel. If the handler has dropped its side, the stream is reset.
    pub(super) fn open(self, outbound: SendStream<Bytes>, open: OpenStream, backlog: WriteBacklog) {
        let Self { inbound, upgraded } = self;
        drop(upgraded.send(Http2Tunnel::new(inbound, outbound, open, backlog).into()));
    }
}
