//! Bans an address or a key for an operator.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{Request, StatusCode};
use ipnet::IpNet;
use serde::Deserialize;
use tracing::info;
use utoipa::ToSchema;

use super::{ban_response, limit_key, log_name, network_of};
use crate::admin::problem::Problem;
use crate::admin::{AdminState, input};
use crate::api::bans::BannedResponse;
use crate::rules::decision::operator::QueriedKey;
use crate::store::bans::BanSubject;
use crate::words::network_width::shortest_prefix;
use crate::words::units::{InvalidSpan, Span};
use crate::words::word::Help;

/// Whom to ban, and for how long.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BanRequest {
    /// An address or a network: `198.51.100.7/32`. Instead of `limit` and `key`. A network larger than a /8 (IPv6: a /16)
    /// needs `force`. `/0` is always refused.
    address: Option<String>,
    /// Several of them, instead of `address`: all are banned, or none. The answer has a list of bans then.
    #[schema(min_items = 1, max_items = 10_000)]
    addresses: Option<Vec<String>>,
    /// The name of a limit.
    limit: Option<String>,
    /// A value for each selector of that limit's key. Left out where the key has none.
    #[serde(default, deserialize_with = "super::deserialize_key")]
    key: Option<BTreeMap<String, String>>,
    /// How long: `15m`, `24h`.
    #[serde(rename = "for")]
    span: String,
    #[schema(max_length = 200)]
    #[serde(default)]
    reason: String,
    /// Confirms a network larger than a /8 (IPv6: a /16).
    #[serde(default)]
    force: bool,
}

/// Ban addresses or a key
///
/// A banned address gets 403. A banned key is denied on every route of its limit. A ban that exists already begins again,
/// from now.
#[utoipa::path(
    post,
    path = "/api/v1/bans",
    request_body = BanRequest,
    responses(
        (status = 201, description = "The ban is in force, or all of `addresses` are.", body = BannedResponse, headers(
            ("Location" = String, description = "The path of the ban. Without it where `addresses` were banned."),
        )),
        (status = 400, description = "The request is wrong. The detail says what was expected."),
        (status = 404, description = "There is no limit of that name. The detail suggests a similar name."),
        (status = 413, description = "The body is longer than 1 MiB."),
        (status = 507, description = "There is no room for so many bans of an operator. None has begun."),
    )
)]
pub(super) async fn create(State(state): State<Arc<AdminState>>, request: Request<Body>) -> Result<Response, Problem> {
    let request: BanRequest = input::read_json(request, MAX_BODY, EXPECTED).await?;
    let span = request.span()?;
    request.check_reason()?;
    let subjects = match (&request.address, &request.addresses, &request.limit) {
        (Some(address), None, None) if request.key.is_none() => {
            vec![BanSubject::Address(request.network("address", address)?)]
        }
        (None, Some(addresses), None) if request.key.is_none() => request.networks(addresses)?,
        (None, None, Some(limit)) => banned_keys(&state, limit, request.key.as_ref())?,
        _ => return Err(Problem::bad_request(EXPECTED)),
    };
    let begun = state.store.ban_by_operator(subjects, span, &request.reason).await;
    let begun = begun.map_err(|full| Problem::new(StatusCode::INSUFFICIENT_STORAGE, full.to_string()))?;
    let (logged, more) = begun.split_at(begun.len().min(MOST_LOGGED));
    for ban in logged {
        info!(ban = %ban.id, until = %ban.until, "an operator banned {}", log_name(ban));
    }
    if let Some(last) = more.last() {
        info!(bans = more.len(), until = %last.until, "an operator banned {} more networks in the same call", more.len());
    }
    let mut bans = begun.iter().map(|ban| ban_response(ban, &state));
    if request.addresses.is_some() {
        return Ok((StatusCode::CREATED, Json(BannedResponse::Several { banned: bans.collect() })).into_response());
    }
    let ban = bans.next().ok_or_else(|| Problem::bad_request(EXPECTED))?;
    let location = format!("/api/v1/bans/{}", ban.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(BannedResponse::One(ban))).into_response())
}

/// The key of these values. Several where applications may take them for several names.
fn banned_keys(
    state: &AdminState,
    limit: &str,
    values: Option<&BTreeMap<String, String>>,
) -> Result<Vec<BanSubject>, Problem> {
    let values: Vec<_> =
        values.into_iter().flatten().map(|(name, value)| (Cow::Borrowed(&**name), Cow::Borrowed(&**value))).collect();
    let query = limit_key(state, limit, &values)?;
    if query.shadow {
        return Err(Problem::bad_request("this limit is a shadow: it denies no request, so it bans no key"));
    }
    let limit = query.limit;
    let subject = |QueriedKey { key, named }| BanSubject::Key { key, limit: Arc::clone(&limit), named, client: None };
    Ok(query.keys.into_iter().map(subject).collect())
}

impl BanRequest {
    /// Every network once, in their order.
    fn networks(&self, texts: &[String]) -> Result<Vec<BanSubject>, Problem> {
        if !(1..=MOST_ADDRESSES).contains(&texts.len()) {
            let expected = format!("`addresses`: expected 1 to {MOST_ADDRESSES}, found {}", texts.len());
            return Err(Problem::bad_request(expected));
        }
        let mut networks = BTreeSet::new();
        for text in texts {
            networks.insert(self.network("addresses", text)?);
        }
        Ok(networks.into_iter().map(BanSubject::Address).collect())
    }

    /// A very large network needs `force`, because it is probably a mistake. Everyone cannot be banned at all.
    fn network(&self, field: &str, text: &str) -> Result<IpNet, Problem> {
        let network = network_of(text)?;
        match shortest_prefix(network) {
            _ if network.prefix_len() == 0 => Err(Problem::bad_request(format!("`{field}`: that is everyone"))),
            Some(shortest) if !self.force => Err(Problem::bad_request(format!(
                "`{field}`: {network} is larger than a /{shortest}, which may be most of your visitors; if you mean \
                 it, add `\"force\": true` (`--force` on the command line)"
            ))),
            _ => Ok(network),
        }
    }

    fn span(&self) -> Result<Duration, Problem> {
        let Span(span) = self
            .span
            .parse()
            .map_err(|error: InvalidSpan| Problem::bad_request(format!("`for`: {}", error.sentence())))?;
        if span.is_zero() { Err(Problem::bad_request("`for`: a ban must last longer than 0 s")) } else { Ok(span) }
    }

    fn check_reason(&self) -> Result<(), Problem> {
        let is_plain = self.reason.chars().count() <= MAX_REASON && !self.reason.chars().any(char::is_control);
        if is_plain { Ok(()) } else { Err(Problem::bad_request("`reason` is one line of at most 200 characters")) }
    }
}

/// In characters.
const MAX_REASON: usize = 200;

/// Of one call. The audit trail has every ban.
const MOST_LOGGED: usize = 20;

/// In one call.
const MOST_ADDRESSES: usize = 10_000;

/// In bytes: enough for so many addresses.
const MAX_BODY: usize = 1024 * 1024;

const EXPECTED: &str = "expected JSON with `address` or `addresses`, or with `limit` and `key`, and with `for`; `reason` and \
                        `force` are optional";
