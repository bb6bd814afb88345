//! Counts in Redis, shared by any number of gateways.
//!
//! - [`url`], [`connect`]: where the servers are, and how one is spoken to; [`wire`], [`reply`]: over one connection for
//!   all callers of a core.
//! - [`node`], [`links`], [`topology`]: servers and their breakers, the connections of one core, and which server has
//!   which slot.
//! - [`shared`]: what all cores have in common.
//! - [`watch`]: one task a process that finds servers ([`cluster`], [`sentinel`]), probes those that failed ([`tend`]),
//!   says what is amiss with them ([`fault`], [`warnings`]), hears of resets ([`resets`]), and learns what all gateways
//!   sign with ([`keyring`]).
//! - [`scripts`], [`answer`]: batches as invocations of a Lua script, and what it answers.
//! - [`reserve`], [`settle`], [`in_flight`]: all or none across slots, what became of requests, and slots in flight held
//!   by leases.
//! - [`bans`]: who is banned, shared by all gateways.
//! - [`detached`]: decisions that are finished though their client has left.

pub mod links;
pub mod scripts;
pub mod url;
pub mod watch;

mod answer;
mod append;
mod bans;
mod breaker;
mod cluster;
mod connect;
mod detached;
mod fault;
mod in_flight;
mod keyring;
mod node;
mod reply;
mod reserve;
mod resets;
mod sentinel;
mod settle;
mod shared;
mod slot;
mod tend;
mod together;
mod topology;
mod warnings;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use self::in_flight::InFlight;
use self::links::Links;
pub use self::settle::Settled;
pub use self::shared::Away;
pub use self::shared::Shared;
pub use self::shared::Status;
use self::url::Url;
use super::Observer;
use crate::clock::Clock;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Settlement;
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
    core: Arc<Core>,
}

/// What one core needs to speak to Redis.
#[derive(Debug)]
struct Core {
    shared: Arc<Shared>,
    links: Links,
    in_flight: InFlight,
    /// What goes on though nobody waits for it.
    tasks: TaskTracker,
}

/// What came of a batch: an answer for each charge whose server answers.
#[derive(Clone, Debug, Default)]
pub struct Decided {
    /// In the order of the batch; `None` where the server of that key does not answer.
    pub verdicts: Vec<Option<Verdict>>,
    /// Under which number slots in flight were taken.
    holder: u32,
}

impl RedisStore {
    /// The store of the first core. Nothing is connected yet.
    pub fn new(settings: Settings, time: Time, observer: Arc<dyn Observer>) -> Self {
        Self::of_core(Arc::new(Shared::new(settings, time, observer)))
    }

    /// The same counts over connections of its own.
    #[must_use]
    pub fn on_another_core(&self) -> Self {
        Self::of_core(Arc::clone(&self.core.shared))
    }

    /// The same, for a task of this core.
    pub(super) fn on_same_core(&self) -> Self {
        Self { core: Arc::clone(&self.core) }
    }

    fn of_core(shared: Arc<Shared>) -> Self {
        let links = Links::new(&shared);
        Self { core: Arc::new(Core { shared, links, in_flight: InFlight::default(), tasks: TaskTracker::new() }) }
    }

    /// What the cores share, for the task that watches over the servers.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.core.shared
    }

    pub fn hasher(&self) -> KeyHasher {
        self.core.shared.hasher.clone()
    }

    /// Decides all charges whose servers answer: all or none of them.
    ///
    /// `remembered`: whether the client is known, where no server can say.
    pub async fn decide(&self, batch: &Batch<'_>, remembered: bool) -> Decided {
        let is_simple = self.core.is_one_slot(batch) && !batch.charges.iter().any(Charge::is_slot);
        // Who hangs up on the way must neither keep slots nor leave the first half of a decision behind.
        if is_simple {
            self.core.decide(batch, remembered).await
        } else {
            Box::pin(detached::decide(&self.core, batch, remembered)).await
        }
    }

    /// Where the keys stand; nothing is charged.
    pub async fn look(&self, batch: &Batch<'_>, remembered: bool) -> Vec<Option<Verdict>> {
        self.core.look(batch, remembered).await
    }

    /// Takes back what was charged at these places of the batch: another store denied the request. This is not waited
    /// for.
    pub fn give_back(&self, batch: &Batch<'_>, decided: &mut Decided, places: &[usize]) {
        detached::give_back(&self.core, batch, decided, places);
    }

    /// Takes note of what became of requests: slots in flight are those that were taken by this core. What was charged
    /// in this process alone is none of this store's.
    pub async fn settle(&self, settlements: &[Settlement<'_>]) -> Settled {
        self.core.settle(settlements).await
    }

    /// Forgets keys, and tells every gateway.
    pub async fn forget(&self, keys: &[KeyHash]) -> Settled {
        self.core.forget(keys).await
    }

    /// What goes on though nobody waits for it.
    pub fn tasks(&self) -> &TaskTracker {
        &self.core.tasks
    }
}

impl Decided {
    /// The keys of the slots in flight that were taken.
    fn slots(&self, batch: &Batch<'_>) -> impl Iterator<Item = KeyHash> {
        let slots = batch.charges.iter().enumerate().filter(|(_, charge)| charge.is_slot());
        slots.filter(|(place, _)| self.is_charged(*place)).map(|(_, charge)| charge.key)
    }

    /// Whether Redis has charged what stands at this place of the batch.
    pub fn is_charged(&self, place: usize) -> bool {
        is_charged(&self.verdicts, place)
    }
}

/// Whether the charge at this place is known to be charged.
fn is_charged(verdicts: &[Option<Verdict>], place: usize) -> bool {
    verdicts[place].as_ref().is_some_and(|verdict| verdict.charged.is_some())
}
