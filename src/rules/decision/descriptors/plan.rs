//! Makes one batch of the limits that descriptors meet, and concludes from its verdicts.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::MetLimits;
use crate::rules::decision::batch::Force;
use crate::rules::decision::descriptors::MetDescriptor;
use crate::rules::decision::plan::{PlannedCharges, PlannedLimit};
use crate::rules::decision::{Batch, Charge, Decision, Denial, DenialCause, FoundKey, ShownPlan, Verdict};
use crate::rules::key::{Hashers, Key, KeyHash, KeySpec};
use crate::rules::limit::{Count, Detail, Limit, LimitId, Rate, Standing};
use crate::rules::route::RouteId;
use crate::words::pool::Pooled;

/// The charges for the descriptors of a call.
#[derive(Debug)]
pub struct DescriptorPlan<'m> {
    pub(super) met: &'m MetLimits<'m>,
    pub(super) charges: PlannedCharges<'m>,
}

impl MetLimits<'_> {
    /// Says what the store has to charge.
    pub fn plan(&self) -> DescriptorPlan<'_> {
        let mut charges = PlannedCharges::default();
        if self.descriptors.iter().any(|descriptor| descriptor.is_denied) {
            return DescriptorPlan { met: self, charges };
        }
        for (number, met) in (0..).zip(&self.limits) {
            let limit = self.policy.limit(met.id);
            charges.limits.push(PlannedLimit {
                limit: met.id,
                outright: false,
                found: FoundKey::Whole,
                is_undisputed: false,
            });
            for key in &met.keys {
                charges.batch.charges.push(Charge {
                    count: match limit.count {
                        Count::Attempts => Count::Attempts,
                        // No answer is seen, so every call keeps its place.
                        Count::Requests | Count::Failures | Count::Successes => Count::Requests,
                    },
                    force: if limit.shadow { Force::Shadow } else { Force::Binding },
                    on_failure: limit.on_failure,
                    items: key.items.clone(),
                    is_free: key.hits == 0,
                    leases: limit.may_be_held(),
                    ..Charge::new(number, key.hash, &key.rule)
                });
            }
        }
        DescriptorPlan { met: self, charges }
    }
}

impl<'m> DescriptorPlan<'m> {
    /// The batch for the store. Without charges there is nothing to decide.
    pub fn batch(&self) -> &Batch<'m> {
        &self.charges.batch
    }

    /// The route of the domain.
    pub fn route(&self) -> Option<RouteId> {
        self.met.route
    }

    /// Denies banned keys. To be called once, before the store decides. `left` says for how long a key is still banned.
    pub fn apply_bans(&mut self, left: impl Fn(KeyHash) -> Option<Duration>) {
        self.charges.apply_bans(left);
    }

    /// The decision on the call as a whole. `verdicts` answer the batch of the plan, in its order.
    pub fn conclude(&self, verdicts: &[Verdict]) -> Decision {
        let MetLimits { policy, route, descriptors, .. } = self.met;
        if descriptors.iter().any(|descriptor| descriptor.is_denied) {
            return Decision::Deny(Pooled::new(Denial::bare(*route, DenialCause::DeniedDescriptor)));
        }
        self.charges.conclude(policy, *route, verdicts, |_| None)
    }
}

impl ShownPlan for DescriptorPlan<'_> {
    fn client(&self) -> Option<IpAddr> {
        None
    }

    fn counted_keys(&self) -> impl Iterator<Item = (LimitId, KeyHash)> {
        self.charges.counted_keys()
    }

    fn with_key<T>(
        &self,
        _hashers: &Hashers,
        limit: LimitId,
        key: KeyHash,
        then: impl FnOnce(&KeySpec, &Key) -> T,
    ) -> Option<T> {
        let met = self.met.limits.iter().find(|met| met.id == limit)?;
        let counted = met.keys.iter().find(|counted| counted.hash == key)?;
        Some(then(&self.met.policy.limit(limit).key, &counted.key))
    }
}

// Where one descriptor of a call stands.

/// Where one descriptor stands.
#[derive(Clone, Debug, PartialEq)]
pub struct DescriptorStatus {
    /// A limit denies it. Then all descriptors of its call are denied.
    pub is_over: bool,
    /// The tightest key that the limit counts it under: of the keys that deny, the one with the longest wait, else the
    /// key with the least left. `None`: it meets no limit.
    pub key: Option<KeyHash>,
    /// The rate of that limit with the least left, under a ban its first one. `None`: it meets no limit, or the limit hides its
    /// state.
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
    /// The rate with the least left, and what is left of it. `None`: the key was banned before, so it was not counted.
    tightest: Option<(Rate, &'v Standing)>,
}

impl DescriptorStatus {
    /// The result for a descriptor that meets no limit.
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
        let status = |is_over: bool| DescriptorStatus {
            is_over,
            reset: is_over.then_some(retry_after),
            ..DescriptorStatus::unmet()
        };
        self.met.descriptors.iter().map(|descriptor| status(descriptor.keys.iter().any(is_bound))).collect()
    }
}

/// The status of one descriptor. `verdicts` answer the batch of the plan.
fn status(plan: &DescriptorPlan<'_>, descriptor: &MetDescriptor, verdicts: &[Verdict]) -> DescriptorStatus {
    if descriptor.is_denied {
        return DescriptorStatus { is_over: true, ..DescriptorStatus::unmet() };
    }
    let rulings = descriptor.keys.iter().filter_map(|&(id, key)| ruling(plan, descriptor, id, key, verdicts));
    let decisive = rulings.reduce(|one, other| if other.is_tighter_than(&one) { other } else { one });
    let Some(KeyRuling { limit, key, wait, tightest }) = decisive else {
        return DescriptorStatus::unmet();
    };
    let shown = tightest.filter(|_| limit.shown_rates().is_some());
    // A banned key is not counted. The first rate then stands for its limit.
    let of_ban = limit.shown_rates().filter(|_| wait.is_some()).and_then(|rates| rates.iter().next());
    let reset = wait.or(tightest.map(|(_, standing)| standing.reset));
    DescriptorStatus {
        is_over: wait.is_some(),
        key: Some(key),
        current_limit: shown
            .map(|(rate, _)| rate)
            .or(of_ban.copied())
            .map(|rate| CurrentLimit { name: Arc::clone(&limit.name), rate }),
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
    // A descriptor that costs nothing is denied only by an exhausted rate, not by the cost of another descriptor with
    // this key.
    let is_exhausted = verdict.standings.iter().any(|standing| standing.remaining == 0);
    let wait = verdict.retry_after.filter(|_| !descriptor.is_free || is_exhausted);
    Some(KeyRuling { limit, key, wait, tightest })
}

impl KeyRuling<'_, '_> {
    fn is_tighter_than(&self, other: &Self) -> bool {
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
