//! A client's connection as two see it: what answers its requests, and the body of the request under way.

use std::io;
use std::io::IoSlice;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;
use std::task::ready;

use bytes::Buf;
use bytes::Bytes;
use bytes::BytesMut;
use http::Response;
use http_body::Frame;
use tokio::io::AsyncWrite;
use tokio_util::io::poll_read_buf;

use super::answer;
use super::buffer_pool;
use crate::http1::CutShort;
use crate::http1::Decoder;
use crate::http1::Length;
use crate::http1::Outbox;
use crate::listen::Connection;
use crate::listen::IncomingBodyError;
use crate::listen::channel::Channel;
use crate::listen::connection::Phase;
use crate::listen::connection::Progress;
use crate::listen::socket::Socket;

#[derive(Debug)]
pub(super) struct Wire {
    connection: Arc<Connection>,
    /// `None`: HTTP is spoken no more.
    channel: Option<Channel>,
    /// What was read and is not used yet. It holds no memory where it is empty between two requests.
    read: BytesMut,
    body: Reading,
    /// What is sent ahead of the answer, as far as it is not written.
    ahead: BytesMut,
    /// The answer has not begun.
    may_inform: bool,
    /// The connection's task, while a body may be read by another one.
    owner: Option<Waker>,
    /// Who waits for more of the body.
    reader: Option<Waker>,
}

/// Where the body of the request under way stands.
#[derive(Debug)]
enum Reading {
    /// It was read to its end, or there is none: what follows is the next request.
    Through,
    Open(Decoder),
    /// It was malformed, cut short or given up: nobody knows where it ends.
    Lost,
}

/// What follows an answer that is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    Request,
    /// The rest of the body, which somebody has still to read.
    Body,
    /// The end, and perhaps something that nobody will read.
    Nothing,
}

impl Wire {
    pub(super) fn new(connection: Arc<Connection>, channel: Channel, read: BytesMut) -> Self {
        Self {
            connection,
            channel: Some(channel),
            read,
            body: Reading::Through,
            ahead: BytesMut::new(),
            may_inform: false,
            owner: None,
            reader: None,
        }
    }

    fn progress(&self) -> &Progress {
        &self.connection.progress
    }

    /// What was read and is not used yet.
    pub(super) fn read(&self) -> &[u8] {
        &self.read
    }

