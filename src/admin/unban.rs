//! Bans that are lifted by what is banned, or all of them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::RawQuery;
use axum::extract::State;
use http::StatusCode;
use ipnet::IpNet;
use serde::Serialize;
use tokio::task::JoinSet;
use tracing::info;

use super::AdminState;
use super::bans::Described;
use super::bans::bad;
use super::bans::network_of;
use super::bans::what;
use super::problem::Problem;
use crate::decision::operator::LimitQuery;
use crate::key::KeyHash;
use crate::key::Selector;
use crate::store::Store;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;

/// What became of it.
#[derive(Debug, Serialize)]
pub(super) struct Lifted {
    lifted: Vec<Described>,
    /// The ban of a wider network, which still keeps that address out.
    remaining: Option<Described>,
}

/// Which bans are meant.
enum Meant<'q> {
    All,
    /// Those of an address or a network.
    Address(IpNet),
    /// That of a key.
    Key(Cow<'q, str>, Vec<(Cow<'q, str>, Cow<'q, str>)>),
}

/// Lifts the bans that the query names, and forgets what was counted under their keys.
pub(super) async fn remove_those(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<Json<Lifted>, Problem> {
    let meant = Meant::read(query.as_deref().unwrap_or_default())?;
    let ids = match &meant {
        Meant::All => state.store.bans().list().iter().map(|ban| ban.id).collect(),
        Meant::Address(network) => state.about(*network),
        Meant::Key(limit, values) => [BanId::of_key(state.key_alone(limit, values)?.key)].into(),
    };
    let lifted = state.lift(&ids.into_iter().collect::<Vec<_>>()).await?;
    let wider = match &meant {
        Meant::Address(network) => state.around(*network),
        Meant::All | Meant::Key(..) => None,
    };
    if lifted.is_empty() && !matches!(meant, Meant::All) {
        return Err(Problem::new(StatusCode::NOT_FOUND, not_banned(&meant, wider.as_ref())));
    }
    let lifted = lifted.iter().map(Described::of).collect();
    Ok(Json(Lifted { lifted, remaining: wider.as_ref().map(Described::of) }))
}

impl<'q> Meant<'q> {
    /// Nothing is lifted that was not asked for: what is unclear names no ban.
    fn read(query: &'q str) -> Result<Self, Problem> {
        let mut values: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        let mut taken = |name: &str| {
            let mut found: Vec<_> = values.extract_if(.., |(given, _)| given == name).map(|(_, value)| value).collect();
            if found.len() > 1 { Err(bad(format!("several values for `{name}`"))) } else { Ok(found.pop()) }
        };
        match (taken("all")?.as_deref(), taken("address")?, taken("limit")?) {
            (None, None, Some(limit)) => Ok(Self::Key(limit, values)),
            _ if !values.is_empty() => Err(bad(EXPECTED)),
            (Some("true"), None, None) => Ok(Self::All),
            (None, Some(address), None) => network_of(&address).map(Self::Address),
            _ => Err(bad(EXPECTED)),
        }
    }
}

impl AdminState {
    /// Lifts these bans: those that there were. What was counted under their keys is forgotten too: else the next
    /// request would be the next ban.
    pub(super) async fn lift(&self, ids: &[BanId]) -> Result<Vec<Ban>, Problem> {
        let mut lifted = Vec::new();
        for some in ids.chunks(AT_A_TIME) {
            let mut lifting = JoinSet::new();
            for &id in some {
                let store = Arc::clone(&self.store);
                lifting.spawn(async move { store.lift(id).await });
            }
            let answers = lifting.join_all().await;
            let is_away = answers.iter().any(Result::is_err);
            let gone: Vec<_> = answers.into_iter().filter_map(|answer| answer.ok().flatten()).collect();
            // The bans are lifted all the same; what could not be forgotten passes with its window.
            let _ = self.store.reset(&gone.iter().filter_map(key).collect::<Vec<_>>()).await;
            for ban in &gone {
                info!(ban = %ban.id, "unbanned by hand: {}", what(ban));
            }
            lifted.extend(gone);
            if is_away {
                return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, NOT_LIFTED));
            }
        }
        Ok(lifted)
    }

    /// The bans of exactly this network, and those of the keys that limits count it under, where the key is a client's
    /// address and nothing else.
    fn about(&self, network: IpNet) -> BTreeSet<BanId> {
        let is_host = network.prefix_len() == network.max_prefix_len();
        let is_meant = |of: IpNet| if is_host { of.contains(&network) } else { of == network };
        // What another gateway has banned is not known in clear: whose it is, is known by its hash.
        let policy = self.policy.load();
        let by_address = policy.limits.iter().filter(|limit| {
            let [part] = &limit.key.parts[..] else { return false };
            matches!(part.selector, Selector::ClientIp(_))
        });
        let address = [(Cow::Borrowed("client_ip"), Cow::Owned(network.network().to_string()))];
        let asked = by_address
            .filter_map(|limit| LimitQuery::new(&policy, &limit.name, &address, None, &self.store.hashers()).ok())
            .filter(|asked| asked.named.address.is_some_and(is_meant));
        // Of limits that are gone there may be bans still.
        let all = self.store.bans().list();
        let listed = all.iter().filter(|ban| match &ban.subject {
            BanSubject::Address(of) => *of == network,
            BanSubject::Key { named, .. } => named.address.is_some_and(is_meant),
        });
        asked.map(|asked| BanId::of_key(asked.key)).chain(listed.map(|ban| ban.id)).collect()
    }

    /// The ban of a network that this one is part of.
    fn around(&self, network: IpNet) -> Option<Ban> {
        let all = self.store.bans().list();
        all.into_iter().find(|ban| matches!(&ban.subject, BanSubject::Address(of) if of.contains(&network)))
    }
}

fn key(ban: &Ban) -> Option<KeyHash> {
    match &ban.subject {
        BanSubject::Key { key, .. } => Some(*key),
        BanSubject::Address(_) => None,
    }
}

fn not_banned(meant: &Meant<'_>, wider: Option<&Ban>) -> String {
    match (meant, wider) {
        (Meant::Address(_), Some(wider)) => {
            format!("that address is banned as part of {}: lift that ban", what(wider))
        }
        (Meant::Key(limit, _), _) => format!("this key of {limit} is not banned"),
        _ => "that address is not banned".to_owned(),
    }
}

/// So many round trips are under way together.
const AT_A_TIME: usize = 64;

const EXPECTED: &str = "expected one of `address=ADDRESS`, `limit=NAME` with a value for each selector of its key, and \
                        `all=true`";

const NOT_LIFTED: &str = "Redis does not answer: bans may still stand";
