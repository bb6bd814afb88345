//! Units of a limit that this process has leased from the store that it shares, and spends without asking for each.
//!
//! A call that decides a request of a busy key asks for a lease of so many more units. Redis keeps it beside the key: until it
//! is given back its units count there as if they were spent, and what was spent counts from the moment when the lease ended, so
//! no window sees more than its rate. One process has at most one lease of a key. Its cores share it.
//!
//! - this file: what a call asks about leases and is answered; one key, one lease, and how busy the key is.
//! - [`held`]: the leases of this process, by key.

mod held;

use std::time::Duration;

use smallvec::SmallVec;

pub use self::held::{HeldLeases, ReturnedLease};
use crate::rules::decision::batch::{Charged, Force, Items, Ledger};
use crate::rules::decision::{Batch, Charge, Grounds, Verdict};
use crate::rules::key::KeyHash;
use crate::rules::limit::{Rule, Standing, Standings};
use crate::words::clock::Timestamp;

/// The leases that one call asks for, by charge. If the call has no answer, the process leases nothing by it.
#[derive(Debug)]
pub struct AskedLeases<'l> {
    leases: &'l HeldLeases,
    sent: Timestamp,
    holder: u32,
    requests: SmallVec<[Option<LeaseRequest>; 4]>,
    keys: SmallVec<[KeyHash; 4]>,
}

impl<'l> AskedLeases<'l> {
    /// What a call about these charges asks that is sent from now on and takes slots under this number.
    pub fn ask(leases: &'l HeldLeases, charges: &[&Charge<'_>], holder: u32) -> Self {
        let sent = leases.now();
        let requests = charges.iter().map(|charge| leases.ask(charge, holder, sent)).collect();
        Self { leases, sent, holder, requests, keys: charges.iter().map(|charge| charge.key).collect() }
    }

    pub fn requests(&self) -> &[Option<LeaseRequest>] {
        &self.requests
    }

    /// Notes how many units were leased of each key that may be leased, and adds to the verdicts what may be spent of them.
    pub fn answered(mut self, charges: &[&Charge<'_>], verdicts: &mut [Verdict], leased: &[u32]) {
        let requests = std::mem::take(&mut self.requests);
        let is_leasable = |place: &usize| charges[*place].rule.may_be_leased() && !verdicts[*place].is_exempt;
        let leasable: SmallVec<[usize; 4]> = (0..charges.len()).filter(is_leasable).collect();
        for (place, units) in leasable.into_iter().zip(leased) {
            if let Some(request) = requests.get(place).copied().flatten().filter(|_| *units > 0) {
                let standings = &mut verdicts[place].standings;
                let granted = (request.id, *units);
                self.leases.grant(charges[place].key, granted, self.sent, self.holder, standings.clone());
                standings.iter_mut().for_each(|standing| standing.remaining += u64::from(*units));
            }
        }
        self.requests = requests;
    }
}

impl Drop for AskedLeases<'_> {
    fn drop(&mut self) {
        let asked = self.keys.iter().zip(&self.requests).filter(|(_, request)| request.is_some());
        asked.for_each(|(key, _)| self.leases.asked(*key));
    }
}

// What a call asks about the lease of a key.

/// What a call asks about the lease of a key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseRequest {
    /// The number that the new lease gets.
    pub id: u64,
    /// How many units the gateway would spend in a second; zero: it leases nothing.
    pub wanted: u32,
    /// The lease that ends with this call.
    pub ended: Option<EndedLease>,
}

/// A lease that ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EndedLease {
    pub id: u64,
    /// How many of its units were spent. The others are given back.
    pub spent: u32,
    pub unspent: u32,
}

// What leases have paid of a request.

/// What leases have paid of a batch, for each of its charges. Unless it is kept, all of it is given back.
#[derive(Debug)]
pub struct SpentLeases<'s, 'b, 'p> {
    leases: &'s HeldLeases,
    batch: &'b Batch<'p>,
    spent: SmallVec<[Option<SpentUnits>; 4]>,
}

impl<'s, 'b, 'p> SpentLeases<'s, 'b, 'p> {
    /// Pays the charges of a batch from the leases of their keys, as far as those go.
    pub fn spend(leases: &'s HeldLeases, batch: &'b Batch<'p>) -> Self {
        Self { leases, batch, spent: batch.charges.iter().map(|charge| leases.spend(charge)).collect() }
    }

    /// Whether anything was paid.
    pub fn is_any(&self) -> bool {
        self.spent.iter().any(Option::is_some)
    }

    pub fn is_paid(&self, place: usize) -> bool {
        self.spent[place].is_some()
    }

    /// The keys of slots in flight that were paid, and the number under which each is held.
    pub fn slots(&self) -> SmallVec<[(KeyHash, u32); 1]> {
        let charges = self.batch.charges.iter().zip(&self.spent).filter(|(charge, _)| charge.is_slot());
        charges.filter_map(|(charge, spent)| Some((charge.key, spent.as_ref()?.holder))).collect()
    }

