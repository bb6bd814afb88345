//! The state of one key as the API shows it.

use std::num::NonZeroU32;

use axum::Json;
use http::StatusCode;
use serde::Serialize;

use crate::admin::bans::KeyBanResponse;
use crate::admin::problem::Problem;
use crate::decision::Verdict;
use crate::decision::operator::LimitQuery;
use crate::limit::Rates;
use crate::units::whole_seconds;

#[derive(Debug, Serialize)]
pub(in crate::admin) struct KeyStateResponse {
    limit: String,
    /// The selectors of the key. Values are never repeated.
    key: Vec<String>,
    allowed: bool,
    /// In whole seconds, rounded up. 0: a request would pass now.
    retry_after: u64,
    /// The limit only decides, and is never applied.
    shadow: bool,
    /// The ban of this key, or of the address in it, whatever was counted.
    ban: Option<KeyBanResponse>,
    rates: Vec<RateStateResponse>,
}

#[derive(Debug, Serialize)]
struct RateStateResponse {
    limit: NonZeroU32,
    /// In seconds.
    window: u64,
    remaining: u64,
    /// In whole seconds, rounded up.
    reset: u64,
}

impl KeyStateResponse {
    pub(super) fn of(
        query: LimitQuery,
        ban: Option<KeyBanResponse>,
        verdicts: &[Verdict],
    ) -> Result<Json<Self>, Problem> {
        let [verdict] = verdicts else {
            return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the store gave no answer"));
        };
        let rates = query.rule.rates().map_or(&[][..], Rates::as_slice);
        let rates = rates.iter().zip(&verdict.standings).map(|(rate, standing)| RateStateResponse {
            limit: rate.count,
            window: rate.per.as_secs(),
            remaining: standing.remaining,
            reset: whole_seconds(standing.reset),
        });
        Ok(Json(Self {
            rates: rates.collect(),
            allowed: ban.is_none() && verdict.passes(),
            retry_after: match &ban {
                Some(ban) => ban.left,
                None => verdict.retry_after.map_or(0, |wait| whole_seconds(wait).max(1)),
            },
            ban,
            shadow: query.shadow,
            limit: query.limit.to_string(),
            key: query.selectors,
        }))
    }
}
