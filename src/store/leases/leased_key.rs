//! What this process knows of one key that may be leased.

use super::lease::LEASE_MARGIN;
use super::lease::LEASE_SPAN;
use super::lease::Lease;
use super::lease::SpentUnits;
use super::pace::Pace;
use super::request::LeaseRequest;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::limit::Rule;
use crate::limit::Standings;

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

/// With fewer requests a second a lease spares no call.
const FEWEST: u32 = 2;
