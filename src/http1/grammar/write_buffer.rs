//! What is to be written.

use std::io::IoSlice;
use std::mem;

use bytes::Buf;
use bytes::Bytes;

/// Bytes on their way out: small ones in one piece, and between them at most one large part that is not copied.
///
/// Read it as a [`Buf`]. It holds no memory before something is put in.
#[derive(Debug, Default)]
pub struct WriteBuffer {
    near: Vec<u8>,
    /// So much of `near` is written.
    written: usize,
    large: Bytes,
    behind: Vec<u8>,
}

impl WriteBuffer {
    /// Whether another part of a body should be put in before what is here is written.
    pub fn has_room(&self) -> bool {
        self.large.is_empty() && self.near.len() - self.written < WORTH_COPYING
    }

    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Puts a copy behind what is here.
    pub fn put(&mut self, bytes: &[u8]) {
        self.small().extend_from_slice(bytes);
    }

    /// What is added to this stands behind what is here.
    pub fn small(&mut self) -> &mut Vec<u8> {
        if self.large.is_empty() { &mut self.near } else { &mut self.behind }
    }

    /// Puts a part of a body behind what is here, a large one without copying it.
    pub fn put_part(&mut self, part: Bytes) {
        if part.len() > WORTH_COPYING && self.large.is_empty() {
            self.large = part;
        } else {
            self.put(&part);
        }
    }

    /// Gives back most of the room that is not used, where that is much: what is here may have to wait.
    pub fn shrink(&mut self) {
        let used = self.near.len();
        if self.near.capacity() - used > MUCH_ROOM {
            self.near.shrink_to(used);
        }
    }

    /// How much memory it holds though it is empty.
    pub fn capacity(&self) -> usize {
        self.near.capacity() + self.behind.capacity()
    }
}

impl Buf for WriteBuffer {
    fn remaining(&self) -> usize {
        self.near.len() - self.written + self.large.len() + self.behind.len()
    }

    fn chunk(&self) -> &[u8] {
        let near = &self.near[self.written..];
        match (near.is_empty(), self.large.is_empty()) {
            (false, _) => near,
            (true, false) => &self.large,
            (true, true) => &self.behind,
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let parts = [&self.near[self.written..], &self.large, &self.behind];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        slices.iter_mut().zip(parts).map(|(slice, part)| *slice = IoSlice::new(part)).count()
    }

    fn advance(&mut self, mut count: usize) {
        let near = count.min(self.near.len() - self.written);
        self.written += near;
        count -= near;
        if self.written < self.near.len() {
            return;
        }
        self.near.clear();
        self.written = 0;
        let large = count.min(self.large.len());
        self.large.advance(large);
        count -= large;
        if !self.large.is_empty() {
            return;
        }
        // Its memory goes with what was in it.
        self.large = Bytes::new();
        if !self.behind.is_empty() {
            mem::swap(&mut self.near, &mut self.behind);
            self.advance(count);
        }
    }
}

/// Most outboxes have less in all.
const MUCH_ROOM: usize = 16 * 1024;

/// Measured on loopback: what is smaller is written faster in one piece.
const WORTH_COPYING: usize = 4096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_written_in_the_order_it_was_put_in() {
        let mut outbox = WriteBuffer::default();
        outbox.put(b"head");
        outbox.put_part(Bytes::from(vec![b'x'; 5000]));
        assert!(!outbox.has_room());
        outbox.put(b"end");
        let mut slices = [IoSlice::new(b""); 8];
        assert_eq!(outbox.chunks_vectored(&mut slices), 3);
        assert_eq!(outbox.copy_to_bytes(4), "head");
        assert_eq!(outbox.copy_to_bytes(5000), vec![b'x'; 5000]);
        assert_eq!(outbox.copy_to_bytes(3), "end");
        assert!(outbox.is_empty() && outbox.has_room());
    }

    proptest! {
        #[test]
        fn whatever_is_put_in_and_however_it_is_written_nothing_is_lost(
            parts in prop::collection::vec((any::<bool>(), 0..9000_usize), 0..8),
            steps in prop::collection::vec(0..6000_usize, 0..20),
        ) {
            let (mut outbox, mut expected, mut written) = (WriteBuffer::default(), Vec::new(), Vec::new());
            let mut steps = steps.into_iter();
            for (number, (is_part, length)) in (0..).zip(parts) {
                let bytes = vec![number; length];
                expected.extend_from_slice(&bytes);
                if is_part { outbox.put_part(bytes.into()) } else { outbox.put(&bytes) }
                let step = steps.next().unwrap_or(0).min(outbox.remaining());
                written.extend_from_slice(&outbox.copy_to_bytes(step));
                prop_assert_eq!(written.len() + outbox.remaining(), expected.len());
            }
            let rest = outbox.remaining();
            written.extend_from_slice(&outbox.copy_to_bytes(rest));
            prop_assert_eq!(written, expected);
        }
    }
}
