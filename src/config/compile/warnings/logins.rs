//! Logins of which only one side is guarded.

use crate::config::compile::compiler::Compiler;
use crate::config::raw;
use crate::config::raw::Document;
use crate::config::raw::limit::Count;
use crate::config::raw::limit::Limit;
use crate::key::Selector;

impl Compiler {
    /// A guesser has many addresses, or many names to try: a login needs a bound for each client and one for each name.
    pub(super) fn warn_of_login(&mut self, route: &raw::route::Route, document: &Document) {
        let Some(at) = route.outcome.key() else { return };
        let own = route.limits.get().map(|limits| &limits.items[..]).unwrap_or_default();
        // Limits for every request guard a login where they count what comes of it.
        let everywhere = document.limits.get().map(|limits| &limits.items[..]).unwrap_or_default();
        let guards: Vec<&Limit> = own.iter().chain(everywhere.iter().filter(|limit| counts_failures(limit))).collect();
        if !guards.iter().any(|limit| counts_failures(limit)) {
            return;
        }
        let know = |is_side: fn(&Selector) -> bool| guards.iter().any(|limit| selectors(limit).any(|it| is_side(&it)));
        match (know(is_client), know(is_account)) {
            (true, false) => self.mistakes.warn(
                at,
                "the limits of this login know the client alone: guesses at one account from many addresses are never stopped",
                "add a limit for each account: `{key: param.username, rate: 20/hour, count: failures, reset_on: success}`",
            ),
            (false, true) => self.mistakes.warn(
                at,
                "the limits of this login know the account alone: one client that tries a password on many accounts is never stopped, and anyone can lock others out",
                "add a limit for each client: `{key: client_ip, rate: 20/hour, count: failures}`",
            ),
            _ => {}
        }
    }
}

fn counts_failures(limit: &Limit) -> bool {
    limit.count.get().is_some_and(|count| count.value == Count::Failures)
}

/// Of its key, and of the values it tells apart.
fn selectors(limit: &Limit) -> impl Iterator<Item = Selector> {
    let key = limit.key.get().map(|key| &key.items[..]).unwrap_or_default();
    key.iter().chain(limit.distinct.get()).filter_map(|part| part.selector.value.parse().ok())
}

fn is_client(selector: &Selector) -> bool {
    matches!(selector, Selector::ClientIp(_) | Selector::Device)
}

fn is_account(selector: &Selector) -> bool {
    !is_client(selector) && !matches!(selector, Selector::Host | Selector::Method | Selector::Path | Selector::Route)
}
