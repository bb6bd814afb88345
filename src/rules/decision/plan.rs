//! The second step: makes one batch for a store of the keys that a request is counted under.

use std::mem;
use std::ops::ControlFlow;
use std::time::Duration;

use smallvec::SmallVec;

use super::enter::AccessDecision;
use super::known_client::ClientMatch;
use super::{Batch, DenialCause, PendingSignIn, RoutedRequest};
use crate::rules::decision::batch::{Force, Items};
use crate::rules::decision::{Charge, FoundKey, Policy};
use crate::rules::key::{
    Captures, ExtractedKey, ExtractedKeys, Identity, KeyHash, KeyHasher, TooManyValues, ValueSource, extract,
    undisputed,
};
use crate::rules::limit::{Action, Count, Limit, LimitId, Missing, Rule};
use crate::rules::list::ListId;
use crate::rules::request::{BodyFields, CanonicalHead, NotUnderstood};
use crate::rules::route::{Route, RouteId, Walk};

/// The charges of a request, once the fields of its body are known.
#[derive(Debug)]
pub struct Plan<'p, 'h> {
    /// Its routes include the routes of the methods that the body names.
    pub(super) entry: &'h RoutedRequest<'p, 'h>,
    pub(super) fields: &'h BodyFields,
    /// The cause that denies the request before any limit is asked.
    pub(super) denied_for: Option<DenialCause>,
    pub(super) charges: PlannedCharges<'p>,
    /// The route whose `outcome` classifies the answer.
    pub(super) outcome: Option<RouteId>,
    /// `None` on routes without `known_clients`.
    pub(super) client: Option<Box<ClientMatch>>,
    /// `None` on routes without `sessions`.
    pub(super) sign_in: Option<Box<PendingSignIn>>,
}

impl<'p> RoutedRequest<'p, '_> {
    /// Extracts every key and says what the store has to charge. `hasher` is the hasher of that store.
    #[inline]
    pub fn plan<'e>(&'e mut self, fields: &'e BodyFields, hasher: &KeyHasher) -> Plan<'p, 'e> {
        self.add_body(fields);
        let denied_for = self.denied_before_limits(hasher);
        let is_denied = denied_for.is_some();
        let mut plan = Plan {
            entry: self,
            fields,
            denied_for,
            charges: PlannedCharges::default(),
            outcome: None,
            client: None,
            sign_in: None,
        };
        if !is_denied {
            plan.fill(hasher);
        }
        plan
    }
}

impl<'p> Plan<'p, '_> {
    /// The batch for the store. Without charges there is nothing to decide.
    pub fn batch(&self) -> &Batch<'p> {
        &self.charges.batch
    }

    /// The keys that the store has to look up before `apply_bans`, if a limit that exempts known clients has banned a
    /// key. The client is a known one when every verdict is exempt. `left` says for how long a key is still banned.
    pub fn known_client_check(&self, left: impl Fn(KeyHash) -> Option<Duration>) -> Option<Batch<'p>> {
        let batch = self.batch();
        let charge = batch.charges.iter().find(|charge| charge.unless_known && ban_left(charge, &left).is_some())?;
        (!batch.known.is_empty())
            .then(|| Batch { charges: [charge.clone()].into_iter().collect(), known: batch.known.clone() })
    }

    /// Denies banned keys of any limit, because an operator may ban any key. To be called once, before the store
    /// decides. `left` says for how long a key is still banned. `is_known` drops the limits that exempt known clients.
    pub fn apply_bans(&mut self, is_known: bool, left: impl Fn(KeyHash) -> Option<Duration>) {
        let PlannedCharges { batch, .. } = &mut self.charges;
        if is_known {
            batch.charges.retain(|charge| !charge.unless_known);
            batch.known.clear();
        }
        self.charges.apply_bans(left);
    }

    /// The route that forwards the request.
    pub fn route(&self) -> Option<RouteId> {
        self.entry.route()
    }

    /// Adds the charges, and what is needed to know the client.
    fn fill(&mut self, hasher: &KeyHasher) {
        let &RoutedRequest { policy, head, access, device_keys, sessions, identity, is_end_seen, nonce, ref walk } =
            self.entry;
        let with =
            |has: fn(&Route) -> bool| walk.collected.iter().copied().find(|&route| has(policy.routes.get(route)));
        self.outcome = with(|route| route.outcome.is_some());
        let knowing_route = with(|route| route.known_clients.is_some());
        if let (Some(route), Some(sessions)) = (with(|route| route.sessions.is_some()), sessions) {
            self.sign_in = with_source(policy, head, self.fields, walk, identity, |source| {
                PendingSignIn::of(policy, route, source, sessions, hasher).map(Box::new)
            });
        }
        if matches!(access, AccessDecision::Allowed(_)) {
            return;
        }
        let charged = with_source(policy, head, self.fields, walk, identity, |source| {
            let mut source = *source;
            let mut is_known_device = false;
            if let Some(route) = knowing_route {
                let client = ClientMatch::of(policy, route, &source, device_keys, hasher);
                source.device = client.device.id();
                is_known_device = client.device.is_known;
                self.client = Some(Box::new(client));
            }
            policy.each_applicable(&walk.collected, |id| {
                let limit = policy.limit(id);
                // Without `outcome` no answer has an outcome to count.
                if limit.unless_known && is_known_device || limit.count.outcome().is_some() && self.outcome.is_none() {
                    return ControlFlow::Continue(());
                }
                if !is_end_seen && matches!(limit.rule, Rule::Concurrent(_)) {
                    return ControlFlow::Continue(());
                }
                match self.charges.add(policy, id, &source, hasher, nonce) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(too_many) => ControlFlow::Break(too_many),
                }
            })
        });
        if charged == ControlFlow::Break(TooManyValues) {
            self.denied_for = Some(DenialCause::TooManyValues);
            self.charges = PlannedCharges::default();
            return;
        }
        if self.charges.deny_outright(policy) {
            self.charges.keep_charges_of_denied();
        }
        let batch = &mut self.charges.batch;
        if let Some(client) = &mut self.client
            && batch.charges.iter().any(|charge| charge.unless_known)
        {
            batch.known = mem::take(&mut client.keys);
        }
    }
}

