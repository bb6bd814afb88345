//! Finds the limits of a domain that the descriptors of a call meet, and adds up what each key is charged.

use std::borrow::Cow;
use std::num::NonZeroU32;

use smallvec::SmallVec;

use super::DescriptorCall;
use super::InvalidCall;
use super::PricedDescriptor;
use super::call::MAX_COUNTED_KEYS;
use crate::decision::Policy;
use crate::decision::batch::Items;
use crate::key::Descriptor;
use crate::key::Key;
use crate::key::KeyHash;
use crate::key::KeyHasher;
use crate::key::KeySpec;
use crate::key::TooManyValues;
use crate::limit::Algorithm;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Rule;
use crate::route::Route;
use crate::route::RouteId;

/// The limits that the descriptors of a call meet, and under which keys.
#[derive(Debug)]
pub struct MetLimits<'p> {
    pub(super) policy: &'p Policy,
    /// `None`: no route is for the domain, and nothing is limited.
    pub(super) route: Option<RouteId>,
    /// In the order of the route, each with at least one key.
    pub(super) limits: Vec<MetLimit<'p>>,
    /// By descriptor.
    pub(super) descriptors: Vec<MetDescriptor>,
}

/// A limit, and the keys that it counts descriptors of the call under.
#[derive(Debug)]
pub(super) struct MetLimit<'p> {
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
    /// That of the limit, with the hits as its cost.
    pub(super) rule: Cow<'p, Rule>,
}

/// Where a descriptor is counted.
#[derive(Debug, Default)]
pub(super) struct MetDescriptor {
    pub(super) is_free: bool,
    /// The domain denies it whatever was counted.
    pub(super) is_denied: bool,
    pub(super) keys: SmallVec<[(LimitId, KeyHash); 2]>,
}

impl DescriptorCall {
    /// The limits that the descriptors meet. Of a call that the domain denies none is looked at: a proxy may let pass what
    /// gets an error, so that no mistake in a call hides a denial. `hasher` is the hasher of the store that decides.
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
                met.limits.push(MetLimit { id, keys });
            }
        }
        met.drop_replaced();
        Ok(met)
    }
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

/// The rule with these hits as its cost. Where they never pass, whatever was counted, the cost is the least that never
/// does: what is charged beyond (`count: attempts`) makes no difference.
fn priced_rule(rule: &Rule, hits: u32) -> Cow<'_, Rule> {
    let Rule::Rates { algorithm, rates, .. } = rule else { return Cow::Borrowed(rule) };
    let most = match algorithm {
        Algorithm::TokenBucket { burst: Some(burst) } => *burst,
        _ => rates.largest_count(),
    };
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
