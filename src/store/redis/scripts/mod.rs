//! Batches as invocations of Lua scripts, which decide in Redis what [`State`](crate::limit::State) decides in memory.
//!
//! `lua/` has whole files; [`text`] puts those together that a script needs, and [`constants`] what gateway and scripts
//! call by the same name. [`invocation`] and [`bans`] are calls of scripts, [`encode`] writes their arguments, and
//! [`answer`] reads what they answer. `layouts.md`, which follows, draws all of it, and what is stored.
//!
#![doc = include_str!("layouts.md")]

pub(super) mod answer;
pub(super) mod bans;

mod constants;
mod encode;
mod invocation;
mod text;

pub use self::constants::LEASE;
pub use self::constants::Purpose;
pub use self::invocation::Entry;
pub use self::invocation::Group;
pub use self::invocation::Held;
pub use self::invocation::Invocation;
pub use self::invocation::What;
pub use self::invocation::keyring;
pub(super) use self::invocation::keyring_name;
pub use self::invocation::knows;
pub use self::invocation::name;
pub use self::invocation::probe;
pub use self::invocation::settle;
pub use self::text::Script;

#[cfg(test)]
mod tests;
