//! What Redis has denied until a moment is denied here until then, without asking, and never longer.

use std::hash::BuildHasher;
use std::hash::RandomState;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::clock::Timestamp;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Verdict;
use crate::decision::batch::Force;
use crate::decision::batch::Items;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::limit::Standing;

/// Keys that Redis has said no to, and until when. Shared by all cores of a process; bounded.
///
/// An answer is believed without asking again for [`BELIEVED`] at most, so that clocks that run differently never part
/// by more than a trifle, and only for [`BELIEVED_UNHEARD`] while resets are not heard of. While Redis is away there is
/// nobody to ask: what was denied stays denied to its end.
#[derive(Debug)]
pub struct DeniedUntil {
    /// Which set a key is in is drawn anew in each process.
    places: RandomState,
    sets: Box<[Mutex<Vec<Entry>>]>,
    /// How many resets were heard of.
    epoch: AtomicU64,
    /// Entries of an earlier generation are forgotten.
    generation: AtomicU64,
    listens: AtomicBool,
}

/// A key that is denied: how long, and where it stands with each rate, as far as that is still known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Denial {
    pub retry_after: Duration,
    /// `None`: this rate has more room by now than when Redis last said.
    pub standings: SmallVec<[Option<Standing>; 4]>,
}

/// The known denials of a batch, in its order.
pub type Denials = SmallVec<[Option<Denial>; 4]>;

#[derive(Debug)]
struct Entry {
    key: KeyHash,
    generation: u64,
    /// What was denied is a request under this rule; under another one it may pass.
    rule: Rule,
    /// With these values; another one may be there already.
    items: Items,
    standings: Box<[Standing]>,
    /// When Redis said so, or before.
    said: Timestamp,
    until: Timestamp,
}

impl DeniedUntil {
    /// Remembers about `most` keys.
    pub fn new(most: usize) -> Self {
        let sets = (most / SET).max(1);
        Self {
            places: RandomState::new(),
            sets: (0..sets).map(|_| Mutex::new(Vec::new())).collect(),
            epoch: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            listens: AtomicBool::new(false),
        }
    }

