//! A ban as the API shows it.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::admin::shared::Scope;
use crate::store::AnyStore;
use crate::store::bans::Ban;
use crate::store::bans::BanSubject;

/// A ban of an address, or of a key of a limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Ban)]
pub(in crate::admin) struct BanResponse {
    /// The same on every gateway on the same store.
    id: String,
    /// The banned network. Instead of `limit` and `key`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    /// The selectors of the key and their values. Addresses are in clear, user names where this gateway set the ban. The
    /// rest is masked, and so is the address where this gateway cannot decrypt it.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<BTreeMap<String, String>>,
    #[schema(format = DateTime)]
    until: String,
    reason: String,
    /// `all`: every gateway on this store knows it; `this_gateway`: Redis did not answer, so the others know it when it is
    /// back.
    scope: &'static str,
}

impl BanResponse {
    pub(super) fn of(ban: &Ban, store: &AnyStore) -> Self {
        let (address, limit, key) = match &ban.subject {
            BanSubject::Address(network) => (Some(network.to_string()), None, None),
            BanSubject::Key { limit, named, .. } => {
                (None, Some(limit.to_string()), Some(named.for_operators().iter().cloned().collect()))
            }
        };
        let scope = if store.is_only_here(ban.id) { Scope::ThisGateway } else { Scope::All };
        Self {
            id: ban.id.to_string(),
            address,
            limit,
            key,
            until: ban.until.to_string(),
            reason: ban.reason.to_string(),
            scope: scope.as_str(),
        }
    }
}

/// The ban for a log line. A key is named only by its limit.
pub(super) fn log_name(ban: &Ban) -> String {
    match &ban.subject {
        BanSubject::Address(network) => network.to_string(),
        BanSubject::Key { limit, .. } => format!("a key of {limit}"),
    }
}
