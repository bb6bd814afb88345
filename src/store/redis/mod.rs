//! Counts in Redis, shared by any number of gateways.
//!
//! - [`transport`]: a connection to one server, and its circuit breaker.
//! - [`topology`]: which servers there are, which server has a key, and whether each server is up.
//! - [`scripts`]: batches and settlements as calls of Lua scripts, and their answers.
//! - [`state`]: what all gateways share: counts, slots in flight, resets, bans, and signing keys.
//! - [`settings`]: the `store.redis` section, how keys are called, and the task that follows servers, resets and bans.

pub mod scripts;
pub mod settings;
mod state;
mod topology;
pub(crate) mod transport;

pub use self::settings::{HashSlot, KeyNames, Mode, RedisSettings, Time};
pub use self::state::decided::{PartialVerdicts, RedisDecision};
pub use self::state::records::{RecordLink, RecordsUnavailable, Registration};
pub use self::state::settle::SettleOutcome;
pub(in crate::store) use self::state::settle::join_all;
pub use self::state::store::RedisStore;
pub use self::topology::links;
pub use self::topology::node::{Eviction, Failure};
pub(in crate::store) use self::topology::questions::Question;
pub use self::topology::questions::{MAX_ID, QuestionsToAnswer, ReceivedQuestions};
pub use self::topology::shared::{DownServer, SharedRedis, Status};
pub use self::transport::connect;
