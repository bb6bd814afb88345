//! Questions of the decision to a store, and the answers. Stores know no requests.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::rules::key::KeyHash;
use crate::rules::limit::{Count, OnFailure, Rule, Standings};
use crate::words::clock::Timestamp;
use crate::words::pending_reservations::{ReservationGuard, ToldLater};

/// All charges of one request. A store decides them in one step.
///
/// The binding charges pass together or not at all. When every one of them has room, all are charged. When one has no
/// room, only those that count attempts are charged. Charges of a shadow limit are decided as if that limit stood
/// alone: they are charged when all charges of the same `limit` number have room, whatever the others say. Charges that
/// only delay are charged when the binding ones pass, see [`Force::Delay`].
///
/// A charge with `unless_known` is exempt when the client is a known one.
///
/// `R` is the rule of each charge: borrowed in a [`Batch`], owned in an [`OwnedBatch`]. Both processes of a takeover read the
/// fields in this order.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BatchOf<R> {
    pub charges: SmallVec<[ChargeOf<R>; 4]>,
    /// The client is a known one when a store knows it under each of these keys. Empty: it is not, or no charge asks.
    pub known: SmallVec<[KnownClientKey; 1]>,
}

/// A batch that borrows its rules from the policy.
pub type Batch<'p> = BatchOf<&'p Rule>;

/// A batch that borrows nothing, for a task of its own or another process.
pub type OwnedBatch = BatchOf<Rule>;

/// One key under one limit. No two charges of a batch have the same key hash.
#[derive(Debug, Deserialize, Serialize)]
pub struct ChargeOf<R> {
    /// The number of the limit in the plan. A limit has several charges in a row when the client sent a field of its
    /// key several times.
    pub limit: u16,
    pub key: KeyHash,
    pub rule: R,
    pub count: Count,
    pub force: Force,
    pub on_failure: OnFailure,
    /// The values that are counted; empty unless the rule is [`Rule::Distinct`].
    pub items: Items,
    /// The limit does not hold for known clients.
    pub unless_known: bool,
    /// It is decided like any other and never charged: the call costs nothing.
    pub is_free: bool,
    /// The gateway may lease units of it from a store that it shares. Not sent: another process leases nothing.
    #[serde(skip)]
    pub leases: bool,
}

/// A charge that borrows its rule from the policy.
pub type Charge<'p> = ChargeOf<&'p Rule>;

/// Different values, hashed with the secret of the store.
pub type Items = SmallVec<[u64; 1]>;

/// A client, and the user name that it may be known for. Both are hashed with the secret of the store.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct KnownClientKey {
    /// The key under which a store remembers the known clients of this user name.
    pub subject: KeyHash,
    pub client: u64,
}

/// How a charge affects the other charges of its batch.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Force {
    Binding,
    /// Decided and charged as if its limit stood alone.
    Shadow,
    /// Denies nothing: without room it delays the request. It is charged when the binding charges pass, with room or
    /// without. A limit that counts by outcome is an exception: without room it is charged only when the outcome is
    /// known, because there would be nothing to give back.
    Delay,
}

/// A store's answer to one charge, in the order of the batch.
///
/// `G` is the reservation of its charge: a guard in a [`Verdict`], a number in an [`OwnedVerdict`]. Both processes of a takeover
/// read the fields in this order.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct VerdictOf<G> {
    /// How long until this key has room. `None`: it has room now.
    pub retry_after: Option<Duration>,
    /// Where the key stands after the decision, one standing for each rate. Empty for `concurrent`.
    pub standings: Standings,
    /// The charge by the store, so that it can be taken back.
    pub charged: Option<ChargedOf<G>>,
    /// The limit does not hold for this known client: the store has charged nothing.
    pub is_exempt: bool,
    /// Not sent: another process tells no story of it.
    #[serde(skip)]
    pub grounds: Grounds,
}

/// What a verdict follows from.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Grounds {
    /// What was counted under the key.
    #[default]
    Count,
    /// The store has no room to remember the key.
    StoreFull,
    /// The part of the limit that this gateway grants while the shared store is away.
    Part,
}

/// A verdict of this process.
pub type Verdict = VerdictOf<ReservationGuard>;

/// A verdict for another process. In place of the reservation it has how often the key had been reset when it was written.
pub type OwnedVerdict = VerdictOf<u32>;

/// The answers to all charges of a batch, in its order. Few requests have more than four.
pub type Verdicts = SmallVec<[Verdict; 4]>;

