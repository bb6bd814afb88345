//! Commands that talk to a running gateway over its admin listener.

pub(super) mod advice;
pub(super) mod bans;
mod client;
pub(super) mod config;
mod event_groups;
pub(super) mod events;
mod gateway;
pub(super) mod health;
pub(super) mod limits;
mod past_events;
mod past_line;
mod redraw;
pub(super) mod reload;
mod selector_value;
pub(super) mod status;
pub(super) mod top;
pub(super) mod why;
