//! Who is banned, and bans by hand.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use axum::extract::RawQuery;
use axum::extract::State;
use axum::extract::rejection::PathRejection;
use axum::response::IntoResponse;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::header::LOCATION;
use ipnet::IpNet;
use serde::Deserialize;
use serde::Serialize;
use tracing::info;

use super::AdminState;
use super::export;
use super::export::Format;
use super::problem::Problem;
use crate::clock::Timestamp;
use crate::decision::operator::LimitQuery;
use crate::list::network;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::BanSubject;
use crate::units::Span;
use crate::units::whole_seconds;

/// A ban as it is told: of a key set here, addresses and names of users in clear; of any other no more than tells one from
/// another.
#[derive(Debug, Serialize)]
pub(super) struct Described {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<BTreeMap<String, String>>,
    until: String,
    reason: String,
}

/// A ban of a key that somebody asks about.
#[derive(Debug, Serialize)]
pub(super) struct Lasting {
    id: String,
    /// Where it is the address that is banned, not the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    until: String,
    /// In whole seconds, rounded up.
    pub(super) left: u64,
    reason: String,
}

/// What is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    address: Option<String>,
    limit: Option<String>,
    key: Option<BTreeMap<String, String>>,
    #[serde(rename = "for")]
    span: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    force: bool,
}

pub(super) async fn list(State(state): State<Arc<AdminState>>) -> Json<Vec<Described>> {
    Json(state.store.bans().list().iter().map(Described::of).collect())
}

pub(super) async fn show(
    State(state): State<Arc<AdminState>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Described>, Problem> {
    let ban = state.store.bans().find(named(id)?).ok_or_else(unknown)?;
    Ok(Json(Described::of(&ban)))
}

/// Bans an address or a key for a while.
pub(super) async fn add(State(state): State<Arc<AdminState>>, body: Bytes) -> Result<impl IntoResponse, Problem> {
    let wanted: Wanted =
        serde_json::from_slice(&body).map_err(|error| bad(format!("{EXPECTED}: {}", place(&error))))?;
    let span = wanted.span()?;
    wanted.check_reason()?;
    let subject = match (&wanted.address, &wanted.limit) {
        (Some(address), None) if wanted.key.is_none() => BanSubject::Address(wanted.network(address)?),
        (None, Some(limit)) => state.banned_key(limit, wanted.key.as_ref())?,
        _ => return Err(bad(EXPECTED)),
    };
    let ban = state.store.ban_by_operator(subject, span, &wanted.reason).await;
    let ban = ban.map_err(|full| Problem::new(StatusCode::INSUFFICIENT_STORAGE, full.to_string()))?;
    info!(ban = %ban.id, until = %ban.until, "banned by hand: {}", what(&ban));
    let location = format!("/api/v1/bans/{}", ban.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(Described::of(&ban))))
}

/// Lifts a ban. What was counted under its key is forgotten too: else the next request would be the next ban.
pub(super) async fn remove(
    State(state): State<Arc<AdminState>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let lifted = state.lift(&[named(id)?]).await?;
    if lifted.is_empty() { Err(unknown()) } else { Ok(StatusCode::NO_CONTENT) }
}

/// The banned networks that are known in clear, for something else that keeps them out.
pub(super) async fn exported(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<impl IntoResponse, Problem> {
    let mut format = Format::Plain;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if name != "format" {
            return Err(bad("the only parameter is `format`"));
        }
        format = value.parse().map_err(bad)?;
    }
    let bans = state.store.bans();
    let now = bans.now();
    let banned: Vec<_> = bans.list().iter().filter_map(|ban| Some((ban.network()?, ban.left(now)))).collect();
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], export::text(format, &banned)))
}

impl Described {
    pub(super) fn of(ban: &Ban) -> Self {
        let (address, limit, key) = match &ban.subject {
            BanSubject::Address(network) => (Some(network.to_string()), None, None),
            BanSubject::Key { limit, named, .. } => {
                (None, Some(limit.to_string()), Some(named.told().iter().cloned().collect()))
            }
        };
        Self {
            id: ban.id.to_string(),
            address,
            limit,
            key,
            until: ban.until.to_string(),
            reason: ban.reason.to_string(),
        }
    }
}

