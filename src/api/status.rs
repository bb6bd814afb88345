//! How the gateway is.

use std::ops::Add;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Verdict;
use crate::rules::limit::OnFailure;

/// How the gateway is.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Status {
    /// Whether all is well, in one word and one sentence.
    pub verdict: Verdict,
    /// With the commit that it was built from.
    pub version: String,
    /// When this gateway started.
    #[schema(format = DateTime)]
    pub since: String,
    /// The name of the gateway that answers.
    pub gateway: String,
    pub configuration: Configuration,
    /// The gateways on this store, the one that answers first. Those that have gone are named for an hour.
    pub gateways: Vec<Gateway>,
    /// `false`: `last_minute` is not that of all. Either a gateway is `missing`, or Redis does not answer, so that `gateways`
    /// has only the gateway that answers.
    pub complete: bool,
    /// Where requests are accepted.
    pub listeners: Vec<String>,
    /// The certificates that are shown there, the one that ends first at the beginning.
    pub certificates: Vec<Certificate>,
    pub upstreams: Vec<Upstream>,
    /// The lists that follow a source.
    pub lists: Vec<FollowedList>,
    pub store: Store,
    /// What else of this gateway does not work. Left out where all of it works.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// Of all gateways together, also of those that have ended or gone since: the same as in the history.
    pub last_minute: Traffic,
    /// What looks misconfigured at this gateway.
    pub advice: Vec<Advice>,
}

/// Where the configuration comes from.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Configuration {
    /// The file, `-` for standard input, or `the command line`.
    pub source: String,
    /// When the one in force was loaded.
    #[schema(format = DateTime)]
    pub loaded: String,
    /// The settings of the source that are not in force, because their change waits for the next start. Left out where there are
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Null: there was none since the start.
    #[schema(required)]
    pub last_reload: Option<Reload>,
}

/// How a reload ended.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Reload {
    #[schema(format = DateTime)]
    pub at: String,
    #[schema(inline)]
    pub result: ReloadResult,
    /// Why the configuration of before stayed in force.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReloadResult {
    Success,
    Failure,
}

/// When a certificate ends.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Certificate {
    /// The DNS names and addresses that it is shown for.
    pub names: Vec<String>,
    #[schema(format = DateTime)]
    pub expires: String,
    /// Within seven days, or it has ended.
    pub ends_soon: bool,
}

/// An application.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Upstream {
    pub name: String,
    pub servers: Vec<Server>,
}

/// A server of an application.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Server {
    pub server: String,
    /// Whether its health checks succeed, and no request has failed there since it answered last. A request is still sent there
    /// from time to time where only requests failed.
    pub healthy: bool,
}

/// A list that follows a source.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = List)]
pub struct FollowedList {
    pub list: String,
    /// The URL of the Local API.
    pub source: String,
    /// Whether it answered the last question.
    pub up: bool,
    /// How many decisions are in force.
    pub entries: usize,
    /// When it answered last. Null: it has not answered yet.
    #[schema(required, format = DateTime)]
    pub answered: Option<String>,
    /// Why it did not answer the last question.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The store that counts.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Store {
    /// `memory` or `redis`.
    pub kind: String,
    /// Whether every server of the store answers.
    pub up: bool,
    /// Only for redis: what to do while Redis is down, for limits that do not say.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Only for redis: what the limits do while Redis is down, the same for all or not. Left out where no limit counts.
    #[schema(inline)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_outage: Vec<InOutage>,
    /// Only for redis: which part of every limit this gateway grants while Redis is down, from 0 to 1.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<f64>,
    /// Only for redis: the servers that do not answer. Left out where all answer.
    #[schema(inline)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<AwayServer>,
}

/// What some limits do while Redis is down.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct InOutage {
    pub on_failure: OnFailure,
    /// Their names. A shadow denies no request, and is not among them.
    pub limits: Vec<String>,
}

/// A server of the store that does not answer.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AwayServer {
    pub server: String,
    pub cause: String,
}

/// Something of this gateway that does not work, and that no request shows.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Fault {
    /// `log`, `audit` or `notify`, which cannot be written or delivered to; `snapshot`; `connections`, which had to wait within
    /// the last minute; `redis`, which may drop counters.
    pub about: String,
    pub sentence: String,
    #[schema(format = DateTime)]
    pub since: String,
}

/// A gateway on the store.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Gateway {
    /// `gateway.name` of its configuration, or its machine and its first listener.
    #[serde(default)]
    pub name: String,
    /// No other gateway has it, also where several have one name.
    pub id: String,
    #[schema(inline)]
    pub state: GatewayState,
    pub version: String,
    /// When it started.
    #[schema(format = DateTime)]
    pub since: String,
    /// When it was heard of last.
    #[schema(format = DateTime)]
    pub last_seen: String,
    /// Its own last minute. Of a gateway that is not up: what it had written of that minute.
    pub last_minute: Traffic,
}

impl Gateway {
    /// Its name, with its id where another one has the same name.
    pub fn shown_among(&self, all: &[Self]) -> String {
        let Self { name, id, .. } = self;
        match all.iter().filter(|other| other.name == *name).count() {
            _ if name.is_empty() => id.clone(),
            0 | 1 => name.clone(),
            _ => format!("{name} ({id})"),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GatewayState {
    Up,
    /// It finishes its last requests.
    Draining,
    /// It has finished them and is no more.
    Ended,
    /// It did not answer within 300 ms.
    Missing,
    /// It answers no question for 10 s and did not say that it would end: it crashed, or does not reach Redis.
    Gone,
}

impl GatewayState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Draining => "draining",
            Self::Ended => "ended",
            Self::Missing => "missing",
            Self::Gone => "gone",
        }
    }
}

/// Requests of the last minute.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Traffic {
    /// Forwarded to the application, also after a delay.
    pub passed: u64,
    /// Denied by a limit, a ban, a list or a challenge.
    pub denied: u64,
    /// Neither passed nor denied by a rule: refused as no valid request, or not answered by the application.
    #[serde(default)]
    pub errors: u64,
    /// Successes on routes that have an outcome.
    pub signed_in: u64,
    /// Failures there.
    pub failed: u64,
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed.saturating_add(other.passed),
            denied: self.denied.saturating_add(other.denied),
            errors: self.errors.saturating_add(other.errors),
            signed_in: self.signed_in.saturating_add(other.signed_in),
            failed: self.failed.saturating_add(other.failed),
        }
    }
}

/// What looks misconfigured, and what to write.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Advice {
    /// `untrusted_forwarding`, `one_client`, `missing_field`, `pattern_matches_nothing`, `outcome_matches_neither`,
    /// `limit_never_counted`, `route_never_asked_for`, `unlimited_login`, `answers_unseen`, `keys_unavailable`, `store_full`,
    /// `reload_refused`, `waits_for_start`, or `check`: a warning of `portcullis check`.
    pub kind: String,
    /// What was seen, with its numbers.
    pub message: String,
    #[schema(format = DateTime)]
    pub since: String,
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The line to write.
    pub help: String,
}

// Whether the gateway lives, and whether it is ready.

/// Whether the process can answer.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Liveness)]
pub struct LivenessResponse {
    #[schema(inline)]
    pub status: LivenessWord,
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LivenessWord {
    Ok,
}

/// Whether the gateway is ready for requests, and what its store does.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Readiness)]
pub struct ReadinessResponse {
    #[schema(inline)]
    pub status: ReadinessWord,
    pub store: Store,
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadinessWord {
    Ready,
    Draining,
    #[serde(rename = "store away")]
    StoreAway,
}
