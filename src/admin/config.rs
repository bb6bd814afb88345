//! The configuration in force, and its reload.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use http::header::{ACCEPT, CONTENT_TYPE, VARY};
use http::{HeaderMap, StatusCode};
use tokio::sync::oneshot;
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::AdminState;
use crate::admin::problem::Problem;
use crate::api::problem::{Mistake, ReloadedResponse};
use crate::record::advice::{Advice, AdviceKind};
use crate::words::clock::Timestamp;

// Shows the configuration in force.

/// The configuration in force
///
/// As it was read, with the environment's values in place and secrets masked: passwords in URLs, the paths of webhooks, and
/// tokens that a route is matched by. Keys that are left out have their defaults. Where a change of the store waits for the next
/// start, the store that runs is shown.
#[utoipa::path(
    get,
    path = "/api/v1/config",
    responses((
        status = 200,
        description = "YAML, or JSON where Accept prefers it or names it first.",
        content((String = "application/yaml"), (Object = "application/json")),
    ))
)]
pub(super) async fn show(State(state): State<Arc<AdminState>>, headers: HeaderMap) -> impl IntoResponse {
    let config = state.config.load();
    let (media_type, text) = if prefers_json(&headers) {
        ("application/json", config.json.clone())
    } else {
        ("application/yaml", config.yaml.clone())
    };
    ([(CONTENT_TYPE, media_type), (VARY, "accept")], text)
}

// Which of the two forms of the configuration a client prefers.

/// Whether JSON is preferred to YAML: it is more welcome, or named before YAML. Where only wildcards welcome both, YAML is sent.
pub(super) fn prefers_json(headers: &HeaderMap) -> bool {
    let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let json = Welcome::of(&accept, &["application/json", "application/*", "*/*"]);
    let yaml = ["application/yaml", "application/x-yaml", "text/yaml", "text/*", "application/*", "*/*"];
    json.quality > 0 && json > Welcome::of(&accept, &yaml)
}

/// How welcome a form is to a client. What is named is more welcome than what only a wildcard stands for, and what is named
/// first the most.
#[derive(Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
struct Welcome {
    /// In thousandths; 0: not at all.
    quality: u16,
    /// `None`: by a wildcard.
    place: Option<Reverse<usize>>,
}

impl Welcome {
    /// By the first of these names that is listed.
    fn of(accept: &[&str], names: &[&str]) -> Self {
        let ranges = || accept.iter().flat_map(|line| line.split(','));
        let by_name = |name: &&str| {
            ranges().enumerate().find_map(|(place, range)| {
                let mut parts = range.split(';').map(str::trim);
                let is_named = parts.next().is_some_and(|media_type| media_type.eq_ignore_ascii_case(name));
                let place = (!name.ends_with('*')).then_some(Reverse(place));
                is_named.then(|| Self { quality: parts.find_map(weight).unwrap_or(1000), place })
            })
        };
        names.iter().find_map(by_name).unwrap_or_default()
    }
}

fn weight(parameter: &str) -> Option<u16> {
    let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="))?;
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some((whole.parse::<u16>().ok()?.min(1) * 1000 + fraction.parse::<u16>().ok()?).min(1000))
}

// Reloads the configuration for an operator.

/// A list of a million lines takes seconds; a file system that hangs takes for ever.
const PATIENCE: Duration = Duration::from_secs(60);

const BUSY: &str = "many reloads are waiting already, or the gateway is about to end";

const STILL_READING: &str =
    "reading the configuration takes longer than a minute; it goes on, and the log tells its result";

const PANIC: &str = "reading the configuration failed by a defect; the configuration of before stays in force";

/// Reload the configuration
///
/// Everything is read and checked anew, then comes into force at once. If anything is wrong, all of the running
/// configuration stays. Reloads happen one after another: the answer is that of a reload which began after the request.
#[utoipa::path(
    post,
    path = "/api/v1/reload",
    responses(
        (status = 200, description = "The configuration on disk is in force, but for what is `waiting`.", body = ReloadedResponse),
        (status = 409, description = "The configuration came from the command line or from standard input, which cannot be \
            read again."),
        (status = 422, description = "Something is wrong: the configuration of before stays in force. `mistakes` are those \
            that `portcullis check --format json` prints, or an address or a file that cannot be opened."),
        (status = 500, description = "Reading it failed by a defect: the configuration of before stays in force."),
        (status = 503, description = "Many reloads are waiting already, or the gateway is about to end."),
        (status = 504, description = "Reading takes longer than a minute. It goes on, and the log tells its result."),
    )
)]
pub(super) async fn reload(State(state): State<Arc<AdminState>>) -> Result<Json<ReloadedResponse>, Problem> {
    let (reply, answer) = oneshot::channel();
    let busy = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    state.reload_requests.try_send(ReloadRequest { reply }).map_err(|_| busy())?;
    match timeout(PATIENCE, answer).await {
        Err(_) => Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, STILL_READING)),
        Ok(Err(_)) => Err(busy()),
        Ok(Ok(Err(refusal))) => Err(refused(refusal)),
        Ok(Ok(Ok(Reloaded { loaded, waiting }))) => {
            let waiting = waiting.into_iter().map(str::to_owned).collect();
            Ok(Json(ReloadedResponse { loaded: loaded.to_string(), waiting }))
        }
    }
}

