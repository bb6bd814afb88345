//! The ban that applies to a key, in the answer about its state.

use serde::Serialize;
use utoipa::ToSchema;

use crate::admin::AdminState;
use crate::clock::Timestamp;
use crate::decision::operator::LimitQuery;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;
use crate::units::whole_seconds;

/// The ban that denies a key, whatever was counted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeyBan)]
pub(in crate::admin) struct KeyBanResponse {
    id: String,
    /// Set where the address is banned, not the key.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[schema(format = DateTime)]
    until: String,
    /// In whole seconds, rounded up.
    pub(in crate::admin) left: u64,
    reason: String,
}

/// The ban that denies this key, or the address in it: the one that lasts longest.
pub(in crate::admin) fn ban_of(state: &AdminState, query: &LimitQuery) -> Option<KeyBanResponse> {
    let bans = state.store.bans();
    // A shadow limit is never applied.
    let of_keys = query.keys.iter().filter_map(|queried| bans.find(BanId::of_key(queried.key)));
    let of_keys = of_keys.filter(|_| !query.shadow);
    let of_address = query.client.and_then(|client| bans.find(bans.of_address(client)?.0));
    let longest = of_keys.chain(of_address).max_by_key(|ban| ban.until)?;
    Some(KeyBanResponse::of(&longest, bans.now()))
}

impl KeyBanResponse {
    fn of(ban: &Ban, now: Timestamp) -> Self {
        let address = match &ban.subject {
            BanSubject::Address(network) => Some(network.to_string()),
            BanSubject::Key { .. } => None,
        };
        let (id, until, reason) = (ban.id.to_string(), ban.until.to_string(), ban.reason.to_string());
        Self { id, address, until, left: whole_seconds(ban.left(now)), reason }
    }
}
