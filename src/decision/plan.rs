//! The second step: makes one batch for a store of the keys that a request is counted under.

use std::mem;
use std::net::IpAddr;
use std::time::Duration;

use smallvec::SmallVec;

use super::Batch;
use super::Charge;
use super::DenialCause;
use super::Policy;
use super::RoutedRequest;
use super::batch::Force;
use super::batch::Items;
use super::batch::KnownClientKey;
use super::device;
use super::device::DeviceMatch;
use super::enter::Admission;
use super::source::with_source;
use crate::key::ExtractedKey;
use crate::key::ExtractedKeys;
use crate::key::Key;
use crate::key::KeyHash;
use crate::key::KeyHasher;
use crate::key::Source;
use crate::key::TooManyValues;
use crate::key::extract;
use crate::key::undisputed;
use crate::limit::Action;
use crate::limit::Count;
use crate::limit::Limit;
use crate::limit::LimitId;
use crate::limit::Missing;
use crate::limit::Rule;
use crate::list::ListId;
use crate::request::BodyFields;
use crate::route::KnownBy;
use crate::route::KnownClients;
use crate::route::Route;
use crate::route::RouteId;

/// What is to be decided, now that the fields of the body are known.
#[derive(Debug)]
pub struct Plan<'p, 'h> {
    /// Its routes include those of the methods that the body names.
    pub(super) entry: RoutedRequest<'p, 'h>,
    pub(super) fields: &'h BodyFields,
    /// What denies the request before any limit is asked.
    pub(super) denied_for: Option<DenialCause>,
    /// The limits that hold for the request. Charges name them by their position.
    pub(super) limits: SmallVec<[PlannedLimit; 4]>,
    /// The route whose `outcome` classifies the answer.
    pub(super) outcome: Option<RouteId>,
    /// The client that is known after a success, and the route whose `known_clients` says so.
    pub(super) known_client: Option<(RouteId, KnownClientKey)>,
    /// What the device cookies of the request prove.
    pub(super) device: DeviceMatch,
    batch: Batch<'p>,
}

/// A limit that holds for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PlannedLimit {
    pub(super) limit: LimitId,
    /// Denies without counting: a part of the key is missing, and the limit says `missing: deny`.
    pub(super) outright: bool,
    /// The application certainly reads the same key, so that a success may reset it.
    pub(super) is_undisputed: bool,
    /// The longest ban of its keys, and the banned key.
    pub(super) banned: Option<(Duration, KeyHash)>,
}

/// What one limit makes of one request.
#[derive(Clone, Debug)]
pub(super) enum LimitApplication {
    /// Its `unless` names this list, which holds the client.
    Freed(ListId),
    /// A part of its key is missing, and it says `missing: skip`.
    Skipped,
    /// A part of its key is missing, and it says `missing: deny`.
    Denied,
    Counted(SmallVec<[ExtractedKey; 1]>),
}

impl<'p, 'h> RoutedRequest<'p, 'h> {
    /// Extracts every key and says what the store has to charge. `hasher` is the hasher of that store.
    pub fn plan(self, fields: &'h BodyFields, hasher: &KeyHasher) -> Plan<'p, 'h> {
        let mut plan = Plan {
            entry: self.with_body(fields),
            fields,
            denied_for: None,
            limits: SmallVec::new(),
            outcome: None,
            known_client: None,
            device: DeviceMatch::default(),
            batch: Batch::default(),
        };
        plan.denied_for = plan.entry.denied_for();
        if plan.denied_for.is_none() {
            plan.fill(hasher);
        }
        plan
    }

    /// What denies the request before any limit is asked.
    fn denied_for(&self) -> Option<DenialCause> {
        match self.admission {
            Admission::Denied(list) => Some(DenialCause::Listed { list: self.policy.list(list).list.name.clone() }),
            _ if self.bars() => Some(DenialCause::NotOnList),
            Admission::Banned => Some(DenialCause::Banned),
            Admission::Ordinary | Admission::Allowed(_) => None,
        }
    }
}

