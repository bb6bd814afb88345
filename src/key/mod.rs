//! What is counted: keys of one or several parts, each yielded by a selector.

pub mod display;
pub mod extract;
pub mod hashed;
pub mod operator;
pub mod selector;
pub mod undisputed;

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::request::CanonicalHost;
use crate::request::CanonicalPath;
use crate::request::nul;
use crate::request::text::local_part;
use crate::request::text::normalise;

pub use self::display::DisplayKey;
pub use self::extract::Capture;
pub use self::extract::Captures;
pub use self::extract::ExtractedKey;
pub use self::extract::ExtractedKeys;
pub use self::extract::Source;
pub use self::extract::TooManyValues;
pub use self::hashed::Hashers;
pub use self::hashed::KeyHash;
pub use self::hashed::KeyHasher;
pub use self::selector::InvalidSelector;
pub use self::selector::Selector;

/// Which values of a request make one key. Without parts it is one key for all.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct KeySpec {
    pub parts: Vec<KeyPart>,
}

impl KeySpec {
    /// Whether a part may stand in the body.
    pub fn needs_body(&self) -> bool {
        self.parts.iter().any(|part| part.selector.needs_body())
    }
}

/// A selector, and the spelling in which its values are compared.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct KeyPart {
    pub selector: Selector,
    pub spelling: Spelling,
}

/// In which spelling values are compared.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Spelling {
    /// The one for names where people type them, and what is sent elsewhere.
    #[default]
    Usual,
    /// That of names, and of a mail address only what stands before the `@`.
    LocalPart,
    AsSent,
}

impl KeyPart {
    /// The spelling in which a value that an operator wrote, in a list or on a command line, is compared with what
    /// this part yields of a request.
    pub fn as_compared<'v>(&self, value: &'v str) -> Cow<'v, str> {
        let value = nul::before(value);
        match &self.selector {
            Selector::Host => Cow::Owned(CanonicalHost::new(value).as_str().to_owned()),
            Selector::Path => Cow::Owned(CanonicalPath::new(value).folded().to_owned()),
            Selector::Method => Cow::Owned(value.to_ascii_uppercase()),
            _ => self.spelt(Cow::Borrowed(value)),
        }
    }

    /// A value in the spelling in which it is compared.
    fn spelt<'v>(&self, value: Cow<'v, str>) -> Cow<'v, str> {
        let spell: fn(&str) -> Cow<'_, str> = match self.spelling {
            Spelling::Usual if self.selector.normalises() => normalise,
            Spelling::LocalPart => local_part,
            Spelling::Usual | Spelling::AsSent => return value,
        };
        match value {
            Cow::Borrowed(value) => spell(value),
            Cow::Owned(value) => Cow::Owned(spell(&value).into_owned()),
        }
    }
}

/// The values of one key, each behind its length, so that no two different tuples are the same key.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Key(SmallVec<[u8; 40]>);

impl Key {
    pub fn push(&mut self, part: &[u8]) {
        // Seven bits of the length a byte, the least first; the last byte is below 128.
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

    /// The parts that were pushed, in their order.
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
