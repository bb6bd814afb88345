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
    /// The account that was signed in to: in clear on the gateway that saw it.
    #[schema(nullable = false)]
    pub account: Option<String>,
    /// How often it failed within the hour before.
    #[schema(nullable = false)]
    pub failures: Option<u64>,
    /// From how many clients it failed, at most.
    #[schema(nullable = false)]
    pub clients: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventWord {
    Denial,
    Delay,
    Ban,
    Unban,
    Reload,
    /// Somebody has signed in to an account that failed several times within the hour, and is no known client of it.
    SignedInAfterFailures,
}

impl EventWord {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denial => "denial",
            Self::Delay => "delay",
            Self::Ban => "ban",
            Self::Unban => "unban",
            Self::Reload => "reload",
            Self::SignedInAfterFailures => "signed_in_after_failures",
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
    /// Requests whose outcome was a failure, on routes that have one.
    pub failed: u64,
    /// Its first request in that time.
    #[schema(format = DateTime)]
    pub first: String,
    /// Its last request.
    #[schema(format = DateTime)]
    pub last: String,
}

// What is attacked.

/// Requests that belong together.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Attack {
    pub id: String,
    /// `guessing`: few accounts. `stuffing`: many accounts. `spraying`: about one password for each of many accounts, from many
    /// clients. `flood`: no account is known.
    pub kind: String,
    pub route: String,
    /// The limit that denied most of it.
    #[schema(required)]
    pub limit: Option<String>,
    #[schema(format = DateTime)]
    pub since: String,
    /// Its last request.
    #[schema(format = DateTime)]
    pub last: String,
    /// No request of it came for five minutes.
    pub over: bool,
    pub requests: u64,
    pub denied: u64,
    pub failed: u64,
    pub signed_in: u64,
    /// How many there are of each.
    pub clients: u64,
    pub accounts: u64,
    /// The fewest networks that hold 90 % of its requests and few others, the heaviest first.
    #[schema(inline)]
    pub networks: Vec<AttackNetwork>,
    /// The most frequent user agents.
    #[schema(inline)]
    pub agents: Vec<AttackAgent>,
    /// The accounts with the most requests, those first that were signed in to. In clear on the gateway that saw them.
    #[schema(inline)]
    pub names: Vec<AttackedAccount>,
    /// How many clients with a success before were denied meanwhile.
    pub others_denied: u64,
    pub sentence: String,
    /// The command that would end it. Null: no address is known.
    #[schema(required)]
    pub ban: Option<String>,
    /// How many clients with a success lately that ban would meet.
    pub would_hit: u64,
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AttackNetwork {
    pub network: String,
    pub clients: u64,
    pub requests: u64,
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AttackAgent {
    /// The first 120 characters. Empty: there was none.
    pub agent: String,
    pub requests: u64,
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AttackedAccount {
    pub account: String,
    pub failed: u64,
    pub signed_in: u64,
}
