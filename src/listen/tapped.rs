//! A connection as hyper sees it. Where its requests stand is noted in the connection's `Progress`.

use std::io;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::BufMut;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio_util::io::poll_read_buf;

use super::Connection;
use super::channel::Channel;
use super::chunks::Chunks;
use super::connection::IN_CHUNKS;
use super::connection::Phase;
use super::connection::Progress;
use super::frames::Frames;
use super::frames::PREFACE;
use super::head::HeadLines;

/// What HTTP is read from and written to.
#[derive(Debug)]
pub(super) struct Tapped {
    channel: Channel,
    connection: Arc<Connection>,
    tap: Tap,
    /// What was read before its time: to recognize the protocol, or together with the end of a head or a body.
    prefix: Vec<u8>,
}

#[derive(Debug)]
enum Tap {
    Http1(HeadLines, Chunks),
    Http2(Frames),
}

/// What of HTTP/1 may be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Head,
    /// So much of a body.
    Body(u64),
    Chunks,
    /// A request is under way that was read whole. That the client left is to be noticed; what it sends is for later.
    Nothing,
    /// It is not HTTP/1, or no more.
    Anything,
}

/// What a client speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

impl Tapped {
    pub(super) fn new(channel: Channel, connection: Arc<Connection>) -> Self {
        let tap = Tap::Http1(HeadLines::default(), Chunks::default());
        Self { channel, connection, tap, prefix: Vec::new() }
    }

    /// The two sides have agreed on this.
    pub(super) fn agreed_on(mut self, protocol: Protocol) -> Self {
        if protocol == Protocol::Http2 {
            self.tap = Tap::Http2(Frames::new());
        }
        self
    }

    /// Reads until it is clear what the client speaks; what was read is there to be read again. `None`: it left
    /// without a word.
    pub(super) fn poll_recognize(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Protocol>>> {
        loop {
            let mut scratch = [MaybeUninit::uninit(); SCRATCH];
            let mut buf = ReadBuf::uninit(&mut scratch);
            ready!(Pin::new(&mut self.channel).poll_read(cx, &mut buf))?;
            self.prefix.extend_from_slice(buf.filled());

            let compared = self.prefix.len().min(PREFACE.len());
            if self.prefix[..compared] != PREFACE[..compared] {
                return Poll::Ready(Ok(Some(Protocol::Http1)));
            }
            if compared == PREFACE.len() {
                self.tap = Tap::Http2(Frames::new());
                return Poll::Ready(Ok(Some(Protocol::Http2)));
            }
            if buf.filled().is_empty() {
                return Poll::Ready(Ok(None));
            }
        }
    }

    /// Has these bytes read again, before what follows.
    pub(super) fn put_back(&mut self, unread: &[u8]) {
        self.prefix.extend_from_slice(unread);
    }

    /// Ready when the client has sent something, or has left.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.prefix.is_empty() {
            return Poll::Ready(());
        }
        self.channel.socket().poll_readable(cx)
    }

    /// Whether closing now would leave something unread: the rest of a body nobody wanted, or of a head that was none.
    pub(super) fn more_may_come(&self) -> bool {
        let progress = self.progress();
        !progress.read_closed() && (progress.unread() || progress.phase() == Phase::Head)
    }

    /// Reads, and throws away, until the client has closed.
    pub(super) fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut scratch = [MaybeUninit::uninit(); SCRATCH];
            let mut buf = ReadBuf::uninit(&mut scratch);
            let read = ready!(Pin::new(&mut self.channel).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }

    /// What may be read now.
    fn part(&self) -> Part {
        let progress = self.progress();
        match (&self.tap, progress.phase(), progress.expected()) {
            (Tap::Http2(_), ..) | (_, Phase::Tunnel, _) => Part::Anything,
            (_, _, IN_CHUNKS) => Part::Chunks,
            (_, Phase::Fresh | Phase::Head | Phase::Idle, 0) => Part::Head,
            (_, Phase::Busy | Phase::Flushing, 0) => Part::Nothing,
            (_, _, left) => Part::Body(left),
        }
    }

    /// Reads bodies in small parts, so that hyper does not make room for large ones, of which several may be on their
    /// way to an application that takes its time. Heads are read as they come.
    fn poll_read_some(&mut self, part: Part, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let most = match part {
            Part::Body(left) => usize::try_from(left).unwrap_or(usize::MAX).min(PART_OF_BODY),
            Part::Chunks => PART_OF_BODY,
            Part::Head | Part::Nothing | Part::Anything => usize::MAX,
        };
        if buf.remaining() <= most {
            return Pin::new(&mut self.channel).poll_read(cx, buf);
        }
        // Without writing zeros first over what is read into.
        poll_read_buf(Pin::new(&mut self.channel), cx, &mut buf.limit(most)).map_ok(|_| ())
    }

    fn progress(&self) -> &Progress {
        &self.connection.progress
    }

    fn is_http(&self) -> bool {
        self.progress().phase() != Phase::Tunnel
    }

    /// What an end of the client's stream means. To hyper it is the client leaving, and the request is dropped; it
    /// may as well be a client that has said all and waits for its answer. It gets a little time: the watchdog ends
    /// it. Only between requests, and in a tunnel, an end is an end.
    fn at_end(&self) -> Poll<io::Result<()>> {
        self.progress().set_read_closed(true);
        let waits =
            matches!(self.tap, Tap::Http1(..)) && matches!(self.progress().phase(), Phase::Busy | Phase::Flushing);
        if waits { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    /// Tells who asks of an end that stands behind something unread. What that is does not matter any more.
    fn look_for_an_end(&self) {
        self.progress().set_is_asked(false);
        if self.channel.socket().has_ended() && matches!(self.tap, Tap::Http1(..)) {
            self.progress().set_read_closed(true);
        }
    }

    /// Returns how many of the bytes are for hyper now. It is never given the beginning of a head with the end of
    /// another or of a body: it would not come back for more of it, and nobody would have seen its lines.
    fn note_read(&mut self, part: Part, bytes: &mut [u8]) -> io::Result<usize> {
        let progress = &self.connection.progress;
        let end = match (&mut self.tap, part) {
            (Tap::Http2(frames), _) => {
                frames.read(bytes).map_err(io::Error::other)?;
                progress.set_mid_frame(frames.unfinished());
                None
            }
            (Tap::Http1(lines, chunks), Part::Head) => {
                if progress.phase() != Phase::Head {
                    progress.enter(Phase::Head);
                    (*lines, *chunks) = Default::default();
                }
                lines.poison_bare_line_feeds(bytes)
            }
            (Tap::Http1(..), Part::Body(left)) => {
                let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                progress.set_expected(left - length as u64);
                Some(length)
            }
            (Tap::Http1(_, chunks), Part::Chunks) => {
                let end = chunks.end(bytes);
                if end.is_some() {
                    progress.set_expected(0);
                }
                end
            }
            (Tap::Http1(..), Part::Nothing) => Some(0),
            (Tap::Http1(..), Part::Anything) => None,
        };
        Ok(end.unwrap_or(bytes.len()))
    }

    fn note_write(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Tap::Http2(frames), Poll::Ready(Ok(length))) = (&mut self.tap, written) {
            frames.wrote(*length);
        }
    }
}