    /// What is not paid.
    pub fn rest(&self) -> Batch<'p> {
        let unpaid = self.batch.charges.iter().zip(&self.spent).filter(|(_, spent)| spent.is_none());
        Batch { charges: unpaid.map(|(charge, _)| charge.clone()).collect(), known: self.batch.known.clone() }
    }

    /// The verdicts of the whole batch, with those of the rest, and whether what was paid is spent: it is given back if a limit
    /// has denied the request.
    pub fn conclude(mut self, rest: Vec<Verdict>, now: Timestamp) -> (Vec<Verdict>, bool) {
        let mut others = rest.into_iter();
        let mut is_denied = false;
        let mut verdicts = Vec::with_capacity(self.batch.charges.len());
        for (charge, spent) in self.batch.charges.iter().zip(&self.spent) {
            let verdict = match spent {
                Some(spent) => paid(spent.standings.clone(), now),
                None => others.next().expect("there is a verdict for each charge that is not paid"),
            };
            is_denied |= charge.force == Force::Binding && !verdict.passes();
            verdicts.push(verdict);
        }
        if is_denied {
            for (verdict, spent) in verdicts.iter_mut().zip(&self.spent) {
                let Some(spent) = spent else { continue };
                verdict.charged = None;
                verdict.standings.iter_mut().for_each(|standing| standing.remaining += u64::from(spent.units));
            }
        } else {
            self.spent.clear();
        }
        (verdicts, !is_denied)
    }
}

impl Drop for SpentLeases<'_, '_, '_> {
    fn drop(&mut self) {
        for (charge, spent) in self.batch.charges.iter().zip(&self.spent) {
            if let Some(spent) = spent {
                self.leases.give_back(charge, spent);
            }
        }
    }
}

fn paid(standings: Standings, moment: Timestamp) -> Verdict {
    let charged = Charged { moment, ledger: Ledger::Leased, fresh: Items::new(), reservation: None };
    Verdict { retry_after: None, standings, charged: Some(charged), is_exempt: false, grounds: Grounds::Count }
}

// Units that were leased in one call.

/// How long Redis lets a lease last.
pub const LEASE_SPAN: Duration = Duration::from_secs(1);

/// How much sooner its holder stops: by its clock, and counted from when it asked. The clocks of holder and server may differ in
/// pace by a twentieth.
pub(super) const LEASE_MARGIN: Duration = Duration::from_millis(50);

/// Something is used, so a reset is never now.
const SOONEST: Duration = Duration::from_micros(1);

/// Units that were leased in one call.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// Drawn at random, not zero.
    pub(super) id: u64,
    pub(super) units: u32,
    pub(super) spent: u32,
    /// When the call was sent that asked for it.
    pub(super) asked: Timestamp,
    /// From then on nothing is spent.
    pub(super) ends: Timestamp,
    /// The number under which slots in flight are held.
    pub(super) holder: u32,
    /// Where the key stood in Redis after the call, all that is leased left out.
    pub(super) standings: Standings,
}

/// Units of a lease that a request has spent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpentUnits {
    pub(super) lease: u64,
    pub(super) holder: u32,
    pub(super) units: u32,
    /// Where the key stands after that, as far as is known here.
    pub(super) standings: Standings,
}

impl Lease {
    pub(super) fn has_room(&self, cost: u32, now: Timestamp) -> bool {
        now < self.ends && self.unspent() >= cost
    }

    pub(super) fn unspent(&self) -> u32 {
        self.units - self.spent
    }

    pub(super) fn ended(&self) -> EndedLease {
        EndedLease { id: self.id, spent: self.spent, unspent: self.unspent() }
    }

    /// Where the key stands as far as is known here: what other gateways have done since the lease began is not.
    pub(super) fn standings(&self, now: Timestamp) -> Standings {
        let age = now.since(self.asked);
        let standing = |known: &Standing| Standing {
            remaining: known.remaining + u64::from(self.unspent()),
            reset: known.reset.saturating_sub(age).max(SOONEST),
        };
        self.standings.iter().map(standing).collect()
    }
}

// What this process knows of one key that may be leased.

/// With fewer requests a second a lease spares no call.
const FEWEST: u32 = 2;

/// A key that may be leased. Only requests under the same rule share its lease.
#[derive(Debug)]
pub(super) struct LeasedKey {
    pub(super) key: KeyHash,
    pub(super) rule: Rule,
    pub(super) used: Timestamp,
    pub(super) lease: Option<Lease>,
    /// A call is under way that asks for a lease.
    is_asking: bool,
    pace: Pace,
}

impl LeasedKey {
    pub(super) fn new(key: KeyHash, rule: &Rule, now: Timestamp) -> Self {
        Self { key, rule: rule.clone(), used: now, lease: None, is_asking: false, pace: Pace::new(now) }
    }

    /// Whether another key may have its place.
    pub(super) fn is_idle(&self) -> bool {
        self.lease.is_none() && !self.is_asking
    }

