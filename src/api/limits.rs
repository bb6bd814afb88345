//! The limits in force, and the state of one key of a limit.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::bans::KeyBanResponse;
use crate::rules::limit::{Action, AlgorithmName, ChallengeKind, Count, Detail, Missing, OnFailure, ResetOutcome};
use crate::words::secret;
use crate::words::units::Span;

/// A limit as the configuration has it, with defaults filled in.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Limit)]
pub struct LimitResponse {
    pub name: String,
    /// The selectors of the key. Without any, all requests share one key.
    pub key: Vec<String>,
    /// All of them must pass. None under `concurrent`.
    #[schema(inline)]
    pub rates: Vec<RateResponse>,
    /// The most requests in flight.
    #[schema(required, value_type = Option<u32>)]
    pub concurrent: Option<NonZeroU32>,
    #[schema(inline, required)]
    pub algorithm: Option<AlgorithmName>,
    /// Only for token-bucket, where it differs from the rate's count.
    #[schema(required, value_type = Option<u32>)]
    pub burst: Option<NonZeroU32>,
    /// Only for bucketed-window, where they differ from the default.
    #[schema(required, value_type = Option<u32>)]
    pub buckets: Option<NonZeroU32>,
    /// What a request is charged. Null under `concurrent`.
    #[schema(required, value_type = Option<u32>)]
    pub cost: Option<NonZeroU32>,
    #[schema(inline)]
    pub count: Count,
    /// The selector whose different values are counted.
    #[schema(required)]
    pub distinct: Option<String>,
    /// The outcome that resets the limit.
    #[schema(inline, required)]
    pub reset_on: Option<ResetOutcome>,
    #[schema(inline)]
    pub missing: Missing,
    #[schema(inline)]
    pub then: ThenResponse,
    /// Decided and counted, never applied.
    pub shadow: bool,
    /// Whom it does not apply to: lists, and `known_client`.
    pub unless: Vec<String>,
    #[schema(inline)]
    pub headers: Detail,
    /// What to do while Redis is down.
    pub on_failure: OnFailure,
    /// Whether it applies to every request.
    pub everywhere: bool,
    /// The routes that name it.
    pub routes: Vec<String>,
}

/// One rate of a limit.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct RateResponse {
    /// How many requests may pass in one window.
    #[schema(value_type = u32)]
    pub limit: NonZeroU32,
    /// In seconds.
    pub window: u64,
}

/// What the limit does when it is reached, as the configuration writes it: one of `deny`, `delay`, `tarpit`, `ban` and
/// `challenge`.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct ThenResponse {
    /// Not empty where the limit has a response of its own.
    #[schema(inline, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<DenyResponse>,
    /// How long at most: `20s`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tarpit: Option<String>,
    /// The ladder: how long the first ban lasts, the second, ...
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ban: Option<Vec<String>>,
    #[schema(inline, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge: Option<ChallengeKind>,
    /// The channels to notify.
    pub notify: Vec<String>,
}

impl ThenResponse {
    pub fn of(action: &Action, notify: Vec<String>) -> Self {
        let then = Self { notify, ..Self::default() };
        match action {
            Action::Deny(None) => Self { deny: Some(DenyResponse::default()), ..then },
            Action::Deny(Some(own)) => {
                let status = own.status.map(|status| status.as_u16());
                let redirect = own.redirect.as_ref().and_then(|target| target.to_str().ok()).map(secret::hidden);
                Self { deny: Some(DenyResponse { status, redirect }), ..then }
            }
            Action::Delay(span) => Self { delay: Some(Span(*span).to_string()), ..then },
            Action::Tarpit(span) => Self { tarpit: Some(Span(*span).to_string()), ..then },
            Action::Ban(ladder) => {
                let lengths = ladder.lengths().iter();
                Self { ban: Some(lengths.map(|length| Span(*length).to_string()).collect()), ..then }
            }
            Action::Challenge => Self { challenge: Some(ChallengeKind::Pow), ..then },
        }
    }
}

/// How the limit's own denial response differs from the usual one.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct DenyResponse {
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
}

// The state of one key.

/// Where a key stands with a limit.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Standing)]
pub struct KeyStateResponse {
    pub limit: String,
    /// The selectors of the key, without their values.
    pub key: Vec<String>,
    /// For a hit: whether it passed. For a state: whether a request would pass.
    pub allowed: bool,
    /// Whole seconds, rounded up, until a request would pass. For a banned key, until the ban ends. 0 where a request would
    /// pass now.
    pub retry_after: u64,
    /// Whether the limit is a shadow: it decides, and is never applied.
    pub shadow: bool,
    /// The ban of this key, or of the address in it, whatever was counted.
    #[schema(required)]
    pub ban: Option<KeyBanResponse>,
    /// In the order of the limit. Empty under `concurrent`, and while Redis is down and `on_failure` is `allow`, because
    /// nothing is counted then.
    #[schema(inline)]
    pub rates: Vec<RateStateResponse>,
}

/// What is left of one rate.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct RateStateResponse {
    /// How many requests may pass in one window.
    #[schema(value_type = u32)]
    pub limit: NonZeroU32,
    /// In seconds.
    pub window: u64,
    /// How many more requests pass now.
    pub remaining: u64,
    /// Whole seconds, rounded up, until more requests pass than now. 0 where nothing is used.
    pub reset: u64,
}
