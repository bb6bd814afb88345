//! Repeats denials of Redis without a call: until the moment that Redis named, and never longer.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::rules::decision::batch::{Force, Items};
use crate::rules::decision::{Batch, Charge, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Rule, Standing};
use crate::words::clock::Timestamp;

/// Keys that Redis has denied, and until when. Shared by all cores of a process; bounded.
///
/// A denial is repeated without a call for [`MAX_AGE`] at most, so that differences between clocks stay negligible, and
/// only for [`MAX_AGE_UNSUBSCRIBED`] while this process is not subscribed to resets. During an outage a denial holds to
/// its end.
#[derive(Debug)]
pub struct DeniedUntil {
    /// Chooses the set of a key, differently in each process.
    places: RandomState,
    sets: Box<[Mutex<Vec<DeniedEntry>>]>,
    /// How many resets were received.
    epoch: AtomicU64,
    /// Entries of an earlier generation do not count.
    generation: AtomicU64,
    is_subscribed: AtomicBool,
}

/// A denied key: for how long, and where it stands with each rate, as far as that is still known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Denial {
    pub retry_after: Duration,
    /// `None`: this rate has more room by now than Redis answered.
    pub standings: SmallVec<[Option<Standing>; 4]>,
}

/// The known denials of a batch, in its order.
pub type Denials = SmallVec<[Option<Denial>; 4]>;

