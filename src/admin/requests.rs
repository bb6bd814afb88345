//! Why the newest requests were denied, delayed, challenged or banned.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use http::StatusCode;
use tokio::time::sleep;

use super::AdminState;
use super::problem::Problem;
use super::shared::{Missing, Others, Scope, story as story_field};
use crate::admin::input::{Query, known_limit};
use crate::record::DecisionLabel;
use crate::record::kept_requests::{RequestStory, Viewer};
use crate::store::shared_records::MAX_ID;

/// Why one request was denied or held
#[utoipa::path(
    get,
    path = "/api/v1/requests/{id}",
    params(("id" = String, Path, description = "The X-Request-ID of its answer.")),
    responses(
        (status = 200, description = "Its story.", body = RequestStory),
        (status = 404, description = "The request passed, is too long ago, or never was."),
    )
)]
pub(super) async fn show(
    State(state): State<Arc<AdminState>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<RequestStory>, Problem> {
    let Ok(Path(id)) = id else { return Err(no_such_request()) };
    let story = || state.kept_requests.find(&id).map(|request| RequestStory::of(&request, Viewer::ThisGateway));
    if let Some(story) = story() {
        return Ok(Json(story));
    }
    // A delayed request is recorded a moment after its client has read the answer.
    sleep(RECORDED_WITHIN).await;
    if let Some(story) = story() {
        return Ok(Json(story));
    }
    of_others(&state, &id).await.map(Json)
}

/// The story that another gateway has published already, or publishes when it is asked.
async fn of_others(state: &AdminState, id: &str) -> Result<RequestStory, Problem> {
    let Some(records) = state.records.as_ref().filter(|_| id.len() <= MAX_ID) else { return Err(no_such_request()) };
    let field = story_field(id);
    if let Ok(Some(published)) = records.find(&field).await
        && let Some(story) = RequestStory::from_bytes(&published)
    {
        return Ok(story);
    }
    let others = Others::ask(state, &[field], Some(id)).await;
    if let Some(story) = others.contents().find_map(RequestStory::from_bytes) {
        return Ok(story);
    }
    match (others.scope, others.missing()) {
        (Scope::ThisGateway, _) => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "this gateway has denied or held no request of that id, and Redis does not answer, so the other gateways \
             could not be asked",
        )),
        (Scope::All, Missing(missing)) if !missing.is_empty() => Err(Problem::new(
            StatusCode::NOT_FOUND,
            format!(
                "no request of that id was denied or held, as far as is known: {} did not answer",
                missing.join(", ")
            ),
        )),
        (Scope::All, _) => Err(no_such_request()),
    }
}

/// The newest requests that were denied or held, and why
#[utoipa::path(
    get,
    path = "/api/v1/requests",
    params(
        ("decision" = Option<String>, Query, description = kept_decisions_in_words()),
        ("client" = Option<String>, Query, description = "The address of a client."),
        ("limit" = Option<String>, Query, description = "A limit that denied or held them."),
        ("n" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Left out: 50."),
    ),
    responses(
        (status = 200, description = "Their stories, the newest first.", body = Vec<RequestStory>),
        (status = 400, description = "A parameter is wrong, or there is no such parameter."),
        (status = 404, description = "There is no such limit."),
    )
)]
pub(super) async fn list(
    State(state): State<Arc<AdminState>>,
    RawQuery(query): RawQuery,
) -> Result<Json<Vec<RequestStory>>, Problem> {
    let query = Query::read(query.as_deref(), &["decision", "client", "limit", "n"])?;
    let most = query.number("n", DEFAULT_MOST, 1..=MAX_MOST)?;
    let decisions: Vec<_> = kept_decisions().map(|decision| (decision.as_str(), Some(decision))).collect();
    let decision = query.word("decision", None, &decisions)?;
    let client = query.text("client").map(client_address).transpose()?;
    let limit = query.text("limit");
    if let Some(limit) = limit {
        known_limit(&state, limit)?;
    }
    let wanted = state.kept_requests.newest(usize::try_from(most).unwrap_or(usize::MAX), |request| {
        decision.is_none_or(|decision| request.decision == decision)
            && client.is_none_or(|client| request.client == client)
            && limit.is_none_or(|limit| request.is_denied_by(limit))
    });
    Ok(Json(wanted.iter().map(|request| RequestStory::of(request, Viewer::ThisGateway)).collect()))
}

fn client_address(text: &str) -> Result<IpAddr, Problem> {
    let address: Result<IpAddr, _> = text.trim().parse();
    address
        .map(|address| address.to_canonical())
        .map_err(|_| Problem::bad_request("`client` is one IP address, without a prefix and without a port"))
}

fn no_such_request() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no request of that id was denied or held: it passed, it is too long ago, or the id has a mistake",
    )
}

/// The decisions whose requests are kept.
fn kept_decisions() -> impl Iterator<Item = DecisionLabel> {
    DecisionLabel::ALL.into_iter().filter(|decision| decision.is_denial() || *decision == DecisionLabel::Delayed)
}

fn kept_decisions_in_words() -> String {
    let mut words: Vec<String> = kept_decisions().map(|decision| format!("`{decision}`")).collect();
    let last = words.pop().unwrap_or_default();
    format!("{} or {last}.", words.join(", "))
}

const DEFAULT_MOST: u64 = 50;

const MAX_MOST: u64 = 1000;

const RECORDED_WITHIN: Duration = Duration::from_millis(50);
