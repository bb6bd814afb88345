//! The language of stores: what is asked of them, and what they answer. Stores know no requests.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use smallvec::SmallVec;

use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::limit::Count;
use crate::limit::OnFailure;
use crate::limit::Rule;
use crate::limit::Standings;
use crate::pending_reservations::ReservationGuard;

/// All charges of one request. A store decides them in one step.
///
/// The binding charges pass together or not at all: when every one of them has room, all are charged; when one has
/// none, only those that count attempts are. Charges of a shadow limit are decided as if that limit stood alone:
/// charged when all charges of the same `limit` number have room, whatever the others say. Charges that only delay are
/// charged when the binding ones pass, see [`Force::Delay`].
///
/// A charge that does not hold for known clients is exempt when the client is one.
#[derive(Clone, Debug, Default)]
pub struct Batch<'p> {
    pub charges: SmallVec<[Charge<'p>; 4]>,
    /// The client is known when it is so for each of these; without any it is not. Empty where no charge asks.
    pub known: SmallVec<[KnownClientKey; 1]>,
}

/// One key under one limit. No two charges of a batch have the same key hash.
#[derive(Clone, Debug)]
pub struct Charge<'p> {
    /// Which limit of the plan this is for. A limit has several charges, one after the other, when a field of its
    /// key was sent several times.
    pub limit: u16,
    pub key: KeyHash,
    pub rule: &'p Rule,
    pub count: Count,
    pub force: Force,
    pub on_failure: OnFailure,
    /// The values that are counted; empty unless the rule is [`Rule::Distinct`].
    pub items: Items,
    /// It does not hold for known clients.
    pub unless_known: bool,
}

/// Different values, hashed with the key of the store.
pub type Items = SmallVec<[u64; 1]>;

/// A client and what it may be known for, both hashed with the key of the store.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct KnownClientKey {
    /// Under which key the known clients of this subject are remembered.
    pub subject: KeyHash,
    pub client: u64,
}

/// What a charge has to say about the others of its batch.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Force {
    Binding,
    /// Decided and charged as if its limit stood alone.
    Shadow,
    /// Denies nothing: without room its request is slower. Charged when the binding charges pass, with room or without;
    /// but what counts by outcome is not charged without room, because nothing could be given back: it is charged when
    /// the outcome is known.
    Delay,
}

/// A store's answer to one charge, in the order of the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Why not: how long until this key has room. `None`: it has.
    pub retry_after: Option<Duration>,
    /// Where the key stands after the decision, one for each rate; empty for `concurrent`.
    pub standings: Standings,
    /// What was charged, so that it can be taken back.
    pub charged: Option<Charged>,
    /// The client is known, and this does not hold for it: nothing was asked, and nothing charged.
    pub is_exempt: bool,
}

/// What a store charged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Charged {
    /// When, by the clock of the store that did.
    pub moment: Timestamp,
    pub ledger: Ledger,
    /// Those of the items that were not in the window before.
    pub fresh: Items,
    /// Held until the outcome is known; `None` where none is waited for.
    pub reservation: Option<ReservationGuard>,
}

/// Where a charge stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ledger {
    /// In the store that all gateways share, and a copy of it in this process.
    Shared,
    /// In this process alone.
    Local,
}

/// What is told to a store about requests it has let pass.
#[derive(Clone, Debug)]
pub enum Settlement<'p> {
    /// A slot in flight comes back.
    Release(KeyHash),
    /// What was charged counts no more: the answer was another.
    TakeBack { key: KeyHash, rule: &'p Rule, charged: &'p Charged },
    /// What was charged stays: the answer was the one that counts. Charged anew where the key was reset meanwhile, so
    /// that a success forgets no guess that was under way; otherwise there is nothing to do.
    Keep { key: KeyHash, rule: &'p Rule, items: &'p Items, charged: &'p Charged },
    /// Counted now, whether or not there is room.
    Charge { key: KeyHash, rule: &'p Rule, items: &'p Items },
    /// What was counted is forgotten. `charged` is what was charged for the request that says so, where it was.
    Reset { key: KeyHash, charged: Option<&'p Charged> },
    /// The client is known from now on, for as long as `keep`, unless `most` others come to be known after it.
    Remember { of: KnownClientKey, most: NonZeroU32, keep: Duration },
}

impl Charge<'_> {
    /// Whether this and the other are charged together or not at all, attempts aside.
    pub fn passes_with(&self, other: &Charge<'_>) -> bool {
        match (self.force, other.force) {
            (Force::Binding | Force::Delay, Force::Binding) => true,
            (Force::Shadow, Force::Shadow) => self.limit == other.limit,
            _ => false,
        }
    }

    /// Whether it is charged though the request is denied. What was denied is never in flight.
    pub fn is_attempt(&self) -> bool {
        self.count == Count::Attempts && !self.is_slot()
    }

    /// Whether it is reserved until the outcome is known.
    pub fn waits_for_outcome(&self) -> bool {
        self.count.outcome().is_some() && !self.is_slot()
    }

    /// Whether it is charged when the request passes. What delays may have no room then: a slot in flight is not taken
    /// beyond the bound, and what counts by outcome is charged when that is known.
    pub fn is_charged_with(&self, has_room: bool) -> bool {
        has_room || self.force != Force::Delay || !(self.is_slot() || self.waits_for_outcome())
    }

    /// Whether what is charged is a slot in flight.
    pub fn is_slot(&self) -> bool {
        matches!(self.rule, Rule::Concurrent(_))
    }
}

impl Verdict {
    /// That of a charge which does not hold for a known client.
    pub fn exempt() -> Self {
        Self { retry_after: None, standings: Standings::new(), charged: None, is_exempt: true }
    }

    pub fn passes(&self) -> bool {
        self.retry_after.is_none()
    }
}
