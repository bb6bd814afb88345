//! Readings of a name: what applications and databases may take it for.
//!
//! - `letters`: the letters and digits of a text, in ASCII.
//! - `collated`: letters that databases take for others.
//! - `address`: mail addresses that reach one mailbox.
//! - `markup`: tags, character references and percent-encoded octets, which an application may drop, decode or keep.
//! - `readings`: all of it together.

mod address;
mod collated;
mod letters;
mod markup;
mod readings;

pub use self::readings::Fold;
pub use self::readings::TooManyReadings;
pub use self::readings::is_one_mailbox;
pub use self::readings::readings;
