//! The audit trail: every event, in a file, a Redis stream or an `SQLite` database.
//!
//! Each sink has a queue and a writer of its own, so that none waits for another and no request waits for any of them.
//! Events that a full queue has no room for are dropped and counted.

mod crowdsec;
mod redis_stream;
#[cfg(feature = "sqlite")]
mod sqlite;
mod trail;
mod writer;

pub use self::redis_stream::{AppendOutcome, StoreRedis};
pub use self::trail::{AuditContext, AuditError, AuditSettings, AuditTrail, HAS_SQLITE, RedisStream};
