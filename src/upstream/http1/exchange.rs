//! Sends one request and reads the head of its response.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{io, mem};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{Method, StatusCode};
use http_body::Body;
use tokio::io::AsyncWrite;
use tokio::time::Instant;
use tokio_util::io::poll_read_buf;
use tokio_util::task::AbortOnDropHandle;

use super::{Http1Connection, Http1ResponseBody};
use crate::upstream::HeadBounds;
use crate::upstream::error::{AttemptError, BoxError, FailureCause};
use crate::upstream::response::{MAX_INFORMATIONAL, MAX_PASSED_ON, OnInformational, ResponseBody};
use crate::upstream::send::OutgoingRequest;
use crate::wire::head::ResponseHead;
use crate::wire::http1::client;
use crate::wire::http1::client::{InvalidResponse, ParsedResponse};
use crate::wire::http1::grammar::{BodyEncoder, HeadScanner, WriteBuffer};
use crate::words::coalesce::poll_write_from;
use crate::words::timer::LazyTimer;
use crate::words::turn;

/// In bytes: most heads are shorter. The end of a longer one is found before it is parsed.
const USUAL_HEAD: usize = 2 * 1024;

/// In bytes: few heads are as long.
const LONG_HEAD: usize = 8 * 1024;

/// In bytes: most responses fit into one read, with their bodies.
const READ_SIZE: usize = 4 * 1024;

/// How far the head of a response was read.
struct HeadProgress {
    bounds: HeadBounds,
    scanner: HeadScanner,
    /// A byte of the response has arrived.
    has_begun: bool,
    /// Informational answers so far.
    informational: u32,
}

impl Http1Connection {
    /// Sends a request and waits for the head of its response, at most `timeout` for each wait for the server. If the response
    /// comes first, the rest of the request is sent in a task of its own.
    ///
    /// `writer` is the request that another connection took no byte of.
    pub(in crate::upstream) async fn exchange<B>(
        mut self: Box<Self>,
        request: &mut OutgoingRequest<'_, B>,
        writer: &mut Option<RequestWriter>,
        timeout: Duration,
        bounds: HeadBounds,
        on_informational: OnInformational<'_>,
    ) -> Result<(ResponseHead, ResponseBody), AttemptError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Default + Send + Unpin + 'static,
    {
        turn::stop().await;
        if let Some(unwritten) = writer {
            unwritten.restart();
        }
        let request_writer = writer.get_or_insert_with(|| RequestWriter::new(request));
        let mut progress = HeadProgress { bounds, scanner: HeadScanner::default(), has_begun: false, informational: 0 };
        let (mut may_send, mut accepts_more, mut broken) = (true, true, None);
        let answered = poll_fn(|cx| {
            if may_send && let Poll::Ready(sent) = request_writer.poll(request.body, Pin::new(&mut self.stream), cx) {
                may_send = false;
                match sent {
                    Ok(()) => {}
                    // The server may have sent a response before it closed.
                    Err(WriteError::Connection) => accepts_more = false,
                    Err(WriteError::Body(error)) => {
                        let is_sent = request_writer.is_written();
                        if !(is_sent && request.awaits_end) {
                            return Poll::Ready(Err(AttemptError::BodyBroken { error, is_sent }));
                        }
                        broken = Some(error);
                        request_writer.break_off();
                    }
                }
            }
            if broken.is_some() {
                // The server sees the end of its request.
                let _ = Pin::new(&mut self.stream).poll_shutdown(cx);
            }
            if let Poll::Ready(head) = self.poll_head(&mut progress, &request.head.method, on_informational, cx) {
                return Poll::Ready(head.map_err(|fault| fault.into_attempt_error(&progress, request_writer)));
            }
            match request_writer.waits_for_server_since() {
                Some(since) => self
                    .timer
                    .poll_at(since + timeout, cx)
                    .map(|()| Err(AttemptError::Failed(FailureCause::ResponseTimeout))),
                None => Poll::Pending,
            }
        })
        .await;
        if let Some(error) = broken {
            return Err(AttemptError::BodyBroken { error, is_sent: true });
        }
        let ParsedResponse { head, body: length, keeps_alive, .. } = answered?;
        let incoming = match writer.take().filter(|it| !it.is_complete() && accepts_more) {
            None => Http1ResponseBody::new(self, length, keeps_alive && accepts_more),
            Some(rest) => {
                let (connection, writing_half) = self.split_writer();
                let upload = rest.finish(mem::take(request.body), writing_half, timeout);
                Http1ResponseBody::with_upload(
                    AbortOnDropHandle::new(tokio::spawn(upload)),
                    Box::new(connection),
                    length,
                )
            }
        };
        Ok((head, ResponseBody::Http1(incoming)))
    }

