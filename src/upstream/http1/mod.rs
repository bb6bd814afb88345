//! HTTP/1.1 to a server: one connection, over all requests it carries, each of which runs in its own task.

mod exchange;
pub(crate) mod head;
mod incoming;
mod sending;

use std::future::poll_fn;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Waker;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncRead;
use tokio::io::ReadBuf;
use tokio::io::WriteHalf;
use tokio::io::split;
use tokio::task::coop::unconstrained;

pub(super) use self::incoming::Http1ResponseBody;
pub(super) use self::sending::Sending;

use super::server::Server;
use super::stream::ServerStream;
use crate::timer::LazyTimer;

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    stream: ServerStream,
    /// What was read and belongs to nothing yet.
    inbox: BytesMut,
    patience: LazyTimer,
    pub(super) server: Arc<Server>,
    /// How long it is kept without a request.
    pub(super) idle: Duration,
}

impl Link {
    pub(super) fn new(stream: ServerStream, server: Arc<Server>, idle: Duration) -> Self {
        Self { stream, inbox: BytesMut::new(), patience: LazyTimer::default(), server, idle }
    }

    /// Whether it can carry a request: the server has neither closed it nor sent what nobody asked for, as far as is
    /// known.
    pub(super) fn is_ready(&mut self) -> bool {
        if !self.inbox.is_empty() {
            return false;
        }
        let mut byte = [0];
        let stream = &mut self.stream;
        let read = poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut ReadBuf::new(&mut byte)));
        // A task that has done much for now would be told that nothing has come, whatever has.
        pin!(unconstrained(read)).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Its answer has ended: the connection is kept, unless it can carry no further request.
    fn rest(mut self: Box<Self>) -> Option<Box<Self>> {
        if self.inbox.capacity() > MOST_KEPT {
            self.inbox = BytesMut::new();
        }
        (self.inbox.is_empty() && !self.server.removed.is_cancelled()).then_some(self)
    }

    /// Leaves the writing to somebody else, and can carry no further request.
    fn lend_writer(self) -> (Self, WriteHalf<ServerStream>) {
        let (reading, writing) = split(self.stream);
        (Self { stream: ServerStream::Reading(Box::new(reading)), ..self }, writing)
    }
}

/// Of its buffer between two requests: enough for most answers.
const MOST_KEPT: usize = 8 * 1024;

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
    async fn what_nobody_asked_for_is_seen_by_a_task_that_has_done_much() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        stream.readable().await.unwrap();
        let location = ServerUrl::from(Authority::from_static("a:1"));
        let server = Arc::new(Server::new(&location, ServerAddress::of(&location), None, false));
        let mut link = Link::new(ServerStream::Plain(stream), server, Duration::MAX);
        while has_budget_remaining() {
            consume_budget().await;
        }
        assert!(!link.is_ready());
    }
}
