//! Calls of Lua scripts, which decide in Redis what [`State`](crate::limit::State) decides in memory.
//!
//! [`text`] joins the files of `lua/` that a script needs, and [`constants`] has the values that scripts and gateway share.
//! [`invocation`], [`bans`], [`parts`] and [`sessions`] are calls of scripts, [`encode`] writes their arguments, and [`answer`] reads their answers.
//! `layouts.md`, which follows, describes the bytes of all of them, and what Redis stores.
//!
#![doc = include_str!("layouts.md")]

pub(super) mod answer;
pub(super) mod bans;
pub(super) mod parts;
pub(super) mod sessions;

mod constants;
mod encode;
mod invocation;
mod text;

pub use self::constants::LEASE;
pub use self::constants::Purpose;
pub use self::invocation::DecisionCall;
pub use self::invocation::Invocation;
pub use self::invocation::KeySettlement;
pub use self::invocation::LeaseQuestions;
pub use self::invocation::SettlementAction;
pub use self::invocation::SlotLeases;
pub use self::invocation::is_known;
pub use self::invocation::keyring;
pub(super) use self::invocation::keyring_name;
pub use self::invocation::probe;
pub use self::invocation::return_lease;
pub use self::invocation::settle;
pub use self::text::Script;

#[cfg(test)]
mod tests;
