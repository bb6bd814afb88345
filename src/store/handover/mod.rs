//! Moves the counts in memory to the process that takes over, so that exactly one process counts each key at any moment.
//!
//! The old process, the *predecessor*, freezes its counts, sends its *successor* all but the keys, and asks it from then
//! on: what the predecessor serves is counted there. The keys follow in small pieces, over the same socket as the
//! requests, and those that a request is about go before it. So every request is decided in one step, by the process
//! that has all its keys, and waits for a few pieces at most, however many keys there are. A key leaves the memory of
//! the predecessor when it moves.
//!
//! The successor decides nothing before it is told that the counts are its own, and nothing for itself before it has all
//! keys: until then the predecessor accepts all connections. Requests for frozen counts wait. If the successor goes away
//! before it has all keys, the predecessor goes on with those that are left; what had moved is lost with the process that
//! had it. A successor of an earlier version gets all keys while the counts are frozen.
//!
//! - [`message`]: requests and replies between the two, and how they are written.
//! - [`client`]: the predecessor sends requests.
//! - `session`: the successor replies to a predecessor, and keeps what that one has reserved.
//! - `store`: the store that requests ask, and which process has its counts.
//! - [`transfer`]: how they move; `moving_keys`: keys on their way.
//!
//! A successor may have a successor of its own while its predecessor still drains. Then the session of that predecessor
//! moves with the counts, so that it asks the newest process directly.

pub mod client;
pub mod message;
pub mod moving_keys;
mod session;
mod store;
pub mod transfer;

pub use self::store::MovableStore;

#[cfg(test)]
mod tests;
