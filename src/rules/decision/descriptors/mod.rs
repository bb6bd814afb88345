//! Decides what a proxy asks about descriptors instead of requests, as Envoy's rate limit filter does.
//!
//! All descriptors of one call are decided together. [`DescriptorCall::meet`] finds the limits of the domain that they meet,
//! [`MetLimits::plan`] makes one [`Batch`](super::Batch) of them, and [`DescriptorPlan::conclude`] turns the verdicts of the
//! store into a [`Decision`](super::Decision) and a status of each descriptor.

mod plan;

use std::borrow::Cow;
use std::num::NonZeroU32;

use smallvec::SmallVec;

pub use self::plan::{CurrentLimit, DescriptorPlan, DescriptorStatus};
use crate::rules::decision::Policy;
use crate::rules::decision::batch::Items;
use crate::rules::key::{Descriptor, Key, KeyHash, KeyHasher, KeySpec, TooManyValues};
use crate::rules::limit::{Limit, LimitId, Rule};
use crate::rules::route::{Route, RouteId};

/// Envoy makes a descriptor for each entry of `rate_limits` of a route. More in one call are a mistake or an attack.
pub const MAX_DESCRIPTORS: usize = 128;

/// Envoy makes an entry for each of the `actions`.
pub const MAX_ENTRIES: usize = 64;

/// More keys in one call are a mistake or an attack. Redis decides this many in about a millisecond.
pub const MAX_COUNTED_KEYS: usize = 1024;

/// The descriptors of one call, which pass together or not at all.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DescriptorCall {
    pub domain: String,
    pub descriptors: Vec<PricedDescriptor>,
    /// The cost of each descriptor that has no `hits_addend`. Zero means one, as in Envoy.
    pub hits: u32,
}

/// A descriptor, and what it costs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PricedDescriptor {
    pub descriptor: Descriptor,
    /// Zero: nothing is charged, but an exhausted limit denies. `None`: as the call says.
    pub hits: Option<u64>,
}

/// Why a call cannot be decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidCall {
    #[error("the domain is empty")]
    NoDomain,
    #[error("there is no descriptor")]
    NoDescriptors,
    #[error("there are {0} descriptors, at most {MAX_DESCRIPTORS} are decided together")]
    TooManyDescriptors(usize),
    #[error("a descriptor has {0} entries, at most {MAX_ENTRIES} are read")]
    TooManyEntries(usize),
    #[error("an entry of a descriptor comes with more than {max} values", max = crate::rules::key::extract::MAX_VALUES)]
    TooManyValues,
    #[error("the descriptors meet limits under more than {max} keys", max = MAX_COUNTED_KEYS)]
    TooManyKeys,
    #[error("the hits under one key add up to more than {max}", max = u32::MAX)]
    TooManyHits,
}

impl InvalidCall {
    /// The part of the call that it is about, as Envoy's message names it.
    pub fn part(self) -> &'static str {
        match self {
            Self::NoDomain => "domain",
            Self::NoDescriptors | Self::TooManyDescriptors(_) | Self::TooManyKeys => "descriptors",
            Self::TooManyEntries(_) | Self::TooManyValues => "descriptors[].entries",
            Self::TooManyHits => "hits_addend",
        }
    }
}

impl DescriptorCall {
    /// Whether the call stays within the bounds.
    pub(super) fn check(&self) -> Result<(), InvalidCall> {
        let longest = self.descriptors.iter().map(|priced| priced.descriptor.entries.len()).max();
        match (self.descriptors.len(), longest) {
            _ if self.domain.is_empty() => Err(InvalidCall::NoDomain),
            (0, _) | (_, None) => Err(InvalidCall::NoDescriptors),
            (count, _) if count > MAX_DESCRIPTORS => Err(InvalidCall::TooManyDescriptors(count)),
            (_, Some(count)) if count > MAX_ENTRIES => Err(InvalidCall::TooManyEntries(count)),
            _ => Ok(()),
        }
    }

