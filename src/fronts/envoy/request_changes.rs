//! What the gateway changes in a request that goes on to the application, as far as Envoy does not do it itself.

use crate::gateway::exchange::Exchange;
use crate::gateway::forward::device;
use crate::gateway::forward::headers;
use crate::head::Fields;
use crate::head::KnownName;

/// The fields that are set and removed in a request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RequestChanges {
    pub(super) set: Vec<(KnownName, Vec<u8>)>,
    pub(super) removed: Vec<KnownName>,
}

/// The fields of a request that the gateway may change, as they came.
#[derive(Debug)]
pub(super) struct OriginalFields(Vec<(KnownName, Vec<u8>)>);

impl OriginalFields {
    pub(super) fn of(fields: &Fields) -> Self {
        Self(CHANGING.iter().filter(|name| fields.has(**name)).map(|name| (*name, joined(fields, *name))).collect())
    }

    /// The cookies of the gateway itself are not for the application. An answer that is read for its outcome must be complete,
    /// unconditional, and in an encoding that can be decoded.
    pub(super) fn changes(self, exchange: &mut Exchange) -> RequestChanges {
        let needs_body = exchange.outcome_rule().map(|rule| rule.needs_body());
        let request_id = exchange.facts.request_id.as_bytes().to_vec();
        let fields = &mut exchange.facts.head.fields;
        device::strip_request_cookies(fields);
        if let Some(needs_body) = needs_body {
            headers::prepare_for_outcome(fields, needs_body);
        }
        let mut changes = RequestChanges { set: vec![(KnownName::X_REQUEST_ID, request_id)], removed: Vec::new() };
        for (name, came) in self.0 {
            if !fields.has(name) {
                changes.removed.push(name);
                continue;
            }
            let goes = joined(fields, name);
            if goes != came {
                changes.set.push((name, goes));
            }
        }
        changes
    }
}

fn joined(fields: &Fields, name: KnownName) -> Vec<u8> {
    let separator: &[u8] = if name == KnownName::COOKIE { b"; " } else { b", " };
    fields.get_all(name).collect::<Vec<_>>().join(separator)
}

const CHANGING: [KnownName; 8] = [
    KnownName::ACCEPT_ENCODING,
    KnownName::COOKIE,
    KnownName::IF_MATCH,
    KnownName::IF_MODIFIED_SINCE,
    KnownName::IF_NONE_MATCH,
    KnownName::IF_RANGE,
    KnownName::IF_UNMODIFIED_SINCE,
    KnownName::RANGE,
];