    fn poll_head(
        &mut self,
        progress: &mut HeadProgress,
        method: &Method,
        on_informational: OnInformational<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ParsedResponse, Fault>> {
        loop {
            if let Some(parsed) = self.take_head(progress, method)? {
                if parsed.repairs.is_any() {
                    self.server.note_repairs(parsed.repairs);
                }
                let status = parsed.head.status;
                if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
                    return Poll::Ready(Ok(parsed));
                }
                progress.informational += 1;
                if progress.informational > MAX_INFORMATIONAL {
                    return Poll::Ready(Err(InvalidResponse::TooManyInterim.into()));
                }
                if progress.informational <= MAX_PASSED_ON {
                    on_informational(parsed.head);
                }
                continue;
            }
            if !client::could_begin(&self.read) {
                return Poll::Ready(Err(InvalidResponse::StatusLine.into()));
            }
            if self.read.len() > progress.bounds.bytes {
                return Poll::Ready(Err(InvalidResponse::TooLong.into()));
            }
            self.read.reserve(READ_SIZE);
            // Behind a long head, no more of the body is read than behind a short one.
            let mut room = (&mut self.read).limit(LONG_HEAD);
            if ready!(poll_read_buf(Pin::new(&mut self.stream), cx, &mut room))? == 0 {
                let ended = io::Error::new(io::ErrorKind::UnexpectedEof, "it ended before the response did");
                return Poll::Ready(Err(ended.into()));
            }
            progress.has_begun = true;
        }
    }

    /// The next head, if it is complete.
    fn take_head(
        &mut self,
        progress: &mut HeadProgress,
        method: &Method,
    ) -> Result<Option<ParsedResponse>, InvalidResponse> {
        let HeadProgress { bounds, scanner, .. } = progress;
        // The usual case: the head came in one piece.
        if scanner.is_fresh()
            && !self.read.is_empty()
            && let Some(head) = self.take_head_within(self.read.len().min(USUAL_HEAD), method, bounds.fields)?
        {
            return Ok(Some(head));
        }
        let Some(end) = scanner.find_end(&self.read) else { return Ok(None) };
        if end > bounds.bytes {
            return Err(InvalidResponse::TooLong);
        }
        *scanner = HeadScanner::default();
        self.take_head_within(end, method, bounds.fields)?.map(Some).ok_or(InvalidResponse::Head)
    }

    fn take_head_within(
        &mut self,
        length: usize,
        method: &Method,
        max_fields: usize,
    ) -> Result<Option<ParsedResponse>, InvalidResponse> {
        let Some(parsed) = client::parse(&self.read[..length], method, max_fields)? else { return Ok(None) };
        self.read.advance(parsed.length);
        if parsed.length > LONG_HEAD {
            // The memory of a long head is not held while the body is read.
            self.read = BytesMut::from(&self.read[..]);
        }
        Ok(Some(parsed))
    }
}

/// Why there is no head.
enum Fault {
    Connection(io::Error),
    InvalidResponse(InvalidResponse),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl From<InvalidResponse> for Fault {
    fn from(invalid: InvalidResponse) -> Self {
        Self::InvalidResponse(invalid)
    }
}

impl Fault {
    fn into_attempt_error(self, progress: &HeadProgress, writer: &RequestWriter) -> AttemptError {
        match self {
            Self::InvalidResponse(invalid) => AttemptError::Failed(FailureCause::InvalidResponse(invalid.into())),
            Self::Connection(error) if progress.has_begun => AttemptError::Failed(FailureCause::Closed(error.into())),
            Self::Connection(error) if writer.is_written() => AttemptError::Disconnected(error.into()),
            Self::Connection(error) => AttemptError::Unwritten(error.into()),
        }
    }
}

// Writes a request to a server.

/// A request, and how much of it is written: nothing, a part, or all. Until a part is written, it can go over another
/// connection.
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
        let body = client::write_head(request.head, request.body, &mut buffer).map(BodyEncoder::new);
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
                let written = poll_write_from(&mut self.buffer, stream.as_mut(), cx);
                self.is_blocked = written.is_pending();
                if ready!(written).is_err() {
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

    /// The body broke off: what is left is not written, and we wait for the server.
    fn break_off(&mut self) {
        self.body = None;
        self.buffer = WriteBuffer::default();
        self.progress = Instant::now();
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
