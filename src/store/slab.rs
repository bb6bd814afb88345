//! A dense table that grows and shrinks in small pieces: growing moves no item, and shrinking frees memory.

use std::mem;
use std::ops::{Index, IndexMut};
use std::sync::LazyLock;

use crate::rules::key::KeyHasher;
use crate::store::key_ring::random_bytes;

/// 14 KiB with keys of 56 bytes: little for the first key, and few pieces for a million keys.
const PIECE: usize = 256;

/// Items at places from zero on, without gaps.
#[derive(Debug)]
pub(in crate::store) struct Slab<T> {
    /// Each has room for [`PIECE`] items. All but the last are full, and none is empty.
    pieces: Vec<Vec<T>>,
}

impl<T> Slab<T> {
    pub(in crate::store) fn new() -> Self {
        Self { pieces: Vec::new() }
    }

    pub(in crate::store) fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    pub(in crate::store) fn get(&self, place: usize) -> Option<&T> {
        self.pieces.get(place / PIECE)?.get(place % PIECE)
    }

    /// Appends an item.
    pub(in crate::store) fn push(&mut self, item: T) {
        match self.pieces.last_mut() {
            Some(last) if last.len() < PIECE => last.push(item),
            _ => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(item);
                self.pieces.push(piece);
            }
        }
    }

    /// Removes the item at `place` and returns it; the last item moves there.
    pub(in crate::store) fn swap_remove(&mut self, place: usize) -> Option<T> {
        let last = self.pieces.last_mut()?;
        let moved = last.pop()?;
        if last.is_empty() {
            self.pieces.pop();
        }
        Some(if place < self.len() { mem::replace(&mut self[place], moved) } else { moved })
    }
}

impl<T> Index<usize> for Slab<T> {
    type Output = T;

    fn index(&self, place: usize) -> &T {
        &self.pieces[place / PIECE][place % PIECE]
    }
}

impl<T> IndexMut<usize> for Slab<T> {
    fn index_mut(&mut self, place: usize) -> &mut T {
        &mut self.pieces[place / PIECE][place % PIECE]
    }
}

// The hasher of the tables that only this process has.

/// The same each time, so that counters in memory outlive a reload. No client can compute its hashes.
pub fn process_hasher() -> &'static KeyHasher {
    static HASHER: LazyLock<KeyHasher> = LazyLock::new(|| KeyHasher::new(random_bytes()));
    &HASHER
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::{option, proptest};

    use super::*;
    use crate::rules::key::Key;

    #[test]
    fn a_reload_hashes_as_before_and_debug_output_shows_no_secret() {
        let mut key = Key::default();
        key.push(b"alice");
        let hash = || process_hasher().hash("login", &key);
        assert_eq!(hash(), hash());
        assert_ne!(hash(), KeyHasher::new([0; 16]).hash("login", &key));
        assert_eq!(format!("{:?}", process_hasher()), "KeyHasher(***)");
    }

    proptest! {
        #[test]
        fn it_is_a_list_that_fills_gaps_with_its_last(steps in vec(option::of(0..700_usize), 0..1500)) {
            let (mut slab, mut list) = (Slab::new(), Vec::new());
            for (number, removed) in steps.into_iter().enumerate() {
                match removed {
                    Some(place) if place < list.len() => {
                        slab.swap_remove(place);
                        list.swap_remove(place);
                    }
                    _ => (0..3).for_each(|_| {
                        slab.push(number);
                        list.push(number);
                    }),
                }
                assert_eq!(slab.len(), list.len());
                assert_eq!(slab.pieces.len(), list.len().div_ceil(PIECE));
            }
            for (place, item) in list.iter().enumerate() {
                assert_eq!((slab[place], slab.get(place)), (*item, Some(item)));
            }
            assert_eq!(slab.get(list.len()), None);
        }
    }
}