/// A charge by a store. For `G` see [`VerdictOf`].
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ChargedOf<G> {
    /// When, by the clock of the store.
    pub moment: Timestamp,
    /// Not sent: the counts of a process are not shared.
    #[serde(skip)]
    pub ledger: Ledger,
    /// The items that were not in the window before.
    pub fresh: Items,
    /// The store's reservation, until the outcome is known; `None`: the charge counts with any outcome.
    pub reservation: Option<G>,
}

/// A charge by a store of this process.
pub type Charged = ChargedOf<ReservationGuard>;

/// A charge for another process, see [`OwnedVerdict`].
pub type OwnedCharged = ChargedOf<u32>;

/// Where a charge is counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ledger {
    /// In the store that all gateways share, and a copy of it in this process.
    Shared,
    /// In this process alone.
    #[default]
    Local,
    /// In a lease of this gateway: it stays spent.
    Leased,
}

/// A task for the store when the outcome of a request is known.
///
/// `R`, `I` and `C` are the rule, the items and the charge: borrowed in a [`Settlement`], owned in an [`OwnedSettlement`]. Both
/// processes of a takeover read the variants and their fields in this order.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum SettlementOf<R, I, C, K> {
    /// Gives a concurrency slot back.
    Release(KeyHash),
    /// Takes a charge back: the limit does not count this outcome.
    TakeBack { key: KeyHash, rule: R, charged: C },
    /// Keeps a charge: the limit counts this outcome. Where the key was reset meanwhile the store charges it again, so
    /// that a success does not reset a failure that was on its way. Otherwise there is nothing to do.
    Keep { key: KeyHash, rule: R, items: I, charged: C },
    /// Charges now, whether or not there is room.
    Charge { key: KeyHash, rule: R, items: I },
    /// Resets a key.
    Reset(K),
    /// Remembers a known client for `keep`, and only the latest `most` clients of its user name. The store tells whether it was
    /// a known one before.
    Remember {
        of: KnownClientKey,
        most: NonZeroU32,
        keep: Duration,
        /// Not sent: nobody asks in another process.
        #[serde(skip)]
        was_known: ToldLater,
    },
}

/// A settlement that borrows from the policy and from its request.
pub type Settlement<'p> = SettlementOf<&'p Rule, &'p Items, &'p Charged, KeyHash>;

/// A settlement for another process.
pub type OwnedSettlement = SettlementOf<Rule, Items, OwnedCharged, OwnedReset>;

/// A key that is reset, as processes tell each other.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OwnedReset {
    pub key: KeyHash,
    /// What the same request was charged, as processes before version 4 say it. Later ones take it back before.
    pub charged: Option<OwnedCharged>,
}

impl BatchOf<Rule> {
    pub fn of(batch: &Batch<'_>) -> Self {
        let owned = |charge: &Charge<'_>| charge.with_rule(charge.rule.clone());
        Self { charges: batch.charges.iter().map(owned).collect(), known: batch.known.clone() }
    }

    pub fn batch(&self) -> Batch<'_> {
        let borrowed = self.charges.iter().map(|charge| charge.with_rule(&charge.rule));
        Batch { charges: borrowed.collect(), known: self.known.clone() }
    }
}

impl<R> Default for BatchOf<R> {
    fn default() -> Self {
        Self { charges: SmallVec::new(), known: SmallVec::new() }
    }
}

impl<R> ChargeOf<R> {
    /// A charge for every request, which denies it without room, and is counted in this process while the shared store is away.
    pub fn new(limit: u16, key: KeyHash, rule: R) -> Self {
        Self {
            limit,
            key,
            rule,
            count: Count::Requests,
            force: Force::Binding,
            on_failure: OnFailure::Local,
            items: Items::new(),
            unless_known: false,
            is_free: false,
            leases: false,
        }
    }

    /// The same charge with the same rule, owned or borrowed.
    fn with_rule<S>(&self, rule: S) -> ChargeOf<S> {
        let Self { limit, key, count, force, on_failure, ref items, unless_known, is_free, leases, .. } = *self;
        // Most have none, which takes no copy.
        let items = if items.is_empty() { Items::new() } else { items.clone() };
        ChargeOf { limit, key, rule, count, force, on_failure, items, unless_known, is_free, leases }
    }
}

impl<R: Clone> Clone for ChargeOf<R> {
    fn clone(&self) -> Self {
        self.with_rule(self.rule.clone())
    }
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

    /// Whether it is charged when the request is denied. A denied request takes no concurrency slot.
    pub fn is_attempt(&self) -> bool {
        self.count == Count::Attempts && !self.is_slot() && !self.is_free
    }

    /// Whether it is a reservation until the outcome is known.
    pub fn waits_for_outcome(&self) -> bool {
        self.count.outcome().is_some() && !self.is_slot()
    }

