//! The body of an answer.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Bytes;
use http_body::Frame;
use http_body::SizeHint;
use tokio_util::io::poll_read_buf;
use tokio_util::task::AbortOnDropHandle;

use super::Http1Connection;
use crate::http1::grammar::BodyDecoder;
use crate::http1::grammar::BodyLength;
use crate::http1::grammar::Sender;
use crate::timer::LazyTimer;
use crate::upstream::error::BoxError;
use crate::upstream::server::InFlight;
use crate::upstream::tunnel::Tunnel;

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

/// In bytes: a few such parts may wait for a client that does not read.
const READ_SIZE: usize = 16 * 1024;
