//! Keys that requests are counted under. A selector yields each part of a key.

pub mod descriptor;
pub mod display;
pub mod encoding;
pub mod extract;
pub mod first;
pub mod hashed;
pub mod identity;
pub mod operator;
pub mod selector;
pub mod spec;
pub mod undisputed;

pub use self::descriptor::Descriptor;
pub use self::descriptor::DescriptorEntry;
pub use self::display::DisplayKey;
pub use self::display::OperatorKey;
pub use self::display::OperatorPart;
pub use self::encoding::Key;
pub use self::extract::Capture;
pub use self::extract::Captures;
pub use self::extract::ExtractedKey;
pub use self::extract::ExtractedKeys;
pub use self::extract::Source;
pub use self::extract::TooManyValues;
pub use self::hashed::Hashers;
pub use self::hashed::KeyHash;
pub use self::hashed::KeyHasher;
pub use self::identity::Identity;
pub use self::selector::InvalidSelector;
pub use self::selector::KeyPart;
pub use self::selector::Selector;
pub use self::selector::SelectorSubject;
pub use self::selector::Spelling;
pub use self::spec::KeySpec;
