//! The audit trail: every event, in a file, a Redis stream or an `SQLite` database.
//!
//! Each sink has a queue and a writer of its own, so that none waits for another and no request waits for any of them.
//! Events that a full queue has no room for are dropped and counted.

mod appender;
mod crowdsec;
mod file;
mod redis_stream;
mod settings;
#[cfg(feature = "sqlite")]
mod sqlite;
mod trail;
mod writer;

pub use self::appender::AppendOutcome;
pub use self::appender::StreamAppender;
pub use self::settings::AuditSettings;
pub use self::settings::HAS_SQLITE;
pub use self::settings::RedisStream;
pub use self::trail::AuditContext;
pub use self::trail::AuditError;
pub use self::trail::AuditTrail;
