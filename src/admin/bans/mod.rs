//! Bans: listing, setting and lifting them, and exporting them for firewalls.
//!
//! This file: how bans are shown, and which ban or key a request names.

mod create;
mod export;
mod remove;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use http::StatusCode;
use ipnet::IpNet;
use serde::Deserializer;
use serde::de::{Error, MapAccess, Visitor};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::AdminState;
use crate::admin::problem::Problem;
use crate::admin::shared::Scope;
use crate::api::bans::{BanResponse, KeyBanResponse};
use crate::rules::decision::operator::LimitQuery;
use crate::rules::list::network;
use crate::store::bans::{Ban, BanId, BanSubject};
use crate::words::clock::Timestamp;
use crate::words::units::whole_seconds;
use crate::words::word::Help;

/// All bans in force
///
/// As this gateway knows them. Changes by another gateway are known within a second.
#[utoipa::path(
    get,
    path = "/api/v1/bans",
    responses((
        status = 200,
        description = "Sorted by end. The ban that ends first is the first.",
        body = Vec<BanResponse>,
    ))
)]
async fn list(State(state): State<Arc<AdminState>>) -> Json<Vec<BanResponse>> {
    Json(state.store.bans().list().iter().map(|ban| ban_response(ban, &state)).collect())
}

/// One ban
#[utoipa::path(
    get,
    path = "/api/v1/bans/{id}",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "As in the list.", body = BanResponse),
        (status = 404, description = "There is no ban of that id."),
    )
)]
async fn show(
    State(state): State<Arc<AdminState>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<BanResponse>, Problem> {
    let ban = state.store.bans().find(ban_id(id)?).ok_or_else(no_such_ban)?;
    Ok(Json(ban_response(&ban, &state)))
}

// A ban as the API shows it.

fn ban_response(ban: &Ban, state: &AdminState) -> BanResponse {
    let (address, limit, key) = match &ban.subject {
        BanSubject::Address(network) => (Some(network.to_string()), None, None),
        BanSubject::Key { limit, named, .. } => {
            (None, Some(limit.to_string()), Some(named.for_operators().iter().cloned().collect()))
        }
    };
    let is_known = |limit: &String| state.policy.load().limits.iter().any(|known| *known.name == **limit);
    let unenforced = limit.as_ref().is_some_and(|limit| !is_known(limit));
    let scope = if state.store.is_only_here(ban.id) { Scope::ThisGateway } else { Scope::All };
    BanResponse {
        id: ban.id.to_string(),
        address,
        limit,
        key,
        until: ban.until.to_string(),
        reason: ban.reason.to_string(),
        scope: scope.as_str().to_owned(),
        unenforced,
    }
}

/// The ban for a log line. A key is named only by its limit.
fn log_name(ban: &Ban) -> String {
    match &ban.subject {
        BanSubject::Address(network) => network.to_string(),
        BanSubject::Key { limit, .. } => format!("a key of {limit}"),
    }
}

// The ban that applies to a key, in the answer about its state.

/// The ban that denies this key, or the address in it: the one that lasts longest.
pub(in crate::admin) fn ban_of(state: &AdminState, query: &LimitQuery) -> Option<KeyBanResponse> {
    let bans = state.store.bans();
    // A shadow limit is never applied.
    let of_keys = query.keys.iter().filter_map(|queried| bans.find(BanId::of_key(queried.key)));
    let of_keys = of_keys.filter(|_| !query.shadow);
    let of_address = query.client.and_then(|client| bans.find(bans.of_address(client)?.0));
    let longest = of_keys.chain(of_address).max_by_key(|ban| ban.until)?;
    Some(key_ban_response(&longest, bans.now()))
}

fn key_ban_response(ban: &Ban, now: Timestamp) -> KeyBanResponse {
    let address = match &ban.subject {
        BanSubject::Address(network) => Some(network.to_string()),
        BanSubject::Key { .. } => None,
    };
    let (id, until, reason) = (ban.id.to_string(), ban.until.to_string(), ban.reason.to_string());
    KeyBanResponse { id, address, until, left: whole_seconds(ban.left(now)), reason }
}

// Reads the key of a ban: an object of texts, each name once.

/// For serde: a map without a repeated name, of which one value would be lost.
fn deserialize_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    deserializer.deserialize_map(KeyVisitor).map(Some)
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut entries: M) -> Result<Self::Value, M::Error> {
        let mut key = BTreeMap::new();
        while let Some((name, value)) = entries.next_entry()? {
            if key.insert(name, value).is_some() {
                return Err(M::Error::custom("a name is repeated"));
            }
        }
        Ok(key)
    }
}

// Finds the key of a limit that an operator names.

/// The key of these selectors and values. A `distinct` value is not part of a key, so it is refused.
fn limit_key(state: &AdminState, limit: &str, values: &[(Cow<'_, str>, Cow<'_, str>)]) -> Result<LimitQuery, Problem> {
    let policy = state.policy.load();
    let query = LimitQuery::new(&policy, limit, values, None, &state.store.hashers())
        .map_err(|error| Problem::invalid_query(&error))?;
    if values.len() > query.selectors.len() {
        return Err(Problem::bad_request("the `distinct` value of this limit is not part of its key: leave it out"));
    }
    Ok(query)
}

// Reads ban ids and networks.

/// A text that is not an id gets the same answer as the id of no ban.
fn ban_id(id: Result<Path<String>, PathRejection>) -> Result<BanId, Problem> {
    id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(no_such_ban)
}

fn no_such_ban() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no ban of that id")
}

fn network_of(text: &str) -> Result<IpNet, Problem> {
    network(text.trim()).map_err(|error| Problem::bad_request(error.sentence()))
}

// The paths of bans.

pub(in crate::admin) fn routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::new()
        .routes(routes!(list, create::create, remove::remove_matching))
        .routes(routes!(show, remove::remove))
        .routes(routes!(export::export))
}