    /// Counts a request, and pays it from the lease if there is enough of it.
    pub(super) fn spend(&mut self, rule: &Rule, now: Timestamp) -> Option<SpentUnits> {
        if !self.is_under(rule) {
            return None;
        }
        self.used = now;
        self.pace.count(now);
        let units = cost(&self.rule);
        let lease = self.lease.as_mut().filter(|lease| lease.has_room(units, now))?;
        lease.spent += units;
        Some(SpentUnits { lease: lease.id, holder: lease.holder, units, standings: lease.standings(now) })
    }

    /// Takes a payment back, because another limit has denied the request. Returns whether the lease is still there.
    pub(super) fn give_back(&mut self, spent: &SpentUnits) -> bool {
        let lease = self.lease.as_mut().filter(|lease| lease.id == spent.lease);
        lease.map(|lease| lease.spent -= spent.units).is_some()
    }

    /// Takes back a slot whose request has ended, if the lease lasts and holds slots under this number.
    pub(super) fn take_back_slot(&mut self, holder: u32, now: Timestamp) -> bool {
        let takes = |lease: &&mut Lease| lease.holder == holder && lease.spent > 0 && now < lease.ends;
        self.lease.as_mut().filter(takes).map(|lease| lease.spent -= 1).is_some()
    }

    /// What the next call asks. `None`: nothing; the key is not busy enough, another call asks already, or there is a lease.
    pub(super) fn next_request(&self, rule: &Rule, now: Timestamp) -> Option<LeaseRequest> {
        let units = cost(rule);
        if self.is_asking || self.rule != *rule || self.lease.as_ref().is_some_and(|lease| lease.has_room(units, now)) {
            return None;
        }
        let wanted = if self.pace.a_second() < FEWEST { 0 } else { self.pace.a_second().saturating_mul(units) };
        let ended = self.lease.as_ref().map(Lease::ended);
        (wanted > 0 || ended.is_some()).then(|| LeaseRequest { id: fastrand::u64(1..), wanted, ended })
    }

    /// The same, and this call asks it: the lease that it ends is gone, whatever becomes of the call. Slots that are held under
    /// another number than that of the call cannot be given back by it.
    pub(super) fn ask(&mut self, rule: &Rule, holder: u32, now: Timestamp) -> Option<LeaseRequest> {
        let other = self.lease.as_ref().is_some_and(|lease| rule.is_slots() && lease.holder != holder);
        let request = self.next_request(rule, now).filter(|_| !other)?;
        self.is_asking = true;
        self.lease = None;
        Some(request)
    }

    /// The call has leased so many units; it was sent at `asked` or later.
    pub(super) fn grant(&mut self, (id, units): (u64, u32), asked: Timestamp, holder: u32, standings: Standings) {
        let ends = asked + LEASE_SPAN.saturating_sub(LEASE_MARGIN);
        self.lease = Some(Lease { id, units, spent: 0, asked, ends, holder, standings });
    }

    /// The call has ended.
    pub(super) fn asked(&mut self) {
        self.is_asking = false;
    }

    /// Whether requests under this rule share the lease. A rule that has changed waits for the end of the lease.
    fn is_under(&mut self, rule: &Rule) -> bool {
        if self.rule != *rule && self.is_idle() {
            self.rule = rule.clone();
        }
        self.rule == *rule
    }
}

/// How many units a request costs.
fn cost(rule: &Rule) -> u32 {
    match rule {
        Rule::Rates { cost, .. } => cost.get(),
        Rule::Concurrent(_) | Rule::Distinct(_) => 1,
    }
}

// How many requests a second a key gets in this process.

const SECOND: Duration = Duration::from_secs(1);

/// How many requests a second a key gets in this process: the most in the last two spans of a second or, while it is idle, longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    since: Timestamp,
    counted: u32,
    last: u32,
    before: u32,
}

impl Pace {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { since: now, counted: 0, last: 0, before: 0 }
    }

    /// Counts a request.
    pub(super) fn count(&mut self, now: Timestamp) {
        let elapsed = now.since(self.since);
        if elapsed >= SECOND {
            let counted = u128::from(self.counted) * SECOND.as_micros() / elapsed.as_micros();
            let last = u32::try_from(counted).unwrap_or(u32::MAX);
            *self = Self { since: now, counted: 0, last, before: self.last };
        }
        self.counted = self.counted.saturating_add(1);
    }

    pub(super) fn a_second(&self) -> u32 {
        self.last.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_the_busier_of_the_last_two_seconds() {
        let at = |millis: u64| Timestamp::from_micros(millis * 1000);
        let mut pace = Pace::new(at(0));
        (0..10).for_each(|tenth| pace.count(at(100 * tenth)));
        assert_eq!(pace.a_second(), 0);
        pace.count(at(1000));
        assert_eq!(pace.a_second(), 10);
        pace.count(at(1900));
        assert_eq!(pace.a_second(), 10);
        pace.count(at(2000));
        assert_eq!(pace.a_second(), 10);
        pace.count(at(11_000));
        assert_eq!(pace.a_second(), 2);
        pace.count(at(20_000));
        assert_eq!(pace.a_second(), 0);
    }
}
