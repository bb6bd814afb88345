//! The shared parts of both sides of HTTP/2: the layout of frames, the decoder of fields, incoming bodies, and waiting
//! for the window of outgoing ones.

pub mod hpack;

use std::mem;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{RecvStream, SendStream};
use http_body::{Frame, SizeHint};

use crate::wire::head::{KnownName, NameSet};

// The layout of HTTP/2 frames.

/// The first bytes of a client that speaks HTTP/2 without negotiation.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame's header.
pub const HEADER_LENGTH: usize = 9;

/// The longest payload that h2 accepts, and so do we.
pub const MAX_PAYLOAD: usize = 16 * 1024;

/// Kinds of frames (RFC 9113, section 6).
pub const DATA: u8 = 0;

pub const HEADERS: u8 = 1;

pub const PRIORITY_FRAME: u8 = 2;

pub const RST_STREAM: u8 = 3;

pub const SETTINGS: u8 = 4;

pub const PING: u8 = 6;

pub const WINDOW_UPDATE: u8 = 8;

pub const CONTINUATION: u8 = 9;

pub const UNKNOWN: u8 = 0xff;

/// The flag of SETTINGS and PING that answer others.
pub const ACK: u8 = 1;

/// Flags of HEADERS. CONTINUATION has `END_HEADERS` alone.
pub const END_STREAM: u8 = 1;

pub const END_HEADERS: u8 = 4;

pub const PADDED: u8 = 8;

pub const PRIORITY: u8 = 0x20;

/// The length of a priority in HEADERS.
const PRIORITY_LENGTH: usize = 5;

/// The first nine bytes of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameHeader {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl FrameHeader {
    pub fn parse([high, middle, low, kind, flags, stream @ ..]: [u8; HEADER_LENGTH]) -> Self {
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        // The highest bit is reserved.
        Self { length, kind, flags, stream: u32::from_be_bytes(stream) & (u32::MAX >> 1) }
    }

    pub fn to_bytes(self) -> [u8; HEADER_LENGTH] {
        let [.., high, middle, low] = self.length.to_be_bytes();
        let [first, second, third, fourth] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, first, second, third, fourth]
    }

    /// The fields in the payload of HEADERS, without padding and priority. `None`: there is more padding than payload.
    pub fn fields(self, payload: &[u8]) -> Option<&[u8]> {
        let (padding, rest) = match payload.split_first() {
            _ if self.flags & PADDED == 0 => (0, payload),
            Some((padding, rest)) => (usize::from(*padding), rest),
            None => return None,
        };
        let before = if self.flags & PRIORITY == 0 { 0 } else { PRIORITY_LENGTH };
        rest.get(before..rest.len().checked_sub(padding)?)
    }
}

/// Fields that HTTP/2 forbids, which belong to a connection of HTTP/1.1 (RFC 9113, section 8.2.2). `TE` is allowed in requests.
pub const OF_CONNECTIONS: NameSet = NameSet::of(&[
    KnownName::CONNECTION,
    KnownName::KEEP_ALIVE,
    KnownName::PROXY_CONNECTION,
    KnownName::TRANSFER_ENCODING,
    KnownName::UPGRADE,
]);

// Incoming bodies, and waiting for the window of outgoing ones.

/// The rest of an incoming body.
#[derive(Debug)]
pub struct Body {
    stream: RecvStream,
    /// The bytes that are left, where the length was stated. h2 enforces it.
    left: Option<u64>,
    /// In bytes: the last part. Its window is released when the next part is polled.
    given: usize,
}

impl Body {
    pub fn new(stream: RecvStream, length: Option<u64>) -> Self {
        Self { stream, left: length, given: 0 }
    }

    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        self.release_window();
        if let Some(data) = ready!(self.stream.poll_data(cx)) {
            let data = data?;
            self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
            self.given = data.len();
            if self.is_complete() {
                // The caller need not poll again.
                self.release_window();
            }
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        Poll::Ready(ready!(self.stream.poll_trailers(cx)).transpose().map(|trailers| trailers.map(Frame::trailers)))
    }

    fn release_window(&mut self) {
        // A failure shows in the next poll.
        let _ = self.stream.flow_control().release_capacity(mem::take(&mut self.given));
    }

    pub fn is_complete(&self) -> bool {
        self.stream.is_end_stream()
    }

    pub fn size_hint(&self) -> SizeHint {
        match self.left {
            _ if self.is_complete() => SizeHint::with_exact(0),
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::new(),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // The stream may live on until its response is complete.
        self.release_window();
    }
}

/// Ready when the window has room for a part of the data, or never will.
pub fn poll_room(stream: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> Poll<()> {
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(0)) => {}
            Some(_) | None => break,
        }
    }
    Poll::Ready(())
}
