//! The `store.redis` section, and whose clock decides.

use std::time::Duration;

use super::transport::url::Url;
use crate::clock::Clock;

/// The `store.redis` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// At least one; several for `cluster` and `sentinel`.
    pub urls: Vec<Url>,
    pub mode: Mode,
    /// How long a decision waits for Redis.
    pub timeout: Duration,
    /// What every key begins with, before a `:`.
    pub key_prefix: String,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    #[default]
    Single,
    Cluster,
    Sentinel,
}

/// Whose clock decides.
#[derive(Clone, Debug)]
pub enum Time {
    /// That of the Redis server, so that gateways whose clocks are wrong agree.
    OfServer,
    /// One that is handed to Redis with each decision: for tests that move it by hand.
    Given(Clock),
}
