//! Who asks most: the busiest keys of a limit, or the busiest clients.

use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};

use super::AdminState;
use super::problem::Problem;
use super::shared::{BUSY_KEYS_PARTS, Missing, Others, Scope, busy_keys};
use crate::admin::input::{Query, known_limit};
use crate::api::events::BusyKeyResponse;
use crate::record::heavy_keys::{KeyCounts, MinuteRecord, Order};
use crate::record::history::MAX_MINUTES;
use crate::record::kept_requests::Viewer;
use crate::words::clock::{Timestamp, wall};

/// Who asks most
///
/// The busiest keys of a limit, or without `limit` the busiest clients: addresses cut to `client_ip.ipv4_prefix` or
/// `ipv6_prefix`, as the configuration was when they asked. `denied` counts every request that was denied, and
/// under a limit also those that it held; `failed` those whose outcome was a failure. The header
/// `X-Portcullis-Missing` names the gateways that did not answer within 300 ms: what they counted last is not in it.
#[utoipa::path(
    get,
    path = "/api/v1/top",
    params(
        ("limit" = Option<String>, Query, description = "The name of a limit."),
        ("by" = Option<String>, Query, description = "`denied`, `requests` or `failures`. Left out: `denied`."),
        ("n" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Left out: 20."),
        ("minutes" = Option<u64>, Query, minimum = 1, maximum = 1440, description = "Left out: 10."),
    ),
    responses(
        (status = 200, description = "The busiest first.", body = Vec<BusyKeyResponse>),
        (status = 400, description = "A parameter is wrong, or there is no such parameter."),
        (status = 404, description = "There is no such limit."),
    )
)]
pub(super) async fn top(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<(Scope, Missing, Json<Vec<BusyKeyResponse>>), Problem> {
    let query = Query::read(query.as_deref(), &["limit", "by", "n", "minutes"])?;
    let minutes = query.number("minutes", DEFAULT_MINUTES, 1..=MAX_MINUTES)?;
    let most = query.number("n", DEFAULT_MOST, 1..=MAX_MOST)?;
    let by = query.word(
        "by",
        Order::Denied,
        &[("denied", Order::Denied), ("requests", Order::Requests), ("failures", Order::Failed)],
    )?;
    let table = match query.text("limit") {
        Some(name) => state.key_tables.limit(&known_limit(&state, name)?),
        None => Arc::clone(state.key_tables.clients()),
    };
    let others = ask_others(&state, minutes).await;
    let now = wall();
    let mut counts = table.counts(minutes, now);
    let since = Timestamp::from_micros(now.as_micros().saturating_sub(minutes.min(SHARED_MINUTES) * 60_000_000));
    for minute in others.contents().filter_map(MinuteRecord::from_bytes) {
        let keys = minute.keys(query.text("limit")).iter().filter(|key| key.last() >= since);
        keys.for_each(|key| key.add_to(&mut counts));
    }
    let counts = counts.busiest(by, usize::try_from(most).unwrap_or(usize::MAX));
    Ok((others.scope, others.missing(), Json(counts.iter().map(busy_key).collect())))
}

/// What other gateways have counted in the last minutes, an hour at most.
async fn ask_others(state: &AdminState, minutes: u64) -> Others {
    let current = MinuteRecord::number(wall());
    let fields: Vec<String> = (current.saturating_sub(minutes.min(SHARED_MINUTES))..=current).map(busy_keys).collect();
    Others::ask(state, &fields, None).await
}

fn busy_key(counts: &KeyCounts) -> BusyKeyResponse {
    BusyKeyResponse {
        key: Viewer::ThisGateway.values(&counts.key),
        requests: counts.requests,
        denied: counts.denied,
        failed: counts.failed,
        first: counts.first.to_string(),
        last: counts.last.to_string(),
    }
}

/// Gateways let each other know the last hour.
const SHARED_MINUTES: u64 = 60;

const _: () = assert!(SHARED_MINUTES < BUSY_KEYS_PARTS);

const DEFAULT_MINUTES: u64 = 10;

const DEFAULT_MOST: u64 = 20;

const MAX_MOST: u64 = 1000;
