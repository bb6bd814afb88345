//! Judges what was counted: each kind of advice, one after another.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::finding::Finding;
use super::kind::AdviceKind;
use super::observed::Observed;
use super::observed::ObservedLimit;
use super::observed::ObservedRoute;
use super::share::ENOUGH;
use super::share::Share;
use super::untrusted_forwarding::UntrustedPeer;

/// What a piece of advice is about: its kind, and the name of a limit or route.
pub(super) type Subject = (AdviceKind, String);

/// What was judged before.
#[derive(Debug, Default)]
pub(super) struct Judge {
    shares: BTreeMap<Subject, Share>,
    /// Since the last verdict.
    untrusted_peers: BTreeMap<IpAddr, UntrustedPeer>,
    first_seen: BTreeMap<String, FirstSeen>,
}

/// The counts when a limit was seen first.
#[derive(Clone, Copy, Debug)]
struct FirstSeen {
    /// All requests that had passed.
    passed: u64,
    /// Those on its routes.
    on_routes: u64,
    /// Those that had met it.
    met: u64,
    has_worked: bool,
}

/// Whether advice holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    Holds(Finding),
    HoldsNot,
    /// Too few requests to say: what was said stays.
    AsBefore,
}

impl Judge {
    /// A verdict for every subject.
    pub(super) fn judge(&mut self, observed: &Observed) -> Vec<(Subject, Verdict)> {
        let mut verdicts = vec![
            ((AdviceKind::UntrustedForwarding, String::new()), self.forwarding(observed)),
            ((AdviceKind::OneClient, String::new()), one_client(observed)),
        ];
        let keys = observed.unavailable_keys.as_ref();
        let keys = keys.map_or(Verdict::HoldsNot, |keys| Verdict::Holds(Finding::unavailable_keys(keys)));
        verdicts.push(((AdviceKind::KeysUnavailable, String::new()), keys));
        for limit in &observed.limits {
            verdicts.push(((AdviceKind::MissingField, limit.name.clone()), self.login_field(limit)));
            verdicts.push(((AdviceKind::PatternMatchesNothing, limit.name.clone()), self.pattern(limit)));
            let verdict = self.never_counted(limit, observed.passed);
            verdicts.push(((AdviceKind::LimitNeverCounted, limit.name.clone()), verdict));
        }
        for route in &observed.routes {
            verdicts.push(((AdviceKind::OutcomeMatchesNeither, route.name.clone()), self.outcome(route)));
        }
        for route in &observed.unseen {
            verdicts.push(((AdviceKind::AnswersUnseen, route.name.clone()), Verdict::Holds(Finding::unseen(route))));
        }
        verdicts
    }

    /// Drops what is not in force any more.
    pub(super) fn retain(&mut self, is_in_force: impl Fn(&Subject) -> bool) {
        self.shares.retain(|subject, _| is_in_force(subject));
        self.first_seen.retain(|name, _| is_in_force(&(AdviceKind::LimitNeverCounted, name.clone())));
    }

    fn forwarding(&mut self, observed: &Observed) -> Verdict {
        for peer in &observed.untrusted_peers {
            let known = self.untrusted_peers.entry(peer.address);
            known.and_modify(|known| known.samples += peer.samples).or_insert_with(|| peer.clone());
        }
        let share = self.share(AdviceKind::UntrustedForwarding, "", observed.passed, observed.untrusted_forwarding);
        let Some((all, part)) = share else { return Verdict::AsBefore };
        let peers = std::mem::take(&mut self.untrusted_peers);
        // A few of them are clients that try it.
        Verdict::when(part * 10 >= all, || Finding::untrusted_forwarding(all, part, &most_frequent(&peers)))
    }

    fn login_field(&mut self, limit: &ObservedLimit) -> Verdict {
        let Some(field) = &limit.login_field else { return Verdict::HoldsNot };
        let share = self.share(AdviceKind::MissingField, &limit.name, limit.decided, limit.lacking);
        let Some((all, part)) = share else { return Verdict::AsBefore };
        Verdict::when(part * 2 >= all, || Finding::missing_field(limit, field, all, part))
    }

    fn pattern(&mut self, limit: &ObservedLimit) -> Verdict {
        let Some(pattern) = &limit.pattern else { return Verdict::HoldsNot };
        let named = limit.decided.saturating_sub(limit.lacking);
        let share = self.share(AdviceKind::PatternMatchesNothing, &limit.name, named, limit.unmatched);
        let Some((all, part)) = share else { return Verdict::AsBefore };
        Verdict::when(part == all, || Finding::pattern(limit, pattern, all))
    }

    fn never_counted(&mut self, limit: &ObservedLimit, passed: u64) -> Verdict {
        // Requests of clients that the limit spares are meant for it too.
        let met = if limit.spares_some { limit.decided.max(limit.passed) } else { limit.decided };
        let first = self.first_seen.entry(limit.name.clone());
        let first = first.or_insert(FirstSeen { passed, on_routes: limit.passed, met, has_worked: false });
        first.has_worked |= met != first.met;
        let meanwhile = passed.saturating_sub(first.passed);
        let on_routes = limit.passed.saturating_sub(first.on_routes);
        let is_idle = !first.has_worked && !limit.waits_for_rare_requests && meanwhile >= ENOUGH;
        Verdict::when(is_idle, || Finding::never_counted(limit, meanwhile, on_routes))
    }

    fn outcome(&mut self, route: &ObservedRoute) -> Verdict {
        let share = self.share(AdviceKind::OutcomeMatchesNeither, &route.name, route.answers, route.neither);
        let Some((all, part)) = share else { return Verdict::AsBefore };
        Verdict::when(part * 2 >= all, || Finding::outcome(route, all, part))
    }

    fn share(&mut self, kind: AdviceKind, name: &str, all: u64, part: u64) -> Option<(u64, u64)> {
        let share = self.shares.entry((kind, name.to_owned()));
        share.or_insert_with(|| Share::from(0, 0)).take(all, part)
    }
}

impl Verdict {
    fn when(holds: bool, finding: impl FnOnce() -> Finding) -> Self {
        if holds { Self::Holds(finding()) } else { Self::HoldsNot }
    }
}

fn one_client(observed: &Observed) -> Verdict {
    let busiest = observed.busiest_client.as_ref().filter(|busiest| busiest.all >= ENOUGH);
    let Some(busiest) = busiest else { return Verdict::AsBefore };
    Verdict::when(busiest.requests * 100 >= busiest.all * 95, || Finding::one_client(busiest))
}

/// The peers with a tenth of the requests, the busiest first.
fn most_frequent(peers: &BTreeMap<IpAddr, UntrustedPeer>) -> Vec<&UntrustedPeer> {
    let all: u64 = peers.values().map(|peer| peer.samples).sum();
    let mut frequent: Vec<_> = peers.values().filter(|peer| peer.samples * 10 >= all).collect();
    frequent.sort_by_key(|peer| std::cmp::Reverse(peer.samples));
    frequent.truncate(MAX_NAMED);
    frequent
}

/// A few addresses are a line to write.
const MAX_NAMED: usize = 4;
