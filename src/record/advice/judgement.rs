//! Judges the counts: each kind of advice, one after another.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::finding::Finding;
use crate::record::advice::finding::AdviceKind;
use crate::record::advice::{Observed, ObservedLimit, ObservedRoute, UntrustedPeer};

/// A few addresses are a line to write.
const MAX_NAMED: usize = 4;

/// Fewer logins may be those of a scanner.
const ENOUGH_LOGINS: u64 = 10;

/// A store that had room for so many looks, one a second, is not full any more.
const FULL_FOR: u32 = 60;

/// The subject of a piece of advice: its kind, and the name of a limit or route.
pub(super) type AdviceSubject = (AdviceKind, String);

/// The earlier judgements.
#[derive(Debug, Default)]
pub(super) struct Judge {
    shares: BTreeMap<AdviceSubject, Share>,
    /// Since the last verdict.
    untrusted_peers: BTreeMap<IpAddr, UntrustedPeer>,
    first_seen: BTreeMap<String, FirstSeen>,
    /// New keys that had found no room at the last look, and how long ago some did, in looks.
    turned_away: u64,
    turned_away_before: u32,
}

/// The counts when a limit was seen first.
#[derive(Clone, Copy, Debug)]
struct FirstSeen {
    /// All requests that had passed.
    passed: u64,
    /// Requests on its routes.
    on_routes: u64,
    /// Requests that met it.
    met: u64,
    has_worked: bool,
}

/// Whether advice holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum AdviceStatus {
    Holds(Finding),
    DoesNotHold,
    /// Too few requests to judge: the last status stays.
    Unchanged,
}

impl Judge {
    /// A verdict for every subject.
    pub(super) fn judge(&mut self, observed: &Observed) -> Vec<(AdviceSubject, AdviceStatus)> {
        let mut verdicts = vec![
            ((AdviceKind::UntrustedForwarding, String::new()), self.forwarding(observed)),
            ((AdviceKind::OneClient, String::new()), one_client(observed)),
        ];
        let keys = observed.unavailable_keys.as_ref();
        let keys = keys.map_or(AdviceStatus::DoesNotHold, |keys| AdviceStatus::Holds(Finding::unavailable_keys(keys)));
        verdicts.push(((AdviceKind::KeysUnavailable, String::new()), keys));
        verdicts.push(((AdviceKind::StoreFull, String::new()), self.store_full(observed.turned_away)));
        for limit in &observed.limits {
            verdicts.push(((AdviceKind::MissingField, limit.name.clone()), self.login_field(limit)));
            verdicts.push(((AdviceKind::PatternMatchesNothing, limit.name.clone()), self.pattern(limit)));
            let verdict = self.never_counted(limit, observed);
            verdicts.push(((AdviceKind::LimitNeverCounted, limit.name.clone()), verdict));
        }
        for route in &observed.routes {
            verdicts.push(((AdviceKind::OutcomeMatchesNeither, route.name.clone()), self.outcome(route)));
        }
        for login in observed.unlimited_logins.iter().filter(|login| login.requests >= ENOUGH_LOGINS) {
            let verdict = AdviceStatus::Holds(Finding::unlimited_login(login));
            verdicts.push(((AdviceKind::UnlimitedLogin, login.path.clone()), verdict));
        }
        for near in observed.near_paths.iter().filter(|_| observed.passed >= ENOUGH) {
            let verdict = AdviceStatus::Holds(Finding::never_asked_for(near));
            verdicts.push(((AdviceKind::RouteNeverAskedFor, near.route.clone()), verdict));
        }
        for route in &observed.unseen {
            verdicts
                .push(((AdviceKind::AnswersUnseen, route.name.clone()), AdviceStatus::Holds(Finding::unseen(route))));
        }
        verdicts
    }

    /// Drops limits and routes that are not in force any more.
    pub(super) fn retain(&mut self, is_in_force: impl Fn(&AdviceSubject) -> bool) {
        self.shares.retain(|subject, _| is_in_force(subject));
        self.first_seen.retain(|name, _| is_in_force(&(AdviceKind::LimitNeverCounted, name.clone())));
    }

    fn forwarding(&mut self, observed: &Observed) -> AdviceStatus {
        for peer in &observed.untrusted_peers {
            let known = self.untrusted_peers.entry(peer.address);
            known.and_modify(|known| known.samples += peer.samples).or_insert_with(|| peer.clone());
        }
        let share = self.share(AdviceKind::UntrustedForwarding, "", observed.passed, observed.untrusted_forwarding);
        let Some((all, part)) = share else { return AdviceStatus::Unchanged };
        let peers = std::mem::take(&mut self.untrusted_peers);
        // A few of them are clients that try it.
        AdviceStatus::holds_if(part * 10 >= all, || Finding::untrusted_forwarding(all, part, &most_frequent(&peers)))
    }

    fn store_full(&mut self, turned_away: u64) -> AdviceStatus {
        let more = turned_away.saturating_sub(std::mem::replace(&mut self.turned_away, turned_away));
        if more > 0 {
            self.turned_away_before = 0;
            return AdviceStatus::Holds(Finding::store_full(more));
        }
        self.turned_away_before += 1;
        if self.turned_away_before < FULL_FOR { AdviceStatus::Unchanged } else { AdviceStatus::DoesNotHold }
    }