// Gathers what selectors read from.

/// Calls `then` with everything that selectors read from, for a request that takes the routes of `walk`.
pub(super) fn with_source<T>(
    policy: &Policy,
    head: &CanonicalHead<'_>,
    fields: &BodyFields,
    walk: &Walk,
    identity: Identity<'_>,
    then: impl FnOnce(&ValueSource<'_>) -> T,
) -> T {
    let mut routes: SmallVec<[&str; 4]> = SmallVec::new();
    let mut captures = Captures::new();
    for route in walk.collected.iter().map(|&route| policy.routes.get(route)) {
        routes.push(&route.name);
        route.condition.capture(head, &mut captures);
    }
    then(&ValueSource { head, fields, routes: &routes, captures: &captures, device: None, identity })
}

// The charges of each limit of a plan.

/// The limits that hold for a request, and what they charge.
#[derive(Debug, Default)]
pub(super) struct PlannedCharges<'p> {
    /// Charges name them by their position.
    pub(super) limits: SmallVec<[PlannedLimit; 4]>,
    pub(super) batch: Batch<'p>,
    /// The longest ban of the keys of each limit, for the few requests that have a banned key.
    bans: Vec<PlannedBan>,
    /// Why a part that a limit counts is not understood.
    pub(super) unread: Option<NotUnderstood>,
}

/// A ban that began before the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedBan {
    /// The position of the limit in the plan.
    limit: u16,
    pub(super) left: Duration,
    pub(super) key: KeyHash,
}

/// A limit that holds for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PlannedLimit {
    pub(super) limit: LimitId,
    /// Denies without counting: a part of the key is missing, and the limit says `missing: deny`.
    pub(super) outright: bool,
    /// Whether the request has the whole key.
    pub(super) found: FoundKey,
    /// The application certainly reads the same key, so that a success may reset it.
    pub(super) is_undisputed: bool,
}

/// How one limit charges one request.
#[derive(Clone, Debug)]
pub(super) enum LimitApplication {
    /// Its `unless` names this list, which holds the client.
    Freed(ListId),
    /// A part of its key is missing, and it says `missing: skip`.
    Skipped,
    /// A part of its key is missing, and it says `missing: deny`. With why it is not understood, if it is there.
    Denied(Option<NotUnderstood>),
    Counted(ExtractedKeys),
}

impl<'p> PlannedCharges<'p> {
    /// Adds a limit that holds for a request.
    pub(super) fn add(
        &mut self,
        policy: &'p Policy,
        id: LimitId,
        source: &ValueSource<'_>,
        hasher: &KeyHasher,
        nonce: u64,
    ) -> Result<(), TooManyValues> {
        let limit = policy.limit(id);
        let ExtractedKeys { keys, unread, .. } = match apply(policy, limit, source) {
            Ok(LimitApplication::Freed(_) | LimitApplication::Skipped) => return Ok(()),
            Ok(LimitApplication::Counted(extracted)) => extracted,
            Ok(LimitApplication::Denied(unread)) => {
                self.unread = self.unread.or(unread);
                self.limits.push(PlannedLimit {
                    limit: id,
                    outright: true,
                    found: FoundKey::Lacking,
                    is_undisputed: false,
                });
                return Ok(());
            }
            // A shadow limit denies nothing, not even an abnormal request.
            Err(TooManyValues) if limit.shadow => {
                self.limits.push(PlannedLimit {
                    limit: id,
                    outright: true,
                    found: FoundKey::Whole,
                    is_undisputed: false,
                });
                return Ok(());
            }
            Err(too_many) => return Err(too_many),
        };
        self.unread = self.unread.or(unread);
        let mut found = found_key(&keys);
        let items = match self.items(limit, source, hasher, nonce) {
            Ok((items, is_unmatched)) => {
                found = if is_unmatched { FoundKey::Unmatched } else { found };
                items
            }
            Err(TooManyValues) if limit.shadow => return Ok(()),
            Err(too_many) => return Err(too_many),
        };
        let is_undisputed = limit.reset_on.is_some() && undisputed::is_undisputed(&limit.key, source);
        let number = u16::try_from(self.limits.len()).expect("limits are numbered with 16 bits");
        self.limits.push(PlannedLimit { limit: id, outright: false, found, is_undisputed });
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
        for found in &keys {
            self.batch.charges.push(Charge {
                limit: number,
                key: hasher.counted(&limit.name, &limit.key, &found.key),
                rule: &limit.rule,
                count,
                force,
                on_failure: limit.on_failure,
                items: if items.is_empty() { Items::new() } else { items.clone() },
                unless_known: limit.unless_known,
                is_free: false,
                leases: limit.may_be_held(),
            });
        }
        Ok(())
    }

