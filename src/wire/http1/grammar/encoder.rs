//! Encodes the body of a message.

use std::io::{IoSlice, Write};
use std::mem;

use bytes::{Buf, Bytes};
use http::HeaderMap;

use super::IncompleteBody;
use crate::wire::http1::grammar;
use crate::words::pool::Buffer;

/// In bytes: sixteen digits and a line end.
const MAX_SIZE_LINE: usize = 18;

/// Encodes one body.
#[derive(Debug)]
pub struct BodyEncoder(BodyLength);

impl BodyEncoder {
    pub fn new(length: BodyLength) -> Self {
        Self(length)
    }

    /// Writes a part. Bytes beyond the announced length are dropped.
    pub fn part(&mut self, mut part: Bytes, out: &mut WriteBuffer) {
        if part.is_empty() {
            return;
        }
        match &mut self.0 {
            BodyLength::Known(left) => {
                part.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= part.len() as u64;
                out.put_part(part);
            }
            BodyLength::UntilClose => out.put_part(part),
            BodyLength::Chunked => {
                let mut line = [0; MAX_SIZE_LINE];
                let mut rest = &mut line[..];
                // Cannot fail: the line has room for any size.
                let _ = write!(rest, "{:X}\r\n", part.len());
                let written = MAX_SIZE_LINE - rest.len();
                out.put(&line[..written]);
                out.put_part(part);
                out.put(b"\r\n");
            }
        }
    }

    /// Whether the announced length is written, so that `end` has nothing to add.
    pub fn is_complete(&self) -> bool {
        self.0 == BodyLength::Known(0)
    }

    /// Whether nothing but the end of the connection shows where the body ends.
    pub fn ends_with_connection(&self) -> bool {
        self.0 == BodyLength::UntilClose
    }

    /// Writes the end.
    pub fn end(&mut self, trailers: Option<&HeaderMap>, out: &mut WriteBuffer) -> Result<(), IncompleteBody> {
        match self.0 {
            BodyLength::Known(0) | BodyLength::UntilClose => Ok(()),
            BodyLength::Known(_) => Err(IncompleteBody),
            BodyLength::Chunked => {
                out.put(b"0\r\n");
                if let Some(fields) = trailers {
                    grammar::write(fields, out);
                }
                out.put(b"\r\n");
                Ok(())
            }
        }
    }
}

// How the end of a body is found.

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyLength {
    /// The body has this many bytes.
    Known(u64),
    Chunked,
    /// The body ends when the connection closes.
    UntilClose,
}

// The output of a connection before it is written.

/// In bytes: most buffers have less in all.
const MUCH_ROOM: usize = 16 * 1024;

/// In bytes, measured on loopback: a smaller part is written faster if it is copied.
const WORTH_COPYING: usize = 4096;

/// Bytes to be written: small ones in one piece, and between them at most one large part that is not copied.
///
/// It is read as a [`Buf`]. An unused one holds no memory.
#[derive(Debug, Default)]
pub struct WriteBuffer {
    front: Buffer,
    /// In bytes: how much of `front` is written.
    written: usize,
    large: Bytes,
    back: Buffer,
}

impl WriteBuffer {
    /// Whether another part of a body should be added before the next write.
    pub fn has_room(&self) -> bool {
        self.large.is_empty() && self.front.len() - self.written < WORTH_COPYING
    }

    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Appends a copy.
    pub fn put(&mut self, bytes: &[u8]) {
        self.small().extend_from_slice(bytes);
    }

    /// Bytes appended to this are written behind all others.
    pub fn small(&mut self) -> &mut Vec<u8> {
        let buffer = if self.large.is_empty() { &mut self.front } else { &mut self.back };
        if buffer.capacity() == 0 {
            *buffer = Buffer::take();
        }
        buffer
    }

    /// Appends a part of a body, a large one without copying it.
    pub fn put_part(&mut self, part: Bytes) {
        if part.len() > WORTH_COPYING && self.large.is_empty() {
            self.large = part;
        } else {
            self.put(&part);
        }
    }

    /// Releases unused capacity where it is large, because the bytes may wait for a slow client.
    pub fn shrink(&mut self) {
        let used = self.front.len();
        if self.front.capacity() - used > MUCH_ROOM {
            self.front.shrink_to(used);
        }
    }
}

impl Buf for WriteBuffer {
    fn remaining(&self) -> usize {
        self.front.len() - self.written + self.large.len() + self.back.len()
    }

