//! Makes one batch of the limits that descriptors meet, and concludes from its verdicts.

use std::net::IpAddr;
use std::time::Duration;

use super::MetLimits;
use crate::decision::Batch;
use crate::decision::Charge;
use crate::decision::Decision;
use crate::decision::Denial;
use crate::decision::DenialCause;
use crate::decision::FoundKey;
use crate::decision::ShownPlan;
use crate::decision::Verdict;
use crate::decision::batch::Force;
use crate::decision::charges::PlannedCharges;
use crate::decision::charges::PlannedLimit;
use crate::key::Hashers;
use crate::key::Key;
use crate::key::KeyHash;
use crate::key::KeySpec;
use crate::limit::Count;
use crate::limit::LimitId;
use crate::pool::Pooled;
use crate::route::RouteId;

/// What is to be decided about the descriptors of a call.
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
                    limit: number,
                    key: key.hash,
                    rule: &key.rule,
                    count: match limit.count {
                        Count::Attempts => Count::Attempts,
                        // No answer is seen, so every call keeps its place.
                        Count::Requests | Count::Failures | Count::Successes => Count::Requests,
                    },
                    force: if limit.shadow { Force::Shadow } else { Force::Binding },
                    on_failure: limit.on_failure,
                    items: key.items.clone(),
                    unless_known: false,
                    is_free: key.hits == 0,
                    leases: limit.may_be_held(),
                });
            }
        }
        DescriptorPlan { met: self, charges }
    }
}

impl<'m> DescriptorPlan<'m> {
    /// What the store has to decide. Without charges there is nothing to decide.
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
