//! Sessions of the dashboard: a browser sends the token once, and a cookie from then on.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{COOKIE, RETRY_AFTER, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tracing::{info, warn};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use crate::admin::auth::FailedAttempts;
use crate::admin::auth::{PeerAddress, host, is_secure, network};
use crate::admin::problem::Problem;
use crate::admin::{AdminState, Token, input};
use crate::rules::client::device::DASHBOARD_COOKIE;
use crate::words::units::whole_seconds;

// Opens, shows and ends the session of a browser.

/// Where a page sends the token of its session with each change.
pub(in crate::admin) const CSRF_HEADER: &str = "x-csrf-token";

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
        (status = 429, description = "This address tried five different wrong tokens in a minute.", headers(
            ("Retry-After" = u64, description = "In seconds."),
        )),
    )
)]
async fn open(State(state): State<Arc<AdminState>>, request: Request<Body>) -> Result<Response, Response> {
    let (peer, place) = (peer(&request), SessionPlace::of(&request));
    let (host, is_secure) = (host(&request).map(str::to_owned), is_secure(&request));
    let asked = input::read_json(request, input::MAX_BODY, "expected JSON with `token`").await;
    let SessionRequest { token: presented } = asked.map_err(IntoResponse::into_response)?;
    let rules = state.rules.load();
    let Some(token) = &rules.token else {
        return Err(Problem::bad_request("no token is configured: no session is needed").into_response());
    };
    let now = Instant::now();
    if let Some(wait) = state.failed_attempts.wait(peer, now) {
        return Err(too_many_attempts(wait));
    }
    let presented = presented.trim().as_bytes();
    if !token.matches(presented) {
        if state.failed_attempts.add(peer, token.hash_of(presented), now) {
            warn!(%peer, "a browser sent a wrong token to the dashboard");
        }
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "the token is wrong").into_response());
    }
    let session = state.sessions.open(place, now);
    info!(%peer, "a browser opened a session of the dashboard");
    let answer = SessionResponse { needs_token: true, open: true, csrf_token: Some(session.csrf_token.into_text()) };
    let cookie = opened(host.as_deref(), &session.id, is_secure);
    Ok((StatusCode::CREATED, [(SET_COOKIE, cookie)], Json(answer)).into_response())
}

/// End the session
///
/// Of the cookie that the request sends.
#[utoipa::path(delete, path = "/session", responses((status = 204, description = "It has ended.")))]
async fn end(State(state): State<Arc<AdminState>>, request: Request<Body>) -> Response {
    state.sessions.end(&session_ids(request.headers()));
    (StatusCode::NO_CONTENT, [(SET_COOKIE, ended(host(&request), is_secure(&request)))]).into_response()
}

/// The answer to an address that has sent too many wrong tokens.
pub(in crate::admin) fn too_many_attempts(wait: Duration) -> Response {
    let seconds = HeaderValue::from(whole_seconds(wait));
    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens: wait a minute");
    ([(RETRY_AFTER, seconds)], problem).into_response()
}

// The open sessions of this process. They are in its memory alone, so that a restart ends them.

/// More than the operators of a site and their browsers.
const MAX_SESSIONS: usize = 64;

/// A page that is open uses its session every ten seconds.
const LONGEST_UNUSED: Duration = Duration::from_secs(3600);

/// A shift, and the handover to the next.
const LONGEST: Duration = Duration::from_secs(12 * 3600);

/// Bounded in number and in time.
#[derive(Debug, Default)]
pub(in crate::admin) struct Sessions {
    open: Mutex<Vec<Session>>,
}

#[derive(Debug)]
struct Session {
    /// A hash: what is compared takes the same time whatever a client sends.
    id: Token,
    csrf_token: CsrfToken,
    place: SessionPlace,
    opened: Instant,
    used: Instant,
}

/// Which a page sends with each change, and which a page of another site cannot know.
#[derive(Clone)]
pub(in crate::admin) struct CsrfToken(String);

/// A session that was just opened.
pub(super) struct OpenedSession {
    /// The value of the cookie. Only a hash of it is kept.
    pub(super) id: String,
    pub(super) csrf_token: CsrfToken,
}

