//! The `audit` section of the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use crate::crowdsec::Machine;

/// Whether this binary can write to `audit.sqlite`.
pub const HAS_SQLITE: bool = cfg!(feature = "sqlite");

/// Each sink is optional, and several may be configured.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AuditSettings {
    /// A file of JSON lines.
    pub file: Option<PathBuf>,
    /// A stream in the store's Redis. Valid only where the store is Redis.
    pub redis_stream: Option<RedisStream>,
    /// A database of one table.
    pub sqlite: Option<PathBuf>,
    /// Where bans of addresses are reported.
    pub crowdsec: Option<Machine>,
}

/// A stream in the store's Redis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RedisStream {
    pub key: Arc<str>,
    /// Redis keeps about this many entries, the latest. At least 1.
    pub max_entries: u64,
}

impl RedisStream {
    /// `max_entries` where the configuration leaves it out.
    pub const MAX_ENTRIES: u64 = 100_000;
}
