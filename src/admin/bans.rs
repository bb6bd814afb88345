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

use super::Control;
use super::export;
use super::export::Format;
use super::problem::Problem;
use crate::decision::by_hand::Asked;
use crate::decision::by_hand::Unclear;
use crate::list::network;
use crate::store::Store;
use crate::store::bans::Ban;
use crate::store::bans::BanId;
use crate::store::bans::Subject;
use crate::units::Span;

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
}

pub(super) async fn list(State(control): State<Arc<Control>>) -> Json<Vec<Described>> {
    Json(control.store.bans().list().iter().map(Described::of).collect())
}

pub(super) async fn show(
    State(control): State<Arc<Control>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Described>, Problem> {
    let ban = control.store.bans().find(named(id)?).ok_or_else(unknown)?;
    Ok(Json(Described::of(&ban)))
}

/// Bans an address or a key for a while.
pub(super) async fn add(State(control): State<Arc<Control>>, body: Bytes) -> Result<impl IntoResponse, Problem> {
    let wanted: Wanted =
        serde_json::from_slice(&body).map_err(|error| bad(format!("{EXPECTED}: {}", place(&error))))?;
    let span = wanted.span()?;
    wanted.check_reason()?;
    let subject = match (&wanted.address, &wanted.limit) {
        (Some(address), None) if wanted.key.is_none() => Subject::Address(banned_network(address)?),
        (None, Some(limit)) => control.banned_key(limit, wanted.key.as_ref())?,
        _ => return Err(bad(EXPECTED)),
    };
    let ban = control.store.ban(subject, span, &wanted.reason).await;
    let ban = ban.map_err(|full| Problem::new(StatusCode::INSUFFICIENT_STORAGE, full.to_string()))?;
    info!(ban = %ban.id, until = %ban.until, "banned by hand: {}", what(&ban));
    let location = format!("/api/v1/bans/{}", ban.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(Described::of(&ban))))
}

/// Lifts a ban. What was counted under its key is forgotten too: else the next request would be the next ban.
pub(super) async fn remove(
    State(control): State<Arc<Control>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let lifted = control.store.lift(named(id)?).await;
    let ban = lifted.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, NOT_LIFTED))?.ok_or_else(unknown)?;
    if let Subject::Key { key, .. } = &ban.subject {
        // The ban is lifted all the same; what could not be forgotten passes with its window.
        let _ = control.store.forget(&[*key]).await;
    }
    info!(ban = %ban.id, "unbanned by hand: {}", what(&ban));
    Ok(StatusCode::NO_CONTENT)
}

/// The banned networks that are known in clear, for something else that keeps them out.
pub(super) async fn exported(
    State(control): State<Arc<Control>>,
    RawQuery(query): RawQuery,
) -> Result<impl IntoResponse, Problem> {
    let mut format = Format::Plain;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if name != "format" {
            return Err(bad("the only parameter is `format`"));
        }
        format = value.parse().map_err(bad)?;
    }
    let networks: Vec<IpNet> = control.store.bans().list().iter().filter_map(Ban::network).collect();
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], export::text(format, &networks)))
}

impl Described {
    fn of(ban: &Ban) -> Self {
        let (address, limit, key) = match &ban.subject {
            Subject::Address(network) => (Some(network.to_string()), None, None),
            Subject::Key { limit, named, .. } => {
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

impl Wanted {
    fn span(&self) -> Result<Duration, Problem> {
        let Span(span) = self.span.parse().map_err(|error| bad(format!("`for`: {error}")))?;
        if span.is_zero() { Err(bad("`for`: a ban of no length is none")) } else { Ok(span) }
    }

    fn check_reason(&self) -> Result<(), Problem> {
        let is_plain = self.reason.chars().count() <= LONGEST_REASON && !self.reason.chars().any(char::is_control);
        if is_plain { Ok(()) } else { Err(bad("`reason` is one line of at most 200 characters")) }
    }
}

impl Control {
    fn banned_key(&self, limit: &str, values: Option<&BTreeMap<String, String>>) -> Result<Subject, Problem> {
        let values: Vec<_> = values
            .into_iter()
            .flatten()
            .map(|(name, value)| (Cow::Borrowed(&**name), Cow::Borrowed(&**value)))
            .collect();
        let policy = self.policy.load();
        let asked = Asked::new(&policy, limit, &values, None, &self.store.hasher()).map_err(|unclear| {
            let status = match unclear {
                Unclear::NoSuchLimit { .. } => StatusCode::NOT_FOUND,
                _ => StatusCode::BAD_REQUEST,
            };
            Problem::new(status, unclear.to_string())
        })?;
        if values.len() > asked.selectors.len() {
            return Err(bad("the values that this limit tells apart are no part of its key: name the key alone"));
        }
        if asked.shadow {
            return Err(bad("this limit is a shadow: it applies to nobody"));
        }
        Ok(Subject::Key { key: asked.key, limit: asked.limit, named: asked.named, client: None })
    }
}

/// What is no id at all names no ban either.
fn named(id: Result<Path<String>, PathRejection>) -> Result<BanId, Problem> {
    id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(unknown)
}

fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no ban of that id")
}

fn banned_network(text: &str) -> Result<IpNet, Problem> {
    let network = network(text.trim()).map_err(|error| bad(error.to_string()))?;
    if network.prefix_len() == 0 {
        return Err(bad("`address`: that is everyone"));
    }
    Ok(network)
}

/// For the log: a key is told by its limit.
fn what(ban: &Ban) -> String {
    match &ban.subject {
        Subject::Address(network) => network.to_string(),
        Subject::Key { limit, .. } => format!("a key of {limit}"),
    }
}

/// Where JSON is wrong; not what stands there.
fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

fn bad(detail: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}

const LONGEST_REASON: usize = 200;

const EXPECTED: &str = "expected JSON with `address`, or with `limit` and `key`, and with `for` and perhaps `reason`";

const NOT_LIFTED: &str = "Redis does not answer: the ban may still stand";
