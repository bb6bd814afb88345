//! Bans that meet those who merely mistype.

use crate::config::compile::compiler::Compiler;
use crate::config::compile::lists::KNOWN_CLIENT;
use crate::config::raw::limit::Count;
use crate::config::raw::limit::Limit;
use crate::config::raw::then::Then;

impl Compiler {
    /// Failures that nothing forgets add up to a ban for people with a right to log in.
    pub(super) fn warn_of_ban(&mut self, limit: &Limit) {
        let counts_failures = limit.count.get().is_some_and(|count| count.value == Count::Failures);
        let bans = matches!(limit.then.get(), Some(Then::Long(actions)) if actions.ban.get().is_some());
        let spares_known =
            limit.unless.get().is_some_and(|unless| unless.items.iter().any(|name| name.value == KNOWN_CLIENT));
        if counts_failures && bans && limit.reset_on.is_absent() && !spares_known {
            self.mistakes.warn(
                limit.then.key().unwrap_or(limit.at),
                "failures that nothing forgets lead to a ban: whoever mistypes now and then is banned as a guesser is, and who shares an address with one",
                "add `reset_on: success`, or `unless: [known_client]` with `known_clients` on the route",
            );
        }
    }
}
