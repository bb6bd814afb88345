//! What happened, and who asks most.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The data of one event, as the audit trail holds it. The six required fields are `null` where unknown. The others are left
/// out where unknown.
// `record::Event` writes it, also for the audit trail and webhooks.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Event)]
pub struct EventResponse {
    /// RFC 3339, in UTC.
    #[schema(format = DateTime)]
    pub time: String,
    #[schema(inline)]
    pub event: EventWord,
    /// The limit that decided.
    #[schema(required)]
    pub limit: Option<String>,
    /// The list that denies the client.
    #[schema(nullable = false)]
    pub list: Option<String>,
    /// Each selector of the key and its value, masked.
    #[schema(required)]
    pub key: Option<BTreeMap<String, String>>,
    /// The client whose request caused the event.
    #[schema(required)]
    pub client: Option<String>,
    /// When the denial, delay or ban ends.
    #[schema(required)]
    pub until: Option<String>,
    /// How long it lasts, in seconds.
    #[schema(nullable = false)]
    pub r#for: Option<f64>,
    #[schema(nullable = false)]
    pub route: Option<String>,
    /// The id of the request.
    #[schema(nullable = false)]
    pub request_id: Option<String>,
    /// As in the request log.
    #[schema(nullable = false)]
    pub decision: Option<String>,
    /// The banned network.
    #[schema(nullable = false)]
    pub address: Option<String>,
    /// The id of the ban.
    #[schema(nullable = false)]
    pub ban: Option<String>,
    /// As a sentence.
    #[schema(nullable = false)]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventWord {
    Denial,
    Delay,
    Ban,
    Unban,
    Reload,
}

impl EventWord {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denial => "denial",
            Self::Delay => "delay",
            Self::Ban => "ban",
            Self::Unban => "unban",
            Self::Reload => "reload",
        }
    }
}

/// A key, or a client, that asks often.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = BusyKey)]
pub struct BusyKeyResponse {
    /// Each selector and its value.
    pub key: BTreeMap<String, String>,
    pub requests: u64,
    pub denied: u64,
    /// Its first request in that time.
    #[schema(format = DateTime)]
    pub first: String,
    /// Its last request.
    #[schema(format = DateTime)]
    pub last: String,
}
