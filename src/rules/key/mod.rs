//! Keys that requests are counted under. A selector yields each part of a key.

pub mod display;
pub mod extract;
pub mod fold;
pub mod hashed;
pub mod pattern;
pub mod selector;
pub mod spec;
pub mod undisputed;

pub use self::display::{DisplayKey, OperatorKey, OperatorPart};
pub use self::extract::{Capture, Captures, ExtractedKey, ExtractedKeys, TooManyValues, ValueSource};
pub use self::fold::Fold;
pub use self::hashed::{CLIENT_DIGITS, Descriptor, DescriptorEntry, Hashers, Key, KeyHash, KeyHasher};
pub use self::pattern::{InvalidNamePattern, NamePattern};
pub use self::selector::{InvalidSelector, KeyPart, NameSpelling, Selector, SelectorSubject, Spelling};
pub use self::spec::KeySpec;
pub use self::undisputed::{Identity, UserMark};