impl Lasting {
    fn of(ban: &Ban, now: Timestamp) -> Self {
        let address = match &ban.subject {
            BanSubject::Address(network) => Some(network.to_string()),
            BanSubject::Key { .. } => None,
        };
        let (id, until, reason) = (ban.id.to_string(), ban.until.to_string(), ban.reason.to_string());
        Self { id, address, until, left: whole_seconds(ban.left(now)), reason }
    }
}

impl Wanted {
    /// Whoever bans a net as large as a country's is asked whether they mean it; everyone is never meant.
    fn network(&self, text: &str) -> Result<IpNet, Problem> {
        let network = network_of(text)?;
        let smallest = if network.addr().is_ipv4() { LARGEST_V4 } else { LARGEST_V6 };
        match network.prefix_len() {
            0 => Err(bad("`address`: that is everyone")),
            length if length < smallest && !self.force => Err(bad(format!(
                "`address`: {network} is more than a /{smallest}, which may be most of your visitors; if you mean it, \
                 say so with `\"force\": true` (`--force` on the command line)"
            ))),
            _ => Ok(network),
        }
    }

    fn span(&self) -> Result<Duration, Problem> {
        let Span(span) = self.span.parse().map_err(|error| bad(format!("`for`: {error}")))?;
        if span.is_zero() { Err(bad("`for`: a ban of no length is none")) } else { Ok(span) }
    }

    fn check_reason(&self) -> Result<(), Problem> {
        let is_plain = self.reason.chars().count() <= LONGEST_REASON && !self.reason.chars().any(char::is_control);
        if is_plain { Ok(()) } else { Err(bad("`reason` is one line of at most 200 characters")) }
    }
}

impl AdminState {
    /// The ban that denies this key, or the address in it: the one that lasts longest.
    pub(super) fn ban_of(&self, asked: &LimitQuery) -> Option<Lasting> {
        let bans = self.store.bans();
        // A shadow applies to nobody.
        let of_key = bans.find(BanId::of_key(asked.key)).filter(|_| !asked.shadow);
        let of_address = asked.client.and_then(|client| bans.find(bans.of_address(client)?.0));
        let longest = of_key.into_iter().chain(of_address).max_by_key(|ban| ban.until)?;
        Some(Lasting::of(&longest, bans.now()))
    }

    fn banned_key(&self, limit: &str, values: Option<&BTreeMap<String, String>>) -> Result<BanSubject, Problem> {
        let values: Vec<_> = values
            .into_iter()
            .flatten()
            .map(|(name, value)| (Cow::Borrowed(&**name), Cow::Borrowed(&**value)))
            .collect();
        let asked = self.key_alone(limit, &values)?;
        if asked.shadow {
            return Err(bad("this limit is a shadow: it applies to nobody"));
        }
        Ok(BanSubject::Key { key: asked.key, limit: asked.limit, named: asked.named, client: None })
    }

    /// A key of a limit, without a value that the limit tells apart beside it.
    pub(super) fn key_alone(
        &self,
        limit: &str,
        values: &[(Cow<'_, str>, Cow<'_, str>)],
    ) -> Result<LimitQuery, Problem> {
        let policy = self.policy.load();
        let asked = LimitQuery::new(&policy, limit, values, None, &self.store.hashers())
            .map_err(|unclear| Problem::unclear(&unclear))?;
        if values.len() > asked.selectors.len() {
            return Err(bad("the values that this limit tells apart are no part of its key: name the key alone"));
        }
        Ok(asked)
    }
}

/// What is no id at all names no ban either.
fn named(id: Result<Path<String>, PathRejection>) -> Result<BanId, Problem> {
    id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(unknown)
}

fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no ban of that id")
}

pub(super) fn network_of(text: &str) -> Result<IpNet, Problem> {
    network(text.trim()).map_err(|error| bad(error.to_string()))
}

/// For the log: a key is told by its limit.
pub(super) fn what(ban: &Ban) -> String {
    match &ban.subject {
        BanSubject::Address(network) => network.to_string(),
        BanSubject::Key { limit, .. } => format!("a key of {limit}"),
    }
}

/// Where JSON is wrong; not what stands there.
fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

pub(super) fn bad(detail: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}

const LONGEST_REASON: usize = 200;

/// The largest networks that are banned without being asked about: the shortest prefixes.
const LARGEST_V4: u8 = 8;
const LARGEST_V6: u8 = 16;

const EXPECTED: &str =
    "expected JSON with `address`, or with `limit` and `key`, and with `for` and perhaps `reason` and `force`";
