//! The state of one key as the API shows it.

use std::cmp::Reverse;
use std::num::NonZeroU32;

use axum::Json;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::admin::bans::KeyBanResponse;
use crate::admin::problem::Problem;
use crate::decision::Verdict;
use crate::decision::operator::LimitQuery;
use crate::limit::Rates;
use crate::units::whole_seconds;

/// Where a key stands with a limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Standing)]
pub(super) struct KeyStateResponse {
    limit: String,
    /// The selectors of the key, without their values.
    key: Vec<String>,
    /// For a hit: whether it passed. For a state: whether a request would pass.
    allowed: bool,
    /// Whole seconds, rounded up, until a request would pass. For a banned key, until the ban ends. 0 where a request would
    /// pass now.
    retry_after: u64,
    /// Whether the limit is a shadow: it decides, and is never applied.
    shadow: bool,
    /// The ban of this key, or of the address in it, whatever was counted.
    #[schema(required)]
    ban: Option<KeyBanResponse>,
    /// In the order of the limit. Empty under `concurrent`, and while Redis is down and `on_failure` is `allow`, because
    /// nothing is counted then.
    #[schema(inline)]
    rates: Vec<RateStateResponse>,
}

/// What is left of one rate.
#[derive(Debug, Serialize, ToSchema)]
struct RateStateResponse {
    /// How many requests may pass in one window.
    #[schema(value_type = u32)]
    limit: NonZeroU32,
    /// In seconds.
    window: u64,
    /// How many more requests pass now.
    remaining: u64,
    /// Whole seconds, rounded up, until more requests pass than now. 0 where nothing is used.
    reset: u64,
}

impl KeyStateResponse {
    pub(super) fn of(
        query: LimitQuery,
        ban: Option<KeyBanResponse>,
        verdicts: &[Verdict],
    ) -> Result<Json<Self>, Problem> {
        if verdicts.is_empty() {
            return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the store gave no answer"));
        }
        let rates = query.rule.rates().map_or(&[][..], Rates::as_slice);
        // A value that may be several names stands where the first of them refuses it.
        let rates = rates.iter().enumerate().filter_map(|(place, rate)| {
            let standings = verdicts.iter().filter_map(|verdict| verdict.standings.get(place));
            let least = standings.min_by_key(|standing| (standing.remaining, Reverse(standing.reset)))?;
            Some(RateStateResponse {
                limit: rate.count,
                window: rate.per.as_secs(),
                remaining: least.remaining,
                reset: whole_seconds(least.reset),
            })
        });
        Ok(Json(Self {
            rates: rates.collect(),
            allowed: ban.is_none() && verdicts.iter().all(Verdict::passes),
            retry_after: ban.as_ref().map_or_else(
                || {
                    let longest = verdicts.iter().filter_map(|verdict| verdict.retry_after).max();
                    longest.map_or(0, |wait| whole_seconds(wait).max(1))
                },
                |ban| ban.left,
            ),
            ban,
            shadow: query.shadow,
            limit: query.limit.to_string(),
            key: query.selectors,
        }))
    }
}
