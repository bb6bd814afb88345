//! Reads the heads of requests off a connection.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use http::{Method, StatusCode};
use memchr::memchr;
use tokio::io::{AsyncRead, ReadBuf};

use super::shared_channel::SharedChannel;
use crate::listen::connection::{Phase, Progress};
use crate::listen::{ConnectionSettings, RefusedHead};
use crate::wire::head::{Fields, KnownName};
use crate::wire::http1::grammar::HeadScanner;
use crate::wire::http1::server;
use crate::wire::http1::server::{HeadLimits, ParsedRequest};

/// Honest clients send one line of each.
const MAX_ACCEPT_FIELDS: usize = 16;

/// In bytes: most heads are shorter. A longer one is parsed when its end is known.
const USUAL: usize = 4096;

/// Reads one head after another.
#[derive(Debug)]
pub(super) struct HeadReader {
    limits: HeadLimits,
    accepts_bare_line_feeds: bool,
    scanner: HeadScanner,
}

impl HeadReader {
    pub(super) fn new(settings: &ConnectionSettings) -> Self {
        let limits = HeadLimits { bytes: settings.max_header_bytes, fields: settings.max_headers };
        let accepts_bare_line_feeds = settings.accepts_bare_line_feeds;
        Self { limits, accepts_bare_line_feeds, scanner: HeadScanner::default() }
    }

    /// Reads the next head, and leaves the bytes behind it in the channel. `None`: the client has left. The error is an
    /// invalid head.
    pub(super) fn poll(
        &mut self,
        channel: &mut SharedChannel,
        progress: &Progress,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<ParsedRequest>, Box<RefusedHead>>> {
        let mut head = Ok(None);
        if !channel.read().is_empty() && progress.phase() != Phase::Head {
            channel.look(|read| head = self.take(read, &[], progress));
        }
        loop {
            if let Some(head) = head? {
                return Poll::Ready(Ok(Some(head)));
            }
            head = Ok(None);
            match ready!(channel.poll_read(cx, |read, fresh| head = self.take(read, fresh, progress))) {
                Ok(true) => {}
                Ok(false) => {
                    progress.set_read_closed(true);
                    return Poll::Ready(Ok(None));
                }
                Err(_) => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// Like [`Self::take_valid`], with the readable part of an invalid head.
    fn take(
        &mut self,
        read: &mut BytesMut,
        fresh: &[u8],
        progress: &Progress,
    ) -> Result<Option<ParsedRequest>, Box<RefusedHead>> {
        self.take_valid(read, fresh, progress).map_err(|status| {
            let bytes = if read.is_empty() { fresh } else { &read[..] };
            let bytes = &bytes[..bytes.len().min(self.limits.bytes)];
            Box::new(RefusedHead::unread(status, is_for_head(bytes).then_some(Method::HEAD), accept_fields(bytes)))
        })
    }

    /// Takes a head off the front of the bytes read before and now, and leaves the rest in `read`.
    fn take_valid(
        &mut self,
        read: &mut BytesMut,
        fresh: &[u8],
        progress: &Progress,
    ) -> Result<Option<ParsedRequest>, StatusCode> {
        if progress.phase() != Phase::Head {
            // The usual case: the head came in one piece, and is copied once.
            let here: &[u8] = if read.is_empty() { fresh } else { &read[..] };
            let parsed = match server::parse(&here[..here.len().min(USUAL)], self.limits) {
                // It may have lines that end in LF alone.
                Err(StatusCode::BAD_REQUEST) if self.accepts_bare_line_feeds => None,
                parsed => parsed?,
            };
            if let Some(parsed) = parsed {
                if read.is_empty() {
                    read.extend_from_slice(&fresh[parsed.length..]);
                } else {
                    read.advance(parsed.length);
                }
                return Ok(Some(parsed));
            }
        }
        read.extend_from_slice(fresh);
        let end = self.scanner.find_end(read);
        let is_too_long = end.map_or(read.len() >= self.limits.bytes, |end| end > self.limits.bytes);
        let has_bare_line_feed = self.scanner.has_bare_line_feed();
        if has_bare_line_feed && !self.accepts_bare_line_feeds {
            return Err(StatusCode::BAD_REQUEST);
        }
        if is_too_long {
            let is_target = !read[..self.limits.bytes.min(read.len())].contains(&b'\n');
            return Err(if is_target { StatusCode::URI_TOO_LONG } else { StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE });
        }
        let Some(end) = end else {
            // Not before the first byte: only then does the head timeout start.
            if !read.is_empty() {
                progress.enter(Phase::Head);
            }
            return Ok(None);
        };
        self.scanner = HeadScanner::default();
        let parsed = if has_bare_line_feed {
            server::parse(&with_returns(&read[..end]), self.limits)?
        } else {
            server::parse(&read[..end], self.limits)?
        };
        let parsed = parsed.ok_or(StatusCode::BAD_REQUEST)?;
        read.advance(end);
        Ok(Some(parsed))
    }
}

/// Whether an invalid head asks for no body.
fn is_for_head(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(b"HEAD ")
}

/// The fields of an invalid head that choose the form and the language of the answer, as far as its lines can be read.
fn accept_fields(head: &[u8]) -> Fields {
    let mut fields = Fields::default();
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    // The request line stands before the fields, and an empty line behind them.
    for line in lines.skip_while(|line| line.is_empty()).skip(1).take_while(|line| !line.is_empty()) {
        let is_text = !line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t');
        let Some(colon) = memchr(b':', line).filter(|_| is_text) else { continue };
        for name in [KnownName::ACCEPT, KnownName::ACCEPT_LANGUAGE, KnownName::CONTENT_TYPE] {
            if line[..colon].eq_ignore_ascii_case(name.as_str().as_bytes()) && fields.len() < MAX_ACCEPT_FIELDS {
                fields.append(name, line[colon + 1..].trim_ascii());
            }
        }
    }
    fields
}

/// The head with CR LF at the end of every line.
fn with_returns(head: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(head.len() + head.len() / 16);
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        lines.extend_from_slice(text.strip_suffix(b"\r").unwrap_or(text));
        lines.extend_from_slice(b"\r\n");
    }
    lines
}

// The buffer that all connections of a core read into, so that idle connections hold none.

/// In bytes: a TLS record, and more than most heads.
const READ_SIZE: usize = 16 * 1024;

/// Reads once, and passes the bytes to `look`. No bytes: the peer has closed.
pub(in crate::listen) fn poll_read<R, T>(
    mut from: Pin<&mut R>,
    cx: &mut Context<'_>,
    look: impl FnOnce(&[u8]) -> T,
) -> Poll<io::Result<T>>
where
    R: AsyncRead + ?Sized,
{
    READ.with_borrow_mut(|buffer| {
        let mut read = ReadBuf::new(buffer);
        match ready!(from.as_mut().poll_read(cx, &mut read)) {
            Ok(()) => Poll::Ready(Ok(look(read.filled()))),
            // Many clients close TLS without a `close_notify`.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(look(&[]))),
            Err(error) => Poll::Ready(Err(error)),
        }
    })
}

thread_local! {
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_SIZE].into_boxed_slice());
}
