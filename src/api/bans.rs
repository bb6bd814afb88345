//! The bans in force.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A ban of an address, or of a key of a limit.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Ban)]
pub struct BanResponse {
    /// The same on every gateway on the same store.
    pub id: String,
    /// The banned network. Instead of `limit` and `key`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The selectors of the key and their values. Addresses are in clear, user names where this gateway set the ban. The
    /// rest is masked, and so is the address where this gateway cannot decrypt it.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<BTreeMap<String, String>>,
    #[schema(format = DateTime)]
    pub until: String,
    pub reason: String,
    /// `all`: every gateway on this store knows it; `this_gateway`: Redis did not answer, so the others know it when it is
    /// back.
    pub scope: String,
    /// The gateway that answers has no such limit by now, and denies nobody by this ban. Left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unenforced: bool,
}

/// The bans that began.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Banned)]
#[serde(untagged)]
pub enum BannedResponse {
    /// Several addresses were named.
    Several {
        banned: Vec<BanResponse>,
    },
    One(BanResponse),
}

/// The ban that denies a key, whatever was counted.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = KeyBan)]
pub struct KeyBanResponse {
    pub id: String,
    /// Set where the address is banned, not the key.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[schema(format = DateTime)]
    pub until: String,
    /// In whole seconds, rounded up.
    pub left: u64,
    pub reason: String,
}

/// The bans that were lifted.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Lifted)]
pub struct LiftedResponse {
    pub lifted: Vec<BanResponse>,
    /// Only for an address: the ban of a wider network, which still denies it.
    #[schema(required)]
    pub remaining: Option<BanResponse>,
}
