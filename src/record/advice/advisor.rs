//! Keeps the advice that holds now.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tracing::warn;

use super::kind::Advice;
use super::kind::AdviceKind;
use super::observed::Observed;
use super::observed::ObservedLimit;
use super::observed::ObservedRoute;
use super::share::ENOUGH;
use super::share::Share;
use crate::clock::Timestamp;

/// The advice that holds now. It is logged when it begins.
#[derive(Debug, Default)]
pub struct Advisor {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By kind, and the name of the limit or route.
    advice: BTreeMap<(AdviceKind, String), Advice>,
    shares: BTreeMap<(AdviceKind, String), Share>,
    /// How many requests had passed when a limit was seen first, and had decided about by then.
    limits_since: BTreeMap<String, (u64, u64)>,
}

/// Advice that is to begin: what is said, and what to write.
struct Finding {
    message: String,
    help: String,
}

impl Advisor {
    /// The advice that holds, in the order of its kinds.
    pub fn advice(&self) -> Vec<Advice> {
        self.state.lock().advice.values().cloned().collect()
    }

    /// Judges what was counted so far. To be called every second.
    pub fn judge(&self, observed: &Observed, now: Timestamp) {
        let mut begun = Vec::new();
        {
            let mut state = self.state.lock();
            state.forget_others(observed);
            let mut judgement = Judgement { state: &mut state, now, begun: &mut begun };
            judgement.forwarding(observed);
            judgement.one_client(observed);
            for limit in &observed.limits {
                judgement.login_field(limit);
                judgement.never_counted(limit, observed.passed);
            }
            for route in &observed.routes {
                judgement.outcome(route);
            }
        }
        for Advice { kind, message, limit, route, help, .. } in &begun {
            let (limit, route) = (limit.as_deref(), route.as_deref());
            warn!(advice = kind.as_str(), limit, route, help, "{message}; {help}");
        }
    }
}

impl State {
    /// Drops what was known of limits and routes that are not in force any more.
    fn forget_others(&mut self, observed: &Observed) {
        let has_limit = |name: &str| observed.limits.iter().any(|limit| limit.name == name);
        let has_route = |name: &str| observed.routes.iter().any(|route| route.name == name);
        let is_there = |(kind, name): &(AdviceKind, String)| match kind {
            AdviceKind::MissingField | AdviceKind::LimitNeverCounted => has_limit(name),
            AdviceKind::OutcomeMatchesNeither => has_route(name),
            AdviceKind::UntrustedForwarding | AdviceKind::OneClient | AdviceKind::Check => true,
        };
        self.advice.retain(|subject, _| is_there(subject));
        self.shares.retain(|subject, _| is_there(subject));
        self.limits_since.retain(|name, _| has_limit(name));
    }
}

struct Judgement<'j> {
    state: &'j mut State,
    now: Timestamp,
    begun: &'j mut Vec<Advice>,
}

impl Judgement<'_> {
    fn forwarding(&mut self, observed: &Observed) {
        let kind = AdviceKind::UntrustedForwarding;
        let Some((all, part)) = self.share(kind, "", observed.passed, observed.untrusted_forwarding) else { return };
        // A few of them are clients that try it.
        let finding = (part * 10 >= all).then(|| Finding {
            message: format!(
                "{part} of the last {all} requests name their client in a forwarding header, and come from peers that are \
                 not in trusted_proxies: the header is ignored, and all clients behind a proxy count as one"
            ),
            help: "if that is a proxy of yours, write its address: `client_ip: {trusted_proxies: [ADDRESS]}`".to_owned(),
        });
        self.set(kind, "", finding);
    }

    fn one_client(&mut self, observed: &Observed) {
        let finding =
            observed.busiest_client.as_ref().filter(|(_, part, all)| *all >= ENOUGH && part * 100 >= all * 95);
        let finding = finding.map(|(client, part, all)| Finding {
            message: format!("{client} sent {part} of the last {all} requests: all clients behind it count as one"),
            help: format!("if that is a proxy or a load balancer, write `client_ip: {{trusted_proxies: [{client}]}}`"),
        });
        self.set(AdviceKind::OneClient, "", finding);
    }

    fn login_field(&mut self, limit: &ObservedLimit) {
        let ObservedLimit { name, login_field: Some(field), decided, lacking } = limit else { return };
        let kind = AdviceKind::MissingField;
        let Some((all, part)) = self.share(kind, name, *decided, *lacking) else { return };
        let finding = (part * 2 >= all).then(|| Finding {
            message: format!("{part} of the last {all} requests that met {name} lack {field}: they share one budget"),
            help: format!(
                "write the name that the application's form has in place of `{field}` in the key of {name}, and match \
                 only the requests that log in"
            ),
        });
        self.set(kind, name, finding);
    }

    fn never_counted(&mut self, limit: &ObservedLimit, passed: u64) {
        let ObservedLimit { name, decided, .. } = limit;
        let since = self.state.limits_since.entry(name.clone()).or_insert((passed, *decided));
        let meanwhile = passed.saturating_sub(since.0);
        let finding = (*decided == since.1 && meanwhile >= ENOUGH).then(|| Finding {
            message: format!("{name} has counted nothing while {meanwhile} requests passed"),
            help: format!(
                "see with `portcullis explain URL` which route such a request takes: does the `match` of the route of \
                 {name} name the right method and path, and does no route before it match?"
            ),
        });
        if *decided != since.1 {
            // From its first request on a limit is known to work.
            since.1 = u64::MAX;
        }
        self.set(AdviceKind::LimitNeverCounted, name, finding);
    }

    fn outcome(&mut self, route: &ObservedRoute) {
        let ObservedRoute { name, answers, neither } = route;
        let kind = AdviceKind::OutcomeMatchesNeither;
        let Some((all, part)) = self.share(kind, name, *answers, *neither) else { return };
        let finding = (part * 2 >= all).then(|| Finding {
            message: format!("{part} of the last {all} answers on {name} match neither side of its outcome"),
            help:
                "write what the application answers to a login: `outcome: {success: {status: 302}, otherwise: failure}`"
                    .to_owned(),
        });
        self.set(kind, name, finding);
    }

    fn share(&mut self, kind: AdviceKind, name: &str, all: u64, part: u64) -> Option<(u64, u64)> {
        let share = self.state.shares.entry((kind, name.to_owned()));
        share.or_insert_with(|| Share::from(0, 0)).take(all, part)
    }

    /// Begins, keeps or ends advice.
    fn set(&mut self, kind: AdviceKind, name: &str, finding: Option<Finding>) {
        let subject = (kind, name.to_owned());
        let Some(Finding { message, help }) = finding else {
            self.state.advice.remove(&subject);
            return;
        };
        let name = || Some(name.to_owned());
        let (limit, route) = match kind {
            AdviceKind::MissingField | AdviceKind::LimitNeverCounted => (name(), None),
            AdviceKind::OutcomeMatchesNeither => (None, name()),
            AdviceKind::UntrustedForwarding | AdviceKind::OneClient | AdviceKind::Check => (None, None),
        };
        let known = self.state.advice.get(&subject);
        let since = known.map_or(self.now, |known| known.since);
        let advice = Advice { kind, message, since, limit, route, help };
        if known.is_none() {
            self.begun.push(advice.clone());
        }
        self.state.advice.insert(subject, advice);
    }
}
