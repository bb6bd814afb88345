//! Logins that are limited only by client or only by account.

use http::StatusCode;

use crate::config::compile::document::Compiler;
use crate::config::compile::lists::KNOWN_CLIENT;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::limit::{KeyPart, Limit};
use crate::config::raw::then::Then;
use crate::config::source::SourceRange;
use crate::rules::key::{KeySpec, Selector, SelectorSubject};
use crate::rules::limit::{Count, ResetOutcome};
use crate::rules::outcome::{Matchers, StatusSet};
use crate::rules::route::{HostPattern, Route};
use crate::words::glob::Glob;

/// Whether the client chooses whose account a value is. Only who has signed in has a session or a token.
fn is_claimed(selector: &Selector) -> bool {
    selector.subject() == SelectorSubject::Account && !matches!(selector, Selector::User | Selector::Jwt(_))
}

fn counts_failures(limit: &Limit) -> bool {
    limit.count.get().is_some_and(|count| count.value == Count::Failures)
}

/// The selectors of the key and of `distinct`.
fn selectors(limit: &Limit) -> impl Iterator<Item = Selector> {
    let key = limit.key.get().map(|key| &key.items[..]).unwrap_or_default();
    let parts = key.iter().chain(limit.distinct.get());
    parts.flat_map(KeyPart::selectors).filter_map(|selector| selector.value.parse().ok())
}

// Bans of users who only mistype.

impl Compiler {
    /// An attacker may have many addresses or many names to try, so a login needs a limit for each client and one for each
    /// account, or for all of them together.
    pub(super) fn warn_of_login(&mut self, route: &raw::route::Route, document: &Document) {
        let Some(at) = route.outcome.key() else { return };
        let own = route.limits.get().map(|limits| &limits.items[..]).unwrap_or_default();
        // A limit for every request protects a login only if it counts failures.
        let everywhere = document.limits.get().map(|limits| &limits.items[..]).unwrap_or_default();
        let guards: Vec<&Limit> = own.iter().chain(everywhere.iter().filter(|limit| counts_failures(limit))).collect();
        if !guards.iter().any(|limit| counts_failures(limit)) {
            return;
        }
        let counts_everybody = guards.iter().any(|limit| counts_failures(limit) && selectors(limit).next().is_none());
        let distinguish = |subject| guards.iter().any(|limit| selectors(limit).any(|it| it.subject() == subject));
        match (distinguish(SelectorSubject::Client), distinguish(SelectorSubject::Account)) {
            (true, false) if !counts_everybody => self.mistakes.warn(
                at,
                "this login is limited only by client: guesses at one account from many addresses are never stopped",
                "add a limit for each account: `{key: param.username, rate: 20/hour, count: failures, reset_on: success}`",
            ),
            (false, true) if guards.iter().any(|limit| selectors(limit).any(|it| is_claimed(&it))) => self.mistakes.warn(
                at,
                "this login is limited only by account: one client that tries a password on many accounts is never stopped, and any client can lock users out",
                "add a limit for each client: `{key: client_ip, rate: 20/hour, count: failures}`",
            ),
            _ => {}
        }
    }
}

impl Compiler {
    /// Failures that are never reset add up to a ban of legitimate users.
    pub(super) fn warn_of_ban(&mut self, limit: &Limit) {
        let counts_failures = limit.count.get().is_some_and(|count| count.value == Count::Failures);
        let bans = matches!(limit.then.get(), Some(Then::Long(actions)) if actions.ban.get().is_some());
        let spares_known =
            limit.unless.get().is_some_and(|unless| unless.items.iter().any(|name| name.value == KNOWN_CLIENT));
        if counts_failures && bans && limit.reset_on.is_absent() && !spares_known {
            self.mistakes.warn(
                limit.then.key().unwrap_or(limit.at),
                "failures are never reset and lead to a ban: users who mistype now and then are banned like attackers, and so are users who share an address with one",
                "add `unless: [known_client]` with `known_clients` on the route, or count by a name too and add `reset_on: success`",
            );
        }
    }
}

impl Compiler {
    /// One name may belong to two people on two hosts. `what` is the key that `at` and `of` belong to.
    pub(super) fn warn_of_hosts(&mut self, at: SourceRange, what: &str, of: &KeySpec, route: &Route) {
        let is_one_host = route.condition.host.as_ref().is_some_and(HostPattern::is_exact);
        let names_host = of.parts.iter().flat_map(|part| part.selector.choices()).any(|it| *it == Selector::Host);
        if !is_one_host && !names_host {
            self.mistakes.warn(
                at,
                format!("`{what}` does not name `host`, and this route is for any: who signs in as `alice` on one site passes for `alice` on every other"),
                "write `of: [host, param.username]`, or the one host into the route's `match`",
            );
        }
    }