    fn login_field(&mut self, limit: &ObservedLimit) -> AdviceStatus {
        let Some(field) = &limit.login_field else { return AdviceStatus::DoesNotHold };
        let share = self.share(AdviceKind::MissingField, &limit.name, limit.decided, limit.lacking);
        let Some((all, part)) = share else { return AdviceStatus::Unchanged };
        AdviceStatus::holds_if(part * 2 >= all, || Finding::missing_field(limit, field, all, part))
    }

    fn pattern(&mut self, limit: &ObservedLimit) -> AdviceStatus {
        let Some(pattern) = &limit.pattern else { return AdviceStatus::DoesNotHold };
        let named = limit.decided.saturating_sub(limit.lacking);
        let share = self.share(AdviceKind::PatternMatchesNothing, &limit.name, named, limit.unmatched);
        let Some((all, part)) = share else { return AdviceStatus::Unchanged };
        AdviceStatus::holds_if(part == all, || Finding::pattern(limit, pattern, all))
    }

    fn never_counted(&mut self, limit: &ObservedLimit, Observed { passed, near_paths, .. }: &Observed) -> AdviceStatus {
        // Requests of clients that the limit spares are meant for it too.
        let met = if limit.spares_some { limit.decided.max(limit.passed) } else { limit.decided };
        let first = self.first_seen.entry(limit.name.clone());
        let first = first.or_insert(FirstSeen { passed: *passed, on_routes: limit.passed, met, has_worked: false });
        first.has_worked |= met != first.met;
        let meanwhile = passed.saturating_sub(first.passed);
        let on_routes = limit.passed.saturating_sub(first.on_routes);
        // Where other paths of the configuration are right, nobody has asked for this one.
        let is_unused = limit.others_are_met && !limit.routes.is_empty() && on_routes == 0;
        // Other advice says why.
        let is_elsewhere = near_paths.iter().any(|near| limit.routes.contains(&near.route));
        let is_unused = is_unused || is_elsewhere;
        let is_idle = !first.has_worked && !limit.waits_for_rare_requests && !is_unused && meanwhile >= ENOUGH;
        AdviceStatus::holds_if(is_idle, || Finding::never_counted(limit, meanwhile, on_routes))
    }

    fn outcome(&mut self, route: &ObservedRoute) -> AdviceStatus {
        let share = self.share(AdviceKind::OutcomeMatchesNeither, &route.name, route.answers, route.neither);
        let Some((all, part)) = share else { return AdviceStatus::Unchanged };
        AdviceStatus::holds_if(part * 2 >= all, || Finding::outcome(route, all, part))
    }

    fn share(&mut self, kind: AdviceKind, name: &str, all: u64, part: u64) -> Option<(u64, u64)> {
        let share = self.shares.entry((kind, name.to_owned()));
        share.or_insert_with(|| Share::from(0, 0)).take(all, part)
    }
}

impl AdviceStatus {
    fn holds_if(holds: bool, finding: impl FnOnce() -> Finding) -> Self {
        if holds { Self::Holds(finding()) } else { Self::DoesNotHold }
    }
}

fn one_client(observed: &Observed) -> AdviceStatus {
    let busiest = observed.busiest_client.as_ref().filter(|busiest| busiest.all >= ENOUGH);
    let Some(busiest) = busiest else { return AdviceStatus::Unchanged };
    AdviceStatus::holds_if(busiest.requests * 100 >= busiest.all * 95, || Finding::one_client(busiest))
}

/// The peers with a tenth of the requests, the busiest first.
fn most_frequent(peers: &BTreeMap<IpAddr, UntrustedPeer>) -> Vec<&UntrustedPeer> {
    let all: u64 = peers.values().map(|peer| peer.samples).sum();
    let mut frequent: Vec<_> = peers.values().filter(|peer| peer.samples * 10 >= all).collect();
    frequent.sort_by_key(|peer| std::cmp::Reverse(peer.samples));
    frequent.truncate(MAX_NAMED);
    frequent
}

// Judges the share of some among many, anew after each thousand.

/// Fewer requests say nothing.
pub(super) const ENOUGH: u64 = 1000;

/// The counts at the last verdict.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    all: u64,
    part: u64,
}

impl Share {
    /// Begins with the next request.
    pub(super) fn from(all: u64, part: u64) -> Self {
        Self { all, part }
    }

    /// The numbers since the last verdict, `(all, part)`, once they are [`ENOUGH`]; they then begin anew. A counter that went
    /// back counts from there. A request may be in `part` a moment before it is in `all`.
    pub(super) fn take(&mut self, all: u64, part: u64) -> Option<(u64, u64)> {
        let since = (all.saturating_sub(self.all), part.saturating_sub(self.part));
        if all < self.all || since.0 >= ENOUGH {
            *self = Self { all, part };
        }
        (since.0 >= ENOUGH).then_some((since.0, since.1.min(since.0)))
    }
}
