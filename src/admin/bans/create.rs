//! Bans an address or a key for an operator.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use http::Request;
use http::StatusCode;
use http::header::LOCATION;
use ipnet::IpNet;
use serde::Deserialize;
use tracing::info;
use utoipa::ToSchema;

use super::ban_response::BanResponse;
use super::ban_response::log_name;
use super::key_values;
use super::limit_key::limit_key;
use super::parse::network_of;
use crate::admin::AdminState;
use crate::admin::json_body;
use crate::admin::problem::Problem;
use crate::decision::operator::QueriedKey;
use crate::network_width::shortest_prefix;
use crate::store::bans::BanSubject;
use crate::units::Span;

/// Whom to ban, and for how long.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BanRequest {
    /// An address or a network: `198.51.100.7/32`. Instead of `limit` and `key`. A network larger than a /8 (IPv6: a /16)
    /// needs `force`. `/0` is always refused.
    address: Option<String>,
    /// The name of a limit.
    limit: Option<String>,
    /// A value for each selector of that limit's key. Left out where the key has none.
    #[serde(default, deserialize_with = "key_values::deserialize")]
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

/// Ban an address or a key
///
/// A banned address gets 403. A banned key is denied on every route of its limit. A ban that exists already begins again,
/// from now.
#[utoipa::path(
    post,
    path = "/api/v1/bans",
    request_body = BanRequest,
    responses(
        (status = 201, description = "The ban is in force.", body = BanResponse, headers(
            ("Location" = String, description = "The path of the ban."),
        )),
        (status = 400, description = "The request is wrong. The detail says what was expected."),
        (status = 404, description = "There is no limit of that name. The detail suggests a similar name."),
        (status = 507, description = "There is no room for another ban of an operator."),
    )
)]
pub(super) async fn create(
    State(state): State<Arc<AdminState>>,
    request: Request<Body>,
) -> Result<impl IntoResponse, Problem> {
    let request: BanRequest = json_body::read(request, EXPECTED).await?;
    let span = request.span()?;
    request.check_reason()?;
    let subjects = match (&request.address, &request.limit) {
        (Some(address), None) if request.key.is_none() => vec![BanSubject::Address(request.network(address)?)],
        (None, Some(limit)) => banned_keys(&state, limit, request.key.as_ref())?,
        _ => return Err(Problem::bad_request(EXPECTED)),
    };
    let mut first = None;
    for subject in subjects {
        let ban = state.store.ban_by_operator(subject, span, &request.reason).await;
        let ban = ban.map_err(|full| Problem::new(StatusCode::INSUFFICIENT_STORAGE, full.to_string()))?;
        info!(ban = %ban.id, until = %ban.until, "an operator banned {}", log_name(&ban));
        first.get_or_insert(ban);
    }
    let ban = first.ok_or_else(|| Problem::bad_request(EXPECTED))?;
    let location = format!("/api/v1/bans/{}", ban.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(BanResponse::of(&ban, &state.store))))
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
    /// A very large network needs `force`, because it is probably a mistake. Everyone cannot be banned at all.
    fn network(&self, text: &str) -> Result<IpNet, Problem> {
        let network = network_of(text)?;
        match shortest_prefix(network) {
            _ if network.prefix_len() == 0 => Err(Problem::bad_request("`address`: that is everyone")),
            Some(shortest) if !self.force => Err(Problem::bad_request(format!(
                "`address`: {network} is larger than a /{shortest}, which may be most of your visitors; if you mean \
                 it, add `\"force\": true` (`--force` on the command line)"
            ))),
            _ => Ok(network),
        }
    }

    fn span(&self) -> Result<Duration, Problem> {
        let Span(span) = self.span.parse().map_err(|error| Problem::bad_request(format!("`for`: {error}")))?;
        if span.is_zero() { Err(Problem::bad_request("`for`: a ban must last longer than 0 s")) } else { Ok(span) }
    }

    fn check_reason(&self) -> Result<(), Problem> {
        let is_plain = self.reason.chars().count() <= MAX_REASON && !self.reason.chars().any(char::is_control);
        if is_plain { Ok(()) } else { Err(Problem::bad_request("`reason` is one line of at most 200 characters")) }
    }
}

/// In characters.
const MAX_REASON: usize = 200;

const EXPECTED: &str =
    "expected JSON with `address`, or with `limit` and `key`, and with `for`; `reason` and `force` are optional";
