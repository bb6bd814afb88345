//! Keeps the parts of a body in one buffer.

use bytes::Bytes;

/// The parts of a body in one piece. It takes the memory of their bytes, however small the parts are. It keeps no read
/// buffer alive that a part was cut out of, except when a single large part is all of it.
#[derive(Debug, Default)]
pub struct BodyBuffer {
    /// The first part while it is the only one.
    only: Bytes,
    joined: Vec<u8>,
    /// The expected length in bytes. Capacity grows in steps up to it, and beyond it by exactly what is needed.
    expected: usize,
}

impl BodyBuffer {
    pub fn expecting(bytes: usize) -> Self {
        Self { expected: bytes, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.only.len() + self.joined.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a part.
    pub fn put(&mut self, part: Bytes) {
        if self.is_empty() && part.len() > WORTH_SHARING {
            self.only = part;
        } else {
            self.copy(&part);
        }
    }

    /// Appends a copy of a part.
    pub fn copy(&mut self, part: &[u8]) {
        let first = std::mem::take(&mut self.only);
        self.join(&first);
        self.join(part);
    }

    pub fn as_slice(&self) -> &[u8] {
        if self.only.is_empty() { &self.joined } else { &self.only }
    }

    pub fn into_bytes(self) -> Bytes {
        if self.only.is_empty() { self.joined.into() } else { self.only }
    }

    fn join(&mut self, part: &[u8]) {
        let length = self.joined.len() + part.len();
        if length > self.joined.capacity() {
            let step = (4 * self.joined.capacity()).max(SMALLEST).min(self.expected);
            self.joined.reserve_exact(step.max(length) - self.joined.len());
        }
        self.joined.extend_from_slice(part);
    }
}

/// In bytes. A smaller part may keep a buffer alive that is many times its size.
const WORTH_SHARING: usize = 4096;

/// In bytes: the smallest allocation.
const SMALLEST: usize = 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_part_is_kept_as_it_is() {
        let part = Bytes::from(vec![7; WORTH_SHARING + 1]);
        let mut parts = BodyBuffer::expecting(1000);
        parts.put(part.clone());
        assert_eq!(parts.into_bytes().as_ptr(), part.as_ptr());
    }

    #[test]
    fn a_small_part_holds_on_to_no_large_buffer() {
        let buffer = Bytes::from(vec![7; 16 * 1024]);
        let mut parts = BodyBuffer::expecting(1000);
        parts.put(buffer.slice(..1));
        assert!(parts.len() == 1 && buffer.is_unique());
    }

    #[test]
    fn many_small_parts_take_no_more_than_was_expected() {
        let mut parts = BodyBuffer::expecting(65_536);
        (0..65_536).for_each(|_| parts.put(Bytes::from_static(b"x")));
        assert_eq!((parts.len(), parts.joined.capacity()), (65_536, 65_536));
        parts.put(Bytes::from_static(b"xy"));
        assert_eq!(parts.joined.capacity(), 65_538);
    }

    proptest! {
        #[test]
        fn bytes_come_out_in_the_order_in_which_they_were_added(
            pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..5000), any::<bool>()), 0..10),
            expected in 0..2000_usize,
        ) {
            let mut parts = BodyBuffer::expecting(expected);
            for (piece, is_copied) in &pieces {
                if *is_copied { parts.copy(piece) } else { parts.put(piece.clone().into()) }
            }
            let all: Vec<u8> = pieces.into_iter().flat_map(|(piece, _)| piece).collect();
            prop_assert_eq!(parts.len(), all.len());
            prop_assert_eq!(parts.as_slice(), &all[..]);
            prop_assert_eq!(parts.into_bytes(), all);
        }
    }
}
