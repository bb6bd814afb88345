//! Turns the outcome of a request into settlements for the store.

use smallvec::SmallVec;

use super::PendingSignIn;
use super::Policy;
use super::batch::Charged;
use super::batch::Items;
use super::batch::KnownClientKey;
use super::batch::Settlement;
use super::device::DeviceEnrollment;
use crate::key::KeyHash;
use crate::limit::LimitId;
use crate::outcome::Outcome;
use crate::route::RouteId;

/// What waits for the outcome of a request that passed. Settled exactly once.
#[derive(Clone, Debug)]
pub struct PendingOutcome {
    /// The route whose `outcome` classifies the answer.
    pub route: RouteId,
    pub(super) charges: SmallVec<[PendingCharge; 2]>,
    /// The client that is known after a success, and the route whose `known_clients` says so.
    pub(super) known_client: Option<(RouteId, KnownClientKey)>,
    /// The client that gets a device cookie after a success.
    pub enrollment: Option<DeviceEnrollment>,
    /// What makes a success the own one of the name in the request. `None`: every success is.
    pub sign_in: Option<Box<PendingSignIn>>,
}

/// A key of a limit that the request passed, for which the outcome matters.
#[derive(Clone, Debug)]
pub(super) struct PendingCharge {
    pub limit: LimitId,
    pub key: KeyHash,
    pub items: Items,
    pub charged: Option<Charged>,
    /// The request has no other key under this limit, and the application certainly reads this one.
    pub may_reset: bool,
}

impl PendingOutcome {
    /// What an outcome means for the store. `None`: the request reached the application, and its outcome cannot be
    /// known. Then every charge counts.
    ///
    /// Only a request with one undisputed key under a limit may reset that key: a success as one user must not reset
    /// the failures of another.
    pub fn settlements<'p>(&'p self, policy: &'p Policy, outcome: Option<Outcome>) -> SmallVec<[Settlement<'p>; 4]> {
        let mut settlements = SmallVec::new();
        for PendingCharge { limit, key, items, charged, may_reset } in &self.charges {
            let limit = policy.limit(*limit);
            if outcome.is_some() && limit.reset_on == outcome && *may_reset {
                // Without what this request was charged there is often nothing to reset, and nobody to tell.
                let own = charged.as_ref();
                settlements.extend(own.map(|charged| Settlement::TakeBack { key: *key, rule: &limit.rule, charged }));
                settlements.push(Settlement::Reset(*key));
                continue;
            }
            let Some(counted) = limit.count.outcome() else { continue };
            match (outcome.is_none_or(|outcome| counted == outcome), charged) {
                (false, Some(charged)) => {
                    settlements.push(Settlement::TakeBack { key: *key, rule: &limit.rule, charged });
                }
                (true, Some(charged)) => {
                    settlements.push(Settlement::Keep { key: *key, rule: &limit.rule, items, charged });
                }
                (true, None) => settlements.push(Settlement::Charge { key: *key, rule: &limit.rule, items }),
                (false, None) => {}
            }
        }
        let known = self.known_client.as_ref().filter(|_| outcome == Some(Outcome::Success));
        if let Some((route, of)) = known
            && let Some(clients) = &policy.routes.get(*route).known_clients
        {
            settlements.push(Settlement::Remember { of: *of, most: clients.remember, keep: clients.keep });
        }
        settlements
    }
}
