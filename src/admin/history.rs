//! What was counted in each ten seconds, by route and by limit.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::IntoResponse;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde::Serialize;
use utoipa::ToSchema;

use super::AdminState;
use super::problem::Problem;
use super::shared::{HISTORY_PARTS, Missing, Others, Scope, history as history_field};
use crate::admin::input::Query;
use crate::admin::status::{self, Judgement};
use crate::api::Level;
use crate::record::history::{Counts, HistoryChunk, HistoryReport, MAX_MINUTES, STEP};
use crate::record::metrics::Exposition;
use crate::record::{DecisionLabel, Gauges, NO_ROUTE};
use crate::rules::decision::Policy;
use crate::rules::outcome::Outcome;
use crate::words::clock::wall;

const DEFAULT_MINUTES: u64 = 60;

/// Counts in steps.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = History)]
pub(super) struct HistoryResponse {
    /// The length of a step: 10.
    step_seconds: u64,
    /// `all`: of all gateways on this store; `this_gateway`: Redis does not answer, so only of this one.
    scope: &'static str,
    /// The ids of the gateways that did not answer within 300 ms, until an hour after they were last heard of: what they
    /// counted last is not in it.
    missing: Vec<String>,
    /// When the first step begins. The last step is the current one.
    #[schema(format = DateTime)]
    from: String,
    /// For each route, and `-` for requests on none: how many requests each decision had in each step, and where the route
    /// has an outcome how many answers were each of `success`, `failure` and `neither`.
    #[schema(value_type = BTreeMap<String, BTreeMap<String, Vec<u64>>>)]
    routes: Counts,
    /// For each limit: how often it made each decision in each step.
    #[schema(value_type = BTreeMap<String, BTreeMap<String, Vec<u64>>>)]
    limits: Counts,
}

/// What was counted in each ten seconds
///
/// By route (`-`: requests on no route) and decision, and by limit and decision. A denial is counted for each limit that
/// denies. Steps begin at multiples of 10 s; the last one is the current one, and a step in which nothing was counted is 0.
#[utoipa::path(
    get,
    path = "/api/v1/history",
    params(("minutes" = Option<u64>, Query, minimum = 1, maximum = 1440, description = "Left out: 60.")),
    responses(
        (status = 200, description = "The steps of that time.", body = HistoryResponse),
        (status = 400, description = "`minutes` is not a whole number within its bounds, or there is another parameter."),
    )
)]
pub(super) async fn history(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<Json<HistoryResponse>, Problem> {
    let query = Query::read(query.as_deref(), &["minutes"])?;
    let minutes = query.number("minutes", DEFAULT_MINUTES, 1..=MAX_MINUTES)?;
    let (others, scope, Missing(missing)) = of_others(&state).await;
    let mut report = state.metrics.history().report(minutes, wall());
    for chunk in &others {
        report.add(chunk);
    }
    name_all(&mut report, &state.policy.load());
    let HistoryReport { from, routes, limits, .. } = report;
    Ok(Json(HistoryResponse {
        step_seconds: STEP.as_secs(),
        scope: scope.as_str(),
        missing,
        from: from.to_string(),
        routes,
        limits,
    }))
}

/// What other gateways have counted in the last hour.
async fn of_others(state: &AdminState) -> (Vec<HistoryChunk>, Scope, Missing) {
    let current = HistoryChunk::number(wall());
    let numbers = current.saturating_sub(HISTORY_PARTS - 1)..=current;
    let fields: Vec<String> = numbers.clone().map(history_field).collect();
    let others = Others::ask(state, &fields, None).await;
    // A gateway that was idle since may still have an older one under the same name.
    let chunks = others.contents().filter_map(HistoryChunk::from_bytes);
    let chunks = chunks.filter(|chunk| numbers.contains(&chunk.own_number())).collect();
    (chunks, others.scope, others.missing())
}

/// Every route and limit in force is named, also where nothing was counted.
fn name_all(report: &mut HistoryReport, policy: &Policy) {
    let routes = policy.routes.all().iter().map(|route| &*route.name);
    for route in policy.routes.all().iter().filter(|route| route.outcome.is_some()) {
        for outcome in Outcome::ALL {
            report.ensure_route(&route.name, outcome.as_str());
        }
    }
    for route in routes.chain([NO_ROUTE]) {
        for decision in [DecisionLabel::Allowed, DecisionLabel::Denied] {
            report.ensure_route(route, decision.as_str());
        }
    }
    for limit in &policy.limits {
        report.ensure_limit(&limit.name, DecisionLabel::Denied.as_str());
    }
}

// The metrics, in the format that the scraper asks for.

const OPEN_METRICS: &[u8] = b"application/openmetrics-text";

/// Metrics for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "In the OpenMetrics format where Accept asks for it.", content(
        (String = "text/plain"),
        (String = "application/openmetrics-text"),
    )))
)]
pub(super) async fn metrics(State(state): State<Arc<AdminState>>, headers: HeaderMap) -> impl IntoResponse {
    let Judgement { level, lockdowns } = status::judgement(&state).await;
    let verdict = Level::ALL.iter().map(|one| (one.as_str(), *one == level)).collect();
    let gauges = Gauges { verdict, lockdowns, ..state.gauges() };
    let accepts_open_metrics =
        headers.get(ACCEPT).is_some_and(|accept| memchr::memmem::find(accept.as_bytes(), OPEN_METRICS).is_some());
    let (exposition, content_type) = if accepts_open_metrics {
        (Exposition::OpenMetrics, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    } else {
        (Exposition::Prometheus, "text/plain; version=0.0.4; charset=utf-8")
    };
    ([(CONTENT_TYPE, content_type)], state.metrics.expose(gauges, exposition))
}
