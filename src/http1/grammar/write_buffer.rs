//! The output of a connection before it is written.

use std::io::IoSlice;
use std::mem;

use bytes::Buf;
use bytes::Bytes;

use crate::pool::Buffer;

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

/// In bytes: most buffers have less in all.
const MUCH_ROOM: usize = 16 * 1024;

/// In bytes, measured on loopback: a smaller part is written faster if it is copied.
const WORTH_COPYING: usize = 4096;

#[cfg(test)]
mod tests {
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
}
