//! Calls of Lua scripts, which decide in Redis what [`State`](crate::rules::limit::State) decides in memory.
//!
//! [`text`] joins the files of `lua/` that a script needs, and [`constants`] has the values that scripts and gateway share.
//! [`invocation`] calls scripts and reads their answers, as do [`bans`] and [`sessions`]; [`encode`] writes arguments.
//! `layouts.md`, which follows, describes the bytes of all of them, and what Redis stores.
//!
#![doc = include_str!("layouts.md")]

pub(super) mod bans;
mod constants;
mod encode;
pub(super) mod invocation;
pub(super) mod sessions;
mod text;

pub use self::constants::{LEASE, Purpose};
pub use self::invocation::{
    DecisionCall, Invocation, KeySettlement, LeaseQuestions, SettlementAction, SlotLeases, is_known, keyring, probe,
    return_lease, settle,
};
pub(super) use self::invocation::{keyring_name, part_answer, part_call, parts_name};
pub use self::text::Script;

#[cfg(test)]
mod tests;
