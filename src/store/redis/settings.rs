//! The `store.redis` section, and whose clock decides.

use std::path::PathBuf;
use std::time::Duration;

use super::key_names::HashSlot;
use super::key_names::KeyNames;
use super::transport::url::Url;
use crate::clock::Clock;

/// The `store.redis` section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// At least one URL; several for `cluster` and `sentinel`.
    pub urls: Vec<Url>,
    /// The file that holds the password, read for each connection; `None`: the URL has it, or there is none.
    pub password_file: Option<PathBuf>,
    pub mode: Mode,
    /// How long a decision waits for Redis.
    pub timeout: Duration,
    /// So many replicas must have a charge before it counts as made.
    pub wait: u32,
    /// The prefix of every key, before a `:`.
    pub key_prefix: String,
    pub hash_slot: HashSlot,
}

impl Settings {
    pub(super) fn key_names(&self) -> KeyNames<'_> {
        KeyNames { prefix: &self.key_prefix, hash_slot: self.hash_slot }
    }
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
    /// The clock of the Redis server, so that gateways with wrong clocks agree.
    OfServer,
    /// A clock whose time each call carries to Redis, for tests that control the time.
    Given(Clock),
}