impl<'p> Plan<'p, '_> {
    /// What the store has to decide. Without charges there is nothing to decide.
    pub fn batch(&self) -> &Batch<'p> {
        &self.batch
    }

    /// What a store has to look at before `apply_bans`, where a key of a limit that spares known clients is banned. The
    /// client is a known one when every verdict is exempt. `left` says for how long a key is still banned.
    pub fn known_client_check(&self, left: impl Fn(KeyHash) -> Option<Duration>) -> Option<Batch<'p>> {
        let batch = self.batch();
        let charge =
            batch.charges.iter().find(|charge| charge.unless_known && Self::ban_left(charge, &left).is_some())?;
        (!batch.known.is_empty())
            .then(|| Batch { charges: [charge.clone()].into_iter().collect(), known: batch.known.clone() })
    }

    /// Denies banned keys of any limit, because an operator may ban any key. To be called once, before the store
    /// decides. `left` says for how long a key is still banned. `is_known` drops the limits that spare known clients.
    pub fn apply_bans(&mut self, is_known: bool, left: impl Fn(KeyHash) -> Option<Duration>) {
        if is_known {
            self.batch.charges.retain(|charge| !charge.unless_known);
            self.batch.known.clear();
        }
        let mut binds = false;
        for at in 0..self.batch.charges.len() {
            let charge = &self.batch.charges[at];
            let banned = Self::ban_left(charge, &left).map(|left| (left, charge.key));
            let planned = &mut self.limits[usize::from(charge.limit)];
            planned.banned = planned.banned.max(banned);
            binds |= banned.is_some();
        }
        if binds {
            self.keep_charges_of_denied();
        }
    }

    /// For how long the key of a charge is still banned. A shadow limit never bans.
    fn ban_left(charge: &Charge<'_>, left: impl Fn(KeyHash) -> Option<Duration>) -> Option<Duration> {
        if charge.force == Force::Shadow { None } else { left(charge.key) }
    }

    /// Keeps only the charges of a denied request: attempts, and those of shadow limits.
    fn keep_charges_of_denied(&mut self) {
        self.batch.charges.retain(|charge| charge.force == Force::Shadow || charge.count == Count::Attempts);
    }

    /// The route that forwards the request.
    pub fn route(&self) -> Option<RouteId> {
        self.entry.route()
    }

    /// The client as keys and lists see it.
    pub fn client(&self) -> IpAddr {
        self.entry.head.client.address()
    }

    /// Adds the charges, and what is needed to know the client.
    fn fill(&mut self, hasher: &KeyHasher) {
        let RoutedRequest { policy, head, admission, device_keys, .. } = self.entry;
        let with = |has: fn(&Route) -> bool| {
            self.entry.walk.collected.iter().copied().find(|&route| has(policy.routes.get(route)))
        };
        self.outcome = with(|route| route.outcome.is_some());
        let knowing_route = with(|route| route.known_clients.is_some());
        if matches!(admission, Admission::Allowed(_)) {
            return;
        }
        let limits = policy.applicable(&self.entry.walk.collected);
        if limits.is_empty() && knowing_route.is_none() {
            return;
        }
        let mut known = SmallVec::new();
        let walk = mem::take(&mut self.entry.walk);
        let charged = with_source(policy, head, self.fields, &walk, |source| {
            if let (Some(route), Some(by)) = (knowing_route, device_keys) {
                self.device = device::matching(policy, route, source, by);
            }
            let source = &Source { device: self.device.id(), ..*source };
            if let Some(route) = knowing_route {
                known = known_client_keys(policy, route, source, hasher);
                self.known_client = client_to_remember(policy, route, source, &known).map(|one| (route, one));
            }
            self.charge_all(&limits, source, hasher)
        });
        self.entry.walk = walk;
        if charged.is_err() {
            self.denied_for = Some(DenialCause::TooManyValues);
            self.limits.clear();
            self.batch.charges.clear();
        }
        if self.batch.charges.iter().any(|charge| charge.unless_known) {
            self.batch.known = known;
        }
    }

    fn charge_all(&mut self, limits: &[LimitId], source: &Source<'_>, hasher: &KeyHasher) -> Result<(), TooManyValues> {
        let mut denied = false;
        for &id in limits {
            let policy = self.entry.policy;
            let limit = policy.limit(id);
            if limit.unless_known && self.device.is_known {
                continue;
            }
            // Without `outcome` no answer has an outcome to count.
            if limit.count.outcome().is_some() && self.outcome.is_none() {
                continue;
            }
            let keys = match apply(policy, limit, source) {
                Ok(LimitApplication::Freed(_) | LimitApplication::Skipped) => continue,
                Ok(LimitApplication::Counted(keys)) => keys,
                Ok(LimitApplication::Denied) => {
                    denied |= !limit.shadow;
                    self.limits.push(PlannedLimit { limit: id, outright: true, is_undisputed: false, banned: None });
                    continue;
                }
                // A shadow limit denies nothing, however strange the request is.
                Err(TooManyValues) if limit.shadow => {
                    self.limits.push(PlannedLimit { limit: id, outright: true, is_undisputed: false, banned: None });
                    continue;
                }
                Err(too_many) => return Err(too_many),
            };
            let items = match items(limit, source, hasher) {
                Ok(items) => items,
                Err(TooManyValues) if limit.shadow => continue,
                Err(too_many) => return Err(too_many),
            };
            let is_undisputed = limit.reset_on.is_some() && undisputed::is_undisputed(&limit.key, source);
            let planned = PlannedLimit { limit: id, outright: false, is_undisputed, banned: None };
            self.charge(planned, limit, &keys, &items, hasher);
        }
        if denied {
            self.keep_charges_of_denied();
        }
        Ok(())
    }

    fn charge(
        &mut self,
        planned: PlannedLimit,
        limit: &'p Limit,
        keys: &[ExtractedKey],
        items: &Items,
        hasher: &KeyHasher,
    ) {
        let number = u16::try_from(self.limits.len()).expect("limits are numbered with 16 bits");
        self.limits.push(planned);
        let force = match limit.then.action {
            _ if limit.shadow => Force::Shadow,
            Action::Delay(_) => Force::Delay,
            _ => Force::Binding,
        };
        let count = match limit.rule {
            // A denied request takes no concurrency slot, so `count: attempts` means nothing here.
            Rule::Concurrent(_) => Count::Requests,
            Rule::Rates { .. } | Rule::Distinct(_) => limit.count,
        };
        self.batch.charges.extend(keys.iter().map(|found| Charge {
            limit: number,
            key: hasher.hash(&limit.name, &found.key),
            rule: &limit.rule,
            count,
            force,
            on_failure: limit.on_failure,
            items: Items::from_slice(items),
            unless_known: limit.unless_known,
        }));
    }
}

