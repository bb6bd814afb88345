//! By which header a peer that is no trusted proxy names its client. It may be an attacker, or a proxy that is missing in the
//! configuration, whose clients then all count as one: advice says so.

use super::significant_headers::SignificantHeaders;
use crate::head::FieldName;
use crate::head::Name;

/// A header that names a client. The one that is read from a trusted proxy is the first, then the usual ones.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::gateway) enum ClientHeader {
    Configured,
    Usual(usize),
}

impl ClientHeader {
    /// `None`: the header names no client.
    pub(in crate::gateway) fn of(name: Name<'_>, significant_headers: &SignificantHeaders) -> Option<Self> {
        if significant_headers.names_the_client(name) {
            return Some(Self::Configured);
        }
        USUAL.iter().position(|usual| *usual == name.as_str()).map(Self::Usual)
    }

    pub(in crate::gateway) fn name(self, significant_headers: &SignificantHeaders) -> &str {
        match self {
            Self::Configured => significant_headers.client_name().map_or("", FieldName::as_str),
            Self::Usual(position) => USUAL[position],
        }
    }
}

/// The headers in which proxies name their client, the most frequent first.
const USUAL: [&str; 9] = [
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "x-envoy-external-address",
];
