//! The second step: the keys a request is counted under, as one batch for a store.

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

/// What is to be decided, once the fields are known.
#[derive(Debug)]
pub struct Plan<'p, 'h> {
    /// What it was made from: the routes are those with the methods that the body names.
    pub(super) entry: RoutedRequest<'p, 'h>,
    pub(super) fields: &'h BodyFields,
    /// What denies the request before any limit is asked.
    pub(super) refusal: Option<DenialCause>,
    /// The limits that hold for the request: what the charges number.
    pub(super) limits: SmallVec<[PlannedLimit; 4]>,
    /// The route whose `outcome` says what the answer means.
    pub(super) outcome: Option<RouteId>,
    /// The route whose `known_clients` the client joins by a success, and under which name.
    pub(super) known_client: Option<(RouteId, KnownClientKey)>,
    /// What the device cookies of the request say.
    pub(super) device: DeviceMatch,
    batch: Batch<'p>,
}

/// A limit that holds for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PlannedLimit {
    pub(super) limit: LimitId,
    /// Denied whatever was counted: a part of the key is missing, and the limit says `missing: deny`.
    pub(super) outright: bool,
    /// Nobody doubts that the application acts on the key: what the answer means may reset it.
    pub(super) is_undisputed: bool,
    /// One of its keys is banned for so long: the longest, and that key.
    pub(super) banned: Option<(Duration, KeyHash)>,
}

/// What one limit makes of one request.
#[derive(Clone, Debug)]
pub(super) enum LimitApplication {
    /// It does not hold for members of this list.
    Freed(ListId),
    /// A part of its key is missing, and it says `missing: skip`.
    Skipped,
    /// A part of its key is missing, and it says `missing: deny`.
    Refused,
    Counted(SmallVec<[ExtractedKey; 1]>),
}

impl<'p, 'h> RoutedRequest<'p, 'h> {
    /// Extracts every key and settles which charges the store is asked for. `hasher` is the one of that store.
    pub fn plan(self, fields: &'h BodyFields, hasher: &KeyHasher) -> Plan<'p, 'h> {
        let mut plan = Plan {
            entry: self.with_body(fields),
            fields,
            refusal: None,
            limits: SmallVec::new(),
            outcome: None,
            known_client: None,
            device: DeviceMatch::default(),
            batch: Batch::default(),
        };
        plan.refusal = plan.entry.refusal();
        if plan.refusal.is_none() {
            plan.ask(hasher);
        }
        plan
    }

    /// What denies the request before any limit is asked.
    fn refusal(&self) -> Option<DenialCause> {
        match self.admission {
            Admission::Refused(list) => Some(DenialCause::Listed { list: self.policy.list(list).list.name.clone() }),
            _ if self.bars() => Some(DenialCause::NotOnList),
            Admission::Banned => Some(DenialCause::Banned),
            Admission::Ordinary | Admission::Allowed(_) => None,
        }
    }
}

