//! Every warning that needs the whole document.

use crate::config::compile::compiler::Compiler;
use crate::config::raw::Document;
use crate::route::Route;

impl Compiler {
    /// Adds the warnings that need the whole document. A text with mistakes gets none: its meaning is unknown.
    pub(in crate::config::compile) fn warn(&mut self, document: &Document, routes: &[Route]) {
        if !self.mistakes.is_empty() {
            return;
        }
        self.warn_of_proxies(document);
        let raw = document.routes.get().map(|routes| &routes.items[..]).unwrap_or_default();
        self.warn_of_unreachable_routes(raw, routes);
        for (raw, route) in raw.iter().zip(routes).filter(|(_, route)| route.domain.is_none()) {
            self.warn_of_globs(raw);
            self.warn_of_outcome(raw, route);
            self.warn_of_login(raw, document);
        }
        let everywhere = document.limits.get().into_iter().chain(raw.iter().filter_map(|route| route.limits.get()));
        everywhere.flat_map(|limits| &limits.items).for_each(|limit| self.warn_of_ban(limit));
    }
}
