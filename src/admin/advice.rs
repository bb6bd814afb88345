//! What looks misconfigured.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::AdminState;
use crate::record::advice::Advice;

/// What looks misconfigured, and what to write.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Advice)]
pub(super) struct AdviceResponse {
    /// `untrusted_forwarding`, `one_client`, `missing_field`, `pattern_matches_nothing`, `outcome_matches_neither`,
    /// `limit_never_counted`, `answers_unseen`, `keys_unavailable`, `reload_refused`, or `check`: a warning of `portcullis check`.
    kind: &'static str,
    /// What was seen, with its numbers.
    message: String,
    #[schema(format = DateTime)]
    since: String,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<String>,
    /// The line to write.
    help: String,
}

/// What looks misconfigured
///
/// Judged from the last thousand requests or more, and gone when it is no longer so: a forwarding header from peers that are
/// no trusted proxies, one address that sends nearly all requests, a login field that half of the requests lack, a `pattern`
/// that no name matches, answers that match neither side of an outcome, a limit that counted nothing while a thousand requests passed. As soon as it is so: a
/// route that waits for answers, and that a proxy asks about which forwards the requests itself; keys of tokens that cannot be
/// fetched; a reload that was refused. Also what `portcullis check` warns of.
#[utoipa::path(
    get,
    path = "/api/v1/advice",
    responses((
        status = 200,
        description = "All advice that holds now. Empty: nothing looks wrong.",
        body = Vec<AdviceResponse>,
    ))
)]
pub(super) async fn advice(State(state): State<Arc<AdminState>>) -> Json<Vec<AdviceResponse>> {
    Json(AdviceResponse::all(&state))
}

impl AdviceResponse {
    /// All advice that holds now.
    pub(super) fn all(state: &AdminState) -> Vec<Self> {
        let warnings = state.config.load();
        let observed = state.advisor.advice();
        let refused = state.last_reload.load().as_ref().and_then(|report| report.advice());
        refused.iter().chain(&warnings.warnings).chain(&observed).map(Self::of).collect()
    }

    fn of(advice: &Advice) -> Self {
        let Advice { kind, message, since, limit, route, help } = advice.clone();
        Self { kind: kind.as_str(), message, since: since.to_string(), limit, route, help }
    }
}
