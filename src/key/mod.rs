//! What is counted: keys of one or several parts, each yielded by a selector.

pub mod extract;
pub mod hashed;
pub mod selector;

use smallvec::SmallVec;

pub use self::hashed::KeyHash;
pub use self::hashed::KeyHasher;
pub use self::selector::Selector;

/// Which values of a request make one key. Without parts it is one key for all.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct KeySpec {
    pub parts: Vec<KeyPart>,
}

/// A selector, and whether its value is taken as sent instead of in the one spelling for names.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct KeyPart {
    pub selector: Selector,
    pub raw: bool,
}

/// The values of one key, each behind its length, so that no two different tuples are the same key.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Key(SmallVec<[u8; 40]>);

impl Key {
    pub fn push(&mut self, _part: &[u8]) {
        todo!()
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
