//! Reads the heads of requests off a connection.

use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Buf;
use bytes::Bytes;
use bytes::BytesMut;
use http::StatusCode;

use super::buffer_pool;
use super::shared_channel::SharedChannel;
use crate::http1::grammar::HeadScanner;
use crate::http1::server::request::HeadLimits;
use crate::http1::server::request::RequestHead;
use crate::listen::Settings;
use crate::listen::progress::Phase;
use crate::listen::progress::Progress;

/// Reads one head after another.
#[derive(Debug)]
pub(super) struct HeadReader {
    limits: HeadLimits,
    scanner: HeadScanner,
}

impl HeadReader {
    pub(super) fn new(settings: &Settings) -> Self {
        let limits = HeadLimits { bytes: settings.max_header_bytes, fields: settings.max_headers };
        Self { limits, scanner: HeadScanner::default() }
    }

    /// Reads the next head, and leaves the bytes behind it in the channel. `None`: the client has left. The error is the
    /// status that answers an invalid head.
    pub(super) fn poll(
        &mut self,
        channel: &mut SharedChannel,
        progress: &Progress,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<RequestHead>, StatusCode>> {
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
    ) -> Result<Option<RequestHead>, StatusCode> {
        if progress.phase() != Phase::Head {
            // The usual case: the head came in one piece, and is copied once.
            let here: &[u8] = if read.is_empty() { fresh } else { &read[..] };
            let start = Bytes::copy_from_slice(&here[..here.len().min(USUAL)]);
            if let Some((head, length)) = RequestHead::parse(&start, self.limits, buffer_pool::take_header_map)? {
                if read.is_empty() {
                    read.extend_from_slice(&fresh[length..]);
                } else {
                    read.advance(length);
                }
                return Ok(Some(head));
            }
        }
        read.extend_from_slice(fresh);
        let end = self.scanner.find_end(read);
        let is_too_long = end.map_or(read.len() >= self.limits.bytes, |end| end > self.limits.bytes);
        if self.scanner.has_bare_line_feed() {
            return Err(StatusCode::BAD_REQUEST);
        }
        if is_too_long {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        let Some(end) = end else {
            // Not before the first byte: only then does the head timeout start.
            if !read.is_empty() {
                progress.enter(Phase::Head);
            }
            return Ok(None);
        };
        self.scanner = HeadScanner::default();
        let head = Bytes::copy_from_slice(&read[..end]);
        read.advance(end);
        let (head, _) =
            RequestHead::parse(&head, self.limits, buffer_pool::take_header_map)?.ok_or(StatusCode::BAD_REQUEST)?;
        Ok(Some(head))
    }
}

/// In bytes: most heads are shorter. A longer one is copied when its end is known.
const USUAL: usize = 4096;
