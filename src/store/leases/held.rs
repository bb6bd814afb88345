//! The leases of this process, by key.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::rules::decision::{Batch, Charge};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Rule, Standings};
use crate::store::leases::{EndedLease, Lease, LeaseRequest, LeasedKey, SpentUnits};
use crate::words::clock::{Clock, Timestamp};

/// The leases of this process, shared by its cores; bounded.
#[derive(Debug)]
pub struct HeldLeases {
    clock: Clock,
    /// Keys of this store may be leased.
    is_on: bool,
    /// How many gateways share the store at least.
    nodes: AtomicU32,
    /// Chooses the set of a key, differently in each process.
    places: RandomState,
    sets: Box<[Mutex<Vec<LeasedKey>>]>,
    /// How many leases there are, and slots to give back.
    count: AtomicUsize,
    /// Slots that were spent of a lease that has ended before they were given back.
    late_slots: Mutex<Vec<ReturnedLease>>,
    begun: Notify,
}

/// A lease that is given back.
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnedLease {
    pub key: KeyHash,
    pub rule: Rule,
    pub ended: EndedLease,
    /// The number under which slots in flight are held.
    pub holder: u32,
}

impl HeldLeases {
    pub fn new(clock: Clock, is_on: bool) -> Self {
        Self {
            clock,
            is_on,
            nodes: AtomicU32::new(1),
            places: RandomState::new(),
            sets: (0..MOST_KEYS / SET).map(|_| Mutex::new(Vec::new())).collect(),
            count: AtomicUsize::new(0),
            late_slots: Mutex::default(),
            begun: Notify::new(),
        }
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// How many gateways share the store, as far as is known. It bounds what a lease may take, not what is exact.
    pub fn nodes(&self) -> NonZeroU32 {
        NonZeroU32::new(self.nodes.load(Ordering::Relaxed)).unwrap_or(NonZeroU32::MIN)
    }

    pub fn set_nodes(&self, nodes: NonZeroU32) {
        self.nodes.store(nodes.get(), Ordering::Relaxed);
    }

    /// The clock of all leases: only spans of it are used.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Pays a charge from the lease of its key, if there is enough of it.
    pub(super) fn spend(&self, charge: &Charge<'_>) -> Option<SpentUnits> {
        if !(self.is_on && charge.may_be_leased()) {
            return None;
        }
        let now = self.now();
        let mut set = self.set(charge.key);
        if let Some(known) = find(&mut set, charge.key) {
            return known.spend(charge.rule, now);
        }
        let mut new = LeasedKey::new(charge.key, charge.rule, now);
        let spent = new.spend(charge.rule, now);
        if set.len() < SET {
            set.push(new);
        } else if let Some(idle) = set.iter_mut().filter(|other| other.is_idle()).min_by_key(|other| other.used) {
            *idle = new;
        }
        spent
    }

    /// Whether a call about this batch would ask for a lease.
    pub fn would_ask(&self, batch: &Batch<'_>) -> bool {
        let would_ask = |charge: &Charge<'_>| {
            let mut set = self.set(charge.key);
            find(&mut set, charge.key).is_some_and(|key| key.next_request(charge.rule, self.now()).is_some())
        };
        batch.charges.iter().filter(|charge| charge.may_be_leased()).any(would_ask)
    }

    /// What a call about this charge asks that is sent at `now` or later.
    pub(super) fn ask(&self, charge: &Charge<'_>, holder: u32, now: Timestamp) -> Option<LeaseRequest> {
        if !charge.may_be_leased() {
            return None;
        }
        let request = find(&mut self.set(charge.key), charge.key)?.ask(charge.rule, holder, now)?;
        if request.ended.is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        Some(request)
    }

    pub(super) fn grant(&self, key: KeyHash, granted: (u64, u32), asked: Timestamp, holder: u32, standings: Standings) {
        if let Some(known) = find(&mut self.set(key), key) {
            known.grant(granted, asked, holder, standings);
            self.count.fetch_add(1, Ordering::Relaxed);
            self.begun.notify_one();
        }
    }

    pub(super) fn asked(&self, key: KeyHash) {
        if let Some(known) = find(&mut self.set(key), key) {
            known.asked();
        }
    }

    pub(super) fn give_back(&self, charge: &Charge<'_>, spent: &SpentUnits) {
        let is_there = find(&mut self.set(charge.key), charge.key).is_some_and(|known| known.give_back(spent));
        if !is_there && charge.is_slot() {
            let (key, rule, holder) = (charge.key, charge.rule.clone(), spent.holder);
            let ended = EndedLease { id: spent.lease, spent: 0, unspent: spent.units };
            self.late_slots.lock().push(ReturnedLease { key, rule, ended, holder });
            self.count.fetch_add(1, Ordering::Relaxed);
            self.begun.notify_one();
        }
    }

    /// Takes back a slot whose request has ended, if a lease of the key lasts and holds slots under this number. Else it is to be
    /// given back to Redis.
    pub fn take_back_slot(&self, key: KeyHash, holder: u32) -> bool {
        // Most slots are of keys without leases.
        self.count.load(Ordering::Relaxed) > 0
            && find(&mut self.set(key), key).is_some_and(|known| known.take_back_slot(holder, self.now()))
    }

    /// Waits until there is a lease.
    pub async fn begun(&self) {
        while self.count.load(Ordering::Relaxed) == 0 {
            self.begun.notified().await;
        }
    }

    /// The leases that have ended a while ago without a call that gave them back, if something of them was not spent.
    pub fn take_ended(&self) -> Vec<ReturnedLease> {
        let now = self.clock.now();
        self.take(|lease| now >= lease.ends + UNUSED)
    }

    /// All leases of which something was not spent: this process ends.
    pub fn take_all(&self) -> Vec<ReturnedLease> {
        self.take(|_| true)
    }

    fn take(&self, which: impl Fn(&Lease) -> bool) -> Vec<ReturnedLease> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let mut taken = std::mem::take(&mut *self.late_slots.lock());
        self.count.fetch_sub(taken.len(), Ordering::Relaxed);
        for set in &self.sets {
            for known in set.lock().iter_mut() {
                if let Some(lease) = known.lease.take_if(|lease| which(lease)) {
                    self.count.fetch_sub(1, Ordering::Relaxed);
                    if lease.unspent() > 0 {
                        let (key, rule, holder) = (known.key, known.rule.clone(), lease.holder);
                        taken.push(ReturnedLease { key, rule, ended: lease.ended(), holder });
                    }
                }
            }
        }
        taken
    }

    fn set(&self, key: KeyHash) -> MutexGuard<'_, Vec<LeasedKey>> {
        let sets = self.sets.len() as u64;
        let place = (u128::from(self.places.hash_one(key)) * u128::from(sets)) >> 64;
        self.sets[usize::try_from(place).expect("below the number of sets")].lock()
    }
}

fn find(set: &mut [LeasedKey], key: KeyHash) -> Option<&mut LeasedKey> {
    set.iter_mut().find(|known| known.key == key)
}

/// How many keys that may be leased are watched. Others are decided by a call for each request.
const MOST_KEYS: usize = 4096;

/// How many keys share a lock and compete for room.
const SET: usize = 8;

/// How long after its end a lease waits for a call that gives it back on its way.
const UNUSED: Duration = Duration::from_millis(250);
