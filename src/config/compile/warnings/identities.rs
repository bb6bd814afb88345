//! Names and tokens that do not tell who somebody is.

use crate::config::compile::compiler::Compiler;
use crate::config::raw;
use crate::config::raw::limit::KeyPart;
use crate::config::raw::limit::Limit;
use crate::config::raw::limit::ResetOutcome;
use crate::config::source::SourceRange;
use crate::key::KeySpec;
use crate::key::Selector;
use crate::route::HostPattern;
use crate::route::Route;

impl Compiler {
    /// One name may be that of two people on two hosts. `what` is the key that `at` and `of` belong to.
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

    /// A key of values that cost nothing to invent limits nobody.
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

/// Whether a client may choose the value, whatever was proven. A user name is not invented: it is what is guessed at.
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