impl Sessions {
    /// Opens a session. Where there are too many, the one that was not used for the longest time ends.
    pub(super) fn open(&self, place: SessionPlace, now: Instant) -> OpenedSession {
        let (id, csrf_token) = (random_text(), CsrfToken(random_text()));
        let session = Session {
            id: Token::new(&id).expect("it is not empty"),
            csrf_token: csrf_token.clone(),
            place,
            opened: now,
            used: now,
        };
        let mut open = self.open.lock();
        open.retain(|session| session.is_open(now));
        if open.len() >= MAX_SESSIONS
            && let Some((oldest, _)) = open.iter().enumerate().min_by_key(|(_, session)| session.used)
        {
            open.swap_remove(oldest);
        }
        open.push(session);
        OpenedSession { id, csrf_token }
    }

    /// The token of the session with one of these ids. `None`: none of them is open at this place. Counts as a use.
    pub(in crate::admin) fn csrf_token(&self, ids: &[&str], place: &SessionPlace, now: Instant) -> Option<CsrfToken> {
        let mut open = self.open.lock();
        open.retain(|session| session.is_open(now));
        let session = open.iter_mut().find(|session| session.is_one_of(ids) && session.place == *place)?;
        session.used = now;
        Some(session.csrf_token.clone())
    }

    /// Ends the sessions with these ids.
    pub(super) fn end(&self, ids: &[&str]) {
        self.open.lock().retain(|session| !session.is_one_of(ids));
    }

    /// Ends all sessions: the token that opened them is not valid any more.
    pub(in crate::admin) fn end_all(&self) {
        self.open.lock().clear();
    }
}

impl Session {
    fn is_open(&self, now: Instant) -> bool {
        now.duration_since(self.opened) < LONGEST && now.duration_since(self.used) < LONGEST_UNUSED
    }

    fn is_one_of(&self, ids: &[&str]) -> bool {
        ids.iter().any(|id| self.id.matches(id.as_bytes()))
    }
}

impl CsrfToken {
    pub(in crate::admin) fn matches(&self, sent: &[u8]) -> bool {
        Token::new(&self.0).is_some_and(|token| token.matches(sent))
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl std::fmt::Debug for CsrfToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CsrfToken(***)")
    }
}

/// 256 random bits, as hexadecimal digits.
fn random_text() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

// The cookie of a session. It ends when the browser is closed.

/// Browsers take a cookie of such a name only over TLS, and only from the host itself: no other host of the domain can set it.
const HOST_PREFIX: &str = "__Host-";

/// One for each gateway of a host.
const MAX_COOKIES: usize = 16;

/// The value of `Set-Cookie` for a session that begins.
pub(super) fn opened(host: Option<&str>, id: &str, is_secure: bool) -> HeaderValue {
    let (name, attributes) = (name(host, is_secure), attributes(is_secure));
    cookie(&format!("{name}={id}; {attributes}"))
}

/// The value of `Set-Cookie` for a session that ends.
pub(super) fn ended(host: Option<&str>, is_secure: bool) -> HeaderValue {
    let (name, attributes) = (name(host, is_secure), attributes(is_secure));
    cookie(&format!("{name}=; Max-Age=0; {attributes}"))
}

/// What may be ids of sessions: the values of our cookies, of every port of this host.
pub(in crate::admin) fn session_ids(headers: &HeaderMap) -> Vec<&str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let is_ours = |name: &str| name.strip_prefix(HOST_PREFIX).unwrap_or(name).starts_with(DASHBOARD_COOKIE);
    pairs.filter(|(name, _)| is_ours(name)).map(|(_, value)| value).take(MAX_COOKIES).collect()
}

/// Cookies belong to a host with all its ports: two gateways of one host need two names.
fn name(host: Option<&str>, is_secure: bool) -> String {
    let prefix = if is_secure { HOST_PREFIX } else { "" };
    let port = host.and_then(|host| host.rsplit_once(':')?.1.parse::<u16>().ok());
    port.map_or_else(|| format!("{prefix}{DASHBOARD_COOKIE}"), |port| format!("{prefix}{DASHBOARD_COOKIE}_{port}"))
}

fn attributes(is_secure: bool) -> &'static str {
    if is_secure { "Path=/; HttpOnly; SameSite=Strict; Secure" } else { "Path=/; HttpOnly; SameSite=Strict" }
}

