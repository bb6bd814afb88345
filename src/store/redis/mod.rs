//! Counts in Redis, shared by any number of gateways.
//!
//! - [`transport`]: where a server is, how one is spoken to, and why it does not answer.
//! - [`topology`]: which servers there are, which of them has a key, and whether each is up.
//! - [`scripts`]: batches and settlements as calls of Lua scripts, and what these answer.
//! - [`state`]: what all gateways share: counts, slots in flight, resets, bans, and the keys that they sign with.
//! - [`watch`]: one task a process that looks after all this.

pub mod scripts;
pub mod watch;

mod settings;
mod state;
mod topology;
pub(crate) mod transport;

pub use self::settings::Mode;
pub use self::settings::Settings;
pub use self::settings::Time;
pub use self::state::decided::RedisDecision;
pub use self::state::settle::SettleOutcome;
pub use self::state::store::RedisStore;
pub use self::topology::links;
pub use self::topology::shared::DownServer;
pub use self::topology::shared::SharedRedis;
pub use self::topology::shared::Status;
pub use self::transport::url;