    fn chunk(&self) -> &[u8] {
        let front = &self.front[self.written..];
        match (front.is_empty(), self.large.is_empty()) {
            (false, _) => front,
            (true, false) => &self.large,
            (true, true) => &self.back,
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let parts = [&self.front[self.written..], &self.large, &self.back];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        slices.iter_mut().zip(parts).map(|(slice, part)| *slice = IoSlice::new(part)).count()
    }

    fn advance(&mut self, mut count: usize) {
        let front = count.min(self.front.len() - self.written);
        self.written += front;
        count -= front;
        if self.written < self.front.len() {
            return;
        }
        self.front.clear();
        self.written = 0;
        let large = count.min(self.large.len());
        self.large.advance(large);
        count -= large;
        if !self.large.is_empty() {
            return;
        }
        // Releases the memory of the part.
        self.large = Bytes::new();
        if !self.back.is_empty() {
            mem::swap(&mut self.front, &mut self.back);
            self.advance(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_are_written_in_the_order_in_which_they_were_added() {
        let mut buffer = WriteBuffer::default();
        buffer.put(b"head");
        buffer.put_part(Bytes::from(vec![b'x'; 5000]));
        assert!(!buffer.has_room());
        buffer.put(b"end");
        let mut slices = [IoSlice::new(b""); 8];
        assert_eq!(buffer.chunks_vectored(&mut slices), 3);
        assert_eq!(buffer.copy_to_bytes(4), "head");
        assert_eq!(buffer.copy_to_bytes(5000), vec![b'x'; 5000]);
        assert_eq!(buffer.copy_to_bytes(3), "end");
        assert!(buffer.is_empty() && buffer.has_room());
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_however_bytes_are_added_and_written(
            parts in prop::collection::vec((any::<bool>(), 0..9000_usize), 0..8),
            steps in prop::collection::vec(0..6000_usize, 0..20),
        ) {
            let (mut buffer, mut expected, mut written) = (WriteBuffer::default(), Vec::new(), Vec::new());
            let mut steps = steps.into_iter();
            for (number, (is_part, length)) in (0..).zip(parts) {
                let bytes = vec![number; length];
                expected.extend_from_slice(&bytes);
                if is_part { buffer.put_part(bytes.into()) } else { buffer.put(&bytes) }
                let step = steps.next().unwrap_or(0).min(buffer.remaining());
                written.extend_from_slice(&buffer.copy_to_bytes(step));
                prop_assert_eq!(written.len() + buffer.remaining(), expected.len());
            }
            let rest = buffer.remaining();
            written.extend_from_slice(&buffer.copy_to_bytes(rest));
            prop_assert_eq!(written, expected);
        }
    }

    #[track_caller]
    fn check(length: BodyLength, parts: &[&'static str], expected: Result<&str, IncompleteBody>) {
        let (mut encoder, mut out) = (BodyEncoder::new(length), WriteBuffer::default());
        for part in parts {
            encoder.part(Bytes::from_static(part.as_bytes()), &mut out);
        }
        let ended = encoder.end(None, &mut out);
        let written = out.copy_to_bytes(out.remaining());
        assert_eq!(ended.map(|()| written.escape_ascii().to_string()), expected.map(str::to_owned));
    }

    #[test]
    fn a_body_of_known_length_is_written_to_that_length_or_is_incomplete() {
        check(BodyLength::Known(5), &["ab", "", "cde"], Ok("abcde"));
        check(BodyLength::Known(5), &["abcd", "efg"], Ok("abcde"));
        check(BodyLength::Known(5), &["abcd"], Err(IncompleteBody));
        check(BodyLength::Known(0), &[], Ok(""));
        check(BodyLength::UntilClose, &["ab", "c"], Ok("abc"));
    }

    #[test]
    fn an_empty_part_is_not_the_last_chunk() {
        check(
            BodyLength::Chunked,
            &["ab", "", "0123456789abcdef"],
            Ok(r"2\r\nab\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"),
        );
        check(BodyLength::Chunked, &[], Ok(r"0\r\n\r\n"));
    }

    #[test]
    fn trailers_follow_the_last_chunk() {
        let trailers = HeaderMap::from_iter([(http::header::ETAG, http::HeaderValue::from_static("\"a\""))]);
        let (mut encoder, mut out) = (BodyEncoder::new(BodyLength::Chunked), WriteBuffer::default());
        assert_eq!(encoder.end(Some(&trailers), &mut out), Ok(()));
        assert_eq!(out.copy_to_bytes(out.remaining()), "0\r\netag: \"a\"\r\n\r\n");
    }
}
