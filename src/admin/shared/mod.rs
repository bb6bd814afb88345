//! What several gateways on one Redis know together: each tells the others every two seconds what it has counted and denied,
//! and any of them answers for all, for an hour also for one that has gone.
//!
//! While Redis does not answer, a gateway answers for itself, and says so in `X-Portcullis-Scope`.

mod kinds;
mod scope;
mod tell;
mod told_stories;

pub(super) use self::kinds::BUSY_KEYS;
pub(super) use self::kinds::HISTORY;
pub(super) use self::kinds::STORIES;
pub(super) use self::scope::Scope;
pub use self::tell::tell_others;
pub use self::tell::tell_the_rest;
pub(super) use self::told_stories::ToldStories;
