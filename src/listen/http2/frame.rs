//! The layout of HTTP/2 frames.

/// The first nine bytes of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameHeader {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHeader {
    pub(super) fn parse([high, middle, low, kind, flags, stream @ ..]: [u8; HEADER_LENGTH]) -> Self {
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        // The highest bit is reserved.
        Self { length, kind, flags, stream: u32::from_be_bytes(stream) & (u32::MAX >> 1) }
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_LENGTH] {
        let [.., high, middle, low] = self.length.to_be_bytes();
        let [first, second, third, fourth] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, first, second, third, fourth]
    }
}

/// What a client sends first if it speaks HTTP/2 without negotiation.
pub(in crate::listen) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame's header.
pub(super) const HEADER_LENGTH: usize = 9;

/// The longest payload that h2 accepts, and so do we.
pub(super) const MAX_PAYLOAD: usize = 16 * 1024;

/// Kinds of frames (RFC 9113, section 6).
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY_FRAME: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const UNKNOWN: u8 = 0xff;

/// The flag of SETTINGS and PING that answer others.
pub(super) const ACK: u8 = 1;

/// Flags of HEADERS. CONTINUATION has `END_HEADERS` alone.
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;
pub(super) const PRIORITY: u8 = 0x20;
