//! Converts configurations of Envoy's reference rate limit service (envoyproxy/ratelimit).
//!
//! Their files are trees of entries: a descriptor walks down the tree, one entry at a level, takes the most specific branch at
//! each, and meets the limit at its end. [`documents`] finds the configurations in a file, [`read`] makes a tree of each,
//! [`rules`] makes a rule of each limit in it that needs no tree any more, and [`mod@write`] writes the rules as limits of a
//! domain.

mod conversion;
mod documents;
mod read;
mod rules;
mod tree;
mod write;

pub use self::conversion::Converted;
pub use self::conversion::convert;
