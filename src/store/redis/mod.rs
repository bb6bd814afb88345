//! Counts in Redis, shared by any number of gateways.
//!
//! - [`url`], [`connect`]: where the servers are, and how one is spoken to.
//! - [`node`], [`links`], [`topology`]: servers and their breakers, the connections of one core, and which server has
//!   which slot.
//! - [`watch`]: one task a process that finds servers, probes those that failed, and hears of resets.
//! - [`script`], [`answer`]: batches as invocations of a Lua script, and what it answers.
//! - [`reserve`], [`in_flight`]: all or none across slots, and slots in flight held by leases.

pub mod url;

mod answer;
mod links;
mod reserve;
mod script;

use std::sync::Arc;
use std::time::Duration;

use self::links::Links;
use self::url::Url;
use super::Observer;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Reservation;
use crate::decision::Verdict;
use crate::key::KeyHash;
use crate::key::KeyHasher;

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

/// Counts in Redis, as one core reaches them.
#[derive(Debug)]
pub struct RedisStore {
    shared: Arc<Shared>,
    links: Links,
}

/// What the cores of a process share.
#[derive(Debug)]
pub struct Shared {
    settings: Settings,
    time: Time,
    /// By the prefix alone: no secret to agree on, to lose with Redis, or to find changed when it comes back.
    hasher: KeyHasher,
    observer: Arc<dyn Observer>,
}

/// What came of a batch: an answer for each charge whose server answers.
#[derive(Clone, Debug, Default)]
pub struct Decided {
    /// In the order of the batch; `None` where the server of that key does not answer.
    pub rulings: Vec<Option<Ruling>>,
}

/// What Redis said to one charge.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    pub verdict: Verdict,
    /// When it was charged, by the clock that decides; `None`: it was not.
    pub charged: Option<Timestamp>,
}

impl RedisStore {
    /// The store of the first core. Nothing is connected yet.
    pub fn new(settings: Settings, time: Time, observer: Arc<dyn Observer>) -> Self {
        let hasher = KeyHasher::shared(&settings.key_prefix);
        let shared = Arc::new(Shared { settings, time, hasher, observer });
        Self { links: Links::new(&shared), shared }
    }

    /// The same counts over connections of its own.
    #[must_use]
    pub fn on_another_core(&self) -> Self {
        Self { links: Links::new(&self.shared), shared: Arc::clone(&self.shared) }
    }

    /// What the cores share, for the task that watches over the servers.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub fn hasher(&self) -> KeyHasher {
        self.shared.hasher.clone()
    }

    /// Decides all charges whose servers answer: all or none of them.
    pub async fn decide(&self, _batch: &Batch<'_>) -> Decided {
        todo!()
    }

    /// Where the keys stand; nothing is charged.
    pub async fn look(&self, _batch: &Batch<'_>) -> Vec<Option<Verdict>> {
        todo!()
    }

    /// Takes back what was charged: another store denied the request.
    pub async fn give_back(&self, _batch: &Batch<'_>, _decided: &Decided) {
        todo!()
    }

    pub async fn settle(&self, _reservations: &[Reservation]) {
        todo!()
    }

    /// Forgets keys, and tells every gateway. `false`: some server did not answer.
    pub async fn forget(&self, _keys: &[KeyHash]) -> bool {
        todo!()
    }
}
