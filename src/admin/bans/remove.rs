//! Lifts one ban by its id.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use http::StatusCode;
use ipnet::IpNet;
use tokio::task::JoinSet;
use tracing::info;

use super::{ban_id, ban_response, limit_key, log_name, network_of, no_such_ban};
use crate::admin::AdminState;
use crate::admin::openapi::KeyParts;
use crate::admin::problem::Problem;
use crate::api::bans::LiftedResponse;
use crate::rules::decision::operator::LimitQuery;
use crate::rules::key::{KeyHash, Selector};
use crate::store::Store;
use crate::store::bans::{Ban, BanId, BanSubject};

/// Lift a ban
///
/// Its ladder begins again, and its limit is reset for that key. Every gateway on the same store knows within a second.
#[utoipa::path(
    delete,
    path = "/api/v1/bans/{id}",
    params(("id" = String, Path)),
    responses(
        (status = 204, description = "The ban is lifted."),
        (status = 404, description = "There is no ban of that id."),
        (status = 503, description = "Redis does not answer: the ban may still be in force."),
    )
)]
pub(super) async fn remove(
    State(state): State<Arc<AdminState>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let lifted = lift(&state, &[ban_id(id)?]).await?;
    if lifted.is_empty() { Err(no_such_ban()) } else { Ok(StatusCode::NO_CONTENT) }
}

// Lifts the bans of an address, of a key, or all of them.

const EXPECTED: &str = "expected one of `address=ADDRESS`, `limit=NAME` with a value for each selector of its key, and \
                        `all=true`";

/// Which bans to lift.
enum LiftQuery<'q> {
    All,
    /// Those of an address or a network.
    Address(IpNet),
    /// The ban of a key: the limit, and the values of its selectors.
    Key(Cow<'q, str>, Vec<(Cow<'q, str>, Cow<'q, str>)>),
}

