//! Which servers there are, and which server has a key.
//!
//! - [`node`]: a server, the hash slots of each server, and the hash slot of a name.
//! - [`shared`]: what all cores know about the servers; [`links`]: the connections of one core.
//! - [`cluster`], [`sentinel`]: discover the servers; [`node_monitor`]: monitors each server.
//! - [`questions`]: questions of other gateways, heard on the channel of a server.

pub(super) mod cluster;
pub mod links;
pub(super) mod node;
pub(super) mod node_monitor;
pub(super) mod questions;
pub(super) mod sentinel;
pub(super) mod shared;
