//! All rules of a configuration, compiled. Each request holds the policy that it started with to its end.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::rules::client::{Prefix, Reputation};
use crate::rules::key::extract::{each_value, not_understood};
use crate::rules::key::{KeyPart, Selector, ValueSource};
use crate::rules::limit::{Action, DenyResponse, Limit, LimitId, OnFailure};
use crate::rules::list::{List, ListId, Members, Membership};
use crate::rules::route::{Route, RouteId, RouteTable, SessionCarriers, UpstreamId};

/// The rules in force.
#[derive(Clone, Debug)]
pub struct Policy {
    pub lists: Vec<PolicyList>,
    pub access: Access,
    /// How many bits of an address make one client.
    pub client_prefix: Prefix,
    /// Every limit of the configuration, each name once.
    pub limits: Vec<Limit>,
    /// The limits that hold for every request.
    pub everywhere: Vec<LimitId>,
    pub routes: RouteTable,
    /// The upstream of requests without a route.
    pub upstream: UpstreamId,
    pub deny_response: DenyResponse,
    /// The names of the channels of `notify`, by `ChannelId`.
    pub channels: Vec<Arc<str>>,
    /// Where requests to any route carry sessions.
    pub session_carriers: SessionCarriers,
}

/// A list, and what of a request is looked up in it.
#[derive(Clone, Debug)]
pub struct PolicyList {
    pub list: List,
    /// `None`: the client's address.
    pub of: Option<KeyPart>,
}

/// The lists that decide before any limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Access {
    pub allow: Vec<ListId>,
    pub deny: Vec<ListId>,
}

impl Policy {
    pub fn limit(&self, id: LimitId) -> &Limit {
        &self.limits[usize::from(id.0)]
    }

    /// The limits that do this while the store does not answer. A shadow denies no request, and is none of them.
    pub fn limits_on_failure(&self, on_failure: OnFailure) -> impl Iterator<Item = &Limit> {
        self.limits.iter().filter(move |limit| limit.on_failure == on_failure && !limit.shadow)
    }

    /// Whether a limit holds for every request.
    pub fn is_everywhere(&self, limit: &Limit) -> bool {
        self.everywhere.iter().any(|&id| self.limit(id).name == limit.name)
    }

    pub fn list(&self, id: ListId) -> &PolicyList {
        &self.lists[usize::from(id.0)]
    }

    /// Whether any limit challenges, or a list that denies may.
    pub fn challenges(&self) -> bool {
        let mut denying = self.access.deny.iter().map(|&list| &self.list(list).list.members);
        self.limits.iter().any(|limit| matches!(limit.then.action, Action::Challenge))
            || denying.any(|members| matches!(members, Members::Followed(_)))
    }

    /// The first list of `access.deny` that wants the client challenged.
    pub(super) fn challenging(&self, reputation: Reputation) -> Option<ListId> {
        let mut denying = self.access.deny.iter().copied();
        denying.find(|&list| match self.list(list).list.members {
            Members::Followed(number) => reputation.is_challenged_by(number),
            Members::Addresses(_) | Members::Values(_) => false,
        })
    }

    /// Calls `then` with each limit for a request that takes these routes, once: first the global limits, then the
    /// limits of the routes. Stops when `then` breaks.
    pub(super) fn each_applicable<B>(
        &self,
        routes: &[RouteId],
        mut then: impl FnMut(LimitId) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.everywhere.iter().try_for_each(|&limit| then(limit))?;
        for (position, &route) in routes.iter().enumerate() {
            let limits = &self.routes.get(route).limits;
            for (place, limit) in limits.iter().enumerate() {
                let is_in = |&earlier: &RouteId| self.routes.get(earlier).limits.contains(limit);
                let is_known = self.everywhere.contains(limit) || limits[..place].contains(limit);
                if !is_known && !routes[..position].iter().any(is_in) {
                    then(*limit)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether the body may hold a part of the key of a limit, the values that it counts, or the value of a list in
    /// `unless`.
    pub(super) fn reads_body(&self, limit: LimitId) -> bool {
        let limit = self.limit(limit);
        let lists = limit.unless.iter().filter_map(|&list| self.list(list).of.as_ref());
        // A body may override the method.
        let parts = limit.key.parts.iter().chain(&limit.distinct).chain(lists);
        let mut selectors = parts.into_iter().flat_map(|part| part.selector.choices());
        selectors.any(|selector| selector.needs_body() || *selector == Selector::Method)
    }

    /// Whether any rule needs what a token claims.
    pub fn reads_claims(&self) -> bool {
        (0..).map(LimitId).zip(&self.limits).any(|(id, _)| self.limit_reads_claims(id))
            || self.routes.all().iter().any(|route| self.route_reads_claims(route))
    }

    /// Whether a limit needs what a token claims.
    pub(super) fn limit_reads_claims(&self, limit: LimitId) -> bool {
        let limit = self.limit(limit);
        let lists = limit.unless.iter().filter_map(|&list| self.list(list).of.as_ref());
        limit.key.parts.iter().chain(&limit.distinct).chain(lists).any(part_reads_claims)
    }

    /// Whether a route needs what a token claims, beside its limits.
    pub(super) fn route_reads_claims(&self, route: &Route) -> bool {
        let lists = route.only.iter().flatten().filter_map(|&list| self.list(list).of.as_ref());
        let known = route.known_clients.iter().flat_map(|known| &known.of.parts);
        let signed_in = route.sessions.iter().flat_map(|sessions| &sessions.of.parts);
        lists.chain(known).chain(signed_in).any(part_reads_claims)
    }

    /// How a request stands to a list.
    pub(super) fn membership(&self, list: ListId, source: &ValueSource<'_>) -> Membership {
        let PolicyList { list, of } = self.list(list);
        match (&list.members, of) {
            (Members::Addresses(addresses), _) if addresses.contains(source.head.client) => Membership::All,
            (Members::Values(values), Some(part)) => {
                let (mut inside, mut outside) = (false, false);
                each_value(part, source, &mut |value| {
                    let is_member = values.contains(&value);
                    inside |= is_member;
                    outside |= !is_member;
                });
                // A part that is not understood may hold another value.
                outside |= inside && not_understood(part, source).is_some();
                match (inside, outside) {
                    (false, _) => Membership::None,
                    (true, true) => Membership::Some,
                    (true, false) => Membership::All,
                }
            }
            (Members::Followed(list), _) if source.head.reputation.is_banned_by(*list) => Membership::All,
            (Members::Addresses(_) | Members::Values(_) | Members::Followed(_), _) => Membership::None,
        }
    }

    /// The first of `lists` that holds every value of a request. For lists that allow: no value may be outside.
    pub(super) fn list_with_all_values(&self, lists: &[ListId], source: &ValueSource<'_>) -> Option<ListId> {
        lists.iter().copied().find(|&list| self.membership(list, source) == Membership::All)
    }

    /// The first of `lists` that holds any value of a request. For lists that deny: one value is enough.
    pub(super) fn list_with_any_value(&self, lists: &[ListId], source: &ValueSource<'_>) -> Option<ListId> {
        lists.iter().copied().find(|&list| self.membership(list, source) != Membership::None)
    }
}

fn part_reads_claims(part: &KeyPart) -> bool {
    part.selector.choices().any(|selector| matches!(selector, Selector::Jwt(_)))
}