/// Lift the bans of an address, of a key, or all of them
///
/// One of `address`, `limit` and `all` says which. Without any of them nothing is lifted. The limit of a banned key is
/// reset for it too.
#[utoipa::path(
    delete,
    path = "/api/v1/bans",
    params(
        ("address" = Option<String>, Query, description = "An address or a network: lifts its own ban, and those of \
            limits whose key is that address and nothing else."),
        ("limit" = Option<String>, Query, description = "The name of a limit, with a value for each selector of its \
            key: `limit=login-failures&param.username=alice`."),
        KeyParts,
        ("all" = Option<String>, Query, description = "`true`: lifts every ban."),
    ),
    responses(
        (status = 200, description = "The bans are lifted.", body = LiftedResponse),
        (status = 400, description = "The request is wrong. The detail says what was expected."),
        (status = 404, description = "The address or key is not banned, or there is no limit of that name. If a wider \
            network is banned, the detail names it."),
        (status = 503, description = "Redis does not answer: bans may still be in force."),
    )
)]
pub(super) async fn remove_matching(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<Json<LiftedResponse>, Problem> {
    let query = LiftQuery::parse(query.as_deref().unwrap_or_default())?;
    let ids = match &query {
        LiftQuery::All => state.store.bans().list().iter().map(|ban| ban.id).collect(),
        LiftQuery::Address(network) => bans_of_network(&state, *network),
        LiftQuery::Key(limit, values) => {
            limit_key(&state, limit, values)?.keys.iter().map(|queried| BanId::of_key(queried.key)).collect()
        }
    };
    let lifted = lift(&state, &ids.into_iter().collect::<Vec<_>>()).await?;
    let wider = match &query {
        LiftQuery::Address(network) => wider_ban(&state, *network),
        LiftQuery::All | LiftQuery::Key(..) => None,
    };
    if lifted.is_empty() && !matches!(query, LiftQuery::All) {
        return Err(Problem::new(StatusCode::NOT_FOUND, not_banned(&query, wider.as_ref())));
    }
    let response = |ban: &Ban| ban_response(ban, &state);
    Ok(Json(LiftedResponse { lifted: lifted.iter().map(response).collect(), remaining: wider.as_ref().map(response) }))
}

impl<'q> LiftQuery<'q> {
    /// An unclear query lifts nothing.
    fn parse(query: &'q str) -> Result<Self, Problem> {
        let mut values: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        let mut take = |name: &str| {
            let mut found: Vec<_> = values.extract_if(.., |(given, _)| given == name).map(|(_, value)| value).collect();
            if found.len() > 1 {
                Err(Problem::bad_request(format!("several values for `{name}`")))
            } else {
                Ok(found.pop())
            }
        };
        match (take("all")?.as_deref(), take("address")?, take("limit")?) {
            (None, None, Some(limit)) => Ok(Self::Key(limit, values)),
            _ if !values.is_empty() => Err(Problem::bad_request(EXPECTED)),
            (Some("true"), None, None) => Ok(Self::All),
            (None, Some(address), None) => network_of(&address).map(Self::Address),
            _ => Err(Problem::bad_request(EXPECTED)),
        }
    }
}

/// The bans of exactly this network, and those of limits whose key is this address and nothing else.
fn bans_of_network(state: &AdminState, network: IpNet) -> BTreeSet<BanId> {
    let is_host = network.prefix_len() == network.max_prefix_len();
    let matches = |of: IpNet| if is_host { of.contains(&network) } else { of == network };
    // Some bans of other gateways are known only by the hash of their key, so the hash is computed for each such limit.
    let policy = state.policy.load();
    let by_address = policy.limits.iter().filter(|limit| {
        let [part] = &limit.key.parts[..] else { return false };
        matches!(part.selector, Selector::ClientIp(_))
    });
    let address = [(Cow::Borrowed("client_ip"), Cow::Owned(network.network().to_string()))];
    let queries = by_address
        .filter_map(|limit| LimitQuery::new(&policy, &limit.name, &address, None, &state.store.hashers()).ok())
        .flat_map(|query| query.keys)
        .filter(|queried| queried.named.address().is_some_and(matches));
    // Limits that a reload removed may still have bans.
    let all = state.store.bans().list();
    let listed = all.iter().filter(|ban| match &ban.subject {
        BanSubject::Address(of) => *of == network,
        BanSubject::Key { named, .. } => named.address().is_some_and(matches),
    });
    queries.map(|queried| BanId::of_key(queried.key)).chain(listed.map(|ban| ban.id)).collect()
}

/// The ban of a network that contains this one.
fn wider_ban(state: &AdminState, network: IpNet) -> Option<Ban> {
    let all = state.store.bans().list();
    all.into_iter().find(|ban| matches!(&ban.subject, BanSubject::Address(of) if of.contains(&network)))
}

fn not_banned(query: &LiftQuery<'_>, wider: Option<&Ban>) -> String {
    match (query, wider) {
        (LiftQuery::Address(network), Some(wider)) => {
            format!("{} is banned as part of {}: lift that ban", named(*network), log_name(wider))
        }
        (LiftQuery::Address(network), None) => format!("{} is not banned", named(*network)),
        (LiftQuery::Key(limit, _), _) => format!("this key of {limit} is not banned"),
        (LiftQuery::All, _) => "nothing is banned".to_owned(),
    }
}

/// `198.51.100.7`, `198.51.100.0/24`
fn named(network: IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() { network.addr().to_string() } else { network.to_string() }
}

// Lifts bans in the store.

/// How many calls to the store are under way at once.
const MAX_CONCURRENT: usize = 64;

/// Lifts those of these bans that exist, and returns them. Their keys are reset too, because otherwise the next request
/// would begin the next ban. Fails where Redis, which does not answer, has one of them, or may have and none was lifted.
pub(super) async fn lift(state: &AdminState, ids: &[BanId]) -> Result<Vec<Ban>, Problem> {
    let (mut all_lifted, mut in_redis, mut perhaps_in_redis) = (Vec::new(), 0, 0);
    for chunk in ids.chunks(MAX_CONCURRENT) {
        let mut lifting = JoinSet::new();
        for &id in chunk {
            let store = Arc::clone(&state.store);
            lifting.spawn(async move { (id, store.lift(id).await) });
        }
        let mut lifted = Vec::new();
        for (id, answer) in lifting.join_all().await {
            match answer {
                Ok(ban) => lifted.extend(ban),
                Err(_) if state.store.bans().find(id).is_some() => in_redis += 1,
                Err(_) => perhaps_in_redis += 1,
            }
        }
        // A reset that fails does not undo the lift: what was counted ends with its window.
        let _ = state.store.reset(&lifted.iter().filter_map(key).collect::<Vec<_>>()).await;
        for ban in &lifted {
            info!(ban = %ban.id, "an operator lifted the ban of {}", log_name(ban));
        }
        all_lifted.extend(lifted);
    }
    if in_redis > 0 || (perhaps_in_redis > 0 && all_lifted.is_empty()) {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, not_lifted(in_redis, all_lifted.len())));
    }
    Ok(all_lifted)
}

/// Says which bans stay in force. `in_redis`: how many Redis has; `lifted`: how many only this gateway had.
fn not_lifted(in_redis: usize, lifted: usize) -> String {
    let which = match in_redis {
        0 => "a ban that only Redis has stays in force".to_owned(),
        1 => "the ban stays in force".to_owned(),
        count => format!("{count} bans stay in force"),
    };
    let others = match lifted {
        0 => String::new(),
        1 => "; one that only this gateway knew is lifted".to_owned(),
        count => format!("; {count} that only this gateway knew are lifted"),
    };
    format!("Redis does not answer: {which} until it is back and you lift it again{others}")
}

fn key(ban: &Ban) -> Option<KeyHash> {
    match &ban.subject {
        BanSubject::Key { key, .. } => Some(*key),
        BanSubject::Address(_) => None,
    }
}