impl AsyncRead for Tapped {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let part = this.part();
        if part == Part::Nothing && !this.prefix.is_empty() {
            // hyper comes back for it.
            return Poll::Pending;
        }
        if part == Part::Head && this.progress().phase() == Phase::Idle {
            // hyper asks for the next request only when the body of the one before was read to its end.
            this.progress().set_unread(false);
        }
        let before = buf.filled().len();
        if this.prefix.is_empty() {
            if this.progress().read_closed() {
                return this.at_end();
            }
            match ready!(this.poll_read_some(part, cx, buf)) {
                // A request says itself whether it is whole, and many clients do not say goodbye; a tunnel needs to know.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && this.is_http() => return this.at_end(),
                read => read?,
            }
            if buf.filled().len() == before && buf.remaining() > 0 {
                return this.at_end();
            }
        } else {
            let length = this.prefix.len().min(buf.remaining());
            buf.put_slice(&this.prefix[..length]);
            this.prefix.drain(..length);
            if this.prefix.is_empty() {
                this.prefix = Vec::new();
            }
        }
        let end = before + this.note_read(part, &mut buf.filled_mut()[before..])?;
        if end < buf.filled().len() {
            this.prefix.splice(0..0, buf.filled()[end..].iter().copied());
            buf.set_filled(end);
        }
        if let Tap::Http1(lines, _) = &this.tap
            && lines.is_poisoned()
            && buf.remaining() >= NO_HEAD.len()
        {
            buf.put_slice(NO_HEAD);
        }
        if part == Part::Nothing { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.channel).poll_write(cx, bytes);
        self.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.channel).poll_write_vectored(cx, slices);
        self.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.channel.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.channel).poll_flush(cx))?;
        if self.progress().phase() == Phase::Flushing {
            // hyper flushes only once nothing is left to write.
            self.progress().enter(Phase::Idle);
            if !self.prefix.is_empty() {
                // It may have asked for the next request already, and was not given it.
                cx.waker().wake_by_ref();
            }
        }
        if self.progress().is_asked() {
            self.look_for_an_end();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.channel).poll_shutdown(cx)
    }
}

impl Drop for Tapped {
    /// Between two requests nothing is cut short, and the client is told so.
    fn drop(&mut self) {
        if self.progress().phase() == Phase::Idle {
            self.channel.say_goodbye();
        }
    }
}

/// Ends a head that is none: having seen a part of it, hyper does not look again before its end.
const NO_HEAD: &[u8] = b"\n\n";

/// Most heads are shorter, and a longer one is simply read on.
const SCRATCH: usize = 4096;

/// hyper reads into 16 KiB next when it got less than that, but more than half.
const PART_OF_BODY: usize = 15 * 1024;
