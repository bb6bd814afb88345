//! The second step: makes one batch for a store of the keys that a request is counted under.

use std::mem;
use std::ops::ControlFlow;
use std::time::Duration;

use super::Batch;
use super::DenialCause;
use super::PendingSignIn;
use super::RoutedRequest;
use super::charges::PlannedCharges;
use super::charges::ban_left;
use super::enter::Admission;
use super::known_client::ClientMatch;
use super::source::with_source;
use crate::key::KeyHash;
use crate::key::KeyHasher;
use crate::key::TooManyValues;
use crate::limit::Rule;
use crate::request::BodyFields;
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
    pub(super) charges: PlannedCharges<'p>,
    /// The route whose `outcome` classifies the answer.
    pub(super) outcome: Option<RouteId>,
    /// `None` on routes without `known_clients`.
    pub(super) client: Option<Box<ClientMatch>>,
    /// `None` on routes without `sessions`.
    pub(super) sign_in: Option<Box<PendingSignIn>>,
}

impl<'p, 'h> RoutedRequest<'p, 'h> {
    /// Extracts every key and says what the store has to charge. `hasher` is the hasher of that store.
    pub fn plan(self, fields: &'h BodyFields, hasher: &KeyHasher) -> Plan<'p, 'h> {
        let mut plan = Plan {
            entry: self.with_body(fields),
            fields,
            denied_for: None,
            charges: PlannedCharges::default(),
            outcome: None,
            client: None,
            sign_in: None,
        };
        plan.denied_for = plan.entry.denied_for(hasher);
        if plan.denied_for.is_none() {
            plan.fill(hasher);
        }
        plan
    }

    /// What denies the request before any limit is asked.
    fn denied_for(&self, hasher: &KeyHasher) -> Option<DenialCause> {
        match self.admission {
            Admission::Denied(list) => Some(DenialCause::Listed { list: self.policy.list(list).list.name.clone() }),
            _ if self.bars() => Some(DenialCause::NotOnList),
            Admission::Banned => Some(DenialCause::Banned),
            Admission::Challenged(_) => self.list_challenge(hasher).map(DenialCause::Challenged),
            Admission::Ordinary | Admission::Allowed(_) => None,
        }
    }
}

impl<'p> Plan<'p, '_> {
    /// What the store has to decide. Without charges there is nothing to decide.
    pub fn batch(&self) -> &Batch<'p> {
        &self.charges.batch
    }

    /// What a store has to look at before `apply_bans`, where a key of a limit that spares known clients is banned. The
    /// client is a known one when every verdict is exempt. `left` says for how long a key is still banned.
    pub fn known_client_check(&self, left: impl Fn(KeyHash) -> Option<Duration>) -> Option<Batch<'p>> {
        let batch = self.batch();
        let charge = batch.charges.iter().find(|charge| charge.unless_known && ban_left(charge, &left).is_some())?;
        (!batch.known.is_empty())
            .then(|| Batch { charges: [charge.clone()].into_iter().collect(), known: batch.known.clone() })
    }

    /// Denies banned keys of any limit, because an operator may ban any key. To be called once, before the store
    /// decides. `left` says for how long a key is still banned. `is_known` drops the limits that spare known clients.
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
        let RoutedRequest { policy, head, admission, device_keys, sessions, identity, is_end_seen, nonce, ref walk } =
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
        if matches!(admission, Admission::Allowed(_)) {
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
