//! Counts in Redis, shared by any number of gateways.
//!
//! - [`transport`]: a connection to one server, and its circuit breaker.
//! - [`topology`]: which servers there are, which server has a key, and whether each server is up.
//! - [`scripts`]: batches and settlements as calls of Lua scripts, and their answers.
//! - [`state`]: what all gateways share: counts, slots in flight, resets, bans, and signing keys.
//! - [`key_names`]: how keys are called, and so which keys one call can decide.
//! - [`watch`]: one task a process that monitors the servers and follows resets and bans.

pub mod scripts;
pub mod watch;

mod key_names;
mod settings;
mod state;
mod topology;
pub(crate) mod transport;

pub use self::key_names::HashSlot;
pub use self::key_names::KeyNames;
pub use self::settings::Mode;
pub use self::settings::Settings;
pub use self::settings::Time;
pub use self::state::decided::RedisDecision;
pub use self::state::records::RecordLink;
pub use self::state::records::RecordsUnavailable;
pub use self::state::records::Registration;
pub use self::state::settle::SettleOutcome;
pub use self::state::store::RedisStore;
pub use self::topology::failure::Failure;
pub use self::topology::links;
pub use self::topology::shared::DownServer;
pub use self::topology::shared::SharedRedis;
pub use self::topology::shared::Status;
pub use self::transport::url;
