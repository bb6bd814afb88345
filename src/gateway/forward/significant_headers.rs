//! The headers that decide what becomes of a request or an answer.

use super::header_kind::HeaderKind;
use super::header_kind::dashed;
use super::header_kind::is_decisive;
use crate::client::TrustedProxies;
use crate::decision::Policy;
use crate::head::FieldName;
use crate::head::KnownName;
use crate::head::Name;
use crate::key::Selector;

/// The headers that the rules and `client_ip` of a configuration read, and those that decide any request.
#[derive(Clone, Debug, Default)]
pub struct SignificantHeaders {
    /// In requests: the configured name, and the name that an application may read instead.
    names: Vec<(FieldName, Option<String>)>,
    /// In answers: the headers of outcome rules.
    answers: Vec<FieldName>,
    /// The header in which a trusted proxy names the client, if the configuration sets a single one.
    forwarding: Option<FieldName>,
}

impl SignificantHeaders {
    pub fn new(policy: &Policy, clients: &TrustedProxies) -> Self {
        let forwarding = clients.single_header().cloned();
        let routes = policy.routes.all();
        let conditions = routes.iter().flat_map(|route| &route.condition.headers).map(|(name, _)| name);
        let parts = policy.limits.iter().flat_map(|limit| limit.key.parts.iter().chain(&limit.distinct));
        let parts = parts.chain(policy.lists.iter().filter_map(|list| list.of.as_ref()));
        let parts = parts
            .chain(routes.iter().filter_map(|route| route.known_clients.as_ref()).flat_map(|known| &known.of.parts));
        let selected = parts.flat_map(|part| part.selector.choices()).filter_map(Selector::header);
        let names = conditions.chain(selected).chain(&forwarding);
        let names = names.map(|name| (name.clone(), dashed(name.as_str()))).collect();
        let outcomes = routes.iter().filter_map(|route| route.outcome.as_ref());
        let sides = outcomes.flat_map(|rule| rule.success.iter().chain(&rule.failure));
        let answers = sides.flat_map(|side| &side.headers).map(|(name, _)| name.clone()).collect();
        Self { names, answers, forwarding }
    }

    /// The rules read this header too.
    pub fn add(&mut self, name: &FieldName) {
        self.names.push((name.clone(), dashed(name.as_str())));
    }

    /// Whether the gateway or the application may decide a request by this header.
    pub fn in_requests(&self, name: Name<'_>) -> bool {
        HeaderKind::of(name) != HeaderKind::EndToEnd
            || is_decisive(name.as_str())
            || self.names.iter().any(|(known, _)| name == known.into())
    }

    /// Whether the gateway or the client may read the meaning of an answer from this header.
    pub fn in_answers(&self, name: Name<'_>) -> bool {
        name == KnownName::SET_COOKIE.into()
            || name == KnownName::LOCATION.into()
            || is_decisive(name.as_str())
            || self.answers.iter().any(|known| name == known.into())
    }

    /// The header in which a trusted proxy names the client, if the configuration sets a single one.
    pub fn client_name(&self) -> Option<&FieldName> {
        self.forwarding.as_ref()
    }

    /// Whether a trusted proxy names the client in this header. No other peer may send it.
    pub fn names_the_client(&self, name: Name<'_>) -> bool {
        self.forwarding.as_ref().is_some_and(|forwarding| name == forwarding.into())
    }

    /// Whether an application may read this header as one that the rules read, though its name differs.
    pub fn is_lookalike(&self, name: Name<'_>) -> bool {
        if self.names.is_empty() {
            return false;
        }
        // No known name has unusual characters.
        let Name::Other(other) = name else { return false };
        let Some(meant) = dashed(other) else { return false };
        let is_itself = |(known, _): &(FieldName, Option<String>)| name == known.into();
        let is_meant = |(known, dashed): &(FieldName, Option<String>)| {
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
        let significant_headers = |names: &[&str]| SignificantHeaders {
            names: names.iter().map(|name| (name.parse().unwrap(), dashed(name))).collect(),
            ..SignificantHeaders::default()
        };
        assert!(significant_headers(&["x-tenant"]).is_lookalike(Name::of("x_tenant")));
        assert!(!significant_headers(&["x-tenant"]).is_lookalike(Name::of("x-tenant")));
        assert!(!significant_headers(&["x-tenant"]).is_lookalike(Name::of("x_other")));
        assert!(!significant_headers(&["x_tenant"]).is_lookalike(Name::of("x_tenant")));
        assert!(significant_headers(&["x_tenant"]).is_lookalike(Name::of("x.tenant")));
    }
}