fn refused(refusal: ReloadRefusal) -> Problem {
    match refusal {
        ReloadRefusal::Mistakes(mistakes) => {
            let plural = if mistakes.len() == 1 { "" } else { "s" };
            let detail = format!("{} mistake{plural}: the configuration of before stays in force", mistakes.len());
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_mistakes(mistakes)
        }
        ReloadRefusal::NoFile(why) => Problem::new(StatusCode::CONFLICT, format!("nothing to reload: {why}")),
        ReloadRefusal::Panic => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, PANIC),
    }
}

// A reload that an operator asks for, on its way to the thread that controls the gateway.

/// That the configuration is in force, or why the one of before stays so.
pub type ReloadReply = Result<Reloaded, ReloadRefusal>;

/// The configuration is in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reloaded {
    /// By the wall clock.
    pub loaded: Timestamp,
    /// The settings that are not, because they wait for the next start.
    pub waiting: Vec<&'static str>,
}

/// Asks for a reload.
#[derive(Debug)]
pub struct ReloadRequest {
    /// Gets the result of a reload that reads its files after this request.
    pub reply: oneshot::Sender<ReloadReply>,
}

/// Why the configuration of before stays in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReloadRefusal {
    Mistakes(Vec<Mistake>),
    /// The configuration did not come from a file.
    NoFile(&'static str),
    /// Reading it panicked: a defect.
    Panic,
}

// What the admin listener knows of the configuration.

/// The configuration in force, without its secrets.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    pub yaml: String,
    pub json: String,
    /// The file, `-` for standard input, or `the command line`.
    pub source: String,
    /// By the wall clock.
    pub loaded: Timestamp,
    /// What `check` warns of.
    pub warnings: Vec<Advice>,
    /// `None`: all of the file is in force.
    pub waiting: Option<WaitingSettings>,
}

/// Settings of the file that are not in force, because only a start changes them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WaitingSettings {
    /// At least one: `store.redis.url`.
    pub keys: Vec<&'static str>,
    /// When the reload was that found them so, by the wall clock.
    pub since: Timestamp,
}

impl WaitingSettings {
    pub(in crate::admin) fn advice(&self) -> Advice {
        let keys = self.keys.join(", ");
        Advice {
            kind: AdviceKind::WaitsForStart,
            message: format!("{keys}: the change takes effect with the next start, the store that runs stays in force"),
            since: self.since,
            limit: None,
            route: None,
            help: "restart the gateway, or write the values of before".to_owned(),
        }
    }
}

/// How the last reload ended.
#[derive(Clone, Debug)]
pub struct ReloadReport {
    /// By the wall clock.
    pub at: Timestamp,
    /// Why the configuration of before stayed in force; `None`: the reload succeeded.
    pub refused: Option<String>,
}

impl ReloadReport {
    /// What is to be done about a reload that was refused.
    pub(in crate::admin) fn advice(&self) -> Option<Advice> {
        let refused = self.refused.as_ref()?;
        Some(Advice {
            kind: AdviceKind::ReloadRefused,
            message: format!("the configuration of before stays in force: {refused}"),
            since: self.at,
            limit: None,
            route: None,
            help: "`portcullis check` names each mistake; files are read again when they change".to_owned(),
        })
    }
}

// The paths of the configuration.

pub(in crate::admin) fn routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(reload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_sent_where_it_is_preferred() {
        let prefers = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            prefers_json(&headers)
        };
        for accept in [
            "application/json",
            "APPLICATION/JSON;q=0.5",
            "application/json, text/*;q=0.9",
            "application/json, */*;q=0.1",
            "application/json, text/plain, */*",
            "*/*, application/json",
            "application/json, application/yaml",
            "application/yaml;q=0.5, application/json;q=0.6",
        ] {
            assert!(prefers(accept), "{accept}");
        }
        for accept in [
            "*/*",
            "application/yaml",
            "text/html, */*",
            "application/json;q=0",
            "application/json;q=0.5, application/yaml",
            "application/yaml, application/json",
            "application/json;q=0.5, */*",
            "text/html, application/xml;q=0.9, */*;q=0.8",
            "application/*",
            "x",
        ] {
            assert!(!prefers(accept), "{accept}");
        }
        assert!(!prefers_json(&HeaderMap::new()));
    }
}
