//! What cannot be seen where every listener answers proxies that ask.

use crate::config::compile::compiler::Compiler;
use crate::config::raw::Document;
use crate::config::raw::limit::Count;
use crate::config::raw::limit::KeyPart;
use crate::config::raw::limit::Limit;
use crate::config::raw::server::Listen;
use crate::key::Selector;

impl Compiler {
    /// Most proxies that ask show neither the body of a request nor its answer.
    pub(super) fn warn_of_unseen(&mut self, limit: &Limit, document: &Document) {
        let listeners = document.listen.get().map(|listen| &listen.items[..]).unwrap_or_default();
        if listeners.is_empty() || listeners.iter().any(Listen::forwards) {
            return;
        }
        if let Some(count) = limit.count.get().filter(|count| matches!(count.value, Count::Failures | Count::Successes))
        {
            self.mistakes.warn(
                count.at,
                "every listener serves decisions, and only Envoy's ext_proc shows answers: elsewhere each request counts as if it were never answered",
                "count `requests` or `attempts` here, or let the proxy forward these requests through a listener of the gateway",
            );
        }
        let parts = limit.key.get().map(|key| &key.items[..]).unwrap_or_default();
        let mut selectors = parts.iter().chain(limit.distinct.get()).flat_map(KeyPart::selectors);
        let in_body = selectors.find(|text| text.value.parse().is_ok_and(|selector: Selector| selector.needs_body()));
        if let Some(selector) = in_body {
            let message = format!(
                "every listener serves decisions, and most proxies that ask send no body along: `{}` is then the empty value, which all such requests share",
                selector.value
            );
            let help = "let the proxy send the body along (`forwardBody` of Traefik, `with_request_body` of Envoy), or forward these requests through a listener of the gateway";
            self.mistakes.warn(selector.at, message, help);
        }
    }
}
