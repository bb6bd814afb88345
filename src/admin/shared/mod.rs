//! What several gateways on one Redis know together: each writes for the others what it has counted and denied, every four
//! seconds where that has changed and at once when one of them asks. Any of them answers for all, for an hour also for one
//! that has gone.
//!
//! An answer names the gateways that did not answer in time. While Redis does not answer, a gateway answers for itself, and
//! says so.

mod fields;
mod missing;
mod others;
mod scope;
mod tell;
mod told_stories;

pub(super) use self::fields::BUSY_KEYS_PARTS;
pub(super) use self::fields::HISTORY_PARTS;
pub(super) use self::fields::STATUS;
pub(super) use self::fields::busy_keys;
pub(super) use self::fields::history;
pub(super) use self::fields::story;
pub(super) use self::missing::Missing;
pub(super) use self::others::Others;
pub(super) use self::scope::Scope;
pub use self::tell::tell_others;
pub use self::tell::tell_the_rest;
pub(super) use self::told_stories::ToldStories;
