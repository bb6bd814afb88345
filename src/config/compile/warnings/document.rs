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
        self.warn_of_unix_sockets(document);
        self.warn_of_loops(document);
        let raw = document.routes.get().map(|routes| &routes.items[..]).unwrap_or_default();
        self.warn_of_unreachable_routes(raw, routes);
        for (raw, route) in raw.iter().zip(routes).filter(|(_, route)| route.domain.is_none()) {
            self.warn_of_globs(raw);
            self.warn_of_outcome(raw, route);
            self.warn_of_login(raw, document);
            if let (Some(known), Some(given)) = (&route.known_clients, raw.known_clients.get()) {
                self.warn_of_hosts(given.of.key().unwrap_or(given.at), "known_clients", &known.of, route);
            }
            if let (Some(sessions), Some(given)) = (&route.sessions, raw.sessions.get()) {
                self.warn_of_hosts(given.of.key().unwrap_or(given.at), "sessions", &sessions.of, route);
            }
        }
        let everywhere = document.limits.get().into_iter().flat_map(|limits| &limits.items).map(|limit| (limit, None));
        let own = raw.iter().filter_map(|route| Some((route, route.limits.get()?)));
        let own = own.flat_map(|(route, limits)| limits.items.iter().map(move |limit| (limit, Some(route))));
        for (limit, route) in everywhere.chain(own) {
            self.warn_of_ban(limit);
            self.warn_of_reset(limit);
            self.warn_of_invented_key(limit, route);
            self.warn_of_unseen(limit, document);
        }
    }
}
