//! One connection to a server.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::WriteHalf;
use tokio::io::split;

use crate::timer::LazyTimer;
use crate::upstream::open_connection::OpenConnection;
use crate::upstream::server::Server;
use crate::upstream::stream::ServerStream;

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

    /// Whether it can carry a request: as far as is known, the server has neither closed it nor sent bytes without a request.
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

/// In bytes: the buffer that is kept between two requests. Enough for most responses.
const MAX_KEPT_BUFFER: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use http::uri::Authority;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::net::TcpStream;
    use tokio::task::coop::consume_budget;
    use tokio::task::coop::has_budget_remaining;

    use super::*;
    use crate::upstream::ServerUrl;
    use crate::upstream::address::ServerAddress;

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