impl<'p> Plan<'p, '_> {
    /// What the store is to decide; without charges there is nothing to ask it.
    pub fn batch(&self) -> &Batch<'p> {
        &self.batch
    }

    /// Whether it matters to a ban that the client may be known: what a store is to look at then, before `apply_bans`.
    /// The client is known when every verdict is exempt. `left` says for how long a key is banned.
    pub fn known_client_check(&self, left: impl Fn(KeyHash) -> Option<Duration>) -> Option<Batch<'p>> {
        let batch = self.batch();
        let charge = batch.charges.iter().find(|charge| charge.unless_known && Self::bans(charge, &left).is_some())?;
        (!batch.known.is_empty())
            .then(|| Batch { charges: [charge.clone()].into_iter().collect(), known: batch.known.clone() })
    }

    /// Denies what is banned: `left` says for how long a key still is, under whatever limit: by hand any key is banned.
    /// To be asked once, before the store decides. `is_known`: limits that do not hold for known clients do not hold.
    pub fn apply_bans(&mut self, is_known: bool, left: impl Fn(KeyHash) -> Option<Duration>) {
        if is_known {
            self.batch.charges.retain(|charge| !charge.unless_known);
            self.batch.known.clear();
        }
        let mut binds = false;
        for at in 0..self.batch.charges.len() {
            let charge = &self.batch.charges[at];
            let banned = Self::bans(charge, &left).map(|left| (left, charge.key));
            let planned = &mut self.limits[usize::from(charge.limit)];
            planned.banned = planned.banned.max(banned);
            binds |= banned.is_some();
        }
        if binds {
            self.charge_only_what_is_denied();
        }
    }

    /// For how long the key of a charge is still banned by its limit.
    fn bans(charge: &Charge<'_>, left: impl Fn(KeyHash) -> Option<Duration>) -> Option<Duration> {
        if charge.force == Force::Shadow { None } else { left(charge.key) }
    }

    /// Nothing is charged for what does not pass, but attempts and what shadows count alone.
    fn charge_only_what_is_denied(&mut self) {
        self.batch.charges.retain(|charge| charge.force == Force::Shadow || charge.count == Count::Attempts);
    }

    /// The route the request goes by.
    pub fn route(&self) -> Option<RouteId> {
        self.entry.route()
    }

    /// The address that keys and lists know the client by.
    pub fn client(&self) -> IpAddr {
        self.entry.head.client.address()
    }

    /// Settles what the store is asked, and for whom.
    fn ask(&mut self, hasher: &KeyHasher) {
        let RoutedRequest { policy, head, admission, device_keys, .. } = self.entry;
        let with = |has: fn(&Route) -> bool| {
            self.entry.walk.collected.iter().copied().find(|&route| has(policy.routes.get(route)))
        };
        self.outcome = with(|route| route.outcome.is_some());
        let acquainted = with(|route| route.known_clients.is_some());
        if matches!(admission, Admission::Allowed(_)) {
            return;
        }
        let limits = policy.applicable(&self.entry.walk.collected);
        if limits.is_empty() && acquainted.is_none() {
            return;
        }
        let mut named = SmallVec::new();
        let walk = mem::take(&mut self.entry.walk);
        let charged = with_source(policy, head, self.fields, &walk, |source| {
            if let (Some(route), Some(by)) = (acquainted, device_keys) {
                self.device = device::matching(policy, route, source, by);
            }
            let source = &Source { device: self.device.id(), ..*source };
            if let Some(route) = acquainted {
                named = subjects(policy, route, source, hasher);
                self.known_client = joins(policy, route, source, &named).map(|one| (route, one));
            }
            self.charge_all(&limits, source, hasher)
        });
        self.entry.walk = walk;
        if charged.is_err() {
            self.refusal = Some(DenialCause::TooManyValues);
            self.limits.clear();
            self.batch.charges.clear();
        }
        if self.batch.charges.iter().any(|charge| charge.unless_known) {
            self.batch.known = named;
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
            // Without an outcome no answer is ever one that counts.
            if limit.count.outcome().is_some() && self.outcome.is_none() {
                continue;
            }
            let keys = match apply(policy, limit, source) {
                Ok(LimitApplication::Freed(_) | LimitApplication::Skipped) => continue,
                Ok(LimitApplication::Counted(keys)) => keys,
                Ok(LimitApplication::Refused) => {
                    denied |= !limit.shadow;
                    self.limits.push(PlannedLimit { limit: id, outright: true, is_undisputed: false, banned: None });
                    continue;
                }
                // A shadow applies to nobody, however strange the request.
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
            self.charge_only_what_is_denied();
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
            // What was denied is not in flight.
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

/// The values that a limit tells apart.
fn items(limit: &Limit, source: &Source<'_>, hasher: &KeyHasher) -> Result<Items, TooManyValues> {
    let Some(part) = &limit.distinct else { return Ok(Items::new()) };
    let found = extract::distinct(part, source)?;
    Ok(found.iter().map(|value| hasher.item(value)).collect())
}

/// Whom the client may be known to: each subject that the request names. None where one is missing, or where not all of
/// them may have been seen.
fn subjects(policy: &Policy, route: RouteId, source: &Source<'_>, hasher: &KeyHasher) -> SmallVec<[KnownClientKey; 1]> {
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

/// Who is known from now on if this succeeds. Nobody where several names are read, of which nobody says which one
/// succeeded, or where the application may read another.
fn joins(policy: &Policy, route: RouteId, source: &Source<'_>, named: &[KnownClientKey]) -> Option<KnownClientKey> {
    let known = policy.routes.get(route).known_clients.as_ref()?;
    let [one] = named else { return None };
    undisputed::part_is_undisputed(&known.of, source).then_some(*one)
}

/// No limit has a name like this: names have no space.
const KNOWN: &str = "known clients";

/// What a limit makes of a request. Without a value that is sent too often this cannot fail.
pub(super) fn apply(policy: &Policy, limit: &Limit, source: &Source<'_>) -> Result<LimitApplication, TooManyValues> {
    if let Some(list) = policy.holding(&limit.unless, source) {
        return Ok(LimitApplication::Freed(list));
    }
    let ExtractedKeys { mut keys, absent } = extract::keys(&limit.key, source)?;
    Ok(match limit.missing {
        Missing::Deny if absent => LimitApplication::Refused,
        Missing::Count | Missing::Deny => LimitApplication::Counted(keys),
        // An empty value beside another does not hide the other.
        Missing::Skip => {
            keys.retain(|candidate| !candidate.missing);
            if keys.is_empty() { LimitApplication::Skipped } else { LimitApplication::Counted(keys) }
        }
    })
}
