//! Which servers there are, and which server has a key.
//!
//! - [`node`], [`map`], [`slot`]: a server, the hash slots of each server, and the hash slot of a name.
//! - [`shared`]: what all cores know about the servers; [`links`]: the connections of one core.
//! - [`cluster`], [`sentinel`]: discover the servers; [`node_monitor`], [`warnings`]: monitor each server.

pub mod links;

pub(super) mod cluster;
pub(super) mod failure;
pub(super) mod map;
pub(super) mod node;
pub(super) mod node_monitor;
pub(super) mod sentinel;
pub(super) mod shared;
pub(super) mod slot;

mod node_connection;
mod warnings;
