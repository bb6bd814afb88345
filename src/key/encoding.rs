//! The values of a key as one sequence of bytes.

use smallvec::SmallVec;

/// The values of one key, each after its length, so that different values never make the same key.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Key(SmallVec<[u8; 40]>);

impl Key {
    pub fn push(&mut self, part: &[u8]) {
        // Seven bits of the length in each byte, the lowest first. The last byte is below 128.
        let mut length = part.len();
        while length >= 0x80 {
            self.0.push(length.to_le_bytes()[0] | 0x80);
            length >>= 7;
        }
        self.0.push(length.to_le_bytes()[0]);
        self.0.extend_from_slice(part);
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The parts, in the order in which they were pushed.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let digits = rest.iter().position(|&byte| byte < 0x80)? + 1;
            let length = rest[..digits].iter().rev().fold(0, |length, &byte| (length << 7) | usize::from(byte & 0x7f));
            let (part, after) = rest[digits..].split_at(length);
            rest = after;
            Some(part)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(parts: &[Vec<u8>]) -> Key {
        let mut key = Key::default();
        for part in parts {
            key.push(part);
        }
        key
    }

    #[test]
    fn parts_that_join_to_the_same_text_are_different_keys() {
        let of = |parts: &[&str]| key(&parts.iter().map(|part| part.as_bytes().to_vec()).collect::<Vec<_>>());
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["", "a"]), of(&["a", ""]));
        assert_ne!(of(&[""]), of(&[]));
        assert_ne!(of(&["a\u{1}b"]), of(&["a", "b"]));
    }

    proptest! {
        #[test]
        fn every_key_tells_its_parts_so_no_two_tuples_share_one(
            tuple in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5),
        ) {
            prop_assert_eq!(key(&tuple).parts().map(<[u8]>::to_vec).collect::<Vec<_>>(), tuple);
        }
    }
}
