//! Where one descriptor of a call stands.

use std::sync::Arc;
use std::time::Duration;

use super::DescriptorPlan;
use super::meet::MetDescriptor;
use crate::decision::Verdict;
use crate::key::KeyHash;
use crate::limit::Detail;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Rate;
use crate::limit::Standing;

/// Where one descriptor stands.
#[derive(Clone, Debug, PartialEq)]
pub struct DescriptorStatus {
    /// A limit denies it. Then all descriptors of its call are denied.
    pub is_over: bool,
    /// The key that the limit counts it under which says most: the one with the longest wait of those that deny, or the one
    /// with the least left. `None`: it meets no limit.
    pub key: Option<KeyHash>,
    /// The rate of that limit with the least left. `None`: it meets no limit, or the limit hides its state.
    pub current_limit: Option<CurrentLimit>,
    /// How many hits of that rate may follow. Zero without a current limit.
    pub remaining: u64,
    /// Until it is no longer denied, or until more hits may follow than now. `None`: no limit says it.
    pub reset: Option<Duration>,
}

/// A rate that a descriptor is counted against.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CurrentLimit {
    pub name: Arc<str>,
    pub rate: Rate,
}

/// How one limit decided one key of a descriptor.
struct KeyRuling<'p, 'v> {
    limit: &'p Limit,
    key: KeyHash,
    /// For how long it is denied; `None`: it is not.
    wait: Option<Duration>,
    /// The rate with the least left, and what is left of it. `None` for a key that was banned before: it was not counted.
    tightest: Option<(Rate, &'v Standing)>,
}

impl DescriptorStatus {
    /// Of a descriptor that meets no limit.
    fn unmet() -> Self {
        Self { is_over: false, key: None, current_limit: None, remaining: 0, reset: None }
    }
}

impl DescriptorPlan<'_> {
    /// Where each descriptor stands, in the order of the call. `verdicts` answer the batch of the plan, in its order.
    pub fn statuses(&self, verdicts: &[Verdict]) -> Vec<DescriptorStatus> {
        self.met.descriptors.iter().map(|descriptor| status(self, descriptor, verdicts)).collect()
    }

    /// The statuses while the store is down and a limit denies during the outage: what meets a limit is denied for this
    /// long.
    pub fn undecided(&self, retry_after: Duration) -> Vec<DescriptorStatus> {
        let is_bound = |&(limit, _): &(LimitId, KeyHash)| !self.met.policy.limit(limit).shadow;
        let told = |is_over: bool| DescriptorStatus {
            is_over,
            reset: is_over.then_some(retry_after),
            ..DescriptorStatus::unmet()
        };
        self.met.descriptors.iter().map(|descriptor| told(descriptor.keys.iter().any(is_bound))).collect()
    }
}

/// The status of one descriptor. `verdicts` answer the batch of the plan.
fn status(plan: &DescriptorPlan<'_>, descriptor: &MetDescriptor, verdicts: &[Verdict]) -> DescriptorStatus {
    if descriptor.is_denied {
        return DescriptorStatus { is_over: true, ..DescriptorStatus::unmet() };
    }
    let rulings = descriptor.keys.iter().filter_map(|&(id, key)| ruling(plan, descriptor, id, key, verdicts));
    let decisive = rulings.reduce(|one, other| if other.says_more_than(&one) { other } else { one });
    let Some(KeyRuling { limit, key, wait, tightest }) = decisive else {
        return DescriptorStatus::unmet();
    };
    let shown = tightest.filter(|_| limit.shown_rates().is_some());
    let reset = wait.or(tightest.map(|(_, standing)| standing.reset));
    DescriptorStatus {
        is_over: wait.is_some(),
        key: Some(key),
        current_limit: shown.map(|(rate, _)| CurrentLimit { name: Arc::clone(&limit.name), rate }),
        remaining: shown.map_or(0, |(_, standing)| standing.remaining),
        reset: reset.filter(|_| shown.is_some() || wait.is_some() && limit.headers != Detail::None),
    }
}

/// `None` for a limit in shadow mode, which says nothing to the proxy.
fn ruling<'m, 'v>(
    plan: &DescriptorPlan<'m>,
    descriptor: &MetDescriptor,
    id: LimitId,
    key: KeyHash,
    verdicts: &'v [Verdict],
) -> Option<KeyRuling<'m, 'v>> {
    let limit = plan.met.policy.limit(id);
    if limit.shadow {
        return None;
    }
    if let Some(left) = plan.charges.ban_left(key) {
        return Some(KeyRuling { limit, key, wait: Some(left), tightest: None });
    }
    let place = plan.batch().charges.iter().position(|charge| charge.key == key)?;
    let verdict = verdicts.get(place)?;
    let rates = limit.rule.rates()?;
    let tightest = rates.iter().copied().zip(&verdict.standings).min_by(|one, other| by_share_left(*one, *other));
    // A descriptor that costs nothing is denied only by what is exhausted, not by what another one with this key costs.
    let is_exhausted = verdict.standings.iter().any(|standing| standing.remaining == 0);
    let wait = verdict.retry_after.filter(|_| !descriptor.is_free || is_exhausted);
    Some(KeyRuling { limit, key, wait, tightest })
}

impl KeyRuling<'_, '_> {
    fn says_more_than(&self, other: &Self) -> bool {
        if self.wait.is_some() || other.wait.is_some() {
            return self.wait > other.wait;
        }
        match (self.tightest, other.tightest) {
            (Some(own), Some(others)) => by_share_left(own, others).is_lt(),
            (own, _) => own.is_some(),
        }
    }
}

/// Orders rates by the share that is left of them, the smallest first, and then by how long they take to recover.
fn by_share_left((one, left): (Rate, &Standing), (other, others_left): (Rate, &Standing)) -> std::cmp::Ordering {
    let share = u128::from(left.remaining) * u128::from(other.count.get());
    let others_share = u128::from(others_left.remaining) * u128::from(one.count.get());
    share.cmp(&others_share).then(others_left.reset.cmp(&left.reset))
}
