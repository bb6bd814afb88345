//! Heads of requests, off the wire.

use std::task::Context;
use std::task::Poll;
use std::task::ready;

use bytes::Buf;
use bytes::Bytes;
use bytes::BytesMut;
use http::StatusCode;

use super::head::Bounds;
use super::head::Head;
use super::wire::Wire;
use crate::http1::Scan;
use crate::listen::Settings;
use crate::listen::connection::Phase;
use crate::listen::connection::Progress;

/// Reads one head after the other.
#[derive(Debug)]
pub(super) struct Reader {
    bounds: Bounds,
    scan: Scan,
}

impl Reader {
    pub(super) fn new(settings: &Settings) -> Self {
        let bounds = Bounds { bytes: settings.max_header_bytes, fields: settings.max_headers };
        Self { bounds, scan: Scan::default() }
    }

    /// The next head; what follows it is left on the wire. `None`: the client has left. What is no head is to be
    /// answered with the status.
    pub(super) fn poll(
        &mut self,
        wire: &mut Wire,
        progress: &Progress,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Head>, StatusCode>> {
        let mut head = Ok(None);
        if !wire.read().is_empty() && progress.phase() != Phase::Head {
            wire.look(|read| head = self.take(read, &[], progress));
        }
        loop {
            if let Some(head) = head? {
                return Poll::Ready(Ok(Some(head)));
            }
            head = Ok(None);
            match ready!(wire.poll_read(cx, |read, fresh| head = self.take(read, fresh, progress))) {
                Ok(true) => {}
                Ok(false) => {
                    progress.set_read_closed(true);
                    return Poll::Ready(Ok(None));
                }
                Err(_) => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// Takes a head off the front of what was read, before and now. What is not used is left there.
    fn take(&mut self, read: &mut BytesMut, fresh: &[u8], progress: &Progress) -> Result<Option<Head>, StatusCode> {
        if progress.phase() != Phase::Head {
            // The usual case: it came in one piece, and is copied but once.
            let here: &[u8] = if read.is_empty() { fresh } else { &read[..] };
            let start = Bytes::copy_from_slice(&here[..here.len().min(USUAL)]);
            if let Some((head, length)) = Head::parse(&start, self.bounds)? {
                if read.is_empty() {
                    read.extend_from_slice(&fresh[length..]);
                } else {
                    read.advance(length);
                }
                return Ok(Some(head));
            }
        }
        read.extend_from_slice(fresh);
        let end = self.scan.end(read);
        let is_too_long = end.map_or(read.len() >= self.bounds.bytes, |end| end > self.bounds.bytes);
        if self.scan.has_bare_line_feed() {
            return Err(StatusCode::BAD_REQUEST);
        }
        if is_too_long {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        let Some(end) = end else {
            // Only now: before the first byte there is no head that takes too long.
            if !read.is_empty() {
                progress.enter(Phase::Head);
            }
            return Ok(None);
        };
        self.scan = Scan::default();
        let head = Bytes::copy_from_slice(&read[..end]);
        read.advance(end);
        let (head, _) = Head::parse(&head, self.bounds)?.ok_or(StatusCode::BAD_REQUEST)?;
        Ok(Some(head))
    }
}

/// Most heads are shorter. A longer one is copied when its end is known.
const USUAL: usize = 4096;
