//! Bans of users who only mistype.

use crate::config::compile::compiler::Compiler;
use crate::config::compile::lists::KNOWN_CLIENT;
use crate::config::raw::limit::Count;
use crate::config::raw::limit::Limit;
use crate::config::raw::then::Then;

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
