//! A client's connection, shared by the session and by the body of the current request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::{io, mem};

use bytes::{Buf, Bytes, BytesMut};
use http_body::Frame;
use tokio::io::AsyncWrite;
use tokio_util::io::poll_read_buf;

use crate::listen::client_stream::{Channel, Socket};
use crate::listen::connection::{Phase, Progress};
use crate::listen::http1::head_reader;
use crate::listen::{Connection, IncomingBodyError};
use crate::wire::head::ResponseHead;
use crate::wire::http1::grammar::{BodyDecoder, BodyLength, IncompleteBody, Sender, WriteBuffer};
use crate::wire::http1::server;
use crate::words::coalesce::poll_write_from;

#[derive(Debug)]
pub(super) struct SharedChannel {
    connection: Arc<Connection>,
    /// `None`: the session has ended.
    channel: Option<Channel>,
    /// Bytes that were read and not used yet. Between two requests it holds no memory if it is empty.
    read: BytesMut,
    body: BodyState,
    /// Interim responses that are not written yet.
    interim: BytesMut,
    /// The response has not begun.
    may_send_interim: bool,
    /// The session's task, while another task may read the body.
    session: Option<Waker>,
    /// The task that waits for more of the body.
    reader: Option<Waker>,
}

/// How far the body of the current request was read.
#[derive(Debug)]
enum BodyState {
    /// It was read to its end, or there is none: the next request follows.
    Complete,
    Open(BodyDecoder),
    /// It was malformed, cut short or abandoned: its end is unknown.
    Lost,
}

/// The next step after a response is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AfterResponse {
    NextRequest,
    /// The rest of the body, which another task still reads.
    RestOfBody,
    Close,
}

impl SharedChannel {
    pub(super) fn new(connection: Arc<Connection>, channel: Channel, read: BytesMut) -> Self {
        Self {
            connection,
            channel: Some(channel),
            read,
            body: BodyState::Complete,
            interim: BytesMut::new(),
            may_send_interim: false,
            session: None,
            reader: None,
        }
    }

    fn progress(&self) -> &Progress {
        &self.connection.progress
    }

    /// The bytes that were read and not used yet.
    pub(super) fn read(&self) -> &[u8] {
        &self.read
    }