    /// The cost of a descriptor of this call.
    pub(super) fn hits_of(&self, priced: &PricedDescriptor) -> u64 {
        priced.hits.unwrap_or_else(|| u64::from(self.hits.max(1)))
    }
}

impl DescriptorCall {
    /// The limits that the descriptors meet. If the domain denies the call, no limit is looked up: a proxy may let a
    /// request pass after an error, so a mistake in a call must not hide a denial. `hasher` is the hasher of the store
    /// that decides.
    pub fn meet<'p>(&self, policy: &'p Policy, hasher: &KeyHasher) -> Result<MetLimits<'p>, InvalidCall> {
        self.check()?;
        let route = policy.routes.of_domain(&self.domain);
        let (limits, denied) = match route.map(|route| policy.routes.get(route)) {
            Some(Route { limits, denied, .. }) => (&limits[..], &denied[..]),
            None => Default::default(),
        };
        let no_key = KeySpec::default();
        let unmet = |priced: &PricedDescriptor| MetDescriptor {
            is_free: self.hits_of(priced) == 0,
            is_denied: denied.iter().any(|filter| filter.meets(&no_key, &priced.descriptor)),
            keys: SmallVec::new(),
        };
        let descriptors = self.descriptors.iter().map(unmet).collect();
        let mut met = MetLimits { policy, route, limits: Vec::new(), descriptors };
        if met.descriptors.iter().any(|descriptor| descriptor.is_denied) {
            return Ok(met);
        }
        let mut counted = 0;
        for &id in limits {
            let limit = policy.limit(id);
            // Nothing says when what a descriptor stands for is over.
            if matches!(limit.rule, Rule::Concurrent(_)) {
                continue;
            }
            let mut keys: Vec<CountedKey<'p>> = Vec::new();
            for (priced, descriptor) in self.descriptors.iter().zip(&mut met.descriptors) {
                let hits = self.hits_of(priced);
                for counted_key in counted_keys(limit, &priced.descriptor, hits, hasher)? {
                    descriptor.keys.push((id, counted_key.hash));
                    match keys.iter_mut().find(|known| known.hash == counted_key.hash) {
                        Some(known) => known.add(counted_key)?,
                        None => keys.push(counted_key),
                    }
                }
                if counted + keys.len() > MAX_COUNTED_KEYS {
                    return Err(InvalidCall::TooManyKeys);
                }
            }
            counted += keys.len();
            for key in &mut keys {
                key.rule = priced_rule(&limit.rule, key.hits);
            }
            if !keys.is_empty() {
                met.limits.push(CountedLimit { id, keys });
            }
        }
        met.drop_replaced();
        Ok(met)
    }
}

// Finds the limits of a domain that the descriptors of a call meet, and adds up what each key is charged.

/// The limits that the descriptors of a call meet, and under which keys.
#[derive(Debug)]
pub struct MetLimits<'p> {
    pub(super) policy: &'p Policy,
    /// `None`: no route is for the domain, and nothing is limited.
    pub(super) route: Option<RouteId>,
    /// In the order of the route, each with at least one key.
    pub(super) limits: Vec<CountedLimit<'p>>,
    /// By descriptor.
    pub(super) descriptors: Vec<MetDescriptor>,
}

/// A limit, and the keys that it counts descriptors of the call under.
#[derive(Debug)]
pub(super) struct CountedLimit<'p> {
    pub(super) id: LimitId,
    pub(super) keys: Vec<CountedKey<'p>>,
}

/// A key, and what it is charged for all descriptors that have it.
#[derive(Debug)]
pub(super) struct CountedKey<'p> {
    pub(super) key: Key,
    pub(super) hash: KeyHash,
    /// Zero: it is only decided.
    pub(super) hits: u32,
    /// The different values that are counted; empty unless the rule is `distinct`.
    pub(super) items: Items,
    /// The rule of the limit, with the hits as its cost.
    pub(super) rule: Cow<'p, Rule>,
}

