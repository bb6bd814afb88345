//! Commands that talk to a running gateway over its admin listener.

pub(super) mod bans;
mod client;
pub(super) mod config;
pub(super) mod events;
pub(super) mod gateway;
pub(super) mod limits;
pub(super) mod status;
pub(super) mod top;
pub(super) mod why;