    /// What is known to be denied, where Redis would deny the batch and charge nothing for it.
    pub fn answer(&self, batch: &Batch<'_>, now: Timestamp) -> Option<Denials> {
        // A denied attempt is charged.
        if batch.charges.iter().any(Charge::is_attempt) {
            return None;
        }
        let believed = if self.listens.load(Ordering::Acquire) { BELIEVED } else { BELIEVED_UNHEARD };
        // A client that is known by now must not be refused by what holds for others.
        let holds = |charge: &Charge<'_>| batch.known.is_empty() || !charge.unless_known;
        let find = |charge: &Charge<'_>| if holds(charge) { self.find(charge, now, Some(believed)) } else { None };
        let denials: Denials = batch.charges.iter().map(find).collect();
        let is_settled = |charge: &Charge<'_>| {
            let mut together = batch.charges.iter().zip(&denials).filter(|(other, _)| charge.passes_with(other));
            together.any(|(_, denial)| denial.is_some())
        };
        batch.charges.iter().all(is_settled).then_some(denials)
    }

    /// What Redis has denied for longer than until now, whether or not it would be asked again if it answered.
    pub fn known(&self, charge: &Charge<'_>, now: Timestamp) -> Option<Denial> {
        self.find(charge, now, None)
    }

    /// Which resets were heard of so far: asked for before Redis is asked, given back with its answer.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Notes what Redis answered to a batch that was sent at `sent`, or later. What was answered before a reset that
    /// was heard of since `epoch` is not believed, nor a refusal while slots of this key are reserved in this process,
    /// which may come back at any time. What was charged to a key ends what was known of it before.
    pub fn note(
        &self,
        batch: &Batch<'_>,
        verdicts: &[Option<Verdict>],
        sent: Timestamp,
        epoch: u64,
        is_reserved: impl Fn(KeyHash) -> bool,
    ) {
        for (charge, verdict) in batch.charges.iter().zip(verdicts) {
            if let Some(verdict) = verdict
                && is_remembered(charge)
                && !verdict.is_exempt
            {
                if !(charge.waits_for_outcome() && is_reserved(charge.key)) {
                    self.note_one(charge, verdict, sent, epoch);
                } else if verdict.charged.is_some() {
                    self.drop_entry(charge.key);
                }
            }
        }
    }

    fn note_one(&self, charge: &Charge<'_>, verdict: &Verdict, sent: Timestamp, epoch: u64) {
        let denied = verdict.retry_after.or_else(|| used_up(charge.rule, &verdict.standings));
        let generation = self.generation.load(Ordering::Acquire);
        let mut entries = self.set(charge.key).lock();
        // Looked at under the lock: whoever forgets this key now waits for it, and whoever did before has counted.
        if self.epoch() != epoch {
            return;
        }
        let found = entries.iter().position(|entry| entry.key == charge.key);
        let Some(span) = denied.filter(|span| !span.is_zero()) else {
            if let Some(place) = found {
                entries.swap_remove(place);
            }
            return;
        };
        let entry = Entry {
            key: charge.key,
            generation,
            rule: charge.rule.clone(),
            items: charge.items.clone(),
            standings: verdict.standings.as_slice().into(),
            said: sent,
            until: sent + span,
        };
        match found {
            Some(place) => entries[place] = entry,
            None if entries.len() < SET => entries.push(entry),
            None => {
                // The one that ends first, or did: whoever it denied is asked about again.
                let ends = |place: &usize| entries[*place].ends(generation);
                let place = (0..entries.len()).min_by_key(ends).expect("it is full");
                entries[place] = entry;
            }
        }
    }

    /// A key was reset.
    pub fn reset(&self, key: KeyHash) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.drop_entry(key);
    }

    fn drop_entry(&self, key: KeyHash) {
        self.set(key).lock().retain(|entry| entry.key != key);
    }

    /// Every reset from now on is heard of. Earlier ones may have been missed.
    pub fn subscribed(&self) {
        self.server_emptied();
        self.listens.store(true, Ordering::Release);
    }

    /// Nothing that Redis said so far is believed any more: some server may have lost what it held.
    pub fn server_emptied(&self) {
        // In this order: what is noted under the new generation was asked for in the new epoch.
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Resets are not heard of any more.
    pub fn unsubscribed(&self) {
        self.listens.store(false, Ordering::Release);
    }

    fn find(&self, charge: &Charge<'_>, now: Timestamp, believed: Option<Duration>) -> Option<Denial> {
        if !is_remembered(charge) {
            return None;
        }
        let set = self.set(charge.key).lock();
        let entry = set.iter().find(|entry| entry.key == charge.key)?;
        let is_current = entry.generation == self.generation.load(Ordering::Acquire);
        let age = now.since(entry.said);
        let is_fresh = believed.is_none_or(|believed| age < believed);
        if !is_current || !is_fresh || entry.until <= now || !entry.is_about(charge) {
            return None;
        }
        let aged = |standing: &Standing| {
            let reset = standing.reset.checked_sub(age).filter(|reset| !reset.is_zero() || standing.reset.is_zero());
            reset.map(|reset| Standing { reset, ..*standing })
        };
        let standings: SmallVec<[Option<Standing>; 4]> = entry.standings.iter().map(aged).collect();
        // What is taken back is told of where a request that cost as much had no room: while nothing has any, that is
        // so whatever it cost.
        let is_shut = standings.iter().flatten().any(|standing| standing.remaining == 0);
        if believed.is_some() && charge.waits_for_outcome() && !is_shut {
            return None;
        }
        Some(Denial { retry_after: entry.until.since(now), standings })
    }

    fn set(&self, key: KeyHash) -> &Mutex<Vec<Entry>> {
        let sets = self.sets.len() as u64;
        let place = (u128::from(self.places.hash_one(key)) * u128::from(sets)) >> 64;
        &self.sets[usize::try_from(place).expect("below the number of sets")]
    }
}

impl Entry {
    fn is_about(&self, charge: &Charge<'_>) -> bool {
        self.rule == *charge.rule && self.items == charge.items
    }

    /// What orders entries by how soon nothing is lost with them.
    fn ends(&self, generation: u64) -> Timestamp {
        if self.generation == generation { self.until } else { Timestamp::EPOCH }
    }
}

/// Whether a refusal lasts until the time it names, or until it is told that there is room again: slots in flight come
/// back at any time, and attempts put it off. What only delays refuses nothing. Of several different values some may
/// have room before all have, and nobody is told.
fn is_remembered(charge: &Charge<'_>) -> bool {
    let is_one = !matches!(charge.rule, Rule::Distinct(_)) || charge.items.len() == 1;
    !charge.is_attempt() && !charge.is_slot() && charge.force != Force::Delay && is_one
}

/// How long the request that used up a budget has shut the door for all others.
///
/// Where one costs more than a unit, the reset of a rate says nothing about when that many have room.
fn used_up(rule: &Rule, standings: &[Standing]) -> Option<Duration> {
    let Rule::Rates { cost, .. } = rule else { return None };
    let spent = standings.iter().filter(|standing| cost.get() == 1 && standing.remaining == 0);
    spent.map(|standing| standing.reset).max()
}

/// How long an answer is believed without asking again. The worst clocks part by milliseconds in that time.
const BELIEVED: Duration = Duration::from_secs(60);

/// How long an answer is believed while a reset would not be heard of.
const BELIEVED_UNHEARD: Duration = Duration::from_millis(500);

/// How many keys share a lock, and compete for room.
const SET: usize = 8;

#[cfg(test)]
mod tests;
