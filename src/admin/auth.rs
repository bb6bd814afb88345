//! Who may use the admin listener: holders of the token or of a session that it opened, or without a token programs of this
//! machine and the dashboard in a browser here, but no web page of another site.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use http::HeaderMap;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::header::CACHE_CONTROL;
use http::header::WWW_AUTHENTICATE;
use tokio::time::Instant;
use tracing::warn;

use super::AdminState;
use super::Token;
use super::origin::check_unambiguous;
use super::origin::is_local;
use super::origin::is_same_site;
use super::problem::Problem;
use super::session::CSRF_HEADER;
use super::session::SessionPlace;
use super::session::peer;
use super::session::session_ids;
use super::session::too_many_attempts;

/// What a request needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PathAccess {
    /// Nothing: probes and scrapers may ask from anywhere.
    Monitoring,
    /// No token: the files of the dashboard, and its form for the token.
    Page,
    /// The token or a session, where a token is configured.
    Api,
}

impl PathAccess {
    pub(super) fn of(method: &Method, path: &str) -> Self {
        if PUBLIC_PATHS.contains(&path) {
            Self::Monitoring
        } else if path == "/" || path.starts_with("/page/") || (path == "/session" && method != Method::DELETE) {
            Self::Page
        } else {
            Self::Api
        }
    }
}

/// Answers 400, 401 or 403 where the request may not use the listener.
pub(super) async fn guard(State(state): State<Arc<AdminState>>, request: Request<Body>, next: Next) -> Response {
    let access = PathAccess::of(request.method(), request.uri().path());
    if access == PathAccess::Monitoring {
        return next.run(request).await;
    }
    if let Err(refusal) =
        check_unambiguous(&request).map_err(Refusal::from).and_then(|()| admit(&state, access, &request))
    {
        return refusal.into_response();
    }
    let mut answer = next.run(request).await;
    answer.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// Why a request may not use the listener.
#[derive(Debug)]
enum Refusal {
    Problem(Problem),
    /// Too many wrong tokens came from its address. So long it must wait.
    TooManyAttempts(Duration),
}

fn admit(state: &AdminState, access: PathAccess, request: &Request<Body>) -> Result<(), Refusal> {
    let rules = state.rules.load();
    let forbidden = |why| Err(Problem::new(StatusCode::FORBIDDEN, why).into());
    match (&rules.token, access) {
        (None, _) if is_local(request) => Ok(()),
        (None, _) => forbidden(NOT_LOCAL),
        // The files hold no secrets, and links from elsewhere lead to them.
        (Some(_), PathAccess::Page) if request.uri().path() != "/session" || is_same_site(request) => Ok(()),
        (Some(_), PathAccess::Page) => forbidden(ANOTHER_SITE),
        (Some(token), _) if request.headers().contains_key(AUTHORIZATION) => check_bearer(state, token, request),
        (Some(_), _) => {
            let ids = session_ids(request.headers());
            let csrf_token = state.sessions.csrf_token(&ids, &SessionPlace::of(request), Instant::now());
            let csrf_token = csrf_token.ok_or_else(unauthorized)?;
            let is_safe = request.method().is_safe();
            match request.headers().get(CSRF_HEADER) {
                _ if !is_same_site(request) => forbidden(ANOTHER_SITE),
                Some(sent) if csrf_token.matches(sent.as_bytes()) => Ok(()),
                None if is_safe => Ok(()),
                _ => forbidden(NO_CSRF_TOKEN),
            }
        }
    }
}

/// A token that is not the right one is a guess. After a few of them an address waits, whatever it sends.
fn check_bearer(state: &AdminState, token: &Token, request: &Request<Body>) -> Result<(), Refusal> {
    let Some(presented) = presented(request.headers()) else { return Err(unauthorized().into()) };
    let (peer, now) = (peer(request), Instant::now());
    if let Some(wait) = state.failed_bearers.wait(peer, now) {
        return Err(Refusal::TooManyAttempts(wait));
    }
    if token.matches(presented) {
        return Ok(());
    }
    state.failed_bearers.add(peer, now);
    warn!(%peer, "a program sent a wrong token to the admin API");
    Err(unauthorized().into())
}

fn unauthorized() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, NO_TOKEN)
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut refusal = match self {
            Self::Problem(problem) => problem.into_response(),
            Self::TooManyAttempts(wait) => too_many_attempts(wait),
        };
        if refusal.status() == StatusCode::UNAUTHORIZED {
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"portcullis\""));
        }
        refusal
    }
}

/// The token of the Authorization field. `None`: there is none, or more than one.
fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let line = line.as_bytes().trim_ascii();
    let (scheme, token) = line.split_at(line.iter().position(u8::is_ascii_whitespace)?);
    scheme.eq_ignore_ascii_case(b"bearer").then(|| token.trim_ascii())
}

/// The paths of monitoring tools.
const PUBLIC_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

const NO_TOKEN: &str = "the API needs the token of `admin.token_file`: `Authorization: Bearer TOKEN`";

const NOT_LOCAL: &str = "the admin listener has no token, so it answers only programs and browsers of this machine: call it \
                         by its address or as localhost, not from a web page of another site";

const ANOTHER_SITE: &str = "a web page of another site sent this request";

const NO_CSRF_TOKEN: &str = "a change through a session needs its token in `X-CSRF-Token`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_once_under_the_scheme_bearer() {
        let of = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(AUTHORIZATION, line.parse().unwrap());
            }
            presented(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(of(&["Bearer abc"]), Some(b"abc".to_vec()));
        assert_eq!(of(&["bearer   abc "]), Some(b"abc".to_vec()));
        for lines in [&["Basic abc"][..], &["Bearer"], &["abc"], &["Bearer a", "Bearer b"], &[]] {
            assert_eq!(of(lines), None, "{lines:?}");
        }
    }
}
