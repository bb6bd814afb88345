//! The answer of an application, and its body as it arrives.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::error::{BodyError, BoxError, PreviousAttempts};
use super::http1::{Http1Connection, Http1ResponseBody};
use super::http2::Http2ResponseBody;
use super::server::InFlight;
use crate::upstream::pool::{IdleConnections, OwnConnections};
use crate::upstream::stream::ServerStream;
use crate::wire::head::{KnownName, ResponseHead};
use crate::words::timer::LazyTimer;

/// The answer of an application. Its connection goes back to the pool when the body has ended.
#[derive(Debug)]
pub struct UpstreamResponse {
    pub head: ResponseHead,
    pub body: UpstreamBody,
    /// The server that answered, as written in the configuration.
    pub server: Arc<str>,
    /// The attempts before it.
    pub previous_attempts: PreviousAttempts,
}

/// The body of an answer. The request counts as in flight until the body has ended or is dropped.
#[derive(Debug)]
pub struct UpstreamBody {
    /// `None`: it has ended.
    body: Option<ResponseBody>,
    in_flight: Option<InFlight>,
    /// Where a connection of HTTP/1.1 goes when its answer has ended.
    owner: ConnectionOwner,
    /// How long the server may take for the next part.
    timeout: Duration,
    /// Since when the next part is awaited.
    waiting_since: Option<Instant>,
}

/// Where connections of HTTP/1.1 are kept between two requests.
#[derive(Debug)]
pub(super) enum ConnectionOwner {
    /// For all clients.
    Pool(Weak<IdleConnections>),
    /// For the one client that it belongs to.
    Client(Weak<OwnConnections>),
    /// It is closed.
    None,
}

impl ConnectionOwner {
    fn put(&self, link: Box<Http1Connection>) {
        match self {
            Self::Pool(idle) => {
                if let Some(idle) = idle.upgrade() {
                    idle.put(link);
                }
            }
            Self::Client(own) => {
                if let Some(own) = own.upgrade() {
                    own.put(link);
                }
            }
            Self::None => {}
        }
    }
}

/// The body of an answer by protocol.
#[derive(Debug)]
pub(super) enum ResponseBody {
    Http1(Http1ResponseBody),
    Http2(Box<Http2ResponseBody>),
}

impl UpstreamBody {
    /// The body of an answer. Removes `Content-Length` from the head if the server sent `Transfer-Encoding` as well.
    pub(super) fn attach(
        head: &mut ResponseHead,
        body: ResponseBody,
        in_flight: InFlight,
        owner: ConnectionOwner,
        timeout: Duration,
    ) -> Self {
        if head.fields.remove(KnownName::TRANSFER_ENCODING) {
            head.fields.remove(KnownName::CONTENT_LENGTH);
        }
        let is_complete = body.is_complete() && head.status != StatusCode::SWITCHING_PROTOCOLS;
        let mut body = Self { body: Some(body), in_flight: Some(in_flight), owner, timeout, waiting_since: None };
        if is_complete {
            body.end();
        }
        body
    }

    /// The connection of a 101. The request counts as in flight until the tunnel is dropped.
    pub fn into_tunnel(self) -> Option<Tunnel> {
        match (self.body, self.in_flight) {
            (Some(ResponseBody::Http1(body)), Some(in_flight)) => Some(body.into_tunnel(in_flight)),
            _ => None,
        }
    }

    /// Writes the whole body, if all of it was read already and it has this length.
    pub fn write_whole(&mut self, out: &mut Vec<u8>, length: u64) -> bool {
        let Some(ResponseBody::Http1(body)) = &mut self.body else { return false };
        let is_written = body.write_whole(out, length);
        if is_written {
            self.end();
        }
        is_written
    }

    fn end(&mut self) {
        self.in_flight = None;
        match self.body.take() {
            Some(ResponseBody::Http1(body)) => {
                if let Some(link) = body.finish() {
                    self.owner.put(link);
                }
            }
            Some(ResponseBody::Http2(body)) => body.finish(),
            None => {}
        }
    }

    fn break_off(&mut self) {
        self.in_flight = None;
        self.body = None;
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let Poll::Ready(frame) = body.poll_frame(cx) else {
            let since = *this.waiting_since.get_or_insert_with(Instant::now);
            return body.timer().poll_at(since + this.timeout, cx).map(|()| {
                this.break_off();
                Some(Err(BodyError::Stalled))
            });
        };
        this.waiting_since = None;
        match &frame {
            // The caller may not poll again after the last part, so the end is noticed here.
            Some(Ok(frame)) if frame.is_trailers() || body.is_complete() => this.end(),
            Some(Ok(_)) => {}
            Some(Err(_)) => this.break_off(),
            None => this.end(),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(ResponseBody::is_complete)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), ResponseBody::size_hint)
    }
}

impl ResponseBody {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Http1(body) => body.poll_frame(cx),
            Self::Http2(body) => body.poll_frame(cx),
        }
    }

    fn is_complete(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_complete(),
            Self::Http2(body) => body.is_complete(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
        }
    }

    fn timer(&mut self) -> &mut LazyTimer {
        match self {
            Self::Http1(body) => body.timer(),
            Self::Http2(body) => body.timer(),
        }
    }
}

// Informational answers (1xx), which come ahead of the answer.

/// Informational answers to one request that are passed on: no client needs more. Further ones are dropped.
pub(super) const MAX_PASSED_ON: u32 = 100;

/// Informational answers to one request. An application that sends more has no answer.
pub(super) const MAX_INFORMATIONAL: u32 = 10_000;

/// Called with each informational answer.
pub(super) type OnInformational<'h> = &'h mut (dyn FnMut(ResponseHead) + Send);

// Which version of HTTP a connection to a server carries.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ServerProtocol {
    Http1,
    Http2,
}

// A connection to a server that has switched to another protocol than HTTP.

/// The connection of an upgraded request.
#[derive(Debug)]
pub struct Tunnel {
    stream: ServerStream,
    /// Bytes that arrived together with the head of the answer.
    read_ahead: BytesMut,
    _in_flight: InFlight,
}

impl Tunnel {
    pub(super) fn new(stream: ServerStream, read_ahead: BytesMut, in_flight: InFlight) -> Self {
        Self { stream, read_ahead, _in_flight: in_flight }
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read_ahead.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let length = self.read_ahead.len().min(buf.remaining());
        buf.put_slice(&self.read_ahead[..length]);
        self.read_ahead.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
