//! Lifts the bans of an address, of a key, or all of them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::RawQuery;
use axum::extract::State;
use http::StatusCode;
use ipnet::IpNet;
use serde::Serialize;
use utoipa::ToSchema;

use super::ban_response::BanResponse;
use super::ban_response::log_name;
use super::lift::lift;
use super::limit_key::limit_key;
use super::parse::network_of;
use crate::admin::AdminState;
use crate::admin::key_parts::KeyParts;
use crate::admin::problem::Problem;
use crate::decision::operator::LimitQuery;
use crate::key::Selector;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;

/// The bans that were lifted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Lifted)]
pub(super) struct LiftedResponse {
    lifted: Vec<BanResponse>,
    /// Only for an address: the ban of a wider network, which still denies it.
    #[schema(required)]
    remaining: Option<BanResponse>,
}

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
    let response = |ban: &Ban| BanResponse::of(ban, &state.store);
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

const EXPECTED: &str = "expected one of `address=ADDRESS`, `limit=NAME` with a value for each selector of its key, and \
                        `all=true`";