#[derive(Debug)]
struct DeniedEntry {
    key: KeyHash,
    generation: u64,
    /// The denial is for this rule. Under another rule the request may pass.
    rule: Rule,
    /// The denial is for these values. Other values may be known to the key.
    items: Items,
    standings: Box<[Standing]>,
    /// Redis answered at this moment or later.
    answered: Timestamp,
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
            is_subscribed: AtomicBool::new(false),
        }
    }

    /// The known denials of a batch, if Redis would deny the batch and charge nothing.
    pub fn answer(&self, batch: &Batch<'_>, now: Timestamp) -> Option<Denials> {
        // A denied attempt is charged.
        if batch.charges.iter().any(Charge::is_attempt) {
            return None;
        }
        let max_age = if self.is_subscribed.load(Ordering::Acquire) { MAX_AGE } else { MAX_AGE_UNSUBSCRIBED };
        // The client may be known by now, and must not be denied by a limit that does not hold for known clients.
        let holds = |charge: &Charge<'_>| batch.known.is_empty() || !charge.unless_known;
        let find = |charge: &Charge<'_>| if holds(charge) { self.find(charge, now, Some(max_age)) } else { None };
        let denials: Denials = batch.charges.iter().map(find).collect();
        let is_denied = |charge: &Charge<'_>| {
            let mut together = batch.charges.iter().zip(&denials).filter(|(other, _)| charge.passes_with(other));
            together.any(|(_, denial)| denial.is_some())
        };
        batch.charges.iter().all(is_denied).then_some(denials)
    }

    /// The denial of a key that has not ended, however old the answer is.
    pub fn known(&self, charge: &Charge<'_>, now: Timestamp) -> Option<Denial> {
        self.find(charge, now, None)
    }

    /// The current epoch: read before a call to Redis, and passed to [`DeniedUntil::note`] with its answer.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Notes the verdicts of Redis for a batch that was sent at `sent` or later. An answer is ignored if a reset was
    /// received since `epoch`. A denial is ignored while this process has reservations of the key, because they may be
    /// given back at any time. A charge ends an earlier denial of its key.
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
                && !verdict.is_exempt
            {
                let is_certain = !(charge.waits_for_outcome() && is_reserved(charge.key));
                if is_remembered(charge) && is_certain {
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
        // Checked under the lock: a reset of this key either has changed the epoch already, or waits for the lock.
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
        let entry = DeniedEntry {
            key: charge.key,
            generation,
            rule: charge.rule.clone(),
            items: charge.items.clone(),
            standings: verdict.standings.as_slice().into(),
            answered: sent,
            until: sent + span,
        };
        match found {
            Some(place) => entries[place] = entry,
            None if entries.len() < SET => entries.push(entry),
            None => {
                // Replaces the denial that ends first, or has ended. For its key Redis is asked again.
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

    /// This process receives every reset from now on. It may have missed earlier ones.
    pub fn subscribed(&self) {
        self.server_emptied();
        self.is_subscribed.store(true, Ordering::Release);
    }

    /// Drops all denials, because a server may have lost its keys.
    pub fn server_emptied(&self) {
        // In this order, so that every entry of the new generation is of a call in the new epoch.
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// This process does not receive resets any more.
    pub fn unsubscribed(&self) {
        self.is_subscribed.store(false, Ordering::Release);
    }

    fn find(&self, charge: &Charge<'_>, now: Timestamp, max_age: Option<Duration>) -> Option<Denial> {
        if !is_remembered(charge) {
            return None;
        }
        let set = self.set(charge.key).lock();
        let entry = set.iter().find(|entry| entry.key == charge.key)?;
        let is_current = entry.generation == self.generation.load(Ordering::Acquire);
        let age = now.since(entry.answered);
        let is_fresh = max_age.is_none_or(|max_age| age < max_age);
        if !is_current || !is_fresh || entry.until <= now || !entry.is_about(charge) {
            return None;
        }
        let aged = |standing: &Standing| {
            let reset = standing.reset.checked_sub(age).filter(|reset| !reset.is_zero() || standing.reset.is_zero());
            reset.map(|reset| Standing { reset, ..*standing })
        };
        let standings: SmallVec<[Option<Standing>; 4]> = entry.standings.iter().map(aged).collect();
        // When a charge is taken back, Redis publishes that only if a request of the same cost had no room. If some
        // rate has no unit left, that is true for every cost.
        let is_exhausted = standings.iter().flatten().any(|standing| standing.remaining == 0);
        if max_age.is_some() && charge.waits_for_outcome() && !is_exhausted {
            return None;
        }
        Some(Denial { retry_after: entry.until.since(now), standings })
    }

    fn set(&self, key: KeyHash) -> &Mutex<Vec<DeniedEntry>> {
        let sets = self.sets.len() as u64;
        let place = (u128::from(self.places.hash_one(key)) * u128::from(sets)) >> 64;
        &self.sets[usize::try_from(place).expect("below the number of sets")]
    }
}

impl DeniedEntry {
    fn is_about(&self, charge: &Charge<'_>) -> bool {
        self.rule == *charge.rule && self.items == charge.items
    }

    /// Orders entries by how soon they can be dropped.
    fn ends(&self, generation: u64) -> Timestamp {
        if self.generation == generation { self.until } else { Timestamp::EPOCH }
    }
}

/// Whether a denial of this charge holds until the moment it names, or until a message about the key. That is not so
/// for slots, which are given back at any time, nor for attempts, which put the moment off. A delay denies nothing. Of
/// several distinct values some may have room before all have, and Redis publishes nothing then.
fn is_remembered(charge: &Charge<'_>) -> bool {
    let is_one = !matches!(charge.rule, Rule::Distinct(_)) || charge.items.len() == 1;
    !charge.is_attempt() && !charge.is_slot() && charge.force != Force::Delay && is_one
}

/// For how long a request that used up the budget makes Redis deny all others.
///
/// If a request costs more than a unit, the reset of a rate does not tell when that many units have room.
fn used_up(rule: &Rule, standings: &[Standing]) -> Option<Duration> {
    let Rule::Rates { cost, .. } = rule else { return None };
    let spent = standings.iter().filter(|standing| cost.get() == 1 && standing.remaining == 0);
    spent.map(|standing| standing.reset).max()
}

/// How long a denial is repeated without a call. Even bad clocks drift apart by only milliseconds in that time.
const MAX_AGE: Duration = Duration::from_secs(60);

/// How long a denial is repeated while this process is not subscribed to resets.
const MAX_AGE_UNSUBSCRIBED: Duration = Duration::from_millis(500);

/// How many keys share a lock and compete for room.
const SET: usize = 8;

#[cfg(test)]
mod tests;
