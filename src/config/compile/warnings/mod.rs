//! What is no mistake, and probably not meant. Each function knows one such thing, and says what is wrong, why it
//! matters and what to write instead.
//!
//! What shows while a file is read ([`examples`], [`secrets`]) is said there; everything else here, once all is read.

mod bans;
mod examples;
mod globs;
mod logins;
mod outcomes;
mod proxies;
mod routes;
mod secrets;

use super::Compiler;
use crate::config::raw::Document;
use crate::route::Route;

impl Compiler {
    /// Warns of what shows when all has been read. Of a text with mistakes nobody knows what is meant.
    pub(super) fn warn(&mut self, document: &Document, routes: &[Route]) {
        if !self.mistakes.is_empty() {
            return;
        }
        self.warn_of_proxies(document);
        let raw = document.routes.get().map(|routes| &routes.items[..]).unwrap_or_default();
        self.warn_of_unreachable_routes(raw, routes);
        for (raw, route) in raw.iter().zip(routes) {
            self.warn_of_globs(raw);
            self.warn_of_outcome(raw, route);
            self.warn_of_login(raw, document);
        }
        let everywhere = document.limits.get().into_iter().chain(raw.iter().filter_map(|route| route.limits.get()));
        everywhere.flat_map(|limits| &limits.items).for_each(|limit| self.warn_of_ban(limit));
    }
}
