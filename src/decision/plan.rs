//! The second step: the keys a request is counted under, as one batch for a store.

use smallvec::SmallVec;

use super::Batch;
use super::Charge;
use super::Entry;
use super::Policy;
use super::batch::Force;
use super::conclude::Cause;
use super::enter::Admission;
use crate::key::Captures;
use crate::key::Key;
use crate::key::KeyHasher;
use crate::key::Source;
use crate::key::TooManyValues;
use crate::key::extract;
use crate::limit::Count;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Missing;
use crate::limit::Rule;
use crate::list::ListId;
use crate::request::Fields;
use crate::request::Head;
use crate::route::RouteId;
use crate::route::Walk;

/// What is to be decided, once the fields are known.
#[derive(Debug)]
pub struct Plan<'a> {
    pub(super) policy: &'a Policy,
    pub(super) route: Option<RouteId>,
    /// What denies the request before any limit is asked.
    pub(super) refusal: Option<Cause>,
    /// The limits that hold for the request: what the charges number.
    pub(super) limits: SmallVec<[Planned; 4]>,
    batch: Batch<'a>,
}

/// A limit that holds for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Planned {
    pub(super) limit: LimitId,
    /// Denied whatever was counted: a part of the key is missing, and the limit says `missing: deny`.
    pub(super) outright: bool,
}

/// What one limit makes of one request.
#[derive(Clone, Debug)]
pub(super) enum Applied {
    /// It does not hold for members of this list.
    Freed(ListId),
    /// A part of its key is missing, and it says `missing: skip`.
    Skipped,
    /// A part of its key is missing, and it says `missing: deny`.
    Refused,
    Counted(SmallVec<[Key; 1]>),
}

impl<'a> Entry<'a> {
    /// Extracts every key and settles which charges the store is asked for. `hasher` is the one of that store.
    pub fn plan(self, fields: &Fields, hasher: &KeyHasher) -> Plan<'a> {
        let Self { policy, head, admission, .. } = self;
        let mut plan =
            Plan { policy, route: self.route(), refusal: None, limits: SmallVec::new(), batch: Batch::default() };
        if let Admission::Refused(list) = admission {
            plan.refusal = Some(Cause::Listed { list: policy.list(list).list.name.clone() });
            return plan;
        }
        let walk = self.walk(fields);
        if self.bars(&walk) {
            plan.refusal = Some(Cause::NotOnList);
            return plan;
        }
        if matches!(admission, Admission::Allowed(_)) {
            return plan;
        }
        let limits = policy.applicable(&walk.collected);
        if limits.is_empty() {
            return plan;
        }
        let charged = with_source(policy, head, fields, &walk, |source| plan.charge_all(&limits, source, hasher));
        if charged.is_err() {
            plan.refusal = Some(Cause::TooManyValues);
            plan.limits.clear();
            plan.batch.charges.clear();
        }
        plan
    }
}

impl<'a> Plan<'a> {
    /// What the store is to decide; without charges there is nothing to ask it.
    pub fn batch(&self) -> &Batch<'a> {
        &self.batch
    }

    /// The route the request goes by.
    pub fn route(&self) -> Option<RouteId> {
        self.route
    }

    fn charge_all(&mut self, limits: &[LimitId], source: &Source<'_>, hasher: &KeyHasher) -> Result<(), TooManyValues> {
        let mut denied = false;
        for &id in limits {
            let policy = self.policy;
            let limit = policy.limit(id);
            let keys = match apply(policy, limit, source) {
                Ok(Applied::Freed(_) | Applied::Skipped) => continue,
                Ok(Applied::Counted(keys)) => keys,
                Ok(Applied::Refused) => {
                    denied |= !limit.shadow;
                    self.limits.push(Planned { limit: id, outright: true });
                    continue;
                }
                // A shadow applies to nobody, however strange the request.
                Err(TooManyValues) if limit.shadow => {
                    self.limits.push(Planned { limit: id, outright: true });
                    continue;
                }
                Err(too_many) => return Err(too_many),
            };
            self.charge(id, limit, &keys, hasher);
        }
        if denied {
            // Nothing is charged for what does not pass, but attempts and what shadows count alone.
            self.batch.charges.retain(|charge| charge.force == Force::Shadow || charge.count == Count::Attempts);
        }
        Ok(())
    }

    fn charge(&mut self, id: LimitId, limit: &'a Limit, keys: &[Key], hasher: &KeyHasher) {
        let number = u16::try_from(self.limits.len()).expect("limits are numbered with 16 bits");
        self.limits.push(Planned { limit: id, outright: false });
        let force = if limit.shadow { Force::Shadow } else { Force::Binding };
        let count = match limit.rule {
            // What was denied is not in flight.
            Rule::Concurrent(_) => Count::Requests,
            Rule::Rates { .. } => limit.count,
        };
        self.batch.charges.extend(keys.iter().map(|key| Charge {
            limit: number,
            key: hasher.hash(&limit.name, key),
            rule: &limit.rule,
            count,
            force,
            on_failure: limit.on_failure,
        }));
    }
}

/// What a limit makes of a request. Without a value that is sent too often this cannot fail.
pub(super) fn apply(policy: &Policy, limit: &Limit, source: &Source<'_>) -> Result<Applied, TooManyValues> {
    if let Some(list) = policy.holding(&limit.unless, source) {
        return Ok(Applied::Freed(list));
    }
    let extracted = extract::keys(&limit.key, source)?;
    let keys = extracted.keys.into_iter();
    Ok(match limit.missing {
        Missing::Deny if extracted.absent => Applied::Refused,
        Missing::Count | Missing::Deny => Applied::Counted(keys.map(|candidate| candidate.key).collect()),
        // An empty value beside another does not hide the other.
        Missing::Skip => {
            let whole: SmallVec<_> =
                keys.filter(|candidate| !candidate.missing).map(|candidate| candidate.key).collect();
            if whole.is_empty() { Applied::Skipped } else { Applied::Counted(whole) }
        }
    })
}

/// Hands on everything that selectors read from, for a request that takes these routes.
pub(super) fn with_source<T>(
    policy: &Policy,
    head: &Head<'_>,
    fields: &Fields,
    walk: &Walk,
    then: impl FnOnce(&Source<'_>) -> T,
) -> T {
    let mut routes: SmallVec<[&str; 4]> = SmallVec::new();
    let mut captures = Captures::new();
    for route in walk.collected.iter().map(|&route| policy.routes.get(route)) {
        routes.push(&route.name);
        route.condition.capture(head, &mut captures);
    }
    then(&Source { head, fields, routes: &routes, captures: &captures })
}
