//! HTTP/1.1 to a server: one connection, over all requests it carries, each of which runs in its own task.

mod exchange;
mod head;
mod incoming;
mod sending;

use std::pin::Pin;
use std::sync::Weak;
use std::task::Context;
use std::task::Waker;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncRead;
use tokio::io::ReadBuf;
use tokio::io::WriteHalf;
use tokio::io::split;

pub(super) use self::incoming::Incoming;
pub(super) use self::sending::Sending;

use super::pool::Idle;
use super::server::ServerId;
use super::stream::Stream;
use crate::alarm::Alarm;

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    stream: Stream,
    /// What was read and belongs to nothing yet.
    inbox: BytesMut,
    patience: Alarm,
    pub(super) server: ServerId,
    /// How long it is kept without a request.
    pub(super) idle: Duration,
    home: Weak<Idle>,
}

impl Link {
    pub(super) fn new(stream: Stream, server: ServerId, idle: Duration, home: Weak<Idle>) -> Self {
        Self { stream, inbox: BytesMut::new(), patience: Alarm::default(), server, idle, home }
    }

    /// Whether it can carry a request: the server has neither closed it nor sent what nobody asked for, as far as is
    /// known.
    pub(super) fn is_ready(&mut self) -> bool {
        let mut byte = [0];
        let mut cx = Context::from_waker(Waker::noop());
        self.inbox.is_empty()
            && Pin::new(&mut self.stream).poll_read(&mut cx, &mut ReadBuf::new(&mut byte)).is_pending()
    }

    /// Its answer has ended: it goes back to where it came from.
    fn rest(mut self: Box<Self>) {
        if self.inbox.capacity() > MOST_KEPT {
            self.inbox = BytesMut::new();
        }
        if self.inbox.is_empty()
            && let Some(home) = self.home.upgrade()
        {
            home.put(self);
        }
    }

    /// Leaves the writing to somebody else, and can carry no further request.
    fn lend_writer(self) -> (Self, WriteHalf<Stream>) {
        let (reading, writing) = split(self.stream);
        (Self { stream: Stream::Reading(Box::new(reading)), home: Weak::new(), ..self }, writing)
    }
}

/// Of its buffer between two requests: enough for most answers.
const MOST_KEPT: usize = 8 * 1024;
