//! Logins that are limited only by client or only by account.

use crate::config::compile::compiler::Compiler;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::limit::Count;
use crate::config::raw::limit::KeyPart;
use crate::config::raw::limit::Limit;
use crate::key::Selector;
use crate::key::SelectorSubject;

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
