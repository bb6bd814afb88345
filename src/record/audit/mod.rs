//! The audit trail: a line for everything that was done to somebody, where it is kept.

use std::path::PathBuf;
use std::sync::Arc;

/// The `audit` section: none, one or several places.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Settings {
    /// JSON lines are appended to this file.
    pub file: Option<PathBuf>,
    /// Valid only where the store is a Redis, which the stream then stands in.
    pub redis_stream: Option<RedisStream>,
    /// A database of one table.
    pub sqlite: Option<PathBuf>,
}

/// A stream in the store's Redis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RedisStream {
    pub key: Arc<str>,
    /// About so many are kept, the latest; at least 1.
    pub max_entries: u64,
}

impl RedisStream {
    /// `max_entries` where the configuration leaves it out.
    pub const MAX_ENTRIES: u64 = 100_000;
}