    /// Whether it is charged when the request passes. A limit that delays may have no room then: no concurrency slot is
    /// taken beyond the bound, and a limit that counts by outcome is charged when the outcome is known.
    pub fn is_charged_with(&self, has_room: bool) -> bool {
        let needs_room = self.force == Force::Delay && (self.is_slot() || self.waits_for_outcome());
        !self.is_free && (has_room || !needs_room)
    }

    /// Whether a leased unit may be spent on it: only what its key says matters then, and nothing is given back later.
    pub fn may_be_leased(&self) -> bool {
        let is_plain = self.force == Force::Binding && self.count == Count::Requests;
        self.leases && is_plain && !self.unless_known && !self.is_free && self.rule.may_be_leased()
    }

    /// Whether it is charged with a concurrency slot.
    pub fn is_slot(&self) -> bool {
        self.rule.is_slots()
    }
}

impl<G> VerdictOf<G> {
    /// The same with a reservation that is made of this one.
    pub fn with_reservation<H>(&self, make: impl FnOnce(&G) -> H) -> VerdictOf<H> {
        let Self { retry_after, ref standings, ref charged, is_exempt, grounds } = *self;
        let charged = charged.as_ref().map(|charged| charged.with_reservation(make));
        VerdictOf { retry_after, standings: standings.clone(), charged, is_exempt, grounds }
    }
}

impl<G> ChargedOf<G> {
    /// The same with a reservation that is made of this one.
    pub fn with_reservation<H>(&self, make: impl FnOnce(&G) -> H) -> ChargedOf<H> {
        let Self { moment, ledger, ref fresh, ref reservation } = *self;
        ChargedOf { moment, ledger, fresh: fresh.clone(), reservation: reservation.as_ref().map(make) }
    }
}

impl OwnedVerdict {
    pub fn of(verdict: &Verdict) -> Self {
        verdict.with_reservation(ReservationGuard::resets)
    }
}

impl OwnedSettlement {
    pub fn of(settlement: &Settlement<'_>) -> Self {
        let owned = |charged: &Charged| charged.with_reservation(ReservationGuard::resets);
        match *settlement {
            Settlement::Release(key) => Self::Release(key),
            Settlement::TakeBack { key, rule, charged } => {
                Self::TakeBack { key, rule: rule.clone(), charged: owned(charged) }
            }
            Settlement::Keep { key, rule, items, charged } => {
                Self::Keep { key, rule: rule.clone(), items: items.clone(), charged: owned(charged) }
            }
            Settlement::Charge { key, rule, items } => Self::Charge { key, rule: rule.clone(), items: items.clone() },
            Settlement::Reset(key) => Self::Reset(OwnedReset { key, charged: None }),
            Settlement::Remember { of, most, keep, .. } => {
                Self::Remember { of, most, keep, was_known: ToldLater::default() }
            }
        }
    }

    /// The key whose count it changes.
    pub fn key(&self) -> Option<KeyHash> {
        match self {
            Self::Release(key)
            | Self::TakeBack { key, .. }
            | Self::Keep { key, .. }
            | Self::Charge { key, .. }
            | Self::Reset(OwnedReset { key, .. }) => Some(*key),
            Self::Remember { .. } => None,
        }
    }
}

impl Verdict {
    /// The verdict on a charge that does not hold for a known client.
    pub fn exempt() -> Self {
        Self { retry_after: None, standings: Standings::new(), charged: None, is_exempt: true, grounds: Grounds::Count }
    }

    pub fn passes(&self) -> bool {
        self.retry_after.is_none()
    }
}

// Facts about sessions in requests and answers, for the store.

/// Sessions of one request or answer, as hashes.
pub type SessionHashes = SmallVec<[KeyHash; 2]>;

/// An answer that looks like a success of this account. It is the account's own unless the request carried a session of
/// another account.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SignIn {
    pub account: KeyHash,
    /// How long each session is remembered after its last use.
    pub keep: Duration,
    /// The sessions of the account from now on, if the success is its own.
    pub learned: SessionHashes,
    /// The sessions that the request carried.
    pub carried: SessionHashes,
}

/// The change that an answer makes to the session of its request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum SessionChange {
    /// `new` is a session of the account of `old`, and so is `old` still. Nothing happens if `old` is not known.
    Renew { old: KeyHash, new: KeyHash },
    /// The application has ended the session.
    Forget(KeyHash),
    /// `session` is of this account, unless it is known already, and is remembered for `keep` after its last use.
    Learn { session: KeyHash, account: KeyHash, keep: Duration },
}
