//! The headers that decide what becomes of a request or an answer.

use http::HeaderName;
use http::header::LOCATION;
use http::header::SET_COOKIE;

use super::header_kind::HeaderKind;
use super::header_kind::dashed;
use super::header_kind::is_decisive;
use crate::client::TrustedProxies;
use crate::decision::Policy;

/// The headers that the rules and `client_ip` of a configuration read, and those that decide any request.
#[derive(Clone, Debug, Default)]
pub struct SignificantHeaders {
    /// In requests: the configured name, and the name that an application may read instead.
    names: Vec<(HeaderName, Option<String>)>,
    /// In answers: the headers of outcome rules.
    answers: Vec<HeaderName>,
    /// The header in which a trusted proxy names the client, if the configuration sets a single one.
    forwarding: Option<HeaderName>,
}

impl SignificantHeaders {
    pub fn new(policy: &Policy, clients: &TrustedProxies) -> Self {
        let forwarding = clients.single_header().cloned();
        let routes = &policy.routes.routes;
        let conditions = routes.iter().flat_map(|route| &route.condition.headers).map(|(name, _)| name);
        let parts = policy.limits.iter().flat_map(|limit| limit.key.parts.iter().chain(&limit.distinct));
        let parts = parts.chain(policy.lists.iter().filter_map(|list| list.of.as_ref()));
        let parts = parts.chain(routes.iter().filter_map(|route| Some(&route.known_clients.as_ref()?.of)));
        let selected = parts.filter_map(|part| part.selector.header());
        let names = conditions.chain(selected).chain(&forwarding);
        let names = names.map(|name| (name.clone(), dashed(name.as_str()))).collect();
        let outcomes = routes.iter().filter_map(|route| route.outcome.as_ref());
        let sides = outcomes.flat_map(|rule| rule.success.iter().chain(&rule.failure));
        let answers = sides.flat_map(|side| &side.headers).map(|(name, _)| name.clone()).collect();
        Self { names, answers, forwarding }
    }

    /// Whether the gateway or the application may decide a request by this header.
    pub fn in_requests(&self, name: &HeaderName) -> bool {
        HeaderKind::of(name) != HeaderKind::EndToEnd
            || is_decisive(name.as_str())
            || self.names.iter().any(|(known, _)| known == name)
    }

    /// Whether the gateway or the client may read the meaning of an answer from this header.
    pub fn in_answers(&self, name: &HeaderName) -> bool {
        *name == SET_COOKIE || *name == LOCATION || is_decisive(name.as_str()) || self.answers.contains(name)
    }

    /// Whether a trusted proxy names the client in this header. No other peer may send it.
    pub fn names_the_client(&self, name: &HeaderName) -> bool {
        self.forwarding.as_ref() == Some(name)
    }

    /// Whether an application may read this header as one that the rules read, though its name differs.
    pub fn is_lookalike(&self, name: &HeaderName) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let Some(meant) = dashed(name.as_str()) else { return false };
        let is_itself = |(known, _): &(HeaderName, Option<String>)| known == name;
        let is_meant = |(known, dashed): &(HeaderName, Option<String>)| {
            dashed.as_deref().unwrap_or_else(|| known.as_str()) == meant
        };
        self.names.iter().any(is_meant) && !self.names.iter().any(is_itself)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_the_rules_read_has_one_name() {
        let significant_headers = |names: &[&'static str]| SignificantHeaders {
            names: names.iter().map(|name| (HeaderName::from_static(name), dashed(name))).collect(),
            ..SignificantHeaders::default()
        };
        let name = HeaderName::from_static;
        assert!(significant_headers(&["x-tenant"]).is_lookalike(&name("x_tenant")));
        assert!(!significant_headers(&["x-tenant"]).is_lookalike(&name("x-tenant")));
        assert!(!significant_headers(&["x-tenant"]).is_lookalike(&name("x_other")));
        assert!(!significant_headers(&["x_tenant"]).is_lookalike(&name("x_tenant")));
        assert!(significant_headers(&["x_tenant"]).is_lookalike(&name("x.tenant")));
    }
}