    /// Reads once, and passes the unused bytes and the fresh ones to `look`. `false`: the client has closed.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        look: impl FnOnce(&mut BytesMut, &[u8]),
    ) -> Poll<io::Result<bool>> {
        let read = &mut self.read;
        let is_open = ready!(head_reader::poll_read(channel(&mut self.channel)?, cx, |fresh| {
            look(read, fresh);
            !fresh.is_empty()
        }))?;
        self.release_memory();
        Poll::Ready(Ok(is_open))
    }

    /// Passes the unused bytes to `look`.
    pub(super) fn look(&mut self, look: impl FnOnce(&mut BytesMut)) {
        look(&mut self.read);
        self.release_memory();
    }

    /// The head of a request was read. `body` is the length of its body.
    pub(super) fn begin(&mut self, body: BodyLength) {
        let decoder = BodyDecoder::new(body, Sender::Client);
        self.may_send_interim = true;
        self.body = if decoder.is_complete() { BodyState::Complete } else { BodyState::Open(decoder) };
    }

    /// The next part of the body.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        let part = self.poll_part(cx);
        if part.is_pending() {
            self.reader = Some(cx.waker().clone());
        } else if !matches!(self.body, BodyState::Open(_)) {
            self.wake_session(cx);
        }
        part
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        loop {
            let decoder = match &mut self.body {
                BodyState::Open(decoder) => decoder,
                BodyState::Complete => return Poll::Ready(None),
                BodyState::Lost => return Poll::Ready(Some(Err(IncompleteBody.into()))),
            };
            match decoder.decode(&mut self.read) {
                Ok(frame) => {
                    if decoder.is_complete() {
                        self.body = BodyState::Complete;
                        self.release_memory();
                        return Poll::Ready(frame.map(Ok));
                    }
                    if let Some(frame) = frame {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
                Err(malformed) => return self.fail_body(malformed.into()),
            }
            match ready!(self.poll_more_of_body(cx)) {
                Ok(true) => {}
                Ok(false) => ready!(self.end_of_stream(cx)),
                Err(_) => return self.fail_body(IncompleteBody.into()),
            }
        }
    }

    /// Queues an interim response, unless the response has begun or the client does not read.
    pub(super) fn send_interim(&mut self, head: &ResponseHead) {
        if !self.may_send_interim || self.interim.len() > MAX_INTERIM {
            return;
        }
        server::write_interim(head, &mut self.interim);
        if let Some(session) = self.session.take() {
            session.wake();
        }
    }

    /// Writes the queued interim responses.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.interim.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut channel = channel(&mut self.channel)?;
        while !self.interim.is_empty() {
            let written = ready!(channel.as_mut().poll_write(cx, &self.interim))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.interim.advance(written);
        }
        self.interim = BytesMut::new();
        channel.poll_flush(cx)
    }

    /// Reads more of the body. `false`: the client has closed.
    fn poll_more_of_body(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if self.progress().read_closed() {
            return Poll::Ready(Ok(false));
        }
        let channel = channel(&mut self.channel)?;
        let remaining = match &self.body {
            BodyState::Open(decoder) => decoder.remaining(),
            BodyState::Complete | BodyState::Lost => None,
        };
        let most = remaining
            .and_then(|bytes| usize::try_from(bytes).ok())
            .map_or(BODY_READ_SIZE, |bytes| bytes.min(BODY_READ_SIZE));
        if self.read.capacity() - self.read.len() < most.min(MIN_READ_SIZE) {
            self.read.reserve(most);
        }
        match ready!(poll_read_buf(channel, cx, &mut self.read)) {
            Ok(length) => Poll::Ready(Ok(length > 0)),
            // Many clients close TLS without a `close_notify`.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(false)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The client has closed its side within the body. If a response is to come, the client gets a moment to read it.
    fn end_of_stream(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.progress().set_read_closed(true);
        if self.progress().phase() == Phase::Busy {
            self.progress().set_abandoned(true);
            self.wake_session(cx);
            return Poll::Pending;
        }
        self.body = BodyState::Lost;
        Poll::Ready(())
    }

    fn fail_body(&mut self, fault: IncomingBodyError) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        self.body = BodyState::Lost;
        Poll::Ready(Some(Err(fault)))
    }

    /// The rest of the body is not needed. The bytes that were read already are skipped: they may be all of it.
    pub(super) fn abandon_body(&mut self) {
        while let BodyState::Open(decoder) = &mut self.body {
            match decoder.decode(&mut self.read) {
                _ if decoder.is_complete() => self.body = BodyState::Complete,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => self.body = BodyState::Lost,
            }
        }
        self.release_memory();
        self.reader = None;
        if let Some(session) = self.session.take() {
            session.wake();
        }
    }

    /// Whether a part of the body may still arrive, or the client has sent something behind it.
    pub(super) fn is_unread(&self) -> bool {
        let is_readable = || self.channel.as_ref().is_some_and(|channel| channel.socket().is_readable());
        !matches!(self.body, BodyState::Complete) || !self.read.is_empty() || is_readable()
    }

    /// Whether the end of the body is unknown.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.body, BodyState::Lost)
    }

    /// The next step after the response. The caller's task is woken when it changes.
    pub(super) fn after_response(&mut self, cx: &Context<'_>) -> AfterResponse {
        match self.body {
            BodyState::Complete if self.progress().read_closed() => AfterResponse::Close,
            BodyState::Complete => AfterResponse::NextRequest,
            BodyState::Open(_) if !self.progress().read_closed() => {
                self.register_session(cx);
                AfterResponse::RestOfBody
            }
            BodyState::Open(_) | BodyState::Lost => AfterResponse::Close,
        }
    }

    /// Ready when the connection has failed while a request is in progress. Notes whether the client has closed its side.
    pub(super) fn poll_failed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if matches!(self.poll_interim(cx), Poll::Ready(Err(_))) {
            return Poll::Ready(());
        }
        let mut failed = match self.body {
            // The task that reads the body finds a failure.
            BodyState::Open(_) => {
                self.register_session(cx);
                false
            }
            BodyState::Complete if self.read.is_empty() && !self.progress().read_closed() => self.read_ahead(cx),
            BodyState::Complete | BodyState::Lost => false,
        };
        if self.progress().check_requested() {
            self.progress().set_check_requested(false);
            let socket = self.channel.as_ref().map(Channel::socket);
            // The client may have closed behind bytes that were not read. These do not matter any more.
            if socket.is_some_and(Socket::has_ended) {
                self.progress().set_read_closed(true);
            }
            failed |= socket.is_some_and(Socket::has_failed);
        }
        if failed { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Reads once, for the next request. Returns whether the connection failed.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> bool {
        match self.poll_read(cx, BytesMut::extend_from_slice) {
            Poll::Ready(Ok(false)) => {
                self.progress().set_read_closed(true);
                false
            }
            Poll::Ready(Err(_)) => true,
            Poll::Ready(Ok(true)) | Poll::Pending => false,
        }
    }

    /// Writes the whole buffer.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, out: &mut WriteBuffer) -> Poll<io::Result<()>> {
        self.may_send_interim = false;
        ready!(self.poll_interim(cx))?;
        let mut channel = channel(&mut self.channel)?;
        while !out.is_empty() {
            ready!(poll_write_from(out, channel.as_mut(), cx))?;
        }
        channel.poll_flush(cx)
    }

    /// Takes the connection, also from a task that still reads the body, with the bytes that were not used.
    pub(super) fn take(&mut self) -> Option<(Channel, BytesMut)> {
        if let BodyState::Open(_) = self.body {
            self.body = BodyState::Lost;
        }
        self.session = None;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Some((self.channel.take()?, mem::take(&mut self.read)))
    }

    fn register_session(&mut self, cx: &Context<'_>) {
        if !self.session.as_ref().is_some_and(|session| session.will_wake(cx.waker())) {
            self.session = Some(cx.waker().clone());
        }
    }

    /// Wakes the session after the state of the body changed, unless the session itself read the body.
    fn wake_session(&mut self, cx: &Context<'_>) {
        if let Some(session) = self.session.take_if(|session| !session.will_wake(cx.waker())) {
            session.wake();
        }
    }

    /// Releases the memory of the read buffer if it is empty.
    fn release_memory(&mut self) {
        if self.read.is_empty() {
            self.read = BytesMut::new();
        }
    }
}

fn channel(channel: &mut Option<Channel>) -> io::Result<Pin<&mut Channel>> {
    channel.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
}

/// In bytes: further interim responses are dropped while the client has not read so much.
const MAX_INTERIM: usize = 8 * 1024;

/// In bytes: several such parts may wait for a slow application.
const BODY_READ_SIZE: usize = 16 * 1024;

/// In bytes: with less capacity than this, the buffer grows before a read.
const MIN_READ_SIZE: usize = 4096;
