//! Which servers there are, and which of them has a key.
//!
//! - [`node`], [`map`], [`slot`]: a server, the slots that it has, and the slot of a name.
//! - [`shared`]: what all cores know of them; [`links`]: the connections of one core.
//! - [`cluster`], [`sentinel`]: how servers are found; [`node_monitor`], [`warnings`]: how each is looked after.

pub mod links;

pub(super) mod cluster;
pub(super) mod map;
pub(super) mod node;
pub(super) mod node_monitor;
pub(super) mod sentinel;
pub(super) mod shared;
pub(super) mod slot;

mod warnings;