    /// A key of values that a client can invent for free limits no client.
    pub(super) fn warn_of_invented_key(&mut self, limit: &Limit, route: Option<&raw::route::Route>) {
        let parts = limit.key.get().map(|key| &key.items[..]).unwrap_or_default();
        let is_guarded = route.is_some_and(|route| !route.only.is_absent());
        let Some(first) = parts.first().filter(|_| !is_guarded && parts.iter().all(may_be_invented)) else { return };
        let named = first.selectors().find(|selector| is_invented(&selector.value)).unwrap_or(&first.selector);
        self.mistakes.warn(
            limit.key.key().unwrap_or(first.selector.at),
            format!("any client may invent a new `{}` for each request, and has a new budget each time", named.value),
            "count by what is proven, such as `jwt.sub`, `user` or `{first: [user, client_ip]}`, add `client_ip`, or let only a list in",
        );
    }

    /// An attacker who has an account signs in between guesses at others.
    pub(super) fn warn_of_reset(&mut self, limit: &Limit) {
        let parts = limit.key.get().map(|key| &key.items[..]).unwrap_or_default();
        let [only] = parts else { return };
        let resets = limit.reset_on.get().is_some_and(|on| on.value == ResetOutcome::Success);
        if resets && only.first.is_none() && only.selector.value.trim() == "client_ip" {
            self.mistakes.warn(
                limit.reset_on.key().unwrap_or(limit.at),
                "a success forgets all failures of this client: whoever has an account here signs in between guesses at other accounts",
                "count pairs, `key: [client_ip, param.username]`, or remove `reset_on`",
            );
        }
    }
}

impl Compiler {
    pub(super) fn warn_of_outcome(&mut self, raw: &raw::route::Route, route: &Route) {
        let Some(raw) = raw.outcome.get() else { return };
        let Some((rule, success)) = route.outcome.as_ref().and_then(|rule| Some((rule, rule.success.as_ref()?))) else {
            return;
        };
        let at = raw.success.key().unwrap_or(raw.at);
        if rule.failure.as_ref().is_some_and(|failure| holds_whenever(failure, success)) {
            self.mistakes.warn(
                raw.failure.key().unwrap_or(raw.at),
                "every success here is also a failure, and failure wins: no answer is ever a success",
                "add what differs: a header, a cookie that is set, or a text in the page",
            );
        } else if is_bare_redirect(success) && !rule.failure.as_ref().is_some_and(tells_more_than_a_status) {
            self.mistakes.warn(
                at,
                "success is any redirect: most applications redirect after a failed login too, or on another action, and each such answer counts as a success",
                "add what only a success has: `header: {location: \"/account*\"}`, or `cookie: session` for a cookie that it sets",
            );
        }
    }
}

// Names and tokens that do not identify a user.

/// Whether a client may choose the value without proof. A user name is not invented: attackers guess at existing ones.
fn may_be_invented(part: &KeyPart) -> bool {
    if let Some(first) = &part.first {
        return first.items.iter().any(may_be_invented);
    }
    let is_name = part.options.as_ref().is_some_and(|options| {
        !(options.fold.is_absent() && options.pattern.is_absent() && options.normalise.is_absent())
    });
    !is_name && is_invented(&part.selector.value)
}

fn is_invented(selector: &str) -> bool {
    let selector = selector.parse();
    matches!(selector, Ok(Selector::Bearer | Selector::Header(_) | Selector::Cookie(_) | Selector::Query(_)))
}

// Outcomes that cannot tell a success from a failure.

const REDIRECTS: [StatusCode; 5] = [
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::FOUND,
    StatusCode::SEE_OTHER,
    StatusCode::TEMPORARY_REDIRECT,
    StatusCode::PERMANENT_REDIRECT,
];

/// Whether one side certainly matches whenever the other does.
fn holds_whenever(side: &Matchers, other: &Matchers) -> bool {
    let status = side.status.as_ref().is_none_or(|set| {
        other
            .status
            .as_ref()
            .is_some_and(|other| statuses().all(|status| !other.contains(status) || set.contains(status)))
    });
    let body = side
        .body
        .as_ref()
        .is_none_or(|body| other.body.as_ref().is_some_and(|other| other.to_string() == body.to_string()));
    status
        && body
        && side.headers.iter().all(|header| other.headers.contains(header))
        && side.cookies.iter().all(|cookie| other.cookies.contains(cookie))
        && side.json.iter().all(|value| other.json.contains(value))
}

fn is_bare_redirect(side: &Matchers) -> bool {
    let redirects = |set: &StatusSet| REDIRECTS.iter().any(|status| set.contains(*status));
    side.status.as_ref().is_some_and(redirects) && !tells_more_than_a_status(side)
}

/// A glob that matches anything does not count: every redirect has a location.
fn tells_more_than_a_status(side: &Matchers) -> bool {
    let tells = |glob: &Glob| glob.to_string().chars().any(|letter| letter != '*');
    side.needs_body() || side.headers.iter().any(|(_, glob)| tells(glob)) || side.cookies.iter().any(tells)
}

fn statuses() -> impl Iterator<Item = StatusCode> {
    (100..600).filter_map(|code| StatusCode::from_u16(code).ok())
}
