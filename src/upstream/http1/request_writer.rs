//! Writes a request to a server.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use tokio::io::AsyncWrite;
use tokio::time::Instant;
use tokio_util::io::poll_write_buf;

use crate::http1::client::request;
use crate::http1::grammar::BodyEncoder;
use crate::http1::grammar::WriteBuffer;
use crate::timer::LazyTimer;
use crate::upstream::error::BoxError;
use crate::upstream::outgoing::OutgoingRequest;

/// A request of which no part, a part, or all is written. Until a part is written, it can go over another connection.
#[derive(Debug)]
pub(in crate::upstream) struct RequestWriter {
    buffer: WriteBuffer,
    /// `None`: the body is in the buffer to its end.
    body: Option<BodyEncoder>,
    is_written: bool,
    /// The socket was full at the last write.
    is_blocked: bool,
    /// When a part of the request was last written.
    progress: Instant,
}

/// Why a request cannot be written to its end.
#[derive(Debug)]
pub(super) enum WriteError {
    /// The connection has failed.
    Connection,
    /// The body broke off.
    Body(BoxError),
}

impl RequestWriter {
    pub(in crate::upstream) fn new<B: Body>(request: &mut OutgoingRequest<'_, B>) -> Self {
        let mut buffer = WriteBuffer::default();
        let body = request::write_head(request.head, request.body, &mut buffer).map(BodyEncoder::new);
        Self { buffer, body, is_written: false, is_blocked: false, progress: Instant::now() }
    }

    /// Restarts the response timeout for another connection.
    pub(super) fn restart(&mut self) {
        self.progress = Instant::now();
    }

    /// Whether any byte was written.
    pub(super) fn is_written(&self) -> bool {
        self.is_written
    }

    /// Whether everything is written.
    pub(super) fn is_complete(&self) -> bool {
        self.body.is_none() && self.buffer.is_empty()
    }

    /// Since when we wait for the server; `None`: we wait for the client.
    pub(super) fn waits_for_server_since(&self) -> Option<Instant> {
        (self.body.is_none() || self.is_blocked).then_some(self.progress)
    }

    /// Writes the available parts. Ready when everything is written.
    pub(super) fn poll<B>(
        &mut self,
        body: &mut B,
        mut stream: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), WriteError>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        loop {
            let filled = self.poll_fill(body, cx)?;
            while !self.buffer.is_empty() {
                let written = poll_write_buf(stream.as_mut(), cx, &mut self.buffer);
                self.is_blocked = written.is_pending();
                if !matches!(ready!(written), Ok(1..)) {
                    self.give_up();
                    return Poll::Ready(Err(WriteError::Connection));
                }
                self.is_written = true;
                if self.body.is_some() {
                    self.progress = Instant::now();
                }
            }
            if filled.is_ready() && self.body.is_some() {
                continue;
            }
            if ready!(stream.as_mut().poll_flush(cx)).is_err() {
                self.give_up();
                return Poll::Ready(Err(WriteError::Connection));
            }
            return if self.body.is_none() { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
    }

    /// Puts parts of the body into the buffer until it is full. Pending: the client has sent no further part.
    fn poll_fill<B>(&mut self, body: &mut B, cx: &mut Context<'_>) -> Poll<Result<(), WriteError>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        while let Some(encoder) = &mut self.body
            && self.buffer.has_room()
        {
            let frame =
                ready!(Pin::new(&mut *body).poll_frame(cx)).transpose().map_err(|it| WriteError::Body(it.into()))?;
            let ended = match frame.map(http_body::Frame::into_data) {
                Some(Ok(data)) => {
                    encoder.part(data, &mut self.buffer);
                    encoder.is_complete().then_some(Ok(()))
                }
                Some(Err(frame)) => Some(encoder.end(frame.trailers_ref(), &mut self.buffer)),
                None => Some(encoder.end(None, &mut self.buffer)),
            };
            if let Some(ended) = ended {
                self.body = None;
                self.progress = Instant::now();
                ended.map_err(|cut_short| WriteError::Body(cut_short.into()))?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The connection has failed. A request that was written in part is not sent again.
    fn give_up(&mut self) {
        if self.is_written {
            self.body = None;
            self.buffer = WriteBuffer::default();
        }
    }

    /// Writes the rest after an early response, until it is complete, fails, or the server has read nothing for `timeout`.
    pub(super) async fn finish<B>(mut self, mut body: B, mut stream: impl AsyncWrite + Unpin, timeout: Duration)
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let mut timer = LazyTimer::default();
        poll_fn(|cx| {
            if self.poll(&mut body, Pin::new(&mut stream), cx).is_ready() {
                return Poll::Ready(());
            }
            match self.waits_for_server_since() {
                Some(since) => timer.poll_at(since + timeout, cx),
                None => Poll::Pending,
            }
        })
        .await;
    }
}