/// The different values that a limit counts.
fn items(limit: &Limit, source: &Source<'_>, hasher: &KeyHasher) -> Result<Items, TooManyValues> {
    let Some(part) = &limit.distinct else { return Ok(Items::new()) };
    let found = extract::distinct(part, source)?;
    Ok(found.iter().map(|value| hasher.item(value)).collect())
}

/// The keys under which a store may know the client: one for each user name in the request. Empty where the name is
/// missing, or where the gateway may not have seen all names.
fn known_client_keys(
    policy: &Policy,
    route: RouteId,
    source: &Source<'_>,
    hasher: &KeyHasher,
) -> SmallVec<[KnownClientKey; 1]> {
    let route = policy.routes.get(route);
    let Some(KnownClients { of, by: KnownBy::Address, prefix, .. }) = &route.known_clients else {
        return SmallVec::new();
    };
    let Ok(found) = extract::values(of, source) else { return SmallVec::new() };
    if found.absent || found.values.iter().any(|value| value.is_empty()) {
        return SmallVec::new();
    }
    let client = hasher.item(&extract::client(*prefix, source));
    let subject = |value: &str| {
        let mut key = Key::default();
        key.push(route.name.as_bytes());
        key.push(value.as_bytes());
        hasher.hash(KNOWN, &key)
    };
    found.values.iter().map(|value| KnownClientKey { subject: subject(value), client }).collect()
}

/// The client that is known after a success. `None` where the request has several names, because it is not certain
/// which one succeeds, or where the application may read another name.
fn client_to_remember(
    policy: &Policy,
    route: RouteId,
    source: &Source<'_>,
    known: &[KnownClientKey],
) -> Option<KnownClientKey> {
    let rule = policy.routes.get(route).known_clients.as_ref()?;
    let [one] = known else { return None };
    undisputed::part_is_undisputed(&rule.of, source).then_some(*one)
}

/// No limit has a name like this: names have no space.
const KNOWN: &str = "known clients";

/// What a limit makes of a request. Fails only where the client sent a field too often.
pub(super) fn apply(policy: &Policy, limit: &Limit, source: &Source<'_>) -> Result<LimitApplication, TooManyValues> {
    if let Some(list) = policy.holding(&limit.unless, source) {
        return Ok(LimitApplication::Freed(list));
    }
    let ExtractedKeys { mut keys, absent } = extract::keys(&limit.key, source)?;
    Ok(match limit.missing {
        Missing::Deny if absent => LimitApplication::Denied,
        Missing::Count | Missing::Deny => LimitApplication::Counted(keys),
        // A key with an empty value does not hide the other keys.
        Missing::Skip => {
            keys.retain(|candidate| !candidate.missing);
            if keys.is_empty() { LimitApplication::Skipped } else { LimitApplication::Counted(keys) }
        }
    })
}