    /// The different values that a limit counts, and whether one does not match its pattern. One that is not understood is
    /// new each time.
    fn items(
        &mut self,
        limit: &Limit,
        source: &ValueSource<'_>,
        hasher: &KeyHasher,
        nonce: u64,
    ) -> Result<(Items, bool), TooManyValues> {
        let Some(part) = &limit.distinct else { return Ok((Items::new(), false)) };
        let ExtractedKeys { keys, unread, .. } = extract::distinct(part, source)?;
        self.unread = self.unread.or(unread);
        let is_unread = |found: &ExtractedKey| found.missing && unread.is_some();
        let items = keys.iter().map(|found| if is_unread(found) { nonce } else { hasher.item(&found.key) });
        Ok((items.collect(), keys.iter().any(|found| found.is_unmatched)))
    }

    /// Whether a limit that is not in shadow mode denies without counting.
    pub(super) fn deny_outright(&self, policy: &Policy) -> bool {
        self.limits.iter().any(|planned| planned.outright && !policy.limit(planned.limit).shadow)
    }

    /// Denies banned keys. `left` says for how long a key is still banned.
    pub(super) fn apply_bans(&mut self, left: impl Fn(KeyHash) -> Option<Duration>) {
        for charge in &self.batch.charges {
            if let Some(left) = ban_left(charge, &left) {
                self.bans.push(PlannedBan { limit: charge.limit, left, key: charge.key });
            }
        }
        if !self.bans.is_empty() {
            self.keep_charges_of_denied();
        }
    }

    /// The longest ban of the keys of the limit at this position.
    pub(super) fn ban_of(&self, number: usize) -> Option<PlannedBan> {
        let bans = self.bans.iter().filter(|ban| usize::from(ban.limit) == number);
        bans.max_by_key(|ban| (ban.left, ban.key)).copied()
    }

    /// For how long this key is still banned.
    pub(super) fn ban_left(&self, key: KeyHash) -> Option<Duration> {
        self.bans.iter().find(|ban| ban.key == key).map(|ban| ban.left)
    }

    /// The keys that the store is asked about, and the limit of each.
    pub(super) fn counted_keys(&self) -> impl Iterator<Item = (LimitId, KeyHash)> {
        let limit = |number: u16| self.limits[usize::from(number)].limit;
        self.batch.charges.iter().map(move |charge| (limit(charge.limit), charge.key))
    }

    /// Keeps only the charges of a denied request: attempts, and charges of shadow limits.
    pub(super) fn keep_charges_of_denied(&mut self) {
        self.batch.charges.retain(|charge| charge.force == Force::Shadow || charge.count == Count::Attempts);
    }
}

/// Whether a request has a whole key.
fn found_key(keys: &[ExtractedKey]) -> FoundKey {
    if keys.iter().all(|key| key.missing) {
        FoundKey::Lacking
    } else if keys.iter().any(|key| key.is_unmatched) {
        FoundKey::Unmatched
    } else {
        FoundKey::Whole
    }
}

/// For how long the key of a charge is still banned. A shadow limit never bans.
pub(super) fn ban_left(charge: &Charge<'_>, left: impl Fn(KeyHash) -> Option<Duration>) -> Option<Duration> {
    if charge.force == Force::Shadow { None } else { left(charge.key) }
}

/// How a limit charges a request. Fails only if the client sent a field too often.
pub(super) fn apply(
    policy: &Policy,
    limit: &Limit,
    source: &ValueSource<'_>,
) -> Result<LimitApplication, TooManyValues> {
    if let Some(list) = policy.list_with_all_values(&limit.unless, source) {
        return Ok(LimitApplication::Freed(list));
    }
    let mut extracted = extract::keys(&limit.key, source)?;
    Ok(match limit.missing {
        Missing::Deny if extracted.absent => LimitApplication::Denied(extracted.unread),
        Missing::Count | Missing::Deny => LimitApplication::Counted(extracted),
        // A key with an empty value does not hide the other keys. A part that is not understood is not missing.
        Missing::Skip => {
            extracted.keys.retain(|candidate| !candidate.surely_missing);
            if extracted.keys.is_empty() { LimitApplication::Skipped } else { LimitApplication::Counted(extracted) }
        }
    })
}
