//! The `store` section.

use std::num::NonZeroU32;

use super::memory;
use super::redis;
use crate::limit::OnFailure;

/// The `store` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    pub memory: memory::Settings,
    /// `None`: counts are kept only in memory.
    pub redis: Option<redis::Settings>,
    /// What a limit does during an outage of Redis if it does not say so itself.
    pub on_failure: OnFailure,
    /// How many gateways share the Redis: during an outage each grants its part of every limit.
    pub nodes: Nodes,
}

/// How many gateways share the Redis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Nodes {
    /// Those that are there: each holds a [part](super::parts) that Redis has granted.
    Auto,
    Fixed(NonZeroU32),
}
