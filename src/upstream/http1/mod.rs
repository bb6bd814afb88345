//! HTTP/1.1 to a server: one connection for many requests in a row. Each request runs in its own task.

mod exchange;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use tokio::io::{WriteHalf, split};
use tokio_util::io::poll_read_buf;
use tokio_util::task::AbortOnDropHandle;

use crate::upstream::connect::OpenConnection;
use crate::upstream::error::BoxError;
use crate::upstream::response::Tunnel;
use crate::upstream::server::{InFlight, Server};
use crate::upstream::stream::ServerStream;
use crate::wire::http1::grammar::{BodyDecoder, BodyLength, Sender};
use crate::words::timer::LazyTimer;

/// In bytes: the buffer that is kept between two requests. Enough for most responses.
const MAX_KEPT_BUFFER: usize = 8 * 1024;

/// A connection, which carries one request at a time.
#[derive(Debug)]
pub(in crate::upstream) struct Http1Connection {
    pub(super) stream: ServerStream,
    /// Bytes that were read and not used yet.
    pub(super) read: BytesMut,
    /// For the timeouts of the response.
    pub(super) timer: LazyTimer,
    pub(in crate::upstream) server: Arc<Server>,
    /// The application may have signed it in: it carries the requests of one client alone.
    pub(in crate::upstream) is_own: bool,
    /// How long it may be kept without a request.
    pub(in crate::upstream) idle: Duration,
    /// How many idle connections the server may have on all cores.
    pub(in crate::upstream) max_idle: Option<usize>,
    _open: OpenConnection,
}

impl Http1Connection {
    pub(in crate::upstream) fn new(
        stream: ServerStream,
        server: Arc<Server>,
        idle: Duration,
        max_idle: Option<usize>,
    ) -> Self {
        Self {
            stream,
            read: BytesMut::new(),
            timer: LazyTimer::default(),
            server,
            is_own: false,
            idle,
            max_idle,
            _open: OpenConnection::count(),
        }
    }

    /// Whether it can carry a request: the server is not known to have closed it or to have sent bytes without a
    /// request.
    pub(in crate::upstream) fn is_ready(&mut self) -> bool {
        self.read.is_empty() && self.stream.is_silent()
    }

    /// Returns the connection after a response, unless it can carry no further request.
    pub(super) fn into_reusable(mut self: Box<Self>) -> Option<Box<Self>> {
        if self.read.capacity() > MAX_KEPT_BUFFER {
            self.read = BytesMut::new();
        }
        (self.read.is_empty() && !self.server.removed.is_cancelled()).then_some(self)
    }

    /// Splits off the writing half. The connection can carry no further request.
    pub(super) fn split_writer(self) -> (Self, WriteHalf<ServerStream>) {
        let (reading, writing) = split(self.stream);
        (Self { stream: ServerStream::Reading(Box::new(reading)), ..self }, writing)
    }
}

// The body of an answer.

/// In bytes: a few such parts may wait for a client that does not read.
const READ_SIZE: usize = 16 * 1024;

/// The body of a response, read off its connection.
#[derive(Debug)]
pub(in crate::upstream) struct Http1ResponseBody {
    connection: Box<Http1Connection>,
    body: BodyDecoder,
    /// The connection may carry another request.
    keeps_alive: bool,
    /// The task that still sends the rest of the request.
    upload: Option<AbortOnDropHandle<()>>,
}

impl Http1ResponseBody {
    /// `keeps_alive`: the connection may carry another request.
    pub(super) fn new(connection: Box<Http1Connection>, length: BodyLength, keeps_alive: bool) -> Self {
        Self { connection, body: BodyDecoder::new(length, Sender::Server), keeps_alive, upload: None }
    }

    /// For a response that began before the request was sent. The rest of the request is abandoned if this is dropped before
    /// its end.
    pub(super) fn with_upload(
        upload: AbortOnDropHandle<()>,
        connection: Box<Http1Connection>,
        length: BodyLength,
    ) -> Self {
        Self { connection, body: BodyDecoder::new(length, Sender::Server), keeps_alive: false, upload: Some(upload) }
    }

    /// The next part. After the last one, [`Self::is_complete`] returns true without another poll.
    pub(in crate::upstream) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if let Some(frame) = self.body.decode(&mut self.connection.read)? {
                return Poll::Ready(Some(Ok(frame)));
            }
            if self.body.is_complete() {
                return Poll::Ready(None);
            }
            let connection = &mut *self.connection;
            let wanted = self.body.remaining().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(READ_SIZE);
            connection.read.reserve(wanted.min(READ_SIZE));
            if ready!(poll_read_buf(Pin::new(&mut connection.stream), cx, &mut connection.read))? == 0 {
                self.keeps_alive = false;
                return Poll::Ready(self.body.end().err().map(|cut_short| Err(cut_short.into())));
            }
        }
    }

    /// From now on the connection carries the requests of one client alone.
    pub(in crate::upstream) fn set_own(&mut self) {
        self.connection.is_own = true;
    }

    pub(in crate::upstream) fn is_own(&self) -> bool {
        self.connection.is_own
    }

    /// Writes the whole body, if all of it was read already and it has this length.
    pub(in crate::upstream) fn write_whole(&mut self, out: &mut Vec<u8>, length: u64) -> bool {
        let is_whole = self.body.remaining() == Some(length) && self.connection.read.len() as u64 >= length;
        is_whole && self.body.decode_whole(&mut self.connection.read, out)
    }

    pub(in crate::upstream) fn is_complete(&self) -> bool {
        self.body.is_complete()
    }

    pub(in crate::upstream) fn size_hint(&self) -> SizeHint {
        self.body.remaining().map_or_else(SizeHint::new, SizeHint::with_exact)
    }

    pub(in crate::upstream) fn timer(&mut self) -> &mut LazyTimer {
        &mut self.connection.timer
    }

    /// The body is complete. Returns the connection if it can carry another request.
    pub(in crate::upstream) fn finish(self) -> Option<Box<Http1Connection>> {
        if let Some(upload) = self.upload {
            upload.detach();
        }
        if self.keeps_alive { self.connection.into_reusable() } else { None }
    }

    /// The server has switched protocols.
    pub(in crate::upstream) fn into_tunnel(self, in_flight: InFlight) -> Tunnel {
        let Http1Connection { stream, read, .. } = *self.connection;
        Tunnel::new(stream, read, in_flight)
    }
}

#[cfg(test)]
mod tests {
    use http::uri::Authority;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::coop::{consume_budget, has_budget_remaining};

    use super::*;
    use crate::upstream::ServerUrl;
    use crate::upstream::server::ServerAddress;

    #[tokio::test]
    async fn bytes_without_a_request_are_seen_by_a_task_without_budget() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        stream.readable().await.unwrap();
        let location = ServerUrl::from(Authority::from_static("a:1"));
        let server = Arc::new(Server::new(&location, ServerAddress::of(&location), None, false));
        let mut connection = Http1Connection::new(ServerStream::Plain(stream), server, Duration::MAX, None);
        while has_budget_remaining() {
            consume_budget().await;
        }
        assert!(!connection.is_ready());
    }
}
