//! Moves the counts in memory to the process that takes over, so that only one process counts at any moment.
//!
//! The old process, the *predecessor*, freezes its counts, sends them to its *successor*, and asks the successor from
//! then on: what the predecessor still serves is counted there. The successor decides nothing before it is told that
//! the counts are its own. Requests for frozen counts wait. If the successor does not start to serve, the counts thaw.
//!
//! - [`state`]: which process has the counts.
//! - [`message`], `frame`: requests and replies between the two, and how they are written.
//! - [`client`]: the predecessor sends requests.
//! - `session`: the successor replies to a predecessor; [`reservations`]: what that predecessor has reserved; [`paused`]: a
//!   session while the counts move on.
//! - [`transfer`]: how the counts themselves move.
//!
//! A successor may have a successor of its own while its predecessor still drains. Then the session of that predecessor
//! moves with the counts, so that it asks the newest process directly.

pub mod client;
pub mod state;
pub mod transfer;

mod frame;
mod paused;
mod reservations;
mod session;

pub(in crate::store) mod message;

pub use self::state::CountsMoved;
pub use self::state::Handover;

#[cfg(test)]
mod tests;
