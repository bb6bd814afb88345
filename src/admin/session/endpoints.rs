//! Opens, shows and ends the session of a browser.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::Response;
use http::HeaderValue;
use http::Request;
use http::StatusCode;
use http::header::RETRY_AFTER;
use http::header::SET_COOKIE;
use serde::Deserialize;
use serde::Serialize;
use tokio::time::Instant;
use tracing::info;
use tracing::warn;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::cookie;
use super::cookie::session_ids;
use super::place::SessionPlace;
use super::place::peer;
use super::sessions::CsrfToken;
use crate::admin::AdminState;
use crate::admin::json_body;
use crate::admin::origin::host;
use crate::admin::origin::is_secure;
use crate::admin::problem::Problem;
use crate::units::whole_seconds;

pub(in crate::admin) fn routes() -> OpenApiRouter<Arc<AdminState>> {
    OpenApiRouter::new().routes(routes!(show, open, end))
}

/// The token of `admin.token_file`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SessionRequest {
    token: String,
}

/// The session of a browser.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
struct SessionResponse {
    /// Whether a token is configured.
    needs_token: bool,
    /// Whether the browser may use the API now.
    open: bool,
    /// What each change through the session sends as `X-CSRF-Token`. Null where there is no session.
    #[schema(required)]
    csrf_token: Option<String>,
}

/// Whether this browser may use the API
///
/// By the cookie of its session. Without a configured token no session is needed.
#[utoipa::path(
    get,
    path = "/session",
    responses((status = 200, description = "Its session, or that there is none.", body = SessionResponse))
)]
async fn show(State(state): State<Arc<AdminState>>, request: Request<Body>) -> Json<SessionResponse> {
    let needs_token = state.rules.load().token.is_some();
    let csrf_token =
        state.sessions.csrf_token(&session_ids(request.headers()), &SessionPlace::of(&request), Instant::now());
    let is_open = !needs_token || csrf_token.is_some();
    Json(SessionResponse { needs_token, open: is_open, csrf_token: csrf_token.map(CsrfToken::into_text) })
}

/// Open a session
///
/// For the dashboard: it sends the token once and gets a cookie, which ends when the browser is closed, after twelve hours,
/// after an hour without a use, and when the gateway restarts or its token changes. It is worth nothing from another address, and
/// at another host or port.
#[utoipa::path(
    post,
    path = "/session",
    request_body = SessionRequest,
    responses(
        (status = 201, description = "The session is open.", body = SessionResponse, headers(
            ("Set-Cookie" = String, description = "The cookie of the session."),
        )),
        (status = 400, description = "The request is wrong, or no token is configured."),
        (status = 401, description = "The token is wrong."),
        (status = 429, description = "This address tried five wrong tokens in a minute.", headers(
            ("Retry-After" = u64, description = "In seconds."),
        )),
    )
)]
async fn open(State(state): State<Arc<AdminState>>, request: Request<Body>) -> Result<Response, Response> {
    let (peer, place) = (peer(&request), SessionPlace::of(&request));
    let (host, is_secure) = (host(&request).map(str::to_owned), is_secure(&request));
    let asked = json_body::read(request, "expected JSON with `token`").await;
    let SessionRequest { token: presented } = asked.map_err(IntoResponse::into_response)?;
    let rules = state.rules.load();
    let Some(token) = &rules.token else {
        return Err(Problem::bad_request("no token is configured: no session is needed").into_response());
    };
    let now = Instant::now();
    if let Some(wait) = state.failed_attempts.wait(peer, now) {
        return Err(too_many_attempts(wait));
    }
    if !token.matches(presented.trim().as_bytes()) {
        state.failed_attempts.add(peer, now);
        warn!(%peer, "a browser sent a wrong token to the dashboard");
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "the token is wrong").into_response());
    }
    let session = state.sessions.open(place, now);
    info!(%peer, "a browser opened a session of the dashboard");
    let answer = SessionResponse { needs_token: true, open: true, csrf_token: Some(session.csrf_token.into_text()) };
    let cookie = cookie::opened(host.as_deref(), &session.id, is_secure);
    Ok((StatusCode::CREATED, [(SET_COOKIE, cookie)], Json(answer)).into_response())
}

/// End the session
///
/// Of the cookie that the request sends.
#[utoipa::path(delete, path = "/session", responses((status = 204, description = "It has ended.")))]
async fn end(State(state): State<Arc<AdminState>>, request: Request<Body>) -> Response {
    state.sessions.end(&session_ids(request.headers()));
    (StatusCode::NO_CONTENT, [(SET_COOKIE, cookie::ended(host(&request), is_secure(&request)))]).into_response()
}

/// The answer to an address that has sent too many wrong tokens.
pub(in crate::admin) fn too_many_attempts(wait: Duration) -> Response {
    let seconds = HeaderValue::from(whole_seconds(wait));
    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens: wait a minute");
    ([(RETRY_AFTER, seconds)], problem).into_response()
}

/// Where a page sends the token of its session with each change.
pub(in crate::admin) const CSRF_HEADER: &str = "x-csrf-token";