/// Where a descriptor is counted.
#[derive(Debug, Default)]
pub(super) struct MetDescriptor {
    pub(super) is_free: bool,
    /// The domain denies it without counting.
    pub(super) is_denied: bool,
    pub(super) keys: SmallVec<[(LimitId, KeyHash); 2]>,
}

impl MetLimits<'_> {
    /// The route of the domain; `None`: there is none.
    pub fn route(&self) -> Option<RouteId> {
        self.route
    }

    /// Drops the limits that others of the call replace.
    fn drop_replaced(&mut self) {
        let names = self.limits.iter().flat_map(|met| &self.policy.limit(met.id).descriptors.replaces);
        let replaced: Vec<&str> = names.map(|name| &**name).collect();
        if replaced.is_empty() {
            return;
        }
        let policy = self.policy;
        let stays = |id: LimitId| !replaced.contains(&&*policy.limit(id).name);
        self.limits.retain(|met| stays(met.id));
        self.descriptors.iter_mut().for_each(|descriptor| descriptor.keys.retain(|(id, _)| stays(*id)));
    }
}

/// The keys that a limit counts one descriptor under. None where the descriptor does not meet the limit.
fn counted_keys<'p>(
    limit: &'p Limit,
    descriptor: &Descriptor,
    hits: u64,
    hasher: &KeyHasher,
) -> Result<SmallVec<[CountedKey<'p>; 1]>, InvalidCall> {
    if !limit.descriptors.meets(&limit.key, descriptor) {
        return Ok(SmallVec::new());
    }
    let items = match &limit.distinct {
        None => Items::new(),
        Some(part) => descriptor.different_values(part)?.iter().map(|value| item(value, hasher)).collect(),
    };
    if limit.distinct.is_some() && items.is_empty() {
        return Ok(SmallVec::new());
    }
    let hits = u32::try_from(hits).map_err(|_| InvalidCall::TooManyHits)?;
    let counted = |key: Key| CountedKey {
        hash: hasher.counted(&limit.name, &limit.key, &key),
        key,
        hits,
        items: items.clone(),
        rule: Cow::Borrowed(&limit.rule),
    };
    Ok(descriptor.keys(&limit.key)?.into_iter().flatten().map(counted).collect())
}

impl CountedKey<'_> {
    /// Another descriptor of the call has the same key.
    fn add(&mut self, other: Self) -> Result<(), InvalidCall> {
        self.hits = self.hits.checked_add(other.hits).ok_or(InvalidCall::TooManyHits)?;
        for item in other.items {
            if !self.items.contains(&item) {
                self.items.push(item);
            }
        }
        Ok(())
    }
}

impl From<TooManyValues> for InvalidCall {
    fn from(_: TooManyValues) -> Self {
        Self::TooManyValues
    }
}

/// The rule with these hits as its cost. If a charge of this many hits can never pass, the cost is the smallest that
/// never passes: charging more (`count: attempts`) makes no difference.
fn priced_rule(rule: &Rule, hits: u32) -> Cow<'_, Rule> {
    let Rule::Rates { algorithm, rates, .. } = rule else { return Cow::Borrowed(rule) };
    let most = rates.iter().map(|rate| algorithm.capacity(rate)).max().unwrap_or(NonZeroU32::MIN);
    let cost = NonZeroU32::new(hits.min(most.get().saturating_add(1))).unwrap_or(NonZeroU32::MIN);
    match cost {
        NonZeroU32::MIN => Cow::Borrowed(rule),
        _ => Cow::Owned(Rule::Rates { algorithm: *algorithm, rates: rates.clone(), cost }),
    }
}

/// One of the different values that are counted.
fn item(value: &str, hasher: &KeyHasher) -> u64 {
    let mut key = Key::default();
    key.push(value.as_bytes());
    hasher.item(&key)
}