    /// Reads on, and has what came looked at, behind what was there. `false`: nothing will.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        look: impl FnOnce(&mut BytesMut, &[u8]),
    ) -> Poll<io::Result<bool>> {
        let read = &mut self.read;
        let is_open = ready!(buffer_pool::poll_read(channel(&mut self.channel)?, cx, |fresh| {
            look(read, fresh);
            !fresh.is_empty()
        }))?;
        self.give_back();
        Poll::Ready(Ok(is_open))
    }

    /// Has what was read before its time looked at.
    pub(super) fn look(&mut self, look: impl FnOnce(&mut BytesMut)) {
        look(&mut self.read);
        self.give_back();
    }

    /// A request's head was read, and this is the length of its body.
    pub(super) fn begin(&mut self, body: Length) {
        let decoder = Decoder::new(body);
        self.may_inform = true;
        self.body = if decoder.is_through() { Reading::Through } else { Reading::Open(decoder) };
    }

    /// The next part of the body.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        let read = self.poll_part(cx);
        if read.is_pending() {
            self.reader = Some(cx.waker().clone());
        } else if !matches!(self.body, Reading::Open(_)) {
            self.tell_owner(cx);
        }
        read
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        loop {
            let decoder = match &mut self.body {
                Reading::Open(decoder) => decoder,
                Reading::Through => return Poll::Ready(None),
                Reading::Lost => return Poll::Ready(Some(Err(CutShort.into()))),
            };
            match decoder.decode(&mut self.read) {
                Ok(frame) => {
                    if decoder.is_through() {
                        self.body = Reading::Through;
                        self.give_back();
                        return Poll::Ready(frame.map(Ok));
                    }
                    if let Some(frame) = frame {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
                Err(malformed) => return self.lose(malformed.into()),
            }
            match ready!(self.poll_more_of_body(cx)) {
                Ok(true) => {}
                Ok(false) => ready!(self.at_end(cx)),
                Err(_) => return self.lose(CutShort.into()),
            }
        }
    }

    /// Has an informational answer written, unless it comes too late or the client takes none.
    pub(super) fn inform(&mut self, answer: &Response<()>) {
        if !self.may_inform || self.ahead.len() > MOST_AHEAD {
            return;
        }
        answer::inform(answer, &mut self.ahead);
        if let Some(owner) = self.owner.take() {
            owner.wake();
        }
    }

    /// Writes what goes ahead of the answer.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut channel = channel(&mut self.channel)?;
        while !self.ahead.is_empty() {
            let written = ready!(channel.as_mut().poll_write(cx, &self.ahead))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.ahead.advance(written);
        }
        self.ahead = BytesMut::new();
        channel.poll_flush(cx)
    }

    /// Reads more of the body. `false`: nothing comes any more.
    fn poll_more_of_body(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if self.progress().read_closed() {
            return Poll::Ready(Ok(false));
        }
        let channel = channel(&mut self.channel)?;
        let left = match &self.body {
            Reading::Open(decoder) => decoder.left(),
            Reading::Through | Reading::Lost => None,
        };
        let most = left.and_then(|left| usize::try_from(left).ok()).map_or(PART_OF_BODY, |left| left.min(PART_OF_BODY));
        if self.read.capacity() - self.read.len() < most.min(WORTH_READING) {
            self.read.reserve(most);
        }
        match ready!(poll_read_buf(channel, cx, &mut self.read)) {
            Ok(length) => Poll::Ready(Ok(length > 0)),
            // Many clients do not say goodbye to TLS.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(false)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The client has closed its side in the middle of the body. It may yet read an answer, and gets a little time for
    /// that; without one to come it has left.
    fn at_end(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.progress().set_read_closed(true);
        if self.progress().phase() == Phase::Busy {
            self.progress().set_abandoned(true);
            self.tell_owner(cx);
            return Poll::Pending;
        }
        self.body = Reading::Lost;
        Poll::Ready(())
    }

    fn lose(&mut self, fault: IncomingBodyError) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        self.body = Reading::Lost;
        Poll::Ready(Some(Err(fault)))
    }

    /// Nobody wants the rest of the body. What is here of it is passed over: it may be all.
    pub(super) fn give_up_body(&mut self) {
        while let Reading::Open(decoder) = &mut self.body {
            match decoder.decode(&mut self.read) {
                _ if decoder.is_through() => self.body = Reading::Through,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => self.body = Reading::Lost,
            }
        }
        self.give_back();
        self.reader = None;
        if let Some(owner) = self.owner.take() {
            owner.wake();
        }
    }

    /// Whether part of a body may be on its way still.
    pub(super) fn is_unread(&self) -> bool {
        !matches!(self.body, Reading::Through)
    }

    /// Whether what follows the body cannot be told from it.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.body, Reading::Lost)
    }

    /// Where this goes on behind an answer. Who asks is woken when that changes.
    pub(super) fn next(&mut self, cx: &Context<'_>) -> Next {
        match self.body {
            Reading::Through if self.progress().read_closed() => Next::Nothing,
            Reading::Through => Next::Request,
            Reading::Open(_) if !self.progress().read_closed() => {
                self.is_owned_by(cx);
                Next::Body
            }
            Reading::Open(_) | Reading::Lost => Next::Nothing,
        }
    }

    /// Ready when the connection has failed while a request is under way. That the client has closed its side is noted.
    pub(super) fn poll_failed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if matches!(self.poll_ahead(cx), Poll::Ready(Err(_))) {
            return Poll::Ready(());
        }
        let mut failed = match self.body {
            // Whoever reads it notices.
            Reading::Open(_) => {
                self.is_owned_by(cx);
                false
            }
            Reading::Through if self.read.is_empty() && !self.progress().read_closed() => self.looks_ahead(cx),
            Reading::Through | Reading::Lost => false,
        };
        if self.progress().is_asked() {
            self.progress().set_is_asked(false);
            let socket = self.channel.as_ref().map(Channel::socket);
            // An end may stand behind something unread. What that is does not matter any more.
            if socket.is_some_and(Socket::has_ended) {
                self.progress().set_read_closed(true);
            }
            failed |= socket.is_some_and(Socket::has_failed);
        }
        if failed { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Reads what comes before its time, once: it is for later. Says whether that failed.
    fn looks_ahead(&mut self, cx: &mut Context<'_>) -> bool {
        match self.poll_read(cx, BytesMut::extend_from_slice) {
            Poll::Ready(Ok(false)) => {
                self.progress().set_read_closed(true);
                false
            }
            Poll::Ready(Err(_)) => true,
            Poll::Ready(Ok(true)) | Poll::Pending => false,
        }
    }

    /// Writes all of this.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, out: &mut Outbox) -> Poll<io::Result<()>> {
        self.may_inform = false;
        ready!(self.poll_ahead(cx))?;
        let mut channel = channel(&mut self.channel)?;
        while out.has_remaining() {
            let mut slices = [IoSlice::new(b""); PARTS];
            let count = out.chunks_vectored(&mut slices);
            let written = ready!(channel.as_mut().poll_write_vectored(cx, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            out.advance(written);
        }
        channel.poll_flush(cx)
    }

    /// Takes the connection away from whoever still reads a body, together with what was read of something else.
    pub(super) fn end(&mut self) -> Option<(Channel, BytesMut)> {
        if let Reading::Open(_) = self.body {
            self.body = Reading::Lost;
        }
        self.owner = None;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Some((self.channel.take()?, mem::take(&mut self.read)))
    }

    fn is_owned_by(&mut self, cx: &Context<'_>) {
        if !self.owner.as_ref().is_some_and(|owner| owner.will_wake(cx.waker())) {
            self.owner = Some(cx.waker().clone());
        }
    }

    /// The body has come to its end, or so far. Whoever asks for it in the connection's own task looks anyway.
    fn tell_owner(&mut self, cx: &Context<'_>) {
        if let Some(owner) = self.owner.take_if(|owner| !owner.will_wake(cx.waker())) {
            owner.wake();
        }
    }

    /// Gives back the memory of what was read and used.
    fn give_back(&mut self) {
        if self.read.is_empty() {
            self.read = BytesMut::new();
        }
    }
}

fn channel(channel: &mut Option<Channel>) -> io::Result<Pin<&mut Channel>> {
    channel.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
}

/// With so much that the client has not taken, nothing more is sent ahead of its answer.
const MOST_AHEAD: usize = 8 * 1024;

/// So many an outbox has at most.
const PARTS: usize = 3;

/// So much of a body is read at once: several such parts may be on their way to an application that takes its time.
const PART_OF_BODY: usize = 16 * 1024;

/// With less room than this more is made first.
const WORTH_READING: usize = 4096;