fn cookie(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("names and ids are plain letters")
}

// Where a browser has opened a session.

/// The address of a browser, and the host and port that it asked. A cookie that somebody has read is worth nothing elsewhere.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::admin) struct SessionPlace {
    network: IpAddr,
    host: Option<Box<str>>,
}

impl SessionPlace {
    pub(in crate::admin) fn of(request: &Request<Body>) -> Self {
        Self { network: network(peer(request)), host: host(request).map(|host| host.to_ascii_lowercase().into()) }
    }
}

/// The address that sent the request.
pub(in crate::admin) fn peer(request: &Request<Body>) -> IpAddr {
    request.extensions().get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |PeerAddress(peer)| *peer)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Request;

    use super::*;

    #[test]
    fn each_port_of_a_host_has_its_own_cookie() {
        let set = |host| opened(Some(host), "abc", false).to_str().unwrap().to_owned();
        assert_eq!(set("127.0.0.1:9090"), "portcullis_session_9090=abc; Path=/; HttpOnly; SameSite=Strict");
        assert!(set("[::1]:9091").starts_with("portcullis_session_9091="));
        assert!(set("admin.example").starts_with("portcullis_session="));
        assert!(ended(None, false).to_str().unwrap().contains("Max-Age=0"));
    }

    #[test]
    fn over_tls_a_browser_takes_it_from_this_host_alone() {
        let set = opened(Some("admin.example"), "abc", true);
        assert_eq!(set, "__Host-portcullis_session=abc; Path=/; HttpOnly; SameSite=Strict; Secure");
        let ended = ended(Some("admin.example:8443"), true).to_str().unwrap().to_owned();
        assert_eq!(ended, "__Host-portcullis_session_8443=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict; Secure");
    }

    #[test]
    fn only_our_cookies_are_read() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=b; portcullis_session_1=x; __Host-portcullis_session=y; __Host-a=z".parse().unwrap());
        assert_eq!(session_ids(&headers), ["x", "y"]);
        assert!(session_ids(&HeaderMap::new()).is_empty());
    }

    fn place() -> SessionPlace {
        SessionPlace::of(&Request::new(Body::empty()))
    }

    #[test]
    fn a_session_is_found_by_its_id_until_it_ends() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let (one, two) = (sessions.open(place(), now), sessions.open(place(), now));
        let found = |id: &str| sessions.csrf_token(&["other", id], &place(), now).map(CsrfToken::into_text);
        assert_eq!(found(&one.id), Some(one.csrf_token.clone().into_text()));
        assert!(!one.csrf_token.matches(two.csrf_token.into_text().as_bytes()));
        assert_eq!(found(""), None);
        sessions.end(&[&one.id]);
        assert_eq!(found(&one.id), None);
        assert!(found(&two.id).is_some());
        sessions.end_all();
        assert_eq!(found(&two.id), None);
    }

    #[test]
    fn a_session_ends_when_it_is_unused_and_when_it_is_old() {
        let (sessions, begin) = (Sessions::default(), Instant::now());
        let id = sessions.open(place(), begin).id;
        let is_open_after = |span| sessions.csrf_token(&[&id], &place(), begin + span).is_some();
        let mut span = Duration::ZERO;
        while span + LONGEST_UNUSED / 2 < LONGEST {
            span += LONGEST_UNUSED / 2;
            assert!(is_open_after(span), "{span:?}");
        }
        assert!(!is_open_after(LONGEST));
        let unused = sessions.open(place(), begin).id;
        assert!(sessions.csrf_token(&[&unused], &place(), begin + LONGEST_UNUSED).is_none());
    }

    #[test]
    fn the_longest_unused_makes_room_for_another() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let at = |second| now + Duration::from_secs(second);
        let (used, unused) = (sessions.open(place(), at(0)).id, sessions.open(place(), at(1)).id);
        assert!(sessions.csrf_token(&[&used], &place(), at(2)).is_some());
        for _ in 2..=MAX_SESSIONS {
            sessions.open(place(), at(3));
        }
        assert!(sessions.csrf_token(&[&used], &place(), at(3)).is_some());
        assert!(sessions.csrf_token(&[&unused], &place(), at(3)).is_none());
        assert_eq!(sessions.open.lock().len(), MAX_SESSIONS);
    }
}
