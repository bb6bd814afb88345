//! Reads the heads of requests off a connection.

use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Buf;
use bytes::BytesMut;
use http::StatusCode;

use super::shared_channel::SharedChannel;
use crate::http1::grammar::HeadScanner;
use crate::http1::server::request;
use crate::http1::server::request::HeadLimits;
use crate::http1::server::request::ParsedRequest;
use crate::listen::Settings;
use crate::listen::progress::Phase;
use crate::listen::progress::Progress;

/// Reads one head after another.
#[derive(Debug)]
pub(super) struct HeadReader {
    limits: HeadLimits,
    accepts_bare_line_feeds: bool,
    scanner: HeadScanner,
}

impl HeadReader {
    pub(super) fn new(settings: &Settings) -> Self {
        let limits = HeadLimits { bytes: settings.max_header_bytes, fields: settings.max_headers };
        let accepts_bare_line_feeds = settings.accepts_bare_line_feeds;
        Self { limits, accepts_bare_line_feeds, scanner: HeadScanner::default() }
    }

    /// Reads the next head, and leaves the bytes behind it in the channel. `None`: the client has left. The error is the
    /// status that answers an invalid head.
    pub(super) fn poll(
        &mut self,
        channel: &mut SharedChannel,
        progress: &Progress,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<ParsedRequest>, StatusCode>> {
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

    /// Takes a head off the front of the bytes read before and now, and leaves the rest in `read`.
    fn take(
        &mut self,
        read: &mut BytesMut,
        fresh: &[u8],
        progress: &Progress,
    ) -> Result<Option<ParsedRequest>, StatusCode> {
        if progress.phase() != Phase::Head {
            // The usual case: the head came in one piece, and is copied once.
            let here: &[u8] = if read.is_empty() { fresh } else { &read[..] };
            let parsed = match request::parse(&here[..here.len().min(USUAL)], self.limits) {
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
            request::parse(&with_returns(&read[..end]), self.limits)?
        } else {
            request::parse(&read[..end], self.limits)?
        };
        let parsed = parsed.ok_or(StatusCode::BAD_REQUEST)?;
        read.advance(end);
        Ok(Some(parsed))
    }
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

/// In bytes: most heads are shorter. A longer one is parsed when its end is known.
const USUAL: usize = 4096;
