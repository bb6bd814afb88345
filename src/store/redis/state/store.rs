//! The Redis store of one core.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::bans::BanQueue;
use super::decided::RedisDecision;
use super::in_flight::InFlightSlots;
use super::reserve::RoomyPlaces;
use super::settle::{SettleOutcome, UnsentSettlements};
use crate::rules::decision::{Batch, Charge, Settlement, Verdict};
use crate::rules::key::{KeyHash, KeyHasher};
use crate::store::Observer;
use crate::store::leases::LEASE_SPAN;
use crate::store::redis::settings::{RedisSettings, Time};
use crate::store::redis::state::decided;
use crate::store::redis::topology::links::Links;
use crate::store::redis::topology::node::Failure;
use crate::store::redis::topology::shared::SharedRedis;

/// The Redis store of one core.
#[derive(Debug)]
pub struct RedisStore {
    pub(in crate::store::redis) core: Arc<RedisCore>,
}

// Appends entries to a stream. No decision depends on it.

impl RedisStore {
    /// The store of the first core. Nothing is connected yet.
    pub fn new(settings: RedisSettings, time: Time, observer: Arc<dyn Observer>) -> Self {
        Self::of_core(Arc::new(SharedRedis::new(settings, time, observer)))
    }

    /// The same counts for another core, with connections of its own.
    #[must_use]
    pub fn on_another_core(&self) -> Self {
        Self::of_core(Arc::clone(&self.core.shared))
    }

    /// The same store, for a task of this core.
    pub(in crate::store) fn on_same_core(&self) -> Self {
        Self { core: Arc::clone(&self.core) }
    }

    fn of_core(shared: Arc<SharedRedis>) -> Self {
        let links = Links::new(&shared);
        Self {
            core: Arc::new(RedisCore {
                shared,
                links,
                in_flight: InFlightSlots::default(),
                bans: BanQueue::default(),
                unsent: UnsentSettlements::default(),
                tasks: TaskTracker::new(),
            }),
        }
    }

    /// The state of Redis that the cores of this process share.
    pub fn shared(&self) -> &Arc<SharedRedis> {
        &self.core.shared
    }

    pub fn hasher(&self) -> KeyHasher {
        self.core.shared.hasher.clone()
    }

    /// Decides all charges whose servers answer: all of them, or none.
    ///
    /// `remembered`: whether the client is known, if no server answers that. `has_room`: whether a charge surely has room, as far
    /// as this process knows.
    pub async fn decide(
        &self,
        batch: &Batch<'_>,
        remembered: bool,
        has_room: impl Fn(&Charge<'_>) -> bool,
    ) -> RedisDecision {
        let is_one_slot = self.core.is_one_slot(batch);
        let is_simple = is_one_slot && !batch.charges.iter().any(Charge::is_slot);
        // A client that hangs up must leave neither a slot, nor half of a decision, nor a lease behind.
        if is_simple && !self.core.shared.leases.would_ask(batch) {
            return self.core.decide(batch, remembered, &RoomyPlaces::new()).await;
        }
        let roomy = if is_one_slot { RoomyPlaces::new() } else { batch.charges.iter().map(has_room).collect() };
        Box::pin(decided::decide(&self.core, batch, remembered, roomy)).await
    }

    /// Looks at the keys, and charges nothing.
    pub async fn look(&self, batch: &Batch<'_>, remembered: bool) -> Vec<Option<Verdict>> {
        self.core.look(batch, remembered).await
    }

    /// Takes back what was charged at these places of the batch, because another store denied the request. A task does
    /// it.
    pub fn give_back(&self, batch: &Batch<'_>, decided: &mut RedisDecision, places: &[usize]) {
        decided::give_back(&self.core, batch, decided, places);
    }

    /// Notes slots that leases have paid for requests, and the number under which each is held.
    pub(in crate::store) fn note_leased_slots(&self, slots: &[(KeyHash, u32)]) {
        let now = Instant::now();
        self.core.note_held_slots(slots, now.checked_sub(LEASE_SPAN).unwrap_or(now));
    }

    /// Settles requests whose slots were taken by this core. Charges that were made only in this process are skipped.
    pub async fn settle(&self, settlements: &[Settlement<'_>]) -> SettleOutcome {
        self.core.settle(settlements).await
    }

    /// Resets keys, and publishes that to every gateway.
    pub async fn reset(&self, keys: &[KeyHash]) -> SettleOutcome {
        self.core.reset(keys).await
    }

    /// Gives back all leases and the part of this process, in a task, because it ends.
    pub fn leave(&self) {
        let core = Arc::clone(&self.core);
        self.core.tasks.spawn(async move {
            core.return_leases().await;
            core.return_part().await;
        });
    }

    /// Tasks that no request waits for.
    pub fn tasks(&self) -> &TaskTracker {
        &self.core.tasks
    }
}

impl RedisStore {
    /// Appends an entry and trims the stream to `max` entries. Fails with the error text of the server.
    pub async fn append(
        &self,
        key: &str,
        max: u64,
        fields: &[(&'static str, String)],
    ) -> Result<(), (Failure, String)> {
        let mut append = redis::cmd("XADD");
        append.arg(key).arg("MAXLEN").arg(max).arg("*");
        for (name, value) in fields {
            append.arg(*name).arg(value);
        }
        let links = &self.core.links;
        match links.command(links.slot(key.as_bytes()), &append).await {
            Ok(Value::ServerError(error)) => {
                let words = format!("{} {}", error.code(), error.details().unwrap_or_default());
                match error.code() {
                    // The server takes no entries now, but will later.
                    "LOADING" | "READONLY" | "OOM" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "MOVED" | "ASK"
                    | "BUSY" | "MISCONF" | "NOREPLICAS" => Err((Failure::Open, words)),
                    "NOPERM" => Err((Failure::Refused, format!("{words}: allow the user `+xadd` on this key"))),
                    _ => Err((Failure::Refused, words)),
                }
            }
            Ok(_) => Ok(()),
            Err(failure) => Err((failure, String::new())),
        }
    }
}

impl RedisStore {
    /// Whether nobody else has claimed `what`, which this process then holds for that time; `None`: Redis does not say.
    pub async fn claim(&self, what: &str, held: Duration) -> Option<bool> {
        let key = format!("{}:told:{what}", self.core.shared.settings.key_prefix);
        let millis = u64::try_from(held.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut claim = redis::cmd("SET");
        claim.arg(&key).arg(1).arg("NX").arg("PX").arg(millis);
        let links = &self.core.links;
        match links.command(links.slot(key.as_bytes()), &claim).await {
            Ok(Value::Okay) => Some(true),
            Ok(Value::Nil) => Some(false),
            Ok(_) | Err(_) => None,
        }
    }
}

// What one core needs to call Redis.

/// What one core needs to call Redis.
#[derive(Debug)]
pub(in crate::store::redis) struct RedisCore {
    pub(in crate::store::redis) shared: Arc<SharedRedis>,
    pub(in crate::store::redis) links: Links,
    pub(in crate::store::redis) in_flight: InFlightSlots,
    pub(in crate::store::redis) bans: BanQueue,
    pub(in crate::store::redis) unsent: UnsentSettlements,
    /// Tasks that no request waits for.
    pub(in crate::store::redis) tasks: TaskTracker,
}
